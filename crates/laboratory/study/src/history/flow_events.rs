//! The events of a run's only flow, and what they say of its start (WS Algorithm 1).
//!
//! The scheme's own state is not used: Eq. (1) is computed again from the acks that arrived.

use headstart_sim::FlowReport;
use headstart_sim::packet::{Body, Packet};
use headstart_sim::record::{ElementEvent, MessageReport, SenderEvent, SenderTrace};
use headstart_startup::Transmission;
use headstart_startup::scheme::wise_start::{DRAIN, MAINTENANCE, PROBE, SENDING};
use headstart_units::Time;

use crate::carrier::Observer;

/// Records all events of the only flow of a run.
#[derive(Debug, Default)]
pub struct FlowEvents {
    /// Events of the flow's sender.
    pub events: Vec<(Time, SenderTrace)>,
    /// Messages read, in order.
    pub messages: Vec<MessageReport>,
    /// Report at its end.
    pub report: Option<FlowReport>,
    /// Data packets offered to the bottleneck.
    pub offered: u64,
    /// Data packets that the bottleneck dropped.
    pub dropped: u64,
    /// Bytes of the dropped packets, headers included.
    pub dropped_bytes: u64,
}

impl Observer for FlowEvents {
    fn watches(&self) -> bool {
        true
    }

    fn flow(&mut self, report: &FlowReport) {
        self.report = Some(*report);
    }

    fn message(&mut self, report: &MessageReport) {
        self.messages.push(*report);
    }

    fn focus(&mut self, _: u64) -> bool {
        true
    }

    fn sender(&mut self, now: Time, trace: &SenderTrace) {
        self.events.push((now, *trace));
    }

    fn element(&mut self, _: Time, element: usize, event: ElementEvent, packet: &Packet) {
        if element != 0 || !matches!(packet.body, Body::Data { .. }) {
            return;
        }
        match event {
            ElementEvent::Accepted => self.offered += 1,
            ElementEvent::Refused(_) => {
                self.offered += 1;
                self.dropped += 1;
                self.dropped_bytes += u64::from(packet.size);
            }
            ElementEvent::Dropped(_) => {
                self.dropped += 1;
                self.dropped_bytes += u64::from(packet.size);
            }
            ElementEvent::Passed | ElementEvent::Delivered => {}
        }
    }
}

/// A hot start, reconstructed from events. Bytes, seconds, bytes per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Start {
    /// The window after the first ack: line 20.
    pub first_window: Option<f64>,
    /// Equation (1), from the acks up to the decision.
    pub est_btl_bw: Option<f64>,
    /// The smallest RTT of these acks.
    pub est_rt_prop: Option<f64>,
    /// The decision that ended Maintenance was Drain.
    pub is_drain: bool,
}

impl Start {
    /// Reads a start from a sender's events; `None` if it did not begin from a record.
    #[must_use]
    pub fn of(events: &[(Time, SenderTrace)]) -> Option<Self> {
        let established = events.iter().position(|(_, trace)| trace.event == SenderEvent::Established)?;
        if events[established].1.phase != SENDING {
            return None;
        }
        let mut start = Self::default();
        let mut acks: Vec<(Time, f64)> = vec![];
        let mut sent: Vec<(Time, u64)> = vec![];
        let mut is_lossy = false;
        for (at, trace) in &events[established + 1..] {
            match trace.event {
                SenderEvent::Sent { offset, payload, transmission: Transmission::Original } => {
                    sent.push((*at, offset + payload.get()));
                }
                SenderEvent::Lost { .. } | SenderEvent::Timeout => is_lossy = true,
                SenderEvent::Acked { acknowledged, newly } => {
                    start.first_window.get_or_insert(trace.window.get() as f64);
                    acks.push((*at, newly.get() as f64));
                    // The ack was caused by the newest segment that it covers.
                    if let Some((sent_at, _)) = sent.iter().rev().find(|(_, end)| *end == acknowledged) {
                        let rtt = at.since(*sent_at).as_secs_f64();
                        start.est_rt_prop = Some(start.est_rt_prop.map_or(rtt, |least: f64| least.min(rtt)));
                    }
                }
                _ => {}
            }
            if trace.phase != SENDING && trace.phase != MAINTENANCE {
                start.is_drain = trace.phase == DRAIN || (trace.phase != PROBE && !is_lossy);
                break;
            }
            // In a start that continues through losses, only the ack's losses or a timeout end it.
            is_lossy &= !matches!(trace.event, SenderEvent::Acked { .. });
        }
        if let (Some((first, _)), Some((last, _))) = (acks.first(), acks.last())
            && last > first
        {
            let bytes: f64 = acks[1..].iter().map(|(_, newly)| newly).sum();
            start.est_btl_bw = Some(bytes / last.since(*first).as_secs_f64());
        }
        Some(start)
    }

    /// Est_BtlBw x Est_RTprop.
    #[must_use]
    pub fn est_bdp(&self) -> Option<f64> {
        Some(self.est_btl_bw? * self.est_rt_prop?)
    }
}
