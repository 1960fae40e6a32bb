//! The race's table and report.

mod answer;
pub mod figures;
mod title;
mod words;

use std::fmt::Write as _;

use headstart_startup::Startup as _;
use headstart_startup::catalogue::Needs;
use headstart_startup::quick_start::DenialReason;
use headstart_startup::repair::Repair;

pub use answer::answer;
pub use title::{headline, headline_of_one};
pub use words::of_harm;
pub use words::{FEW_SEEDS, reason_for_no_result, verdict};

use crate::{cell, counted};
use headstart_compare::capacity::Capacity;
use headstart_compare::measures::{self, Measure, Shown};
use headstart_compare::race::{Measured, Race, SchemeResult};
use headstart_compare::verdict::SortKey;
use headstart_report::page::{Provenance, Report, Section};
use headstart_report::statistics::may_be_smallest;
use headstart_report::table::{Better, Cell, Column, Table};
use headstart_study::options::{PROBES, QueueDiscipline, RouterName, TransportName, choice_name, name_of};
use headstart_study::setup::{REFERENCE, Setup};

/// The race in one table, its verdict first among the notes.
#[must_use]
pub fn table_with_verdict(setup: &Setup, race: &Race, sort: SortKey) -> Table {
    let mut table = table(setup, race, sort);
    table.notes.insert(0, format!("Verdict: {}", words::verdict(race)));
    table
}

/// The race in one table.
#[must_use]
pub fn table(setup: &Setup, race: &Race, sort: SortKey) -> Table {
    let shown = shown(race);
    let columns = std::iter::once(Column::text("scheme")).chain(shown.iter().map(|(_, it)| it.column()));
    let mut table = Table::new(&format!("{}: {}", headline(setup), words::sample(race)), columns);
    let mut order: Vec<usize> = (0..race.scheme_results.len()).collect();
    race.sort(&mut order, SortKey::Given);
    race.sort(&mut order, sort);
    let harmless = race.verdict().harmless;
    for &place in &order {
        let scheme_result = &race.scheme_results[place];
        let (invalid, _) = scheme_result.invalid;
        let name = scheme_result.entry.name;
        let mark = match invalid {
            1.. => " INVALID",
            _ if harmless.contains(&place) => words::MARK,
            _ => "",
        };
        let mut cells = vec![Cell::text(&format!("{name}{mark}"))];
        cells.extend(shown.iter().map(|(name, it)| {
            scheme_result.known(name).map_or(Cell::Missing, |measured| cell(measured, it.decimals))
        }));
        table.row(cells);
    }
    if mark_best(&mut table, race, &order, &shown) {
        table.note("green: not significantly worse than the best of its column");
    }
    match harmless.len() {
        0 => {}
        1 => table.note("* fastest harmless scheme"),
        _ => table.note("* fastest harmless scheme, and those not significantly slower"),
    }
    for note in words::limits(race).iter().chain(&words::notes_on_identical(race)).chain(&setup.notes) {
        table.note(note);
    }
    if setup.carrier().is_real_time() {
        table.note(&in_real_time(setup, race));
    }
    for note in race.scheme_results.iter().filter_map(|scheme_result| routers(setup, scheme_result)) {
        table.note(&note);
    }
    for result in &race.scheme_results {
        let is_early = matches!(result.entry.scheme().repair(), Repair::Early(_));
        if is_early && setup.path.queue != QueueDiscipline::Priority {
            let name = &result.entry.name;
            table.note(&format!(
                "{name} needs queues with priorities (--queue priority): here it is one burst"
            ));
        }
    }
    let unfinished: u64 =
        race.scheme_results.iter().map(|scheme_result| scheme_result.totals.unfinished).sum();
    if unfinished > 0 {
        let (what, were) =
            (if race.is_pages { "connection" } else { "flow" }, if unfinished == 1 { "was" } else { "were" });
        let consequence = if race.is_pages {
            "pages that were not complete are left out"
        } else if unfinished == 1 {
            "it counts with its age"
        } else {
            "they count with their age"
        };
        table.note(&format!(
            "{} {were} not finished at the end of their run: {consequence}",
            counted(unfinished, what)
        ));
    }
    table
}

/// Makes the marks of a column agree with its numbers: those that read alike are marked alike, and
/// none is marked behind one that is not. Paired tests alone may leave such gaps.
fn without_gaps(best: &mut [bool], values: &[f64], shown: &[String]) {
    let mut order: Vec<usize> = (0..best.len()).filter(|place| values[*place].is_finite()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut is_marked = true;
    for alike in order.chunk_by(|one, other| shown[*one] == shown[*other]) {
        is_marked &= alike.iter().any(|place| best[*place]);
        alike.iter().for_each(|place| best[*place] = is_marked);
    }
}

/// Marks in each column those that no other scheme is better than by a test over seeds.
/// True if there are any.
fn mark_best(table: &mut Table, race: &Race, order: &[usize], shown: &[(&str, Shown)]) -> bool {
    let mut is_any = false;
    for (number, (name, Shown { better, .. })) in shown.iter().enumerate() {
        let sign = if *better == Some(Better::Higher) { -1.0 } else { 1.0 };
        let samples: Vec<Vec<f64>> = order
            .iter()
            .map(|place| {
                let measured = race.scheme_results[*place].known(name);
                measured.map_or_else(Vec::new, |it| it.by_seed.iter().map(|value| sign * value).collect())
            })
            .collect();
        let mut best = may_be_smallest(&samples.iter().map(Vec::as_slice).collect::<Vec<_>>());
        // Chance alone does not make a scheme as good as the best: their intervals meet, too.
        let interval = |place: usize| race.scheme_results[order[place]].known(name).map(Measured::interval);
        let value = |place: usize| interval(place).map_or(f64::INFINITY, |it| sign * it.value);
        let first = (0..order.len()).min_by(|one, other| value(*one).total_cmp(&value(*other)));
        if let (Some(smallest), Some(_)) = (first.and_then(interval), *better) {
            for (place, is_best) in best.iter_mut().enumerate() {
                let meets = interval(place).is_none_or(|it| {
                    it.low.is_nan()
                        || smallest.low.is_nan()
                        || it.low <= smallest.high && smallest.low <= it.high
                });
                *is_best &= meets;
            }
        }
        let shown: Vec<String> = (0..order.len())
            .map(|place| format!("{:.*}", usize::from(shown[number].1.decimals), value(place)))
            .collect();
        without_gaps(&mut best, &(0..order.len()).map(value).collect::<Vec<_>>(), &shown);
        is_any |= better.is_some() && best.iter().filter(|is_best| **is_best).count() > 1;
        table.mark(number + 1, best);
    }
    is_any
}

/// The columns behind the name: those with any value.
fn shown(race: &Race) -> Vec<(&'static str, Shown)> {
    let measured = |name| race.scheme_results.iter().filter_map(move |it| it.known(name));
    let one = |(Measure { name, .. }, mut shown): (&'static Measure, Shown)| {
        measured(name).next()?;
        if shown.decimals == 0 {
            shown.decimals = decimals(measured(name));
        }
        if race.is_pages && *name == "mean_ms" {
            shown.title = "page";
        }
        Some((*name, shown))
    };
    measures::shown().into_iter().filter_map(one).collect()
}

/// Decimals with which the smallest of some times has three digits, at most three.
fn decimals<'a>(times: impl Iterator<Item = &'a Measured>) -> u8 {
    let smallest = times.map(|time| time.value).filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    match smallest {
        smallest if smallest >= 99.5 || smallest.is_infinite() => 0,
        smallest if smallest >= 9.95 => 1,
        smallest if smallest >= 0.995 => 2,
        _ => 3,
    }
}

/// The transport in use, and the validity of its real-time runs.
fn in_real_time(setup: &Setup, race: &Race) -> String {
    let whose = match setup.transport.transport {
        TransportName::Tcp => "this machine's TCP",
        TransportName::Quic => "the QUIC stack",
    };
    let invalid =
        race.scheme_results.iter().map(|scheme_result| scheme_result.invalid).max().unwrap_or_default();
    let kept = match invalid {
        (0, _) => "The machine kept real time in all runs".to_owned(),
        (invalid, all) => format!(
            "INVALID: the machine did not keep real time in up to {invalid} of {all} runs that a line draws on, which then says nothing; \
             try again when it is quiet"
        ),
    };
    format!("Real packets of {whose}, in real time. {kept}")
}

/// The routers' grants to a scheme that needs them, and the reason if there were none.
fn routers(setup: &Setup, scheme_result: &SchemeResult) -> Option<String> {
    let totals = &scheme_result.totals;
    if scheme_result.entry.needs != Needs::Routers || totals.flows == 0 {
        return None;
    }
    let (name, requires_rate_stamps) =
        (scheme_result.entry.name, scheme_result.entry.scheme().requirements().rate_stamps);
    if totals.granted == 0 {
        // The reason that most starts met.
        let reason = DenialReason::ALL.iter().max_by_key(|reason| totals.denied[**reason as usize]);
        let why = match setup.path.routers {
            RouterName::None => "no router on this path takes part (--routers)",
            RouterName::NonCapable if totals.rate_requests > 0 && !requires_rate_stamps => {
                "a router in the middle does not understand requests, and the TTLs tell"
            }
            RouterName::Rcp if !requires_rate_stamps => "the routers here understand RCP only",
            _ if totals.rate_requests == 0 => "no flow was worth a request",
            _ => match reason {
                Some(reason) if totals.denied[*reason as usize] > 0 => reason.reason(),
                _ => "the routers here understand Quick-Start only",
            },
        };
        return Some(format!("{name} cannot work here: {why}. Every flow was plain slow start"));
    }
    let share = 100.0 * totals.granted as f64 / totals.rate_requests.max(1) as f64;
    let mut text = format!("{name}: routers granted {share:.1} % of {} requests", totals.rate_requests);
    if totals.rate_requests < totals.flows {
        let _ = write!(text, " ({} flows did not ask)", totals.flows - totals.rate_requests);
    }
    let failed = 100.0 * totals.granted_and_failed as f64 / totals.granted as f64;
    let _ = write!(text, "; {failed:.1} % of the granted starts lost packets of their first flight");
    Some(text)
}

/// The buffer's limit, as it is counted.
fn buffer(setup: &Setup) -> String {
    let limit = setup.path.buffer.limit(setup.bottleneck(), setup.rtt());
    if limit.packets == u64::MAX { limit.bytes.to_string() } else { format!("{} packets", limit.packets) }
}

/// Definition of every number.
#[must_use]
pub fn definitions(setup: &Setup) -> Vec<(String, String)> {
    let tcp = setup.tcp();
    let own = |term: &str, text: String| (term.to_owned(), text);
    let buffer = buffer(setup);
    let acks = choice_name(setup.transport.acks);
    let (acks, timers) = match setup.transport.transport {
        TransportName::Tcp => (
            match tcp.delayed_ack.every {
                1 => format!("--acks {acks}: for every segment."),
                every => format!("--acks {acks}: for {every} segments, or after {}.", tcp.delayed_ack.timeout),
            },
            format!("Retransmission timeout {} at least, {} before there is a sample and for the SYN; --detection {}, --probe {}.", tcp.min_rto, tcp.initial_rto, choice_name(setup.transport.detection), name_of(PROBES, &setup.transport.probe)),
        ),
        TransportName::Quic => (
            "The stack's own: every second packet, or after 25 ms.".to_owned(),
            "The stack's own (RFC 9002): loss after three packets or 9/8 of an RTT, probe timeouts. Lost are packets declared lost, sent and useful \
             bytes of packets; segments are packets of the same size on the link."
                .to_owned(),
        ),
    };
    let mut all = measures::definitions(|_| true);
    all.insert(1, own("[low, high]", format!("95 % confidence interval of the mean over {} runs with different seeds (Student's t, of the logarithm for times and ratios); of a ratio, paired by seed. Intervals of harm and of long flows hold at once for all schemes but the reference.", setup.run.repeats)));
    all.extend([
        own("load", "Payload offered, as a share of the bottleneck's rate. Headers, retransmissions and copies come on top.".into()),
        own("segment", format!("MSS {}, {} of headers; an ack has {}, a SYN {}.", tcp.mss, tcp.header, tcp.header, tcp.syn)),
        own("buffer", format!("{buffer} before the bottleneck, counted as on the link with headers; the packet being sent is not in it.")),
        own("acks", acks),
        own("timers", timers),
        own("history", format!("{} peers, equally likely, share the bottleneck; a sender's host remembers up to {}. Hints announce {} of the bottleneck's rate.", setup.workload.peers, setup.workload.history, setup.workload.hint)),
        own("routers", format!("--routers {} before every link, both ways. Quick-Start: {}; the sender asks in its SYN (SYN-ACK if the receiver opens) for its object over 100 ms. RCP: alpha 0.4, beta 0.226. non-capable: as target, and one router that only forwards.", choice_name(setup.path.routers), setup.path.routing.describe())),
    ]);
    all
}

/// The whole report.
#[must_use]
pub fn report(
    setup: &Setup,
    race: &Race,
    sort: SortKey,
    capacities: Option<&[Capacity]>,
    command: &str,
) -> Report {
    let mut sections = vec![
        Section::Picks(figures::names(race)),
        Section::Figure {
            svg: figures::plane(race).svg(),
            caption: format!(
                "The latency-safety plane: fast is low, considerate is left. Harm is the worse of what {} flows suffer from the scheme and of what long flows lose. Bars are 95 % confidence intervals{}.",
                race.reference.name,
                match race.judged() {
                    0 | 1 => String::new(),
                    count => format!(
                        "; those of harm hold at once for all {count} schemes, here and in all tables"
                    ),
                },
            ),
        },
        Section::Heading("Results by scheme".into()),
        Section::Table(table(setup, race, sort)),
        Section::Details { summary: "Why".into(), sections: vec![Section::Text(words::verdict(race))] },
    ];
    if let Some(capacities) = capacities {
        sections.push(Section::Heading("Feasible capacity".into()));
        sections.push(Section::Table(capacity_table(capacities)));
        sections.push(Section::Figure {
            svg: figures::capacity_plane(race, capacities).svg(),
            caption: "Completion time at the race's load against feasible capacity (mean at most four times the scheme's own at 5 % load): the lower right corner is the one to hold.".into(),
        });
        sections.push(Section::Figure {
            svg: figures::curves(capacities),
            caption: "Mean completion time against load. A line ends where all three rules are broken."
                .into(),
        });
    }
    if let Some(limits) = figures::limits(race) {
        sections.extend([Section::Heading("Where the time goes".into()), limits]);
    }
    sections.push(Section::Heading("Distribution of completion times".into()));
    sections
        .extend([figures::distribution(race, headstart_report::figure::Figure::WIDTH), figures::tails(race)]);
    sections.push(Section::Heading("One flow of each scheme".into()));
    sections.extend(figures::flows(race));
    sections.push(Section::Heading("What the numbers mean".into()));
    sections.push(Section::Definitions(definitions(setup)));
    Report {
        title: "Which fast start is best on this path?".into(),
        answer: answer(race),
        lead: format!("On {} ({}).", headline(setup), words::sample(race)),
        sections,
        provenance: provenance(setup, race, command),
    }
}

fn provenance(setup: &Setup, race: &Race, command: &str) -> Provenance {
    let fingerprint =
        race.scheme_results.iter().fold(0, |all: u64, one| all.rotate_left(9) ^ one.fingerprint);
    let packets: u64 = race.scheme_results.iter().map(|scheme_result| scheme_result.data_packets).sum();
    let first = setup.run.seed;
    Provenance {
        facts: vec![
            ("headstart".into(), headstart_compare::VERSION.into()),
            ("seeds".into(), format!("{first} to {}", first.wrapping_add(u64::from(setup.run.repeats) - 1))),
            (
                "simulated".into(),
                format!("{} of arrivals a run, {packets} data packets in all", setup.run.duration),
            ),
            ("checked".into(), "the first seed of every scheme, packet by packet".into()),
            ("fingerprint".into(), format!("fp:{fingerprint:016x}")),
        ],
        plan: command.to_owned(),
    }
}

/// Capacities in one table.
#[must_use]
pub fn capacity_table(capacities: &[Capacity]) -> Table {
    let mut table = Table::new(
        "Feasible capacity: the highest load, in steps of 5 %, at which the mean completion time is",
        [
            Column::text("scheme"),
            Column::number("at most 4x its own at 5 %", "% load").better(Better::Higher),
            Column::number("at most 1 s", "% load").better(Better::Higher),
            Column::number(&format!("at most {REFERENCE}'s"), "% load").better(Better::Higher),
            Column::number("mean at 5 %", "ms").better(Better::Lower).priority(1),
        ],
    );
    let percent = |percent: u32| if percent == 0 { Cell::Missing } else { Cell::count(u64::from(percent)) };
    for found in capacities {
        table.row([
            Cell::text(&found.scheme),
            percent(found.own_percent),
            percent(found.absolute_percent),
            percent(found.reference_percent),
            found.curve.first().map_or(Cell::Missing, |(_, mean)| Cell::number(*mean, 0)),
        ]);
    }
    table.note("A dash: the rule is broken at 5 % already. 95 is the highest load tried.");
    table
}

#[cfg(test)]
mod tests {
    use headstart_study::settings::Settings;

    use headstart_study::carrier::Carriers;

    #[test]
    fn green_has_no_gaps_and_numbers_that_read_alike_are_marked_alike() {
        let marked = |best: &[bool], values: &[f64]| {
            let shown: Vec<String> = values.iter().map(|value| format!("{value:.3}")).collect();
            let mut best = best.to_vec();
            super::without_gaps(&mut best, values, &shown);
            best
        };
        // Harm in a race of 25 schemes: the fourth has wide intervals.
        let harm = [1.000, 1.013, 1.025, 1.029, 1.046];
        assert_eq!(marked(&[true, false, false, false, true], &harm), [true, false, false, false, false]);
        assert_eq!(marked(&[true, true, true, false, false], &harm), [true, true, true, false, false]);
        assert_eq!(marked(&[false, true, false], &[26.3001, 26.3, 30.0]), [true, true, false]);
        assert_eq!(
            marked(&[true, true], &[1.0, f64::INFINITY]),
            [true, true],
            "an unknown number has no place"
        );
    }

    #[test]
    fn definitions_name_choices_as_options_do() {
        let line = "--acks immediate --detection rfc6675-copies --probe none --routers non-capable";
        let setup = Settings::parse(Carriers::MODEL, line.split_whitespace()).expect("fine");
        let named: std::collections::BTreeMap<String, String> =
            super::definitions(&setup).into_iter().collect();
        assert_eq!(named["acks"], "--acks immediate: for every segment.");
        assert!(
            named["timers"].ends_with("--detection rfc6675-copies, --probe none."),
            "{}",
            named["timers"]
        );
        assert!(
            named["routers"].starts_with("--routers non-capable before every link"),
            "{}",
            named["routers"]
        );
    }
}
