//! One connection with data in both directions: two flows with one handshake.
//!
//! ```text
//!  initiator (sender of the first half)                   acceptor (sender of the second)
//!    SYN of the first half         ---------------------->
//!                                  <--  SYN-ACK of the second half, if it has a request to routers
//!                                  <--  SYN-ACK of the first half, with the answer to its request
//!    ack: request of the second half  ------------------->  the second half is established
//!    data of the first half        ---------------------->  ... or with this, if the ack was lost
//! ```
//!
//! # Deviations
//!
//! - In TCP the acceptor's request to routers and its answer to the initiator's are options of the
//!   same SYN-ACK. Here a packet has a place for one of them, so the request has a packet of its
//!   own. If only that one is lost nothing was granted; the handshake does not wait for it.

use super::*;

impl<R: Recorder> Simulation<R> {
    /// The second half opens with the first one's handshake.
    pub(super) fn join(&mut self, first: FlowId, second: FlowId) {
        let is_opening = |flow: &mut Flow| {
            flow.state == ConnectionState::Opening && !flow.opener_done && flow.opener == Opener::Sender
        };
        let Some(true) = self.flows.get_mut(first).map(is_opening) else { return self.send_syn(second) };
        for (one, other) in [(first, second), (second, first)] {
            if let Some(flow) = self.flows.get_mut(one) {
                flow.other_half = Some(other);
            }
        }
    }

    /// The first half's SYN has arrived, and its SYN-ACK follows this.
    pub(super) fn answer_other(&mut self, id: FlowId, attempt: u8) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(id) else { return };
        if flow.opener != Opener::Receiver || flow.opener_done {
            return;
        }
        // As in `on_syn`: a copy of a SYN arrives later than the one that is timed.
        let at = usize::from(attempt);
        if flow.attempts[at] == Time::ZERO || at == ATTEMPTS - 1 {
            flow.attempts[at] = now;
        }
        let (route, group) = (Self::forward(flow), flow.group);
        let note = self.question(id, attempt);
        if note != RouterOption::Nothing {
            let size = self.groups[usize::from(group)].tcp.syn.get() as u16;
            self.send(id, route, size, Ecn::NotCapable, Body::SynAck { attempt, note });
        }
    }

    /// The first half's SYN-ACK has arrived: the ack of it is the second half's request.
    pub(super) fn complete_other(&mut self, first: FlowId, attempt: u8) {
        let Some(flow) = self.flows.get_mut(first) else { return };
        let (repeats, Some(other)) = (flow.client_repeats, flow.other_half) else { return };
        let Some(flow) = self.flows.get_mut(other) else { return };
        flow.client_repeats = repeats;
        if !flow.opener_done {
            flow.opener_done = true;
            flow.attempt = attempt;
            self.send_request(other);
        }
    }

    /// Data of the first half has arrived: its sender received the acceptor's SYN-ACK.
    pub(super) fn establish_other(&mut self, first: FlowId) {
        let Some(flow) = self.flows.get_mut(first) else { return };
        if flow.opener != Opener::Sender {
            return;
        }
        let Some(other) = flow.other_half.take() else { return };
        let Some(flow) = self.flows.get_mut(other) else { return };
        flow.other_half = None;
        if flow.state == ConnectionState::Opening {
            let (number, attempt) = (flow.requests_sent, flow.attempt);
            self.on_request(other, number, attempt, RouterOption::Nothing);
        }
    }
}
