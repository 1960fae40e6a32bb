//! A rollout with control and treatment arms, judged from a server's log or counters.
//!
//! Both arms are drawn among eligible connections, so that a difference between them is the
//! scheme's. Compared are the time of the first answer, among answers of about the same size, and
//! the share of its bytes that a connection lost. Both are compared for *other* connections of the
//! same peers, too, by the arm of the eligible connections that were open at the same time.
//!
//! Connections of one peer are alike. Where the log has peers, connections of a peer that has
//! both arms are compared among themselves; the others by size, with a variance over peers.
//! Counters have no peers: there connections are taken to be independent.
//!
//! The statements hold at all looks together: [`headstart_quic::sequential`] has the formula. The
//! four measures share the error probability.

mod counters;
mod log;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use headstart_quic::metrics::SIZE_NAMES;
use headstart_quic::sequential::{Difference, FEWEST, Moments, Sequence};

use headstart_report::statistics::Interval;
use log::Record;

/// Most bytes of all files together.
const MOST_BYTES: u64 = 4 << 30;
/// Longest line, in bytes.
const LONGEST_LINE: usize = 64 * 1024;

/// Probability that any of the four measures is misjudged at any look.
const ALPHA: f64 = 0.05;
/// Differences that are found soonest: of logarithms of times, and of shares of bytes.
const TIME_EFFECT: f64 = 0.1;
const LOSS_EFFECT: f64 = 0.02;

/// Bounds of the verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The least saving of time that is worth a rollout, as a share.
    pub worth: f64,
    /// Most additional loss of a connection's bytes, as a share; also for others.
    pub most_loss: f64,
    /// Most additional time of other connections, as a share.
    pub most_harm: f64,
    /// A rollout may be turned on though nothing is known of its harm to other connections.
    pub accepts_unknown_harm: bool,
}

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The treatment is better, and its harm is within the bounds.
    TurnOn,
    /// Not decided yet.
    KeepTesting,
    /// The treatment is worse, harmful, or worth nothing.
    TurnOff,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TurnOn => "turn on",
            Self::KeepTesting => "keep testing",
            Self::TurnOff => "turn off",
        })
    }
}

/// Treatment and control.
type Pair<T> = [T; 2];

/// First answers of one class of sizes.
#[derive(Clone, Debug)]
pub struct Class {
    /// Name of the class: up to so many bytes.
    pub size: &'static str,
    /// Number of answers.
    pub counts: Pair<u64>,
    /// Geometric means of their times in milliseconds, with 95 % intervals for one look.
    pub times: Pair<Interval>,
    /// Treatment over control, with its interval.
    pub ratio: Option<Interval>,
}

/// Counters of an arm.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Connections that ended.
    pub connections: f64,
    /// Bytes sent.
    pub sent: f64,
    /// Bytes lost.
    pub lost: f64,
    /// Bytes of first flights lost.
    pub first_flight_lost: f64,
}

/// A measure, compared at all looks together.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Treatment less control: of logarithms of times, or of shares.
    pub difference: Difference,
    /// Ends of the confidence sequence.
    pub low: f64,
    /// Upper end of the confidence sequence.
    pub high: f64,
    /// Values in each arm.
    pub counts: Pair<u64>,
    /// Peers with both arms.
    pub pairs: u64,
}

/// The judged rollout.
#[derive(Debug)]
pub struct Judged {
    /// The scheme of the treatment.
    pub scheme: String,
    /// The source has peers: a log.
    pub has_peers: bool,
    /// Classes of answers that both arms have.
    pub classes: Vec<Class>,
    /// By arm.
    pub totals: Pair<Totals>,
    /// First answers.
    pub times: Option<Test>,
    /// Losses.
    pub losses: Option<Test>,
    /// First answers of others.
    pub other_times: Option<Test>,
    /// Losses of others.
    pub other_losses: Option<Test>,
    /// Other connections that overlapped with connections of one arm only.
    pub others: Pair<u64>,
    /// Lines that stand in the files more than once, and were counted once.
    pub duplicates: u64,
    /// Congestion controls of the server, which have the control arm, and the treatment after its
    /// start. None where the logs do not name one.
    pub controls: Vec<String>,
    /// The verdict.
    pub decision: Decision,
    /// The reason for the decision.
    pub reason: String,
}

#[derive(Clone, Copy, Debug)]
struct Value {
    /// 0 for the treatment, 1 for the control.
    arm: usize,
    class: usize,
    peer: usize,
    value: f64,
}

/// Reads a rollout and judges it. `scheme` chooses the treatment where the files have several.
///
/// # Errors
/// Files that cannot be read or are neither logs nor counters; what is not a record of ours in a
/// line that begins like one.
pub fn judge(
    files: &[PathBuf],
    scheme: Option<&str>,
    bounds: &Bounds,
    is_independent: bool,
) -> Result<Judged> {
    let mut texts = vec![];
    let mut bytes = 0;
    for file in files {
        let length = std::fs::metadata(file).with_context(|| file.display().to_string())?.len();
        bytes += length;
        ensure!(
            bytes <= MOST_BYTES,
            "{}: found {bytes} bytes so far, expected at most {MOST_BYTES} in all files: give a shorter period",
            file.display()
        );
        texts.push((file.as_path(), is_counters(file)?));
    }
    let count = texts.iter().filter(|(_, is_counters)| *is_counters).count();
    if count == texts.len() {
        let files: Vec<_> = texts.iter().map(|(file, _)| *file).collect();
        return Ok(counters::read(&files, scheme)?.judged(bounds));
    }
    if let (1.., Some((file, _))) = (count, texts.iter().find(|(_, is_counters)| *is_counters)) {
        bail!("{}: found counters and logs, expected one kind of files", file.display());
    }
    let mut log = log::Log::default();
    for (file, _) in &texts {
        log.read(file)?;
    }
    let duplicates = log.duplicates;
    let controls = log.controls.iter().cloned().collect();
    let (scheme, records) = log.of_scheme(scheme)?;
    let judged = of_records(scheme, &records, is_independent).judged(bounds);
    Ok(Judged { duplicates, controls, ..judged })
}

/// Prometheus' text begins with a comment or a sample of ours.
fn is_counters(file: &std::path::Path) -> Result<bool> {
    use std::io::{BufRead as _, Read as _};
    let opened = std::fs::File::open(file).with_context(|| file.display().to_string())?;
    let mut first = vec![];
    let mut reader = std::io::BufReader::new(opened).take(LONGEST_LINE as u64);
    reader.read_until(b'\n', &mut first).with_context(|| file.display().to_string())?;
    Ok([&b"# HELP "[..], b"# TYPE ", b"headstart_"].iter().any(|begin| first.starts_with(begin)))
}

/// The name of a scheme, which is printed.
fn scheme_name(text: &str) -> Result<&str> {
    let is_name = !text.is_empty() && !text.contains(char::is_control);
    ensure!(is_name, "found the scheme `{}`, expected a name", text.escape_debug());
    Ok(text)
}

#[derive(Debug, Default)]
struct Measured {
    scheme: String,
    has_peers: bool,
    /// Logarithms of microseconds by class.
    classes: Vec<(usize, Pair<Moments>)>,
    totals: Pair<Totals>,
    times: Option<Compared>,
    losses: Option<Compared>,
    other_times: Option<Compared>,
    other_losses: Option<Compared>,
    others: Pair<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Compared {
    difference: Difference,
    counts: Pair<u64>,
    pairs: u64,
}

fn of_records(scheme: String, records: &[Record], is_independent: bool) -> Measured {
    let mut measured = Measured { scheme, has_peers: true, ..Measured::default() };
    let mut classes = BTreeMap::<usize, Pair<Moments>>::new();
    let peer = |at: usize, record: &Record| if is_independent { at } else { record.peer };
    let (mut times, mut losses) = (vec![], vec![]);
    for (at, record) in records.iter().enumerate() {
        let Some(arm) = record.arm else { continue };
        let totals = &mut measured.totals[arm];
        totals.connections += 1.0;
        totals.sent += record.sent;
        totals.lost += record.lost;
        totals.first_flight_lost += record.first_flight_lost;
        let peer = peer(at, record);
        if let Some((class, value)) = record.answer {
            classes.entry(class).or_default()[arm].add(value);
            times.push(Value { arm, class, peer, value });
        }
        losses.extend(record.loss_share().map(|value| Value { arm, class: 0, peer, value }));
    }
    let exposed = exposures(records);
    let (mut other_times, mut other_losses) = (vec![], vec![]);
    for (at, arm) in exposed {
        let (record, peer) = (&records[at], peer(at, &records[at]));
        measured.others[arm] += 1;
        other_times.extend(record.answer.map(|(class, value)| Value { arm, class, peer, value }));
        other_losses.extend(record.loss_share().map(|value| Value { arm, class: 0, peer, value }));
    }
    measured.classes = classes.into_iter().collect();
    measured.times = compare(&times);
    measured.losses = compare(&with_rare_loss(losses));
    measured.other_times = compare(&other_times);
    measured.other_losses = compare(&with_rare_loss(other_losses));
    measured
}

/// The share that a connection loses where it loses any.
const RARE_LOSS: f64 = 0.1;
/// The peers of connections that were added.
const FIRST_RARE: usize = usize::MAX - 1;

/// Adds a connection that lost [`RARE_LOSS`] and one that lost nothing to each arm, of two peers
/// with both arms. Where nothing was lost so far, nothing would be known of the variance.
fn with_rare_loss(mut values: Vec<Value>) -> Vec<Value> {
    for (arm, peer, value) in [(0, 0, RARE_LOSS), (1, 0, 0.0), (0, 1, 0.0), (1, 1, RARE_LOSS)] {
        values.push(Value { arm, class: 0, peer: FIRST_RARE + peer, value });
    }
    values
}

/// Connections concurrent with eligible ones of the same peer, and the arm of these. Left out are
/// connections concurrent with both arms.
fn exposures(records: &[Record]) -> Vec<(usize, usize)> {
    let mut peers = BTreeMap::<usize, Vec<usize>>::new();
    for (at, record) in records.iter().enumerate().filter(|(_, record)| record.open.is_some()) {
        peers.entry(record.peer).or_default().push(at);
    }
    let mut found = vec![];
    for members in peers.values().filter(|members| members.len() > 1) {
        // By arm, when connections began and ended.
        let mut times: Pair<Pair<Vec<f64>>> = Default::default();
        for &at in members {
            if let (Some(arm), Some((began, ended))) = (records[at].arm, records[at].open) {
                times[arm][0].push(began);
                times[arm][1].push(ended);
            }
        }
        times.iter_mut().flatten().for_each(|list| list.sort_by(f64::total_cmp));
        for &at in members {
            let Some((began, ended)) = records[at].open else { continue };
            let beside = [0, 1].map(|arm| {
                let begun = times[arm][0].partition_point(|other| *other <= ended);
                let over = times[arm][1].partition_point(|other| *other < began);
                begun - over - usize::from(records[at].arm == Some(arm))
            });
            match beside {
                [0, 0] => {}
                [_, 0] => found.push((at, 0)),
                [0, _] => found.push((at, 1)),
                _ => {}
            }
        }
    }
    found
}

/// Compares the arms: within peers that have both, and the rest by size.
fn compare(values: &[Value]) -> Option<Compared> {
    let mut counts = [0; 2];
    let mut strata = BTreeMap::<(usize, usize), Pair<Moments>>::new();
    for value in values {
        counts[value.arm] += u64::from(value.peer < FIRST_RARE);
        strata.entry((value.peer, value.class)).or_default()[value.arm].add(value.value);
    }
    let is_pair = |arms: &Pair<Moments>| arms.iter().all(|arm| arm.count > 0);
    // Sums of weight and weighted difference by peer.
    let mut peers = BTreeMap::<usize, (f64, f64)>::new();
    for ((peer, _), arms) in strata.iter().filter(|(_, arms)| is_pair(arms)) {
        let [many, others] = arms.map(|arm| arm.count as f64);
        let weight = many * others / (many + others);
        let sums = peers.entry(*peer).or_default();
        sums.0 += weight;
        sums.1 += weight * (arms[0].mean() - arms[1].mean());
    }
    let mut pairs = peers.len() as u64;
    let paired = (pairs >= FEWEST).then(|| of_pairs(peers.values().copied()));
    if paired.is_none() {
        pairs = 0;
    }
    let is_rest = |value: &&Value| paired.is_none() || !is_pair(&strata[&(value.peer, value.class)]);
    let rest: Vec<&Value> = values.iter().filter(is_rest).collect();
    let difference = Difference::pooled(paired, of_rest(&rest))?;
    Some(Compared { difference, counts, pairs })
}

/// The weighted mean of the peers' differences, with its variance over peers.
fn of_pairs(peers: impl Iterator<Item = (f64, f64)> + Clone) -> Difference {
    let (mut count, mut weights, mut sum) = (0.0, 0.0, 0.0);
    for (weight, weighted) in peers.clone() {
        count += 1.0;
        weights += weight;
        sum += weighted;
    }
    let value = sum / weights;
    let squares: f64 = peers.map(|(weight, weighted)| (weighted - weight * value).powi(2)).sum();
    Difference { value, variance: squares / (weights * weights) * count / (count - 1.0) }
}

/// The difference by size, with the larger of the variances over connections and over peers.
fn of_rest(values: &[&Value]) -> Option<Difference> {
    let mut classes = BTreeMap::<usize, Pair<Moments>>::new();
    for value in values {
        classes.entry(value.class).or_default()[value.arm].add(value.value);
    }
    classes.retain(|_, arms| arms.iter().all(|arm| arm.count >= FEWEST));
    let independent = Difference::stratified(classes.values().copied())?;
    let weight = |arms: &Pair<Moments>| {
        let [many, others] = arms.map(|arm| arm.count as f64);
        many * others / (many + others)
    };
    let total: f64 = classes.values().map(weight).sum();
    // By peer: the sum of what its values contribute to the estimate's error.
    let mut peers = BTreeMap::<usize, f64>::new();
    let mut of_arm = [std::collections::BTreeSet::new(), std::collections::BTreeSet::new()];
    for value in values {
        let Some(arms) = classes.get(&value.class) else { continue };
        let arm = &arms[value.arm];
        let share = weight(arms) / total / arm.count as f64;
        let sign = if value.arm == 0 { 1.0 } else { -1.0 };
        *peers.entry(value.peer).or_default() += sign * share * (value.value - arm.mean());
        of_arm[value.arm].insert(value.peer);
    }
    if of_arm.iter().any(|peers| (peers.len() as u64) < FEWEST) {
        return None;
    }
    let count = peers.len() as f64;
    let over_peers = peers.values().map(|sum| sum * sum).sum::<f64>() * count / (count - 1.0);
    Some(Difference { variance: independent.variance.max(over_peers), ..independent })
}

impl Compared {
    fn test(&self, effect: f64) -> Test {
        let Self { difference, counts, pairs } = *self;
        let [low, high] = Sequence::new(ALPHA / 4.0, effect).interval(&difference);
        Test { difference, low, high, counts, pairs }
    }
}

/// The quantile 0.975 of the normal distribution: tables hold for one look.
const NORMAL: f64 = 1.959_964;

fn class(at: usize, arms: &Pair<Moments>) -> Class {
    let interval = |value: f64, error: f64, scale: f64| {
        let at = |value: f64| value.exp() * scale;
        let reach = if error.is_finite() { NORMAL * error } else { f64::INFINITY };
        Interval { value: at(value), low: at(value - reach), high: at(value + reach) }
    };
    let times = arms.map(|arm| interval(arm.mean(), (arm.variance() / arm.count as f64).sqrt(), 0.001));
    let difference = Difference::stratified([*arms]);
    Class {
        size: SIZE_NAMES.get(at).copied().unwrap_or("more"),
        counts: arms.map(|arm| arm.count),
        times,
        ratio: difference.map(|found| interval(found.value, found.variance.sqrt(), 1.0)),
    }
}

impl Measured {
    fn judged(self, bounds: &Bounds) -> Judged {
        let times = self.times.map(|it| it.test(TIME_EFFECT));
        let losses = self.losses.map(|it| it.test(LOSS_EFFECT));
        let other_times = self.other_times.map(|it| it.test(TIME_EFFECT));
        let other_losses = self.other_losses.map(|it| it.test(LOSS_EFFECT));
        let classes = self.classes.iter().filter(|(_, arms)| arms.iter().all(|arm| arm.count > 0));
        let mut judged = Judged {
            classes: classes.map(|(at, arms)| class(*at, arms)).collect(),
            scheme: self.scheme,
            has_peers: self.has_peers,
            totals: self.totals,
            times,
            losses,
            other_times,
            other_losses,
            others: self.others,
            duplicates: 0,
            controls: vec![],
            decision: Decision::KeepTesting,
            reason: String::new(),
        };
        (judged.decision, judged.reason) = judged.verdict(bounds);
        judged
    }
}

impl Judged {
    fn verdict(&self, bounds: &Bounds) -> (Decision, String) {
        let percent = |logarithm: f64| logarithm.exp_m1() * 100.0;
        let points = |share: f64| share * 100.0;
        let (Some(times), Some(losses)) = (&self.times, &self.losses) else {
            let [treatment, control] = self.totals.map(|totals| totals.connections);
            let peers = if self.has_peers {
                format!(" from {FEWEST} different peers in each arm (--independent ignores peers)")
            } else {
                " in each arm".to_owned()
            };
            return (
                Decision::KeepTesting,
                format!(
                    "found {treatment} connections of the treatment and {control} of the control, expected \
                     {FEWEST} with answers of similar size{peers}"
                ),
            );
        };
        let off = |reason: String| (Decision::TurnOff, reason);
        if times.low > 0.0 {
            return off(format!("first answers take at least {:.1} % longer", percent(times.low)));
        }
        for (test, whose) in [(Some(losses), "its"), (self.other_losses.as_ref(), "other")] {
            if let Some(test) = test.filter(|test| test.low > bounds.most_loss) {
                let (low, most) = (points(test.low), points(bounds.most_loss));
                return off(format!(
                    "{whose} connections lose {low:.2} points more of their bytes at least, above the bound \
                     of {most:.2}"
                ));
            }
        }
        if let Some(test) = self.other_times.filter(|test| test.low > bounds.most_harm.ln_1p()) {
            let (low, most) = (percent(test.low), bounds.most_harm * 100.0);
            return off(format!(
                "other connections of the same peers take at least {low:.1} % longer, above the bound of \
                 {most:.1} %"
            ));
        }
        if times.low > (-bounds.worth).ln_1p() {
            return off(format!(
                "it saves at most {:.1} %, below --worth {:.1} %",
                -percent(times.low),
                bounds.worth * 100.0
            ));
        }
        let mut open = vec![];
        if times.high >= 0.0 {
            open.push(format!(
                "the time of first answers may change by {:+.1} to {:+.1} %",
                percent(times.low),
                percent(times.high)
            ));
        }
        for (test, whose) in [(Some(losses), ""), (self.other_losses.as_ref(), "other connections may lose ")]
        {
            if let Some(test) = test.filter(|test| test.high > bounds.most_loss) {
                let verb = if whose.is_empty() { "it may lose " } else { whose };
                open.push(format!("{verb}{:.2} points more of the bytes", points(test.high)));
            }
        }
        if let Some(test) = self.other_times.filter(|test| test.high > bounds.most_harm.ln_1p()) {
            open.push(format!("other connections may take {:.1} % longer", percent(test.high)));
        }
        let harm = match (self.has_peers, self.other_times) {
            (false, _) => "harm to other connections is not in counters: give the log for that",
            (true, None) => "too few concurrent connections to measure harm",
            (true, Some(_)) => "other connections of the same peers keep within the bounds",
        };
        if self.other_times.is_none() && !bounds.accepts_unknown_harm {
            open.push(format!("{harm} (--accept-unknown-harm turns on without)"));
        }
        if !open.is_empty() {
            return (Decision::KeepTesting, open.join("; "));
        }
        let saved = -percent(times.high);
        let reason = format!(
            "first answers take at least {saved:.1} % less time, losses keep within the bound; {harm}"
        );
        (Decision::TurnOn, reason)
    }
}

#[cfg(test)]
mod tests;
