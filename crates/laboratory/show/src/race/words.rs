//! The verdict of a race with its notes, in words.

use headstart_paper::claim::digits;
use headstart_report::statistics::Interval;
use headstart_startup::catalogue::Needs;
use headstart_startup::sending::LimitedBy;
use headstart_units::Span;

use crate::counted;
use headstart_compare::race::{Measured, Race, SchemeResult};
use headstart_compare::verdict::{Harm, HarmVerdict, HarmedFlows, IdenticalSchemes, SortKey, Verdict};
use headstart_study::setup::Setup;

/// So many names are listed before the others are only counted.
const MAX_NAMES: usize = 4;
/// With so few seeds Student's t makes intervals nearly twice as wide as with the default of eight,
/// and with fewer they say nothing.
pub const FEW_SEEDS: usize = 3;

/// Mark behind the names of harmless schemes that may be the fastest.
pub const MARK: &str = " *";

/// The winner, in a few sentences.
#[must_use]
pub fn verdict(race: &Race) -> String {
    let found = race.verdict();
    let scheme_result = |place: usize| &race.scheme_results[place];
    let Some(&first) = found.fastest.first() else {
        return format!("no scheme can be ranked: {}.", reason_for_no_ranking(race));
    };
    let fastest = scheme_result(first);
    let seeds = counted((race.seeds - race.empty_seeds) as u64, "seed");
    let time = time(fastest);
    let others = &found.fastest[1..];
    let mut text = match others.len() {
        0 if race.scheme_results.len() == 1 => format!("{} takes {time}.", fastest.entry.name),
        0 => format!("Fastest is {}: {time}.", with_needs(fastest)),
        _ => format!(
            "Fastest is {} with {time}; {} {} not differ significantly (paired over {seeds}).",
            with_needs(fastest),
            names(race, others),
            if others.len() == 1 { "does" } else { "do" }
        ),
    };
    text += &waste(fastest);
    if let Some(harm) = race.worst_harm(fastest).filter(|_| fastest.entry.name != race.reference.name) {
        text += &format!(" {}", cost(race, fastest, &harm));
    }
    match found.harmless.split_first() {
        Some((&best, _)) if best == first => {}
        Some((&best, others)) => {
            let winner = scheme_result(best);
            let harm = match race.worst_harm(winner) {
                Some(harm) if winner.entry.name != race.reference.name => {
                    format!(", harm {}", of_harm(&harm))
                }
                _ => String::new(),
            };
            text +=
                &format!(" Fastest harmless scheme: {}, {}{harm}", with_needs(winner), self::time(winner));
            if !others.is_empty() {
                text += &format!("; {} not significantly slower", names(race, others));
            }
            text += &format!(".{}", waste(winner));
        }
        None if race.scheme_results.len() > 1 && race.seeds > 1 => {
            text += &format!(" No scheme is known to be harmless within {}.", margin(race));
        }
        None => {}
    }
    if let Some(result) = anywhere(race, &found) {
        text += &format!(" Without record, hint and routers: {}, {}.", result.entry.name, self::time(result));
    }
    text += &harmful(race, &found, first);
    text += &gain_of_default(race).unwrap_or_default();
    text += &unused(race);
    text += &waits(race, first);
    text += &losers(race, first);
    let open: Vec<usize> = found.not_known.into_iter().filter(|place| *place != first).collect();
    if !open.is_empty() && race.seeds > 1 {
        let one = |place: &usize| {
            let result = scheme_result(*place);
            let needed = seeds_to_tell(race, result).map(|seeds| match seeds {
                TOO_MANY.. => format!(" (more than {TOO_MANY})"),
                _ => format!(" ({seeds})"),
            });
            format!("{}{}", result.entry.name, needed.unwrap_or_default())
        };
        text += &format!(
            " Not known yet: the harm of {}; in brackets the seeds that would tell (--repeats).",
            listed(open.iter().map(one).collect())
        );
    }
    text
}

/// The scheme with the knowledge that it cannot do without.
pub fn with_needs(result: &SchemeResult) -> String {
    let needs = match result.entry.needs {
        Needs::Nothing | Needs::FlowSize => "",
        Needs::History => " (needs a record of the client)",
        Needs::Hint => " (needs a hint of the client)",
        Needs::Routers => " (needs routers that take part)",
    };
    format!("{}{needs}", result.entry.name)
}

/// The fastest harmless scheme that every server can have, if the fastest of all needs more.
pub fn anywhere<'a>(race: &'a Race, found: &Verdict) -> Option<&'a SchemeResult> {
    let (named, best) = (found.harmless.first()?, *race.harmless_anywhere().first()?);
    (best != *named).then(|| &race.scheme_results[best])
}

/// Every scheme that is known to harm others, but for the fastest, of which it was said.
fn harmful(race: &Race, found: &Verdict, fastest: usize) -> String {
    let others = found.harmful.iter().filter(|place| **place != fastest);
    let one = |place: &usize| {
        let result = &race.scheme_results[*place];
        let harm = race.worst_harm(result)?;
        Some(format!("{} {}", result.entry.name, of_harm(&harm)))
    };
    let named: Vec<String> = others.filter_map(one).collect();
    let at_once = match race.judged() {
        0 | 1 => String::new(),
        count => format!("; intervals of harm hold at once for all {count}"),
    };
    if !named.is_empty() {
        let also = if found.harmful.contains(&fastest) { "others too" } else { "others" };
        return format!(" Known to harm {also}: {}{at_once}.", listed(named));
    }
    let has_others = race.scheme_results.len() > 1 && race.seeds - race.empty_seeds >= FEW_SEEDS;
    if found.harmful.is_empty() && has_others {
        format!(" No scheme is known to harm others by more than {}{at_once}.", margin(race))
    } else {
        String::new()
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(mut parts: Vec<String>) -> String {
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) }
}

/// Time of the servers' default scheme over the reference's on this path, and over that of the
/// initial window that content networks use.
fn gain_of_default(race: &Race) -> Option<String> {
    const DEFAULT: &str = "headstart";
    const CONTENT_NETWORKS: &str = "iw32";
    let of = |name: &str| {
        let is_it = |result: &&SchemeResult| result.entry.name.as_str() == name && !result.is_unfinished();
        race.scheme_results.iter().find(is_it).map(|result| &result.mean().by_seed)
    };
    let default = of(DEFAULT)?;
    let ratio_to = |name: &str| {
        let other = of(name).filter(|_| name != DEFAULT)?;
        let pairs = default.iter().zip(other).map(|(own, other)| own / other);
        let ratio = with_interval(&Measured::positive(pairs.collect()).interval(), 2);
        let is_number = ratio.starts_with(|digit: char| digit.is_ascii_digit());
        is_number.then(|| format!("{ratio} of {name}'s time"))
    };
    let reference = race.reference.name.as_str();
    let further = ratio_to(CONTENT_NETWORKS).filter(|_| reference != CONTENT_NETWORKS);
    let further = further.map_or_else(String::new, |ratio| format!(" and {ratio}"));
    Some(format!(" {DEFAULT}, the default of serve and tcp, takes {}{further}.", ratio_to(reference)?))
}

/// Schemes whose prior knowledge rarely let them begin faster than slow start.
fn unused(race: &Race) -> String {
    /// Per cent of the starts.
    const RARELY: f64 = 50.0;
    let is_unused = |result: &&SchemeResult| {
        let is_informed = matches!(result.entry.needs, Needs::History | Needs::Hint | Needs::Routers);
        is_informed && result.known("ahead_percent").is_some_and(|ahead| ahead.value < RARELY)
    };
    let sentences = race.scheme_results.iter().filter(is_unused).map(|result| {
        format!(
            " {} got ahead of slow start in only {} % of its starts: this race says little about it.",
            result.entry.name,
            digits(result.measured["ahead_percent"].value)
        )
    });
    sentences.collect()
}

/// Limits of the reference's flows and of the fastest scheme's, the longest first.
fn waits(race: &Race, fastest: usize) -> String {
    /// Per cent of the time.
    const WORTH_SAYING: f64 = 10.0;
    let of = |result: &SchemeResult| {
        let share = |by: LimitedBy| {
            let share = result.limited_percent(by).filter(|share| *share >= WORTH_SAYING)?;
            Some((share, by.as_str()))
        };
        let mut shares: Vec<(f64, &str)> = LimitedBy::ALL.into_iter().filter_map(share).collect();
        shares.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let words: Vec<String> = shares.iter().map(|(share, name)| format!("{share:.0} % {name}")).collect();
        (!words.is_empty()).then(|| format!("of {} {}", result.entry.name, words.join(", ")))
    };
    let is_reference = |result: &&SchemeResult| result.entry.name == race.reference.name;
    let fastest = &race.scheme_results[fastest];
    let reference = race.scheme_results.iter().find(is_reference);
    let shown = reference.into_iter().chain(Some(fastest).filter(|it| !is_reference(it)));
    let all: Vec<String> = shown.filter_map(of).collect();
    if all.is_empty() { String::new() } else { format!(" Where the time goes: {}.", all.join("; ")) }
}

/// Reasons why the slowest schemes lose to the fastest, of those that are clearly slower.
fn losers(race: &Race, fastest: usize) -> String {
    /// So many schemes are explained: a verdict is short.
    const MOST: usize = 2;
    /// Ends of the ratio's interval from here on are a clear difference.
    const CLEARLY: f64 = 1.1;
    let winner = &race.scheme_results[fastest];
    let is_clear = |place: &usize| {
        let result = &race.scheme_results[*place];
        let ratio = Measured::ratio(&result.mean().by_seed, &winner.mean().by_seed);
        result.invalid.0 == 0 && ratio.by_seed.len() >= FEW_SEEDS && ratio.low >= CLEARLY
    };
    let mut places: Vec<usize> = (0..race.scheme_results.len()).filter(is_clear).collect();
    race.sort(&mut places, SortKey::Time);
    let slowest = places.iter().rev().take(MOST);
    slowest.map(|place| reasons(&race.scheme_results[*place], winner)).collect()
}

/// The time that a finished flow takes longer than one of the winner, by limits; then the drops,
/// copies, timeouts and unfinished flows that the winner has clearly fewer of.
fn reasons(loser: &SchemeResult, winner: &SchemeResult) -> String {
    /// Share of the additional time.
    const WORTH_SAYING: f64 = 0.15;
    /// A cause is one if it is so many times the winner's,
    const TIMES: f64 = 1.5;
    /// and so many per cent of packets or flows more.
    const MORE: f64 = 1.0;
    let millis = |result: &SchemeResult| {
        let finished = (result.totals.flows - result.totals.unfinished) as f64 * 1e6;
        result.totals.limited.map(|nanos| nanos as f64 / finished)
    };
    let (name, other) = (loser.entry.name, winner.entry.name);
    let mut parts: Vec<(f64, &str)> = std::iter::zip(millis(loser), millis(winner))
        .zip(LimitedBy::ALL)
        .map(|((own, other), by)| (own - other, by.as_str()))
        .collect();
    let longer: f64 = parts.iter().map(|(millis, _)| millis).sum();
    parts.retain(|(millis, _)| millis.abs() >= WORTH_SAYING * longer);
    parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut sentences = vec![];
    if longer > 0.0 {
        // Shorter waits are said too: without them a part could be larger than the whole.
        let part = |(millis, by): &(f64, &str)| {
            let less = if *millis < 0.0 { "less " } else { "" };
            format!("{less}{} ms {by}", digits(millis.abs()))
        };
        let parts: Vec<_> = parts.iter().map(part).collect();
        sentences.push(format!(
            "a flow that finishes takes {} ms longer than one of {other}: {}",
            digits(longer),
            parts.join(", ")
        ));
    }
    let counted = |result: &SchemeResult| {
        let counts = &result.totals.counts;
        let of_flows = |count: u64| 100.0 * count as f64 / result.totals.flows as f64;
        [
            result.measured["loss_percent"].value,
            100.0 * counts.copies as f64 / counts.packets_sent as f64,
            of_flows(counts.timeouts),
            of_flows(result.totals.unfinished),
        ]
    };
    let [own, winners] = [loser, winner].map(counted);
    let mut with = format!("with {other} ");
    let mut clause = |number: usize| {
        let (is_more, is_many) =
            (own[number] >= winners[number] + MORE, own[number] >= TIMES * winners[number]);
        let many = digits(own[number]);
        let cause = match number {
            0 => format!("{many} % of packets are dropped by the queue"),
            1 => format!("{many} % of packets sent are copies"),
            2 => format!("100 flows have {many} timeouts"),
            _ => format!("{many} % of flows do not finish"),
        };
        let brackets = || format!("{cause} ({}{})", std::mem::take(&mut with), digits(winners[number]));
        (is_more && is_many).then(brackets)
    };
    let causes: Vec<String> = (0..own.len()).filter_map(&mut clause).collect();
    if !causes.is_empty() {
        sentences.push(causes.join(", "));
    }
    if sentences.is_empty() { String::new() } else { format!(" Why {name} loses: {}.", sentences.join(". ")) }
}

/// The harm that is accepted.
pub fn margin(race: &Race) -> String {
    format!("{} % (--most-harm)", digits(100.0 * race.most_harm))
}

/// The seeds with which the harm of a scheme would be known.
pub fn seeds_to_tell(race: &Race, scheme_result: &SchemeResult) -> Option<f64> {
    let seeds = race.seeds - race.empty_seeds;
    race.worst_harm(scheme_result)?.seeds_to_tell(race.most_harm, seeds)
}

/// So many seeds are no advice any more.
const TOO_MANY: f64 = 1000.0;

pub fn to_tell(seeds: f64) -> String {
    if seeds >= TOO_MANY {
        format!("more than {TOO_MANY} seeds would tell")
    } else {
        format!("about {seeds} seeds would tell (--repeats)")
    }
}

/// The bytes that a scheme sends for each useful one, where they are more than a twentieth more.
fn waste(scheme_result: &SchemeResult) -> String {
    const WORTH_SAYING: f64 = 1.05;
    let value = |name| scheme_result.measured[name].value;
    let sent = value("bytes_sent_over_useful");
    if sent.is_nan() || sent < WORTH_SAYING {
        return String::new();
    }
    let lost = value("loss_percent");
    let lost = if lost >= 0.05 {
        format!(", and the queue drops {} % of its packets", digits(lost))
    } else {
        String::new()
    };
    format!(" It sends {sent:.2} bytes for each useful one{lost}.")
}

fn reason_for_no_ranking(race: &Race) -> &'static str {
    if race.scheme_results.iter().any(|scheme_result| scheme_result.invalid.0 > 0) {
        "the machine did not keep real time"
    } else if race.scheme_results.iter().any(SchemeResult::is_unfinished) {
        "no flow was finished, and all times are ages at the end of a run"
    } else {
        "nothing was measured"
    }
}

/// Cost of the first row to other flows.
fn cost(race: &Race, scheme_result: &SchemeResult, harm: &Harm) -> String {
    if !harm.has_interval() {
        return format!("Its harm to others is {}, which may be chance.", of_harm(harm));
    }
    match harm.verdict(race.most_harm) {
        HarmVerdict::Harmless => {
            format!("Harmless within {}: {}.", margin(race), of_harm(harm))
        }
        HarmVerdict::NotKnown => {
            let needed = seeds_to_tell(race, scheme_result).map_or_else(String::new, to_tell);
            format!("Not known yet if it is harmless within {}: {}; {needed}.", margin(race), of_harm(harm))
        }
        HarmVerdict::Harmful => {
            let Interval { value, low, high } = harm.interval;
            let [value, low, high] = [value, low, high].map(|factor| digits(100.0 * (factor - 1.0)));
            match harm.harmed {
                HarmedFlows::ShortFlows => {
                    format!(
                        "It harms others: concurrent {} flows take {value} % longer [{low}, {high}].",
                        race.reference.name
                    )
                }
                HarmedFlows::LongFlows => {
                    let share = scheme_result.known("long_flow_share").map(Measured::interval);
                    let share = share.map_or_else(String::new, |share| with_interval(&share, 2));
                    format!(
                        "It harms others: long flows get {share} of the rate that {} leaves them.",
                        race.reference.name
                    )
                }
            }
        }
    }
}

/// The factor of a harm with its interval, and the flows that it is of if they are long.
pub fn of_harm(harm: &Harm) -> String {
    let number = with_interval(&harm.interval, 3);
    match harm.harmed {
        HarmedFlows::ShortFlows => number,
        HarmedFlows::LongFlows => format!("{number} to long flows"),
    }
}

fn time(scheme_result: &SchemeResult) -> String {
    let Interval { value, low, high } = scheme_result.mean().interval();
    if low.is_finite() && high.is_finite() && scheme_result.mean().by_seed.len() >= FEW_SEEDS {
        format!("{} ms [{}, {}]", digits(value), digits(low), digits(high))
    } else {
        format!("{} ms", digits(value))
    }
}

pub fn with_interval(interval: &Interval, decimals: usize) -> String {
    let Interval { value, low, high } = interval;
    if low.is_finite() && high.is_finite() {
        format!("{value:.decimals$} [{low:.decimals$}, {high:.decimals$}]")
    } else {
        format!("{value:.decimals$}")
    }
}

/// `a`, `a and b`, `a, b and c`, or the first of them and the number of the others.
pub fn names(race: &Race, places: &[usize]) -> String {
    let mut parts: Vec<String> = places
        .iter()
        .take(MAX_NAMES)
        .map(|place| race.scheme_results[*place].entry.name.to_string())
        .collect();
    if places.len() > MAX_NAMES {
        parts.push(format!("{} more", places.len() - MAX_NAMES));
    }
    listed(parts)
}

/// The reason for an empty result, with advice, if it is empty.
#[must_use]
pub fn reason_for_no_result(setup: &Setup, race: &Race) -> Option<String> {
    if race.empty_seeds < race.seeds {
        return None;
    }
    let runs = counted(race.seeds as u64, "run");
    let (duration, drain) = (setup.run.duration, setup.run.drain);
    let is_pages = race.is_pages;
    Some(if is_pages && race.begun > 0 {
        format!(
            "no page was complete at the end of any of {runs}, {duration} and {drain} of --drain: expected a longer --drain, a higher --rate \
             or a smaller page"
        )
    } else {
        let share = 1.0 - setup.workload.long_share.as_f64();
        let payload = (setup.bottleneck() * setup.workload.load).as_bytes_per_sec() as f64 * share;
        let gap = setup.mean_bytes() / payload.max(1e-9);
        // The units of --duration.
        let gap = Span::from_secs((gap.ceil() as u64).max(1));
        let (what, size) =
            if is_pages { ("page", "--har or --pages with less") } else { ("flow", "a smaller --size") };
        format!(
            "no {what} arrived in {runs} of {duration}: at this load one arrives every {gap} on average: expected a --duration of {gap} \
             at least, a higher --load or {size}"
        )
    })
}

/// Why rows are the same to the last digit.
#[must_use]
pub fn notes_on_identical(race: &Race) -> Vec<String> {
    let of = |identical: &&IdenticalSchemes| -> String {
        let names = identical.members.iter().map(|place| race.scheme_results[*place].entry.name.to_string());
        names.collect::<Vec<_>>().join(" = ")
    };
    let found = race.verdict().identical;
    let (slow_start, other): (Vec<&IdenticalSchemes>, Vec<&IdenticalSchemes>) =
        found.iter().partition(|identical| identical.is_slow_start);
    let listed = |identical: &[&IdenticalSchemes]| identical.iter().map(of).collect::<Vec<_>>().join(", ");
    let mut notes = vec![];
    if !slow_start.is_empty() {
        notes.push(format!(
            "{}: identical packet for packet: they never left slow start here",
            listed(&slow_start)
        ));
    }
    if !other.is_empty() {
        notes.push(format!(
            "{}: identical packet for packet: the conditions in which they differ did not occur",
            listed(&other)
        ));
    }
    notes
}

/// Size of the sample: flows or pages of a scheme, and seeds.
#[must_use]
pub fn sample(race: &Race) -> String {
    let counts = || {
        race.scheme_results.iter().map(|scheme_result| {
            if race.is_pages { scheme_result.times.count() } else { scheme_result.totals.flows }
        })
    };
    let what = if race.is_pages { "page" } else { "flow" };
    let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    let range = if least == most { counted(most, what) } else { format!("{least} to {most} {what}s") };
    format!("{range} of each scheme, {}", counted(race.seeds as u64, "seed"))
}

/// Limits of the numbers: few seeds, seeds without arrivals, missing measures.
#[must_use]
pub fn limits(race: &Race) -> Vec<String> {
    let mut notes = vec![];
    match race.seeds - race.empty_seeds {
        0 => {}
        1 => notes.push("Only 1 seed: nothing is known of chance; use --repeats 8".into()),
        seeds if seeds < FEW_SEEDS => {
            notes.push(format!("Only {seeds} seeds, hence no intervals: use --repeats 8"));
        }
        seeds if seeds == FEW_SEEDS => {
            notes.push(format!("Only {seeds} seeds, hence wide intervals: use --repeats 8"));
        }
        _ => {}
    }
    let what = if race.is_pages { "page was complete" } else { "flow arrived" };
    if race.empty_seeds > 0 && race.empty_seeds < race.seeds {
        notes.push(format!(
            "no {what} in {} of {}: they count for nothing",
            counted(race.empty_seeds as u64, "run"),
            race.seeds
        ));
    }
    let is_unknown = |scheme_result: &&SchemeResult| race.worst_harm(scheme_result).is_none();
    if race.empty_seeds < race.seeds
        && race.scheme_results.iter().all(|scheme_result| is_unknown(&scheme_result))
    {
        notes.push(format!(
            "harm is not known: with the schemes no {} {what}; a longer --duration has some",
            race.reference.name
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_compare::measures;
    use headstart_compare::samples::{race, scheme_result};

    #[test]
    fn harm_to_long_flows_counts_as_harm() {
        let halfback =
            scheme_result("halfback", &[140.0, 141.0, 139.0, 140.0]).harm_of(&[1.0, 1.01, 0.99, 1.0]);
        let halfback = halfback.long_share_of(&[0.86, 0.88, 0.87, 0.87]);
        let iw10 = scheme_result("iw10", &[240.0, 242.0, 239.0, 241.0]).long_share_of(&[1.0; 4]);
        let text = verdict(&race(vec![halfback.0, iw10.0]));
        assert_eq!(
            text,
            "Fastest is halfback: 140 ms [139, 141]. It harms others: long flows get 0.87 [0.86, 0.88] of the \
             rate that iw10 leaves them. Fastest harmless scheme: iw10, 240 ms [238, 243]."
        );
    }

    #[test]
    fn the_gain_of_the_servers_default_is_that_over_the_reference_seed_by_seed() {
        let headstart = scheme_result("headstart", &[120.0, 150.0, 135.0]).0;
        let iw10 = scheme_result("iw10", &[240.0, 300.0, 270.0]).0;
        let text = verdict(&race(vec![headstart.clone(), iw10.clone()]));
        assert!(text.contains(" takes 0.50 [0.50, 0.50] of iw10's time."), "{text}");
        let iw32 = scheme_result("iw32", &[150.0, 187.5, 168.75]).0;
        let text = verdict(&race(vec![headstart, iw32, iw10]));
        let both = " takes 0.50 [0.50, 0.50] of iw10's time and 0.80 [0.80, 0.80] of iw32's time.";
        assert!(text.contains(both), "{text}");
        let mut itself = race(vec![scheme_result("headstart", &[120.0, 150.0, 135.0]).0]);
        itself.reference = itself.scheme_results[0].entry;
        assert!(!verdict(&itself).contains("of headstart's time"), "over itself it gains nothing");
        let alone = verdict(&race(vec![scheme_result("headstart", &[120.0, 150.0]).0]));
        assert!(!alone.contains("of iw10's time"), "{alone}");
    }

    #[test]
    fn a_scheme_that_hardly_used_what_it_knows_is_named() {
        for (name, ahead, is_named) in [
            ("careful-resume", Some(0.03), true),
            ("careful-resume", Some(0.8), false),
            ("careful-resume", None, false),
            ("iw10", Some(0.0), false),
        ] {
            let mut result = scheme_result(name, &[240.0, 242.0, 241.0]).0;
            if let Some(ahead) = ahead {
                result.measured.insert("ahead_percent", Measured::percent(&[ahead; 3]));
            }
            let text = verdict(&race(vec![result]));
            let sentence = " careful-resume got ahead of slow start in only 3 % of its starts";
            assert_eq!(text.contains(sentence), is_named, "{name} {ahead:?}: {text}");
        }
    }

    #[test]
    fn what_held_back_the_reference_and_the_fastest_is_said() {
        let with = |name: &str, millis: f64, shares: &[(&'static str, f64)]| {
            let mut result = scheme_result(name, &[millis, millis + 1.0, millis]).0;
            for (limit, share) in shares {
                result.measured.insert(limit, Measured::percent(&[*share; 3]));
            }
            result
        };
        let iw10 = with(
            "iw10",
            240.0,
            &[("path_percent", 0.09), ("window_percent", 0.2), ("receiver_percent", 0.71)],
        );
        let text = verdict(&race(vec![iw10.clone(), with("iw32", 140.0, &[("handshake_percent", 0.5)])]));
        let sentence = " Where the time goes: of iw10 71 % receiver, 20 % window; of iw32 50 % handshake.";
        assert!(text.ends_with(sentence), "{text}");
        let text = verdict(&race(vec![iw10]));
        assert!(text.ends_with(" Where the time goes: of iw10 71 % receiver, 20 % window."), "{text}");
    }

    #[test]
    fn the_slowest_loses_by_what_was_counted_more_often_than_with_the_fastest() {
        let with = |name: &str, millis: f64, limited: [u64; LimitedBy::ALL.len()], counts: [u64; 3]| {
            let mut result = scheme_result(name, &[millis, millis + 1.0, millis]).0;
            let totals = &mut result.totals;
            (totals.flows, totals.unfinished) = (100, 20);
            totals.limited = limited.map(|ms| ms * 80_000_000);
            [totals.counts.packets_sent, totals.counts.copies, totals.counts.timeouts] = counts;
            result
        };
        let flood = [1000, 480, 90];
        let iw10 = with("iw10", 240.0, [60, 100, 0, 0, 0, 20, 60], [1000, 0, 2]);
        let mut halfback = with("halfback", 900.0, [60, 30, 70, 0, 0, 600, 60], flood);
        halfback.measured.insert("loss_percent", Measured::percent(&[0.42; 3]));
        let text = verdict(&race(vec![iw10.clone(), halfback]));
        // The pacer's 70 ms are too few to be said.
        let why = " Why halfback loses: a flow that finishes takes 580 ms longer than one of iw10: 580 ms recovery. \
                   42 % of packets are dropped by the queue (with iw10 0), 48 % of packets sent are copies (0), \
                   100 flows have 90 timeouts (2).";
        assert!(text.ends_with(why), "{text}");
        let alike = with("halfback", 243.0, [60, 103, 0, 0, 0, 20, 60], flood);
        assert!(!verdict(&race(vec![iw10, alike])).contains("Why"), "1 % is no clear loss");
    }

    #[test]
    fn a_tie_is_reported_as_a_tie() {
        let blitzstart = scheme_result("blitzstart", &[500.0, 512.0, 510.0]);
        let jump_start = scheme_result("jump-start", &[508.0, 502.0, 509.0]);
        let iw2 = scheme_result("iw2", &[900.0, 905.0, 903.0]);
        let text = verdict(&race(vec![blitzstart.0, jump_start.0, iw2.0]));
        assert!(
            text.contains("Fastest is jump-start with 506 ms")
                && text.contains("blitzstart does not differ significantly (paired over 3 seeds)")
                && text.contains("Harmless within 1 % (--most-harm): 1.000 [1.000, 1.000]."),
            "{text}"
        );
    }

    #[test]
    fn one_seed_has_no_intervals_and_a_note() {
        let race = race(vec![scheme_result("iw10", &[240.0]).0, scheme_result("iw2", &[400.0]).0]);
        assert_eq!(
            verdict(&race),
            "Fastest is iw10 with 240 ms; iw2 does not differ significantly (paired over 1 seed)."
        );
        assert!(
            limits(&race)[0].starts_with("Only 1 seed: nothing is known of chance"),
            "{:?}",
            limits(&race)
        );
    }

    #[test]
    fn one_seed_tells_neither_harm_nor_its_absence() {
        let wise_start = scheme_result("wise-start", &[229.0]).harm_of(&[1.005]).0;
        let race = race(vec![wise_start, scheme_result("iw10", &[249.0]).0]);
        assert_eq!(
            verdict(&race),
            "Fastest is wise-start (needs a record of the client) with 229 ms; iw10 does not differ significantly (paired over 1 seed). Its harm \
             to others is 1.005, which may be chance."
        );
        assert!(race.verdict().harmless.is_empty());
    }

    #[test]
    fn a_harm_that_is_not_known_comes_with_the_seeds_that_would_tell() {
        let quick =
            scheme_result("jump-start", &[180.0, 181.0, 179.0, 180.0]).harm_of(&[1.03, 0.98, 1.02, 0.99]).0;
        let text = verdict(&race(vec![quick, scheme_result("iw10", &[240.0, 241.0, 239.0, 240.0]).0]));
        assert!(
            text.contains(
                "Not known yet if it is harmless within 1 % (--most-harm): 1.005 [0.968, 1.044]; about"
            ) && text.contains("Fastest harmless scheme: iw10"),
            "{text}"
        );
    }

    #[test]
    fn every_scheme_that_harms_is_named_and_each_that_is_open_has_its_number_of_seeds() {
        let with = |name: &str, mean: f64, harm: [f64; 4]| {
            scheme_result(name, &[mean, mean + 1.0, mean - 1.0, mean]).harm_of(&harm).0
        };
        let text = verdict(&race(vec![
            with("iw10", 240.0, [1.0; 4]),
            with("iw32", 200.0, [1.0, 1.001, 0.999, 1.0]),
            with("jump-start", 190.0, [1.19, 1.18, 1.2, 1.19]),
            with("halfback", 260.0, [2.28, 2.2, 2.3, 2.25]),
            with("wise-start", 150.0, [1.03, 0.98, 1.02, 0.99]),
            with("blitzstart", 160.0, [1.05, 0.9, 1.02, 0.99]),
        ]));
        let harmful = " Known to harm others: halfback 2.258 [2.134, 2.388] and jump-start 1.190 [1.166, 1.214]; \
                       intervals of harm hold at once for all 5.";
        assert!(text.contains(harmful), "{text}");
        assert!(text.starts_with("Fastest is wise-start (needs a record of the client): 150 ms"), "{text}");
        let open = " Not known yet: the harm of blitzstart (436); in brackets the seeds that would tell (--repeats).";
        assert!(text.ends_with(open), "{text}");
        // The harmless winner needs nothing: another for those without knowledge is not named.
        assert!(
            text.contains(" Fastest harmless scheme: iw32, 200 ms") && !text.contains("Without record"),
            "{text}"
        );
        let text = verdict(&race(vec![
            with("iw10", 240.0, [1.0; 4]),
            with("iw32", 200.0, [1.0, 1.001, 0.999, 1.0]),
            with("wise-start", 150.0, [1.0, 1.001, 0.999, 1.0]),
        ]));
        assert!(
            text.contains(" Without record, hint and routers: iw32, 200 ms [")
                && text
                    .contains(" No scheme is known to harm others by more than 1 % (--most-harm); intervals"),
            "{text}"
        );
    }

    #[test]
    fn the_times_by_limit_add_up_to_the_mean_of_the_table() {
        let mut result = scheme_result("iw10", &[240.0, 300.0]).0;
        for by in LimitedBy::ALL {
            let share = if by == LimitedBy::Window { 0.75 } else { 0.25 / 6.0 };
            let name = measures::MEASURES.iter().find(|it| it.name == format!("{}_percent", by.as_str()));
            result.measured.insert(name.expect("a measure").name, Measured::percent(&[share; 2]));
        }
        let sum: f64 = result.limited_ms().expect("known").iter().sum();
        assert!((sum - result.mean().value).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn parts_of_a_reason_that_are_larger_than_the_whole_stand_beside_what_is_less() {
        let with = |name: &str, millis: f64, limited: [u64; LimitedBy::ALL.len()]| {
            let mut result = scheme_result(name, &[millis, millis + 1.0, millis]).0;
            result.totals.flows = 100;
            result.totals.limited = limited.map(|ms| ms * 100_000_000);
            result
        };
        let fast = with("jump-start", 200.0, [60, 10, 0, 0, 0, 70, 60]);
        let slow = with("iw10", 291.0, [60, 163, 0, 0, 0, 8, 60]);
        let text = verdict(&race(vec![slow, fast]));
        let why = "takes 91 ms longer than one of jump-start: 153 ms window, less 62 ms recovery.";
        assert!(text.contains(why), "{text}");
    }

    #[test]
    fn the_bytes_that_the_winner_wastes_stand_beside_it() {
        let mut quick = scheme_result("jump-start", &[146.0, 147.0, 146.0]).0;
        quick.measured.insert("bytes_sent_over_useful", Measured::positive(vec![1.74; 3]));
        quick.measured.insert("loss_percent", Measured::percent(&[0.425; 3]));
        let text = verdict(&race(vec![quick, scheme_result("iw10", &[240.0, 241.0, 240.0]).0]));
        assert!(
            text.contains(
                "It sends 1.74 bytes for each useful one, and the queue drops 42.5 % of its packets."
            ),
            "{text}"
        );
    }

    #[test]
    fn nouns_agree_with_their_counts() {
        let mut one = scheme_result("iw10", &[240.0]).0;
        one.totals.flows = 1;
        assert_eq!(sample(&race(vec![one])), "1 flow of each scheme, 1 seed");
        let (mut few, mut more) = (scheme_result("iw10", &[1.0, 2.0]).0, scheme_result("iw2", &[1.0, 2.0]).0);
        (few.totals.flows, more.totals.flows) = (7, 8);
        assert_eq!(sample(&race(vec![few, more])), "7 to 8 flows of each scheme, 2 seeds");
    }

    #[test]
    fn identical_rows_are_explained() {
        let with = |name: &str, fingerprint: u64| {
            let mut made = scheme_result(name, &[1.0, 2.0]).0;
            made.fingerprint = fingerprint;
            made
        };
        let schemes = [
            with("careful-resume", 1),
            with("iw10", 1),
            with("wise-start", 2),
            with("wise-start-wa", 2),
            with("halfback", 3),
        ];
        assert_eq!(
            notes_on_identical(&race(schemes.into())),
            [
                "iw10 = careful-resume: identical packet for packet: they never left slow start here",
                "wise-start = wise-start-wa: identical packet for packet: the conditions in which they differ did not occur",
            ]
        );
    }
}
