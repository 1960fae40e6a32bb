//! The conditions of a comparison as columns: numbers with their unit in the name, not as typed.
//!
//! `docs/data.md` describes each. All comparisons have the same columns: tables can be joined.

use clap::ValueEnum;
use headstart_report::rows::{Column, Kind};
use headstart_units::{Ratio, Span};

use crate::options::{
    BASES, PACINGS, PROBES, PathOptions, SizeName, TransportOptions, WorkloadOptions, name_of,
};
use crate::race::Value;
use crate::setup::Setup;

/// A condition.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The option that sets it.
    pub option: &'static str,
    /// Its column.
    pub name: &'static str,
    /// Its value here.
    pub value: Value,
}

/// The columns of the conditions.
pub const COLUMNS: [&str; 48] = [
    "environment",
    "transport",
    "rate_bits_per_s",
    "trace",
    "rtt_s",
    "rtt_classes_s",
    "buffer_bytes",
    "buffer_packets",
    "queue",
    "policer_bits_per_s",
    "policer_burst_bytes",
    "random_loss_share",
    "burst_loss_share",
    "burst_loss_packets",
    "jitter_s",
    "reorder",
    "duplicate_share",
    "ip_options",
    "up_rate_bits_per_s",
    "up_trace",
    "trace_offset_s",
    "hops",
    "routers",
    "load_share",
    "sizes",
    "mean_size_bytes",
    "arrivals",
    "pages",
    "fetch",
    "background_flows",
    "long_share",
    "long_scheme",
    "peers",
    "history_peers",
    "hint_share",
    "base",
    "detection",
    "probe",
    "acks",
    "pacing",
    "later_responses",
    "min_rto_s",
    "initial_rto_s",
    "receive_window_bytes",
    "ecn",
    "duration_s",
    "warm_up_s",
    "drain_s",
];

/// All conditions of `setup`, in the order of the columns.
#[must_use]
pub fn conditions(setup: &Setup) -> Vec<Condition> {
    let Setup { path, transport, workload, run, .. } = setup;
    let mut all = vec![];
    let mut add = |option, name, value| all.push(Condition { option, name, value });
    add("in", "environment", word(run.environment));
    add("transport", "transport", word(transport.transport));
    of_path(setup, path, &mut add);
    of_workload(setup, workload, &mut add);
    of_transport(transport, &mut add);
    add("duration", "duration_s", seconds(run.duration));
    add("warm-up", "warm_up_s", seconds(run.warm_up));
    add("drain", "drain_s", seconds(run.drain));
    all
}

/// Columns around the measures of a table: varied conditions before them, constant ones behind.
#[derive(Clone, Debug, Default)]
pub struct ConditionColumns {
    /// Names and values before the measures.
    pub before: Vec<(String, String)>,
    /// Those behind them.
    pub behind: Vec<(String, String)>,
}

impl ConditionColumns {
    /// The conditions of `setup`, of which these options vary. An option that is no condition by
    /// itself is given as it was typed.
    #[must_use]
    pub fn new(setup: &Setup, varied: &[(String, String)]) -> Self {
        let conditions = conditions(setup);
        let same = |option: &str, name: &str| option.replace('-', "_") == name;
        let mut around = Self::default();
        for (name, typed) in varied {
            let found: Vec<_> = conditions.iter().filter(|one| same(one.option, name)).collect();
            around.before.extend(found.iter().map(|one| (one.name.to_owned(), one.value.to_string())));
            if found.is_empty() {
                around.before.push((name.clone(), typed.clone()));
            }
        }
        let rest = conditions.iter().filter(|one| varied.iter().all(|(name, _)| !same(one.option, name)));
        around.behind.extend(rest.map(|one| (one.name.to_owned(), one.value.to_string())));
        around.behind.push(("headstart".to_owned(), crate::VERSION.to_owned()));
        around
    }

    /// The header of a table with these measures.
    #[must_use]
    pub fn header<'a>(&'a self, measures: &[&'a str]) -> Vec<&'a str> {
        let names = |columns: &'a [(String, String)]| columns.iter().map(|(name, _)| name.as_str());
        names(&self.before).chain(measures.iter().copied()).chain(names(&self.behind)).collect()
    }

    /// The columns of such a table of `setup`, whose measures are of these kinds.
    #[must_use]
    pub fn columns(&self, setup: &Setup, measures: &[(&'static str, Kind)]) -> Vec<Column> {
        let conditions = conditions(setup);
        let names = |columns: &[(String, String)]| -> Vec<Column> {
            let column = |(name, _): &(String, String)| {
                let found = conditions.iter().find(|one| one.name == name);
                Column::new(name, found.map_or(Kind::Text, |one| one.value.kind()))
            };
            columns.iter().map(column).collect()
        };
        let measures = measures.iter().map(|(name, kind)| Column::new(*name, *kind)).collect();
        [names(&self.before), measures, names(&self.behind)].concat()
    }

    /// A row of it.
    #[must_use]
    pub fn row(&self, measures: Vec<String>) -> Vec<String> {
        let values = |columns: &[(String, String)]| -> Vec<String> {
            columns.iter().map(|(_, value)| value.clone()).collect()
        };
        [values(&self.before), measures, values(&self.behind)].concat()
    }
}

/// Takes an option, the name of a column, and its value.
type Add<'a> = &'a mut dyn FnMut(&'static str, &'static str, Value);

fn of_path(setup: &Setup, path: &PathOptions, add: Add<'_>) {
    let limit = path.buffer.limit(setup.bottleneck(), setup.rtt());
    let file = |file: &Option<crate::options::TraceFile>| {
        Value::Text(file.as_ref().map(|file| file.name.clone()).unwrap_or_default())
    };
    let classes: Vec<String> = path.rtt.0.iter().map(|rtt| rtt.as_secs_f64().to_string()).collect();
    let hops: Vec<String> = path
        .hops
        .iter()
        .map(|hop| {
            let limit = hop.buffer.limit(hop.rate, setup.rtt());
            let buffer = if limit.packets == u64::MAX {
                format!("{}B", limit.bytes.get())
            } else {
                format!("{}p", limit.packets)
            };
            format!("{}/{}/{buffer}", hop.rate.as_bits_per_sec(), hop.delay.as_secs_f64())
        })
        .collect();
    add("rate", "rate_bits_per_s", Value::Count(setup.bottleneck().as_bits_per_sec()));
    add("trace", "trace", file(&path.trace));
    add("rtt", "rtt_s", seconds(setup.rtt()));
    add(
        "rtt",
        "rtt_classes_s",
        Value::Text(if classes.len() > 1 { classes.join("+") } else { String::new() }),
    );
    let bounded = |is: bool, value: u64| if is { Value::Count(value) } else { Value::Number(None) };
    let (bytes, packets) = (limit.bytes, limit.packets);
    add("buffer", "buffer_bytes", bounded(packets == u64::MAX, bytes.get()));
    add("buffer", "buffer_packets", bounded(packets != u64::MAX, packets));
    add("queue", "queue", Value::Text(path.queue.to_string()));
    let policer = path.policer;
    let count = |value: Option<u64>| value.map_or(Value::Number(None), Value::Count);
    add("policer", "policer_bits_per_s", count(policer.map(|policer| policer.rate.as_bits_per_sec())));
    add("policer", "policer_burst_bytes", count(policer.map(|policer| policer.burst.get())));
    add("loss", "random_loss_share", share(path.loss));
    add("burst-loss", "burst_loss_share", optional(path.burst_loss.map(|burst| burst.enter.as_f64())));
    let length = path.burst_loss.map(|burst| f64::from(burst.length));
    add("burst-loss", "burst_loss_packets", optional(length));
    add("jitter", "jitter_s", seconds(path.jitter));
    add("reorder", "reorder", flag(path.reorder));
    add("duplicate", "duplicate_share", share(path.duplicate));
    add(
        "ip-options",
        "ip_options",
        Value::Text(path.ip_options.map_or_else(String::new, |it| it.to_string())),
    );
    let back = path.way_back();
    add("up-rate", "up_rate_bits_per_s", Value::Count(back.as_bits_per_sec()));
    add("up-trace", "up_trace", file(&path.up_trace));
    add("trace-offset", "trace_offset_s", optional(path.trace_offset.map(Span::as_secs_f64)));
    add("hop", "hops", Value::Text(hops.join(" ")));
    add("routers", "routers", word(path.routers));
}

fn of_workload(setup: &Setup, workload: &WorkloadOptions, add: Add<'_>) {
    let sizes = match &workload.size {
        _ if !setup.pages.is_empty() => "pages".to_owned(),
        _ if workload.arrivals.is_some() => "arrivals".to_owned(),
        SizeName::Fixed(_) => "fixed".to_owned(),
        SizeName::Named(name) => name.clone(),
        SizeName::File(file) => file.name.clone(),
    };
    let arrivals = workload.arrivals.as_ref().map(|file| file.name.clone());
    add("load", "load_share", share(workload.load));
    add("size", "sizes", Value::Text(sizes));
    add("size", "mean_size_bytes", Value::Number(Some(setup.mean_bytes())));
    add("arrivals", "arrivals", Value::Text(arrivals.unwrap_or_default()));
    add("har", "pages", Value::Count(setup.pages.len() as u64));
    add("fetch", "fetch", Value::Text(if setup.pages.is_empty() { String::new() } else { fetch(setup) }));
    add("background", "background_flows", Value::Count(u64::from(workload.background)));
    add("long-share", "long_share", share(workload.long_share));
    add("long-scheme", "long_scheme", Value::Text(workload.long_scheme.0.name.to_string()));
    add("peers", "peers", Value::Count(u64::from(workload.peers)));
    add("history", "history_peers", Value::Count(workload.history as u64));
    add("hint", "hint_share", share(workload.hint));
}

fn of_transport(transport: &TransportOptions, add: Add<'_>) {
    add("base", "base", Value::Text(name_of(BASES, &transport.base).to_owned()));
    add("detection", "detection", word(transport.detection));
    add("probe", "probe", Value::Text(name_of(PROBES, &transport.probe).to_owned()));
    add("acks", "acks", word(transport.acks));
    add("pacing", "pacing", Value::Text(name_of(PACINGS, &transport.pacing).to_owned()));
    add("later-responses", "later_responses", word(transport.later_responses));
    add("min-rto", "min_rto_s", seconds(transport.min_rto));
    add("initial-rto", "initial_rto_s", seconds(transport.initial_rto));
    add("receive-window", "receive_window_bytes", Value::Count(transport.receive_window.get()));
    add("ecn", "ecn", flag(transport.ecn));
}

/// Method of fetching pages; of several files with different ones, each in turn.
fn fetch(setup: &Setup) -> String {
    use headstart_sim::workload::page::Fetch;
    let name = |fetch: &Fetch| match fetch {
        Fetch::Persistent(count) => format!("persistent:{count}"),
        Fetch::Parallel(count) => format!("parallel:{count}"),
        Fetch::Multiplexed => "multiplexed".to_owned(),
    };
    let mut fetches = setup.fetches.clone();
    fetches.dedup();
    fetches.iter().map(name).collect::<Vec<_>>().join("+")
}

/// A value as options name it.
fn word(value: impl ValueEnum) -> Value {
    Value::Text(crate::options::choice_name(value))
}

fn seconds(span: Span) -> Value {
    Value::Number(Some(span.as_secs_f64()))
}

fn share(ratio: Ratio) -> Value {
    Value::Number(Some(ratio.as_f64()))
}

fn optional(value: Option<f64>) -> Value {
    Value::Number(value)
}

fn flag(is: bool) -> Value {
    Value::Count(u64::from(is))
}

impl Value {
    /// Kind of a column of such values.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Count(_) => Kind::Count,
            Self::Number(_) => Kind::Number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Carriers;
    use headstart_study::settings::Settings;

    fn of(line: &str) -> Vec<Condition> {
        conditions(&Settings::parse(Carriers::MODEL, line.split_whitespace()).expect("fine"))
    }

    fn value(all: &[Condition], name: &str) -> String {
        all.iter().find(|one| one.name == name).expect(name).value.to_string()
    }

    #[test]
    fn numbers_are_in_the_unit_of_their_name() {
        let all = of("--rate 12.5mbit --rtt 20ms+60ms --buffer 104p --loss 0.5% --load 7% --size 30kB --ecn");
        for (name, expected) in [
            ("rate_bits_per_s", "12500000"),
            ("rtt_s", "0.02"),
            ("rtt_classes_s", "0.02+0.06"),
            ("buffer_bytes", ""),
            ("buffer_packets", "104"),
            ("random_loss_share", "0.005"),
            ("load_share", "0.07"),
            ("mean_size_bytes", "30000"),
            ("sizes", "fixed"),
            ("ecn", "1"),
            ("queue", "drop-tail"),
            ("duration_s", "300"),
        ] {
            assert_eq!(value(&all, name), expected, "{name}");
        }
        assert_eq!(value(&of("--buffer 1BDP --rtt 60ms"), "buffer_bytes"), "112500");
    }

    #[test]
    fn columns_do_not_depend_on_the_conditions_and_are_unique() {
        let columns = |line: &str| -> Vec<(&str, bool)> {
            of(line).iter().map(|one| (one.name, one.value.kind() == Kind::Text)).collect()
        };
        let plain = columns("");
        assert_eq!(plain.iter().map(|(name, _)| *name).collect::<Vec<_>>(), COLUMNS);
        let rich = "--buffer 10p --burst-loss 1%,5 --hop 10mbit/5ms/50kB --pages archive2014 --up-rate 1mbit";
        assert_eq!(columns(rich), plain);
        let mut names: Vec<_> = plain.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), plain.len());
    }
}
