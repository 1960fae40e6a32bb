//! One start, step by step as WS Algorithm 1 numbers them, reconstructed from its sender's events.
//!
//! The scheme's own state is not used: Eq. (1) is computed again from the acks that arrived, for
//! comparison with the scheme's decision.

use headstart_sim::FlowReport;
use headstart_sim::packet::{Body, Packet};
use headstart_sim::record::{ElementEvent, MessageReport, SenderEvent, SenderTrace};
use headstart_startup::Transmission;
use headstart_startup::scheme::wise_start::{self, DRAIN, MAINTENANCE, PROBE, SENDING};
use headstart_units::Time;

use crate::carrier::Observer;

/// Records all events of the only flow of a run.
#[derive(Debug, Default)]
pub struct FlowEvents {
    /// Its sender's events.
    pub events: Vec<(Time, SenderTrace)>,
    /// Messages read, in order.
    pub messages: Vec<MessageReport>,
    /// Report at its end.
    pub report: Option<FlowReport>,
    /// Data packets offered to the bottleneck.
    pub offered: u64,
    /// Data packets that the bottleneck dropped.
    pub dropped: u64,
    /// Their bytes, headers included.
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

/// End of the Maintenance phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The path has spare capacity: Probe.
    Probe,
    /// It has none: Drain.
    Drain,
    /// A loss preceded the decision.
    Lost,
}

/// A hot start, reconstructed from events. Bytes, seconds, bytes per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Start {
    /// The window at establishment: CWND of line 6.
    pub window: f64,
    /// The pace at establishment: line 7.
    pub pace: f64,
    /// Sending rates of the intervals of lines 9 to 17: below kappa, from there, from 1.5 kappa on.
    pub rates: [Option<f64>; 3],
    /// In flight when the first ack arrived, and the window and the pace after it: lines 20 and 21.
    pub first_ack: Option<FirstAck>,
    /// Acks until the decision, that of the decision included: gamma.
    pub acks: usize,
    /// Equation (1), from the acks up to the decision.
    pub est_btl_bw: Option<f64>,
    /// The smallest RTT of these acks.
    pub est_rt_prop: Option<f64>,
    /// The window with which the estimate is compared.
    pub window_before: f64,
    /// True if a pace was still set then: the start was application-limited.
    pub was_paced: bool,
    /// Decision that followed; `None` if the flow ended first.
    pub decision: Option<Decision>,
}

/// Effect of the first ack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstAck {
    /// In flight before it.
    pub in_flight: f64,
    /// The window after it.
    pub window: f64,
    /// True while packets are paced.
    pub is_paced: bool,
}

impl Start {
    /// Reads a start from a sender's events; `None` if it did not begin from a record.
    #[must_use]
    pub fn of(events: &[(Time, SenderTrace)]) -> Option<Self> {
        let established = events.iter().position(|(_, trace)| trace.event == SenderEvent::Established)?;
        let begin = &events[established].1;
        if begin.phase != SENDING {
            return None;
        }
        let mut start = Self {
            window: begin.window.get() as f64,
            pace: begin.pace.map_or(f64::INFINITY, |pace| pace.as_bytes_per_sec() as f64),
            ..Self::default()
        };
        let mut acks: Vec<(Time, f64)> = vec![];
        let mut sent: Vec<(Time, u64, f64)> = vec![];
        let mut is_lossy = false;
        let mut before = begin;
        for (at, trace) in &events[established + 1..] {
            match trace.event {
                SenderEvent::Sent { offset, payload, transmission: Transmission::Original } => {
                    sent.push((*at, offset + payload.get(), payload.get() as f64));
                }
                SenderEvent::Lost { .. } | SenderEvent::Timeout => is_lossy = true,
                SenderEvent::Acked { acknowledged, newly } => {
                    let newly = newly.get() as f64;
                    if acks.is_empty() {
                        start.rates = rates(&sent);
                        start.first_ack = Some(FirstAck {
                            in_flight: trace.in_flight.get() as f64 + newly,
                            window: trace.window.get() as f64,
                            is_paced: trace.pace.is_some(),
                        });
                    }
                    acks.push((*at, newly));
                    // The ack was caused by the newest segment that it covers.
                    if let Some((sent_at, ..)) = sent.iter().rev().find(|(_, end, _)| *end == acknowledged) {
                        let rtt = at.since(*sent_at).as_secs_f64();
                        start.est_rt_prop = Some(start.est_rt_prop.map_or(rtt, |least: f64| least.min(rtt)));
                    }
                }
                _ => {}
            }
            if trace.phase != SENDING && trace.phase != MAINTENANCE {
                start.decision = Some(match (is_lossy, trace.phase) {
                    (_, PROBE) => Decision::Probe,
                    (_, DRAIN) | (false, _) => Decision::Drain,
                    (true, _) => Decision::Lost,
                });
                break;
            }
            // In a start that continues through losses, only the ack's losses or a timeout end it.
            is_lossy &= !matches!(trace.event, SenderEvent::Acked { .. });
            before = trace;
        }
        start.window_before = before.window.get() as f64;
        start.was_paced = before.pace.is_some();
        start.acks = acks.len();
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

/// The rate of each interval: bytes sent over the time until the next transmission.
fn rates(sent: &[(Time, u64, f64)]) -> [Option<f64>; 3] {
    // The pace changes with the segment that reaches the bound: the gap after it is the new one.
    let of = |from: usize, to: usize| -> Option<f64> {
        let part = sent.get(from..to.min(sent.len()))?;
        let (first, last) = (part.first()?, part.last()?);
        let bytes: f64 = part[..part.len() - 1].iter().map(|(.., bytes)| bytes).sum();
        let seconds = last.0.since(first.0).as_secs_f64();
        (part.len() > 2 && seconds > 0.0).then(|| bytes / seconds)
    };
    // WS Algorithm 1: the pace changes after kappa segments, and after one and a half of it.
    let kappa = wise_start::Params::default().kappa as usize;
    [of(0, kappa), of(kappa, kappa * 3 / 2), of(kappa * 3 / 2, sent.len())]
}
