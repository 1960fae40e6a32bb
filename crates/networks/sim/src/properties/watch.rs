//! A recorder that notes forbidden actions of senders.

use std::collections::BTreeMap;

use crate::record::{MessageReport, SenderEvent, SenderTrace};
use crate::workload::PageReport;
use crate::{FlowReport, Recorder, TcpConfig};
use headstart_startup::Transmission;
use headstart_startup::catalogue::Name;
use headstart_startup::prior::Hint;
use headstart_units::{Bytes, Time};

use super::case::Case;

/// Actions of one sender.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Time and state at establishment.
    pub established: Option<(Time, SenderTrace)>,
    /// A segment was acknowledged or lost: the first flight no longer alone sets the pace.
    answered: bool,
    /// Number of segments sent for the first time.
    pub originals: u64,
    originals_in_flight: u64,
    /// Bytes sent for the first time.
    pub original_bytes: u64,
    /// Number of segments sent again unasked.
    pub copies: u64,
    /// Window at the last trace of an undisturbed recovery of the base controller.
    recovering_from: Option<Bytes>,
    timed_out: bool,
}

/// Records senders' events and notes forbidden ones.
#[derive(Debug)]
pub struct Watch {
    name: Name,
    hint: Option<Hint>,
    tcp: TcpConfig,
    serial: u64,
    /// Senders by the serial numbers of their flows.
    pub flows: BTreeMap<u64, Watched>,
    /// Reports of flows that have ended.
    pub reports: Vec<FlowReport>,
    /// Bytes of messages that were read, by flow.
    pub read: BTreeMap<u64, u64>,
    /// Number of pages fetched.
    pub pages: u64,
    /// The first forbidden actions, in words.
    pub faults: Vec<String>,
}

impl Watch {
    /// A watch over the case's senders.
    #[must_use]
    pub fn new(case: &Case) -> Self {
        Self {
            name: case.entry.name,
            hint: case.hint,
            tcp: case.tcp,
            serial: 0,
            flows: BTreeMap::new(),
            reports: vec![],
            read: BTreeMap::new(),
            pages: 0,
            faults: vec![],
        }
    }

    /// The scheme passes over data that it sent before its turn.
    #[must_use]
    pub fn sends_early(&self) -> bool {
        self.name == "rc3"
    }

    fn fault(&mut self, what: String) {
        if self.faults.len() < 10 {
            self.faults.push(format!("flow {}: {what}", self.serial));
        }
    }

    /// The most that a scheme may pace its first flight at, with its grant.
    fn granted(&self, at_start: &SenderTrace) -> Option<f64> {
        let rtt = at_start.smoothed_rtt.as_secs_f64();
        let window = at_start.window.get() as f64;
        match self.name.as_str() {
            "blitzstart" => {
                // RFC 5681: two segments whatever the hint.
                let least = 2.0 * self.tcp.mss.get() as f64 / rtt / 0.75;
                self.hint.map(|hint| (hint.bandwidth.as_bytes_per_sec() as f64 / 0.75).max(least))
            }
            "jump-start" | "halfback" | "halfback-forward" | "halfback-burst" => Some(window / rtt),
            "wise-start" | "wise-start-wa" | "s-cubic" | "careful-resume" => {
                at_start.pace.map(|pace| pace.as_bytes_per_sec() as f64)
            }
            _ => None,
        }
    }

    fn check_first_flight(&mut self, now: Time, trace: &SenderTrace) {
        let Some(watched) = self.flows.get(&self.serial) else { return };
        let Some((began, at_start)) = watched.established else { return };
        let Some(granted) = self.granted(&at_start) else { return };
        let pace = trace.pace.map(|pace| pace.as_bytes_per_sec() as f64);
        if let Some(pace) = pace
            && pace > granted * 1.000_1 + 2.0
        {
            self.fault(format!("pace of {pace} B/s in the first flight, {granted} B/s granted"));
        }
        if at_start.pace.is_some() {
            // One segment at once, and a pacer's quantum early.
            let mss = self.tcp.mss.get() as f64;
            let early = mss * f64::from(self.tcp.quantum + 1);
            let most = granted * 1.000_1 * now.since(began).as_secs_f64() + early + 2.0;
            let sent = self.flows[&self.serial].original_bytes as f64;
            if sent > most {
                self.fault(format!("{sent} bytes sent in the first flight, {most} granted"));
            }
        }
    }
}

impl Recorder for Watch {
    fn focus(&mut self, serial: u64) {
        self.serial = serial;
    }

    fn sender(&mut self, now: Time, trace: impl FnOnce() -> SenderTrace) {
        let trace = trace();
        let is_early = self.sends_early();
        let watched = self.flows.entry(self.serial).or_default();
        let mut faults = vec![];
        if trace.window < self.tcp.mss {
            faults.push(format!("a window of {} bytes in {}", trace.window.get(), trace.phase));
        }
        match trace.event {
            SenderEvent::Established => {
                if watched.established.is_some() {
                    faults.push("established twice".into());
                }
                watched.established = Some((now, trace));
            }
            SenderEvent::Sent { offset, payload, transmission } => {
                let Some((_, at_start)) = watched.established else {
                    return self.fault("sends before it is established".into());
                };
                match transmission {
                    Transmission::Original => {
                        if offset < watched.original_bytes || offset > watched.original_bytes && !is_early {
                            faults
                                .push(format!("original at {offset} after {} bytes", watched.original_bytes));
                        }
                        watched.originals += 1;
                        watched.original_bytes = offset + payload.get();
                        if offset < at_start.window.get() {
                            watched.originals_in_flight += 1;
                        }
                    }
                    Transmission::Copy => {
                        watched.copies += 1;
                        let budget = match self.name.as_str() {
                            "proactive" => watched.originals,
                            "rc3" => 4440,
                            "halfback" => watched.originals_in_flight,
                            "halfback-forward" | "halfback-burst" => watched.originals_in_flight / 2,
                            _ => 0,
                        };
                        if watched.copies > budget {
                            faults.push(format!("copy number {} of {budget}", watched.copies));
                        }
                    }
                    _ => {}
                }
            }
            SenderEvent::Acked { acknowledged, newly } => {
                watched.answered = true;
                if newly.is_zero() || acknowledged > watched.original_bytes && !is_early {
                    faults.push(format!("{acknowledged} acknowledged of {}", watched.original_bytes));
                }
            }
            SenderEvent::Lost { .. } => watched.answered = true,
            SenderEvent::Timeout => {
                watched.answered = true;
                watched.timed_out = true;
            }
        }
        // RFC 9438, RFC 5681: no growth while lost data is being repaired.
        watched.timed_out &= trace.in_recovery;
        let is_base = matches!(trace.phase, "avoidance") && self.name != "blitzstart";
        watched.recovering_from = if trace.in_recovery && !watched.timed_out && is_base {
            if let Some(before) = watched.recovering_from
                && trace.window > before
            {
                faults.push(format!(
                    "the window grows in recovery, {} to {}",
                    before.get(),
                    trace.window.get()
                ));
            }
            Some(trace.window)
        } else {
            None
        };
        let is_first_flight = !watched.answered;
        for fault in faults {
            self.fault(fault);
        }
        if is_first_flight {
            self.check_first_flight(now, &trace);
        }
    }

    fn message(&mut self, report: &MessageReport) {
        *self.read.entry(report.serial).or_default() += report.bytes.get();
    }

    fn page(&mut self, _: &PageReport) {
        self.pages += 1;
    }

    fn flow(&mut self, report: &FlowReport) {
        self.reports.push(*report);
    }
}
