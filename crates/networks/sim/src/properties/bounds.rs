//! Bounds on one flow alone, which a scheme that never grows, starves itself or is deaf to loss
//! does not keep, although it delivers everything once.
//!
//! | path, with an RTT of 50 ms | transfer | bound |
//! |---|---|---|
//! | 100 Mbit/s, a buffer without end | 10 MB | 8.4 s |
//! | 10 Mbit/s, a BDP of buffer | 20 MB | 50 s, and 20 % of packets lost |
//!
//! A window takes 8.4 s that begins at one segment and grows by one in two round trips: half as
//! fast as congestion avoidance (RFC 5681 §3.1). In 50 s a third of the link is used; a window that
//! is halved at each loss fills three quarters of it without any buffer. A start may overshoot by
//! the receiver's window of 1 MB, 5 % of the packets, and each loss after it calls for a cut.

use headstart_net::Limit;
use headstart_startup::base;
use headstart_startup::catalogue::Entry;
use headstart_startup::prior::{Access, Hint};
use headstart_units::{Bytes, Rate, Span, Time};

use super::case::{Case, Transfer, link};
use crate::record::{SenderEvent, SenderTrace};
use crate::tcp::TcpConfig;
use crate::workload::Opener;
use crate::{FlowReport, Recorder};

/// The round-trip time of both paths.
const RTT: Span = Span::from_millis(50);
/// The most packets that may be lost, in percent.
const MOST_LOST: u64 = 20;

/// The flow, and the limits on its sender.
#[derive(Debug, Default)]
struct Limits {
    report: Option<FlowReport>,
    /// Window at establishment.
    first: Bytes,
    /// The largest window.
    most: Bytes,
    /// The slowest pace, if there was one.
    slowest: Option<Rate>,
}

impl Recorder for Limits {
    fn sender(&mut self, _: Time, trace: impl FnOnce() -> SenderTrace) {
        let trace = trace();
        if trace.event == SenderEvent::Established {
            self.first = trace.window;
        }
        self.most = self.most.max(trace.window);
        self.slowest = [self.slowest, trace.pace].into_iter().flatten().min();
    }

    fn flow(&mut self, report: &FlowReport) {
        self.report = Some(*report);
    }
}

/// One flow of a known size alone on a link.
fn alone(entry: Entry, rate: Rate, buffer: Limit, size: u64, receive_window: u64) -> Limits {
    let way = || vec![link(rate, RTT / 2, buffer)];
    let case = Case {
        forward: way(),
        reverse: way(),
        entry,
        base: base::Kind::Cubic,
        tcp: TcpConfig { receive_window: Bytes::new(receive_window), ..TcpConfig::default() },
        hint: Some(Hint { bandwidth: rate, access: Access::Unknown }),
        history_capacity: 1,
        transfer: vec![Transfer::Flows(vec![(0, size)], Opener::Sender, true)],
        peers: 1,
        seed: 1,
    };
    case.run(Limits::default()).2
}

/// Checks the bounds.
///
/// # Errors
/// With the first one that does not hold, behind the scheme's method and the field that it set. Or
/// another run of a flow differs.
///
/// # Panics
/// Never: a run reports every flow.
pub fn check(entry: Entry) -> Result<(), String> {
    let slow = Rate::from_mbit_per_sec(10);
    let paths = [
        (Rate::from_mbit_per_sec(100), Limit::NONE, 10_000_000, 4_000_000, Span::from_millis(8_400)),
        (slow, Limit::bytes(slow * RTT), 20_000_000, 1_000_000, Span::from_secs(50)),
    ];
    for (rate, buffer, size, receive_window, most) in paths {
        let limits = alone(entry, rate, buffer, size, receive_window);
        let report = limits.report.expect("a run reports its flow");
        let again = || alone(entry, rate, buffer, size, receive_window).report;
        if rate == slow && format!("{:?}", again()) != format!("{:?}", Some(report)) {
            return Err(format!("the same seed gave another flow: {}", super::UNLIKE));
        }
        let path = format!("of {} alone on {rate} and {RTT}", Bytes::new(size));
        let took = report.completion_time().unwrap_or(Span::MAX);
        let [first, greatest] = [limits.first, limits.most].map(Bytes::get);
        if took > most {
            // A pace that alone would have taken as long, else the window.
            let is_pace = limits.slowest.is_some_and(|pace| (pace * most).get() < size);
            let fault = match limits.slowest.filter(|_| is_pace) {
                Some(pace) => format!("pace_bytes_per_s: found {}", pace.as_bytes_per_sec()),
                None => format!("window_bytes: found {first} at first and {greatest} at most"),
            };
            return Err(format!("allowance: {fault}: a flow {path} took {took}, expected {most} at most"));
        }
        let (lost, sent) = (report.counts.lost, report.counts.packets_sent);
        if lost * 100 > sent * MOST_LOST {
            return Err(format!(
                "on_congestion: window_bytes: found {greatest} at most: a flow {path} lost {lost} of {sent} packets, expected \
                 {MOST_LOST} % at most"
            ));
        }
    }
    Ok(())
}
