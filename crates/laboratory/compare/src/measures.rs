//! The measures of a comparison, each declared once: its column, its meaning, its value by runs,
//! and its column in the terminal.
//!
//! `race.csv`, `race.json`, `seeds.csv`, `sweep.csv`, the tables and definitions of reports, and
//! `docs/data.md` are made of these rows. docs/definitions.md has the formulas.

use headstart_report::rows::Value;
use headstart_sim::{Histogram, Totals};
use headstart_startup::EndedBy;
use headstart_startup::sending::LimitedBy;
use headstart_units::Span;

use crate::race::{Measured, SchemeResult, invalid};
use headstart_report::table::{Better, Column};
use headstart_study::runner::JobResult;
use headstart_study::setup::{BESIDE, LONG, TESTED};

/// The runs of one scheme with one seed.
#[derive(Clone, Copy, Debug)]
pub struct SeedRuns<'a> {
    /// All flows run the scheme.
    pub alone: &'a JobResult,
    /// Every second flow runs the reference.
    pub mixed: &'a JobResult,
    /// All flows run the reference.
    pub reference: &'a JobResult,
    /// Pages were fetched, so times are page response times.
    pub is_pages: bool,
}

impl SeedRuns<'_> {
    /// The flows of the scheme alone.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.alone.groups[usize::from(TESTED)]
    }

    fn times(&self) -> &Histogram {
        times(self.totals(), self.is_pages)
    }

    /// Times of the reference's flows in one of the runs; with few flows there may be none.
    fn beside(&self, run: &JobResult) -> f64 {
        millis(times(&run.groups[usize::from(BESIDE)], self.is_pages).mean())
    }
}

/// Times of one group of one run: pages where there are any, flows otherwise.
pub fn times(totals: &Totals, is_pages: bool) -> &Histogram {
    if is_pages { &totals.pages } else { &totals.completion }
}

/// The value of a measure, by its kind.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// Mean over the seeds of a number above zero; unknown if it is in one of them.
    Mean(fn(&SeedRuns<'_>) -> f64),
    /// Mean of a number above zero over the seeds that have it.
    KnownMean(fn(&SeedRuns<'_>) -> f64),
    /// Mean over the seeds of a share, in percent.
    Percent(fn(&SeedRuns<'_>) -> f64),
    /// Quotient of the means of two numbers, paired by seed.
    Quotient(fn(&SeedRuns<'_>) -> (f64, f64)),
    /// Quotient of the means of two numbers that each seed has as measures of their own.
    WholeQuotient(fn(&SeedRuns<'_>) -> (f64, f64)),
    /// A count that all carriers have.
    Count(fn(&Totals) -> u64),
    /// A count by senders that report to the laboratory.
    SenderCount(fn(&Totals) -> u64),
    /// A value of each seed only.
    Seed(fn(&SeedRuns<'_>) -> Value),
    /// A value of all seeds together only.
    Whole(fn(&SchemeResult) -> Value),
    /// A value of each seed, and one of all.
    Both(fn(&SeedRuns<'_>) -> Value, fn(&SchemeResult) -> Value),
}

/// A column of the terminal's table.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Place among these columns, which are not in the order of the files.
    place: u8,
    /// Title; of the mean time of pages `page`.
    pub title: &'static str,
    unit: &'static str,
    /// 0 for as many as give the smallest number three digits.
    pub decimals: u8,
    /// In a narrow terminal the lowest are left out first.
    priority: u8,
    /// The good end; none if more may be as good as less.
    pub better: Option<Better>,
}

const fn lower(
    place: u8,
    title: &'static str,
    unit: &'static str,
    decimals: u8,
    priority: u8,
) -> Option<Shown> {
    Some(Shown { place, title, unit, decimals, priority, better: Some(Better::Lower) })
}

impl Shown {
    /// The column's head.
    #[must_use]
    pub fn column(&self) -> Column {
        let head = Column::number(self.title, self.unit);
        Column { better: self.better, ..head.priority(self.priority) }
    }
}

/// A measure.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Column of the files.
    pub name: &'static str,
    /// Meaning, for users; empty if the row before has it.
    pub about: &'static str,
    /// Value.
    pub of: Of,
    /// Column of the terminal, if it has one.
    pub shown: Option<Shown>,
}

/// The measures, in the order of the files' columns.
#[rustfmt::skip]
pub const MEASURES: &[Measure] = &[
    Measure { name: "mean_ms", about: "Completion time: from the first SYN to the last payload byte at the receiver, handshake included; of all flows that began after the warm-up. A flow that the run's end cuts off counts with its age. Pages: from the first SYN to the last byte of the last object.", of: Of::Mean(|it| millis(it.times().mean())), shown: lower(1, "mean", "ms", 0, 9) },
    Measure { name: "mean_ms_low", about: "", of: Of::Whole(|it| number(it.measured["mean_ms"].low)), shown: None },
    Measure { name: "mean_ms_high", about: "", of: Of::Whole(|it| number(it.measured["mean_ms"].high)), shown: None },
    Measure { name: "p50_ms", about: "", of: Of::Mean(|it| millis(it.times().quantile(500))), shown: lower(2, "p50", "ms", 0, 5) },
    Measure { name: "p99_ms", about: "", of: Of::Mean(|it| millis(it.times().quantile(990))), shown: lower(3, "p99", "ms", 0, 7) },
    Measure { name: "mean_without_handshake_ms", about: "Mean time from establishment at the sender to the last byte; finished flows only.", of: Of::Mean(|it| millis(it.totals().transfer.mean())), shown: None },
    Measure { name: "mean_round_trips", about: "Mean completion time divided by the smallest RTT that the flow itself measured.", of: Of::Mean(|it| it.totals().mean_rounds()), shown: lower(4, "in RTTs", "", 1, 4) },
    Measure { name: "loss_percent", about: "Packets that the bottleneck's queue dropped, as a share of those offered to it, in per cent.", of: Of::Percent(|it| it.alone.bottleneck.1 as f64 / (it.alone.bottleneck.0 as f64).max(1.0)), shown: lower(6, "dropped by queue", "%", 2, 6) },
    Measure { name: "random_loss_percent", about: "With --loss or --burst-loss: packets lost at random behind the bottleneck, as a share of those that got there, in per cent.", of: Of::Percent(|it| it.alone.at_random.share().unwrap_or(f64::NAN)), shown: lower(7, "lost at random", "%", 2, 6) },
    Measure { name: "bytes_sent_over_useful", about: "Payload bytes sent, all transmissions and copies, over payload bytes delivered once.", of: Of::Mean(overhead), shown: lower(8, "sent/useful", "", 2, 5) },
    Measure { name: "beside_mean_ms", about: "Mean completion time of the reference's flows, concurrent with the scheme's.", of: Of::Seed(|it| number(it.beside(it.mixed))), shown: None },
    Measure { name: "reference_mean_ms", about: "Mean completion time of the same flows where all are the reference's; `harm` is the quotient.", of: Of::Seed(|it| number(it.beside(it.reference))), shown: None },
    Measure { name: "harm", about: "In a run of its own every second flow is the reference (--reference), by default iw10: their mean completion time, over that of the same flows when everybody is the reference. Above 1 the scheme costs others time. The intervals of all schemes but the reference hold at once (95 %, Bonferroni).", of: Of::Quotient(|it| (it.beside(it.mixed), it.beside(it.reference))), shown: lower(9, "harm", "", 3, 9) },
    Measure { name: "harm_low", about: "", of: Of::Whole(|it| number(it.measured["harm"].low)), shown: None },
    Measure { name: "harm_high", about: "", of: Of::Whole(|it| number(it.measured["harm"].high)), shown: None },
    Measure { name: "long_delivered_bytes", about: "Bytes that long flows delivered, concurrent with the scheme's.", of: Of::Seed(|it| Value::Count(long(it.alone))), shown: None },
    Measure { name: "reference_long_delivered_bytes", about: "Bytes that long flows delivered, concurrent with the reference's.", of: Of::Seed(|it| Value::Count(long(it.reference))), shown: None },
    Measure { name: "long_flow_share", about: "With --background: bytes delivered by long flows, over those delivered when the short ones are the reference. Intervals as of `harm`.", of: Of::WholeQuotient(|it| (long(it.alone) as f64, long(it.reference) as f64)), shown: Some(Shown { place: 10, title: "long flows", unit: "", decimals: 2, priority: 8, better: Some(Better::Higher) }) },
    Measure { name: "flows", about: "Flows that began after the warm-up, all seeds together; of pages their connections.", of: Of::Count(|it| it.flows), shown: None },
    Measure { name: "unfinished", about: "Flows that the end of the run cut off; they count with their age.", of: Of::Count(|it| it.unfinished), shown: None },
    Measure { name: "retransmissions", about: "Segments sent again, probes included, copies not.", of: Of::SenderCount(|it| it.counts.retransmissions), shown: None },
    Measure { name: "copies", about: "Segments sent twice before anything was missing.", of: Of::SenderCount(|it| it.counts.copies), shown: None },
    Measure { name: "timeouts", about: "Retransmission timeouts.", of: Of::SenderCount(|it| it.counts.timeouts), shown: None },
    Measure { name: "probes", about: "Probes sent because acks stopped coming.", of: Of::Whole(|it| counted(it.has_counts, it.totals.counts.probes)), shown: None },
    Measure { name: "duplicates", about: "Segments that arrived although they had arrived before.", of: Of::Whole(|it| Value::Count(it.totals.duplicates)), shown: None },
    Measure { name: "ahead_percent", about: "Starts that were ahead of slow start, as a share of all, in per cent: before any loss a byte left that slow start from ten packets would have sent later. A flow within eleven packets cannot be.", of: Of::Percent(|it| if it.alone.has_counts { it.totals().counts.ahead as f64 / it.totals().flows as f64 } else { f64::NAN }), shown: Some(Shown { place: 5, title: "ahead of slow start", unit: "%", decimals: 0, priority: 3, better: None }) },
    Measure { name: "handshake_percent", about: "Share of the time of finished flows before the connection was established at the sender, in per cent. With the next six it is 100.", of: Of::Percent(|it| limited(it, LimitedBy::Handshake)), shown: None },
    Measure { name: "window_percent", about: "Share in which the congestion window held back the next packet.", of: Of::Percent(|it| limited(it, LimitedBy::Window)), shown: None },
    Measure { name: "pacer_percent", about: "Share in which the pacer held back the next packet.", of: Of::Percent(|it| limited(it, LimitedBy::Pacer)), shown: None },
    Measure { name: "receiver_percent", about: "Share in which the receiver's window held back the next packet.", of: Of::Percent(|it| limited(it, LimitedBy::Receiver)), shown: None },
    Measure { name: "application_percent", about: "Share in which the application had nothing to send.", of: Of::Percent(|it| limited(it, LimitedBy::Application)), shown: None },
    Measure { name: "recovery_percent", about: "Share in which lost data was under repair, or a timer had to find the loss.", of: Of::Percent(|it| limited(it, LimitedBy::Recovery)), shown: None },
    Measure { name: "path_percent", about: "Share in which all was sent, and the last bytes were on the path.", of: Of::Percent(|it| limited(it, LimitedBy::Path)), shown: None },
    Measure { name: "slow_start_decision_percent", about: "Flows whose slow start ended by the scheme's decision, on growing delay or with its flight, as a share of all, in per cent.", of: Of::Percent(|it| ended(it, EndedBy::Decision)), shown: None },
    Measure { name: "slow_start_loss_percent", about: "Flows whose slow start ended by a loss.", of: Of::Percent(|it| ended(it, EndedBy::Loss)), shown: None },
    Measure { name: "slow_start_mark_percent", about: "Flows whose slow start ended by a CE mark.", of: Of::Percent(|it| ended(it, EndedBy::Mark)), shown: None },
    Measure { name: "slow_start_timeout_percent", about: "Flows whose slow start ended by a timeout.", of: Of::Percent(|it| ended(it, EndedBy::Timeout)), shown: None },
    Measure { name: "slow_start_window_kb", about: "The mean window at these ends, before the answer, in kilobytes. The loss point of a flow alone on the path is its BDP and buffer, which a race prints.", of: Of::Whole(|it| number(end_window(&it.totals))), shown: None },
    Measure { name: "history_hit_rate", about: "Starts that could draw on a record of their peer, as a share of all.", of: Of::Whole(|it| number(it.history_hits())), shown: None },
    Measure { name: "history_bytes_per_peer", about: "Memory of the history for each peer that it remembers.", of: Of::Whole(|it| Value::Count(it.history_bytes_per_peer as u64)), shown: None },
    Measure { name: "rate_requests", about: "Starts that requested a rate of routers.", of: Of::Whole(|it| Value::Count(it.totals.rate_requests)), shown: None },
    Measure { name: "rate_grants", about: "Starts that were granted a rate.", of: Of::Whole(|it| Value::Count(it.totals.granted)), shown: None },
    Measure { name: "granted_starts_with_loss", about: "Granted starts whose first flight lost something.", of: Of::Whole(|it| Value::Count(it.totals.granted_and_failed)), shown: None },
    Measure { name: "fingerprint", about: "A hash over all events of the runs, equal for equal runs: text that begins with `fp:`; empty in the emulator, where no two runs are equal.", of: Of::Whole(|it| Value::Text(it.fingerprint())), shown: None },
    Measure { name: "invalid_runs", about: "Runs that the machine was too busy for (`--in emulator`); with one of them the row says nothing.", of: Of::Both(|it| Value::Count(invalid([it.alone, it.mixed, it.reference]).0 as u64), |it| Value::Count(it.invalid.0 as u64)), shown: None },
    Measure { name: "throughput_bits_per_s", about: "Bytes that came out of the bottleneck, over the time of the run.", of: Of::KnownMean(throughput), shown: None },
    Measure { name: "utilisation_percent", about: "Bytes that came out of the bottleneck, headers included, over what it could carry from the beginning to the end of the last flow.", of: Of::KnownMean(|it| 100.0 * it.alone.bottleneck_bytes as f64 / it.alone.bottleneck_capacity as f64), shown: Some(Shown { place: 12, title: "utilisation", unit: "%", decimals: 1, priority: 1, better: None }) },
    Measure { name: "queueing_delay_mean_ms", about: "Mean time from a packet's arrival at the bottleneck until its first byte is sent; empty in the emulator.", of: Of::KnownMean(|it| it.alone.waits.map_or(f64::NAN, |(mean, _)| mean as f64 / 1e6)), shown: None },
    Measure { name: "queueing_delay_p95_ms", about: "Time from a packet's arrival at the bottleneck until its first byte is sent: 95 % of packets wait no longer.", of: Of::KnownMean(|it| it.alone.waits.map_or(f64::NAN, |(_, p95)| p95 as f64 / 1e6)), shown: Some(Shown { place: 13, title: "queue p95", unit: "ms", decimals: 1, priority: 2, better: None }) },
    Measure { name: "media_delay_p95_ms", about: "With --media: 95 % of the real-time flow's packets that arrive are under way no longer.", of: Of::KnownMean(|it| millis(it.alone.media.delays.quantile(950))), shown: None },
    Measure { name: "media_loss_percent", about: "Its packets that did not arrive, as a share of all.", of: Of::Percent(|it| it.alone.media.loss().unwrap_or(f64::NAN)), shown: None },
    Measure { name: "jain_index", about: "Jain's fairness index of the rates of the scheme's flows.", of: Of::KnownMean(|it| it.totals().jain().unwrap_or(f64::NAN)), shown: None },
    Measure { name: "long_jain_index", about: "The same of long flows.", of: Of::KnownMean(|it| it.alone.groups[usize::from(LONG)].jain().unwrap_or(f64::NAN)), shown: None },
    Measure { name: "slowdown_mean", about: "Mean of completion time over the fastest that the flow could be on an empty path: the handshake and all of it at the bottleneck's rate.", of: Of::KnownMean(|it| millis(it.totals().slowdown.mean())), shown: Some(Shown { place: 11, title: "slowdown", unit: "", decimals: 2, priority: 2, better: None }) },
    Measure { name: "slowdown_p99", about: "99th percentile of the same.", of: Of::KnownMean(|it| millis(it.totals().slowdown.quantile(990))), shown: None },
    Measure { name: "mean_ms_to_10kB", about: "Mean completion time of the flows of these sizes.", of: Of::KnownMean(|it| millis(it.totals().mean_of_size(0))), shown: None },
    Measure { name: "mean_ms_to_100kB", about: "", of: Of::KnownMean(|it| millis(it.totals().mean_of_size(1))), shown: None },
    Measure { name: "mean_ms_to_1MB", about: "", of: Of::KnownMean(|it| millis(it.totals().mean_of_size(2))), shown: None },
    Measure { name: "mean_ms_to_10MB", about: "", of: Of::KnownMean(|it| millis(it.totals().mean_of_size(3))), shown: None },
    Measure { name: "mean_ms_above_10MB", about: "", of: Of::KnownMean(|it| millis(it.totals().mean_of_size(4))), shown: None },
];

impl Measure {
    /// The measure with its interval over these seeds; `None` of a count or a word.
    #[must_use]
    pub fn measured(&self, seeds: &[SeedRuns<'_>]) -> Option<Measured> {
        let known = |of: fn(&SeedRuns<'_>) -> f64| -> Vec<f64> {
            seeds.iter().map(of).filter(|value| value.is_finite()).collect()
        };
        Some(match self.of {
            Of::Mean(of) => Measured::positive(seeds.iter().map(of).collect()),
            Of::KnownMean(of) => Measured::positive(known(of)),
            Of::Percent(of) => Measured::percent(&known(of)),
            Of::Quotient(of) | Of::WholeQuotient(of) => {
                let pairs = seeds.iter().map(of).filter(|(_, otherwise)| otherwise.is_finite());
                let (suffered, otherwise): (Vec<f64>, Vec<f64>) = pairs.unzip();
                Measured::ratio(&suffered, &otherwise)
            }
            _ => return None,
        })
    }

    /// The field of `seeds.csv`; `None` if a single seed has none.
    #[must_use]
    pub fn of_seed(&self, runs: &SeedRuns<'_>) -> Option<Value> {
        Some(match self.of {
            Of::Mean(of) | Of::KnownMean(of) => number(of(runs)),
            Of::Percent(of) => number(100.0 * of(runs)),
            Of::Quotient(of) => {
                let (one, other) = of(runs);
                number(one / other)
            }
            Of::Count(of) => Value::Count(of(runs.totals())),
            Of::SenderCount(of) => counted(runs.alone.has_counts, of(runs.totals())),
            Of::Seed(of) | Of::Both(of, _) => of(runs),
            Of::Whole(_) | Of::WholeQuotient(_) => return None,
        })
    }

    /// The field of `race.csv`; `None` if only a single seed has one.
    #[must_use]
    pub fn of_scheme(&self, result: &SchemeResult) -> Option<Value> {
        Some(match self.of {
            Of::Count(of) => Value::Count(of(&result.totals)),
            Of::SenderCount(of) => counted(result.has_counts, of(&result.totals)),
            Of::Whole(of) | Of::Both(_, of) => of(result),
            Of::Seed(_) => return None,
            _ => number(result.measured[self.name].value),
        })
    }
}

/// The columns of the terminal in their order, each with its measure.
#[must_use]
pub fn shown() -> Vec<(&'static Measure, Shown)> {
    let mut all: Vec<_> = MEASURES.iter().filter_map(|measure| Some((measure, measure.shown?))).collect();
    all.sort_by_key(|(_, shown)| shown.place);
    all
}

/// Sentences for a report about these columns: titles that share one, and the sentence.
pub fn definitions(is_wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = vec![];
    for (measure, Shown { title, .. }) in shown().into_iter().filter(|(it, _)| is_wanted(it.name)) {
        match all.last_mut() {
            Some((titles, _)) if measure.about.is_empty() => *titles += &format!(", {title}"),
            _ => all.push((title.to_owned(), measure.about.to_owned())),
        }
    }
    all
}

fn counted(has_counts: bool, value: u64) -> Value {
    if has_counts { Value::Count(value) } else { Value::NoCount }
}

/// NaN if no flow was finished, or if senders do not report.
fn limited(runs: &SeedRuns<'_>, by: LimitedBy) -> f64 {
    let limited = &runs.totals().limited;
    let all: u64 = limited.iter().sum();
    if all == 0 { f64::NAN } else { limited[by as usize] as f64 / all as f64 }
}

/// NaN if no slow start ended, as where senders do not report.
fn ended(runs: &SeedRuns<'_>, by: EndedBy) -> f64 {
    let totals = runs.totals();
    let (ends, _) = totals.slow_start_ends;
    if ends.iter().sum::<u64>() == 0 { f64::NAN } else { ends[by as usize] as f64 / totals.flows as f64 }
}

fn end_window(totals: &Totals) -> f64 {
    let (ends, windows) = totals.slow_start_ends;
    windows as f64 / 1000.0 / ends.iter().sum::<u64>() as f64
}

/// NaN if nothing was delivered, or if senders do not report.
fn overhead(runs: &SeedRuns<'_>) -> f64 {
    let totals = runs.totals();
    if totals.delivered.is_zero() || !runs.alone.has_counts { f64::NAN } else { totals.overhead() }
}

fn throughput(runs: &SeedRuns<'_>) -> f64 {
    let seconds = runs.alone.ended_at as f64 / 1e9;
    if seconds > 0.0 { runs.alone.bottleneck_bytes as f64 * 8.0 / seconds } else { f64::NAN }
}

fn long(run: &JobResult) -> u64 {
    run.groups[usize::from(LONG)].delivered.get()
}

fn millis(span: Option<Span>) -> f64 {
    span.map_or(f64::NAN, Span::as_millis_f64)
}

/// Six decimals: further ones are noise, and noise differs by how it is printed.
fn number(value: f64) -> Value {
    Value::Number(value.is_finite().then(|| (value * 1e6).round() / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions;
    use headstart_study::setup::REFERENCE;

    /// Rows of a table of `docs/data.md`; neighbours that share a sentence share a row.
    fn rows(measures: impl Iterator<Item = &'static Measure>) -> Vec<(String, String)> {
        let mut rows: Vec<(String, String)> = vec![];
        for measure in measures {
            match rows.last_mut() {
                Some((names, _)) if measure.about.is_empty() => *names += &format!("`, `{}", measure.name),
                _ => rows.push((measure.name.to_owned(), measure.about.to_owned())),
            }
        }
        rows
    }

    #[test]
    fn the_dictionary_has_the_descriptions_from_here() {
        let own = |(name, about): (&str, &str)| (name.to_owned(), about.to_owned());
        let is_seed = |measure: &&Measure| matches!(measure.of, Of::Seed(_));
        let version = "Version of the program, with the commit that it is built from; `+` where it differs from the commit.";
        let table = |first, rows: Vec<_>, last: Vec<_>| [vec![own(first)], rows, last].concat();
        let race = rows(MEASURES.iter().filter(|it| !is_seed(it)));
        let seeds = rows(MEASURES.iter().filter(is_seed));
        assert!(race.iter().any(|(_, about)| about.contains(&format!("by default {REFERENCE}:"))));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/data.md");
        let mut text = std::fs::read_to_string(path).expect("it is there");
        let is_written = std::env::var_os("HEADSTART_WRITE_DOCS").is_some();
        for (section, rows) in [
            ("Conditions", conditions::columns().map(own).collect::<Vec<_>>()),
            (
                "race.csv and sweep.csv",
                table(
                    ("scheme", "The scheme, with its parameters."),
                    race,
                    vec![own(("headstart", version))],
                ),
            ),
            ("seeds.csv", table(("seed", "The seed."), seeds, vec![])),
        ] {
            let begin = text.find(&format!("\n## {section}\n")).expect(section);
            let head = "| column | meaning |\n|---|---|\n";
            let begin = begin + text[begin..].find(head).expect(section) + head.len();
            let end = begin + text[begin..].find("\n\n").expect(section);
            let table: Vec<String> =
                rows.iter().map(|(names, about)| format!("| `{names}` | {about} |")).collect();
            if !is_written {
                assert_eq!(text[begin..end], table.join("\n"), "write it with HEADSTART_WRITE_DOCS=1");
            }
            text.replace_range(begin..end, &table.join("\n"));
        }
        if is_written {
            std::fs::write(path, text).expect("it is written");
        }
    }

    #[test]
    fn counts_that_no_sender_reported_are_empty() {
        let mut result = crate::samples::scheme_result("iw10", &[1.0]).0;
        let of = |result: &_| {
            let measure = MEASURES.iter().find(|it| it.name == "retransmissions").expect("it is there");
            measure.of_scheme(result).expect("a column").to_string()
        };
        assert_eq!(of(&result), "0");
        result.has_counts = false;
        assert_eq!(of(&result), "");
    }
}
