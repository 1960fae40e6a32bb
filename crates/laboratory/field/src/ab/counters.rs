//! Counters of `/metrics`: one text since the server's start, or several of one server in order, of
//! which the first is subtracted.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use headstart_quic::metrics::SIZE_NAMES;
use headstart_quic::sequential::{Difference, Moments};

use super::{Compared, LONGEST_LINE, Measured, Pair, RARE_LOSS, Totals, scheme_name};

/// Largest text of counters, in bytes.
const LARGEST: u64 = 64 << 20;

/// Name, scheme, arm and class of a counter.
type Key = (String, String, String, String);
type Samples = BTreeMap<Key, f64>;

/// Counters that are used, without `headstart_`.
const USED: [&str; 10] = [
    "connections_total",
    "sent_bytes_total",
    "lost_bytes_total",
    "first_flight_lost_bytes_total",
    "answer_seconds_count",
    "answer_logarithms_total",
    "answer_squared_logarithms_total",
    "senders_total",
    "loss_shares_total",
    "squared_loss_shares_total",
];

pub(super) fn read(files: &[&Path], wanted: Option<&str>) -> Result<Measured> {
    let mut texts = vec![];
    for file in files {
        texts.push(samples(file)?);
    }
    let mut total = Samples::new();
    if let [only] = &texts[..] {
        total.clone_from(only);
    }
    for pair in texts.windows(2) {
        for (key, now) in &pair[1] {
            let before = pair[0].get(key).copied().unwrap_or(0.0);
            // A counter that fell began again from zero: the server was restarted.
            let gain = if *now >= before { now - before } else { *now };
            *total.entry(key.clone()).or_default() += gain;
        }
    }
    let treated = |(name, _, arm, _): &&Key| name == "connections_total" && arm == "treatment";
    let schemes: Vec<&String> =
        total.iter().filter(|(key, count)| treated(key) && **count > 0.0).map(|(key, _)| &key.1).collect();
    let names = schemes.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let scheme = match (wanted, &schemes[..]) {
        (Some(wanted), _) => schemes.iter().find(|name| **name == wanted).with_context(|| {
            format!("--scheme: found no treatment by `{wanted}`, expected one of {names}")
        })?,
        (None, [only]) => only,
        (None, []) => bail!("found no connection of the treatment, expected both arms"),
        (None, _) => bail!("found treatments by {names}, expected one: choose with --scheme"),
    };
    measured(&total, scheme)
}

fn measured(total: &Samples, scheme: &str) -> Result<Measured> {
    let value = |name: &str, arm: &str, size: &str| {
        let key = (name.to_owned(), scheme.to_owned(), arm.to_owned(), size.to_owned());
        total.get(&key).copied().unwrap_or(0.0)
    };
    let moments = |names: [&str; 3], size: &str| -> Pair<Moments> {
        ["treatment", "control"].map(|arm| Moments {
            count: value(names[0], arm, size) as u64,
            sum: value(names[1], arm, size),
            squares: value(names[2], arm, size),
        })
    };
    let times = ["answer_seconds_count", "answer_logarithms_total", "answer_squared_logarithms_total"];
    let classes: Vec<(usize, Pair<Moments>)> =
        SIZE_NAMES.iter().enumerate().map(|(at, size)| (at, moments(times, size))).collect();
    let mut losses = moments(["senders_total", "loss_shares_total", "squared_loss_shares_total"], "");
    ensure!(
        losses.iter().any(|arm| arm.count > 0),
        "found no `headstart_senders_total`, expected the counters of `serve`: of `headstart tcp` give the lines of \
         `headstart tcp trace`"
    );
    let senders = losses.map(|arm| arm.count);
    for arm in &mut losses {
        arm.add(RARE_LOSS);
        arm.add(0.0);
    }
    let compared = |strata: &[Pair<Moments>]| {
        let difference = Difference::stratified(strata.iter().copied())?;
        let count = |arm: usize| strata.iter().map(|arms| arms[arm].count).sum();
        Some(Compared { difference, counts: [count(0), count(1)], pairs: 0 })
    };
    let strata: Vec<Pair<Moments>> = classes.iter().map(|(_, arms)| *arms).collect();
    Ok(Measured {
        scheme: scheme.to_owned(),
        times: compared(&strata),
        losses: compared(&[losses]).map(|it| Compared { counts: senders, ..it }),
        totals: ["treatment", "control"].map(|arm| Totals {
            connections: value("connections_total", arm, ""),
            sent: value("sent_bytes_total", arm, ""),
            lost: value("lost_bytes_total", arm, ""),
            first_flight_lost: value("first_flight_lost_bytes_total", arm, ""),
        }),
        classes,
        ..Measured::default()
    })
}

/// The used samples of a text; those that differ in other labels are added up.
fn samples(file: &Path) -> Result<Samples> {
    let name = || file.display().to_string();
    let length = std::fs::metadata(file).with_context(name)?.len();
    ensure!(length <= LARGEST, "{}: found {length} bytes, expected at most {LARGEST}", file.display());
    let text = std::fs::read_to_string(file).with_context(name)?;
    let mut samples = Samples::new();
    for (number, line) in text.lines().enumerate() {
        let place = || format!("{}, line {}", file.display(), number + 1);
        ensure!(line.len() <= LONGEST_LINE, "{}: found more than {LONGEST_LINE} bytes", place());
        let Some(rest) = line.strip_prefix("headstart_") else { continue };
        let Some(name) = USED
            .iter()
            .find(|used| rest.strip_prefix(**used).is_some_and(|rest| rest.starts_with(['{', ' '])))
        else {
            continue;
        };
        let (labels, value) = sample(&rest[name.len()..]).with_context(|| {
            format!("{}: found `{line}`, expected labels in braces and a number", place())
        })?;
        let label = |name: &str| labels.get(name).copied().unwrap_or_default().to_owned();
        scheme_name(&label("scheme")).with_context(place)?;
        let key = ((*name).to_owned(), label("scheme"), label("arm"), label("size"));
        *samples.entry(key).or_default() += value;
    }
    Ok(samples)
}

/// `{name="value",...} number [time]`.
fn sample(text: &str) -> Option<(BTreeMap<&str, &str>, f64)> {
    let (labels, value) = match text.strip_prefix('{') {
        Some(rest) => rest.split_once('}')?,
        None => ("", text),
    };
    let mut found = BTreeMap::new();
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (name, value) = label.split_once('=')?;
        found.insert(name.trim(), value.strip_prefix('"')?.strip_suffix('"')?);
    }
    let value: f64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    (value.is_finite() && (0.0..=1e18).contains(&value)).then_some((found, value))
}
