//! Properties of every run, for every path, scheme, setting and workload: drawn cases and checks.
//!
//! | module | holds |
//! |---|---|
//! | [`bounds`] | bounds on time and loss of one flow alone |
//! | [`case`] | a run as data |
//! | [`draw`] | drawing of cases |
//! | [`watch`] | a recorder that notes forbidden actions of senders |

pub mod bounds;
pub mod case;
pub mod draw;
pub mod watch;

use headstart_units::Span;
use proptest::prelude::*;

use self::case::{Case, Transfer};
use self::watch::Watch;
use crate::{Checker, ElementModel, NullRecorder, Seed};

/// Reasons why two runs of one seed differ.
const UNLIKE: &str =
    "a scheme draws no random numbers, reads no clock and keeps nothing from one connection to the next";

/// Runs the case and checks that everything is delivered once and that every element accounts for
/// its packets. No sender may do what is forbidden, and another run must be the same.
///
/// # Errors
/// The first property that does not hold.
pub fn check(case: &Case) -> Result<(), TestCaseError> {
    let plan = case.plan();
    let (summary, path, checker) = case.run(Checker::new(&ElementModel::of(&plan), Watch::new(case)));
    let (faults, watch) = checker.finish(&path);
    prop_assert!(faults.is_empty(), "the checker: {faults:#?}");
    prop_assert!(watch.faults.is_empty(), "the watch: {:#?}", watch.faults);

    prop_assert_eq!(summary.unfinished, 0, "flows were left over at {} s", summary.ended_at.as_secs_f64());
    for ((name, account), placed) in path.packet_counts().zip(plan.elements(Seed(0))) {
        // No event is left, so no packet is left inside.
        let out = account.delivered + account.total_dropped();
        let most = account.offered * if placed.plan.copies() { 2 } else { 1 };
        prop_assert!((account.offered..=most).contains(&out), "{name}: {account:?}");
    }
    prop_assert_eq!(watch.reports.len() as u64, summary.flows);
    for report in &watch.reports {
        let counts = &report.counts;
        prop_assert!(report.completed_at.is_some(), "not complete: {report:?}");
        let limited = report.limited.iter().map(|span| span.as_nanos()).sum();
        prop_assert_eq!(
            Some(Span::from_nanos(limited)),
            report.completion_time(),
            "time by limits: {:?}",
            report
        );
        prop_assert_eq!(report.read, report.written, "bytes read and written");
        prop_assert_eq!(report.delivered, report.written, "bytes delivered and written");
        let messages = watch.read.get(&report.serial).copied().unwrap_or_default();
        prop_assert_eq!(messages, report.read.get(), "bytes of messages and bytes read");
        prop_assert!(counts.bytes_sent >= report.delivered.get(), "{report:?}");
        let watched = &watch.flows[&report.serial];
        let early = if watch.sends_early() { counts.copies } else { 0 };
        let written = report.written.get();
        if early == 0 || watched.original_bytes > written {
            prop_assert_eq!(watched.original_bytes, written, "each byte an original once");
        }
        prop_assert_eq!(watched.originals + counts.retransmissions + counts.copies, counts.packets_sent);
        prop_assert_eq!(watched.copies, counts.copies);
        // 40 % lost there and back: a segment takes four transmissions, storms take more.
        prop_assert!(counts.packets_sent <= 100 + early + 30 * watched.originals, "a storm: {report:?}");
        // From the eighth on, SYNs share a number, and the handshake may be timed by the wrong one.
        if report.handshake_retransmissions < 7 {
            prop_assert!(report.min_rtt >= case.least_rtt(), "no path is that short: {report:?}");
        }
    }
    if case.transfer.iter().all(|transfer| matches!(transfer, Transfer::Pages(..))) {
        prop_assert!(watch.pages > 0 || summary.flows == 0);
    }
    prop_assert!(summary.events <= 100 * summary.data_packets + 10_000 * (1 + summary.flows), "{summary:?}");

    // A run does not depend on its recorder, and is the same each time.
    let (again, _, second) = case.run(Watch::new(case));
    let [events, others] = [summary.events, again.events];
    prop_assert!(summary == again, "the same seed gave other events, {others} after {events}: {UNLIKE}");
    let reports = [&watch, &second].map(|watch| format!("{:?}", watch.reports));
    prop_assert!(reports[0] == reports[1], "the same seed gave other flows: {UNLIKE}");
    let (unrecorded, _, NullRecorder) = case.run(NullRecorder);
    prop_assert!(summary == unrecorded, "the recorder changed the run: {UNLIKE}");
    Ok(())
}
