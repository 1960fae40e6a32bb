//! Starts that know the state of the path at their first byte, as a bound for those that do not.

use std::fmt::Debug;

use super::*;

/// The state of a run at the first byte of a flow, which no real sender can observe. Bytes are
/// payload, except for the queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Insight {
    /// The present time.
    pub now: Time,
    /// Bytes of packets that wait before the first element of the path.
    pub queue: Bytes,
    /// Connections whose first flight is in progress, and the bytes of it that were not sent yet.
    pub starting: u64,
    /// See `starting`.
    pub planned: Bytes,
    /// Connections past their first flight with more to send, and their bytes in flight.
    pub clocked: u64,
    /// See `clocked`.
    pub in_flight: Bytes,
}

/// Chooses how a flow starts by the state of the path at its first byte.
pub trait InformedStart: Debug {
    /// The scheme of a flow that starts with `prior`, and the prior that it gets.
    fn choose(&mut self, seen: &Insight, prior: &Prior) -> (Scheme, Prior);
}

impl<R: Recorder> Simulation<R> {
    /// Replaces the scheme and the prior of a flow whose group is informed.
    pub(super) fn inform(&mut self, id: FlowId, prior: &Prior) -> Prior {
        let Some((informed, start)) = &mut self.informed else { return *prior };
        if self.flows.get_mut(id).is_none_or(|flow| flow.group != *informed) {
            return *prior;
        }
        let queue = self.path.first_queue(self.now).1;
        let mut seen = Insight { now: self.now, queue, ..Insight::default() };
        for (other, flow) in self.flows.live() {
            if other == id || flow.state != ConnectionState::Established || flow.sender.is_done() {
                continue;
            }
            let planned = flow.sender.first_flight().saturating_sub(flow.sender.first_flight_sent());
            // After a loss the rest is sent as acks allow.
            if !planned.is_zero() && flow.sender.counts().lost == 0 {
                seen.starting += 1;
                seen.planned += planned;
            } else if flow.written > flow.sender.first_flight() || flow.sender.counts().lost > 0 {
                seen.clocked += 1;
                seen.in_flight += flow.sender.in_flight();
            }
        }
        let (scheme, prior) = start.choose(&seen, prior);
        let group = &self.groups[usize::from(*informed)];
        if let Some(flow) = self.flows.get_mut(id) {
            flow.sender.replace_scheme(scheme, group.base, &group.tcp);
        }
        prior
    }
}
