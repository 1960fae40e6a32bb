//! The conditions of a comparison as columns: numbers with their unit in the name, not as typed.
//!
//! `docs/data.md` has their descriptions from here. All comparisons have the same columns, so that
//! tables can be joined.

use clap::ValueEnum;
use headstart_report::rows::{Column, Table, Value};
use headstart_units::{Ratio, Span};

use headstart_study::options::{BASES, HopLink, PACINGS, PROBES, SizeName, TraceFile, name_of};
use headstart_study::setup::Setup;

/// A condition: an option's column, and its value here.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The option that sets it.
    pub option: &'static str,
    /// Column of the condition.
    pub name: &'static str,
    /// Value of the condition in this run.
    pub value: Value,
}

/// The option that sets a condition, the condition's column, its description, and its value.
type Row = (&'static str, &'static str, &'static str, fn(&Setup) -> Value);

/// The columns of the conditions, in their order. Titles and `docs/data.md` are made of these rows.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("in", "environment", "`simulator` or `emulator` (`--in`)", |it| word(it.run.environment)),
    ("reference", "reference", "scheme that the others are compared with", |it| text(it.reference().name)),
    ("transport", "transport", "`tcp` or `quic`", |it| word(it.transport.transport)),
    ("rate", "rate_bits_per_s", "rate of the bottleneck; of a trace its mean", |it| Value::Count(it.bottleneck().as_bits_per_sec())),
    ("trace", "trace", "file of the trace that drives the bottleneck; empty where a rate does", |it| file(&it.path.trace)),
    ("rtt", "rtt_s", "smallest round-trip time of the classes of hosts, without queues", |it| seconds(it.rtt())),
    ("rtt", "rtt_classes_s", "all of them, joined by `+`, where there is more than one", |it| text(rtt_classes(it))),
    ("buffer", "buffer_bytes", "buffer before the bottleneck; empty where it is counted in packets", |it| buffer(it, false)),
    ("buffer", "buffer_packets", "the same in packets", |it| buffer(it, true)),
    ("queue", "queue", "its discipline", |it| text(it.path.queue)),
    ("policer", "policer_bits_per_s", "rate of a policer before the bottleneck; empty without one", |it| count(it.path.policer.map(|policer| policer.rate.as_bits_per_sec()))),
    ("policer", "policer_burst_bytes", "its burst", |it| count(it.path.policer.map(|policer| policer.burst.get()))),
    ("loss", "random_loss_share", "random loss behind the bottleneck, each packet for itself", |it| share(it.path.loss)),
    ("burst-loss", "burst_loss_share", "packets that begin a burst of loss", |it| Value::Number(it.path.burst_loss.map(|burst| burst.enter.as_f64()))),
    ("burst-loss", "burst_loss_packets", "mean length of a burst", |it| Value::Number(it.path.burst_loss.map(|burst| f64::from(burst.length)))),
    ("jitter", "jitter_s", "largest random extra delay", |it| seconds(it.path.jitter)),
    ("reorder", "reorder", "1 if jitter reorders", |it| flag(it.path.reorder)),
    ("delay-trace", "delay_trace", "file of recorded extra delays; empty without one", |it| text(it.path.delay_trace.as_ref().map_or("", |file| &file.name))),
    ("duplicate", "duplicate_share", "packets that arrive twice", |it| share(it.path.duplicate)),
    ("ip-options", "ip_options", "action of a box on packets with IP options, and the share of them that it affects; empty without one", |it| text(it.path.ip_options.map_or_else(String::new, |action| action.to_string()))),
    ("up-rate", "up_rate_bits_per_s", "rate of the way back", |it| Value::Count(it.path.way_back().as_bits_per_sec())),
    ("up-trace", "up_trace", "file of the trace that drives it", |it| file(&it.path.up_trace)),
    ("trace-offset", "trace_offset_s", "where in their traces all runs begin; empty where that is drawn for each seed", |it| Value::Number(it.path.trace_offset.map(Span::as_secs_f64))),
    ("hop", "hops", "further links, each as bits per second/seconds/buffer", |it| text(hops(it))),
    ("routers", "routers", "what routers understand", |it| word(it.path.routers)),
    ("load", "load_share", "payload offered, as a share of the bottleneck's rate", |it| share(it.workload.load)),
    ("size", "sizes", "`fixed`, `pages`, `arrivals`, or the name of a distribution or of its file", |it| text(sizes(it))),
    ("size", "mean_size_bytes", "mean payload of a flow, or of a page", |it| Value::Number(Some(it.mean_bytes()))),
    ("arrivals", "arrivals", "file of the arrivals; empty where they are drawn", |it| text(it.workload.arrivals.as_ref().map_or("", |file| &file.name))),
    ("har", "pages", "different pages that are fetched; 0 where flows are", |it| Value::Count(it.pages.len() as u64)),
    ("fetch", "fetch", "how pages are fetched; of several HAR files that were fetched differently, `multiplexed+persistent:6`", |it| text(fetch(it))),
    ("answers", "answers", "answers or pages that a client asks for one after the other", |it| Value::Count(u64::from(it.workload.answers))),
    ("think", "think_s", "its pause before each but the first", |it| seconds(it.workload.think)),
    ("background", "background_flows", "long flows from the beginning to the end", |it| Value::Count(u64::from(it.workload.background))),
    ("long-share", "long_share", "share of the load that arriving long flows bring", |it| share(it.workload.long_share)),
    ("long-scheme", "long_scheme", "what long flows run", |it| text(it.workload.long_scheme.0.name)),
    ("media", "media_bits_per_s", "rate of a concurrent real-time flow; 0 without one", |it| Value::Count(it.workload.media.map_or(0, |rate| rate.as_bits_per_sec()))),
    ("attack", "attack", "requests for rates without connections; `none` without such", |it| word(it.workload.attack)),
    ("attack-requests", "attack_requests", "such requests in a second", |it| Value::Count(u64::from(it.workload.attack_requests))),
    ("peers", "peers", "different peers", |it| Value::Count(u64::from(it.workload.peers))),
    ("history", "history_peers", "peers that a sender remembers", |it| Value::Count(it.workload.history as u64)),
    ("hint", "hint_share", "what clients announce, over the bottleneck's rate", |it| share(it.workload.hint)),
    ("hint-share", "hinting_peers_share", "share of the peers that announce it; empty: all where the scheme needs hints, else none", |it| Value::Number(it.workload.hint_share.map(Ratio::as_f64))),
    ("hint-lie", "other_hint_share", "what the other peers announce, over the bottleneck's rate; empty: nothing", |it| Value::Number(it.workload.hint_lie.map(Ratio::as_f64))),
    ("base", "base", "what schemes hand over to", |it| text(name_of(BASES, &it.transport.base))),
    ("detection", "detection", "how losses are found (of the TCP model)", |it| word(it.transport.detection)),
    ("probe", "probe", "what happens when acks stop coming (of the TCP model)", |it| text(name_of(PROBES, &it.transport.probe))),
    ("acks", "acks", "when the receiver acknowledges (of the TCP model)", |it| word(it.transport.acks)),
    ("pacing", "pacing", "pacing where a scheme gives none (of the TCP model)", |it| text(name_of(PACINGS, &it.transport.pacing))),
    ("later-responses", "later_responses", "how a later response of a page's connection begins: `flights` or `window` (of the TCP model)", |it| word(it.transport.later_responses)),
    ("min-rto", "min_rto_s", "smallest retransmission timeout (of the TCP model)", |it| seconds(it.transport.min_rto)),
    ("initial-rto", "initial_rto_s", "the one before anything was measured (of the TCP model)", |it| seconds(it.transport.initial_rto)),
    ("header", "header_bytes", "headers of a packet on the link (of the TCP model)", |it| Value::Count(it.transport.header.get())),
    ("receive-window", "receive_window_bytes", "the receiver's window", |it| Value::Count(it.transport.receive_window.get())),
    ("ecn", "ecn", "1 with explicit congestion notification", |it| flag(it.transport.ecn)),
    ("duration", "duration_s", "time during which flows arrive", |it| seconds(it.run.duration)),
    ("warm-up", "warm_up_s", "flows that begin earlier are left out of the measures", |it| seconds(it.run.warm_up)),
    ("drain", "drain_s", "time after the last arrival for flows to finish", |it| seconds(it.run.drain)),
];

/// The columns with their descriptions.
#[cfg(test)]
pub fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROWS.iter().map(|(_, name, about, _)| (*name, *about))
}

/// All conditions of `setup`, in the order of the columns.
#[must_use]
pub fn conditions(setup: &Setup) -> Vec<Condition> {
    let one = |(option, name, _, value): &Row| Condition { option, name, value: value(setup) };
    ROWS.iter().map(one).collect()
}

/// Columns around the measures of a table: varied conditions before them, constant ones behind.
#[derive(Clone, Debug, Default)]
pub struct ConditionColumns {
    /// Names and values before the measures.
    pub before: Vec<(String, Value)>,
    /// Names and values behind the measures.
    pub behind: Vec<(String, Value)>,
}

impl ConditionColumns {
    /// The conditions of `setup`, of which these options vary. An option that is no condition by
    /// itself is given as it was typed.
    #[must_use]
    pub fn new(setup: &Setup, varied: &[(String, String)]) -> Self {
        let conditions = conditions(setup);
        let same = |option: &str, name: &str| option.replace('-', "_") == name;
        let mut around = Self::default();
        let column = |one: &Condition| (one.name.to_owned(), one.value.clone());
        for (name, typed) in varied {
            let known = around.before.len();
            around.before.extend(conditions.iter().filter(|one| same(one.option, name)).map(column));
            if around.before.len() == known {
                around.before.push((name.clone(), text(typed)));
            }
        }
        let rest = conditions.iter().filter(|one| varied.iter().all(|(name, _)| !same(one.option, name)));
        around.behind.extend(rest.map(column));
        around.behind.push(("headstart".to_owned(), text(crate::VERSION)));
        around
    }

    /// A table of results with the columns of conditions around its own. One of the same name as
    /// its own is left out: seeds that vary.
    #[must_use]
    pub fn around(&self, table: Table) -> Table {
        let parts = |columns: &[(String, Value)]| -> (Vec<Column>, Vec<String>) {
            let is_new = |(name, _): &&(String, Value)| table.columns.iter().all(|own| own.name != *name);
            let one = |(name, value): &(String, Value)| (Column::new(name, value.kind()), value.to_string());
            columns.iter().filter(is_new).map(one).unzip()
        };
        let ((before, first), (behind, last)) = (parts(&self.before), parts(&self.behind));
        let row = |row| [first.clone(), row, last.clone()].concat();
        Table {
            columns: [before, table.columns, behind].concat(),
            rows: table.rows.into_iter().map(row).collect(),
        }
    }
}

fn rtt_classes(setup: &Setup) -> String {
    let classes: Vec<String> = setup.path.rtt.0.iter().map(|rtt| rtt.as_secs_f64().to_string()).collect();
    if classes.len() > 1 { classes.join("+") } else { String::new() }
}

fn hops(setup: &Setup) -> String {
    let one = |hop: &HopLink| {
        let limit = hop.buffer.limit(hop.rate, setup.rtt());
        let is_bytes = limit.packets == u64::MAX;
        let (size, unit) = if is_bytes { (limit.bytes.get(), "B") } else { (limit.packets, "p") };
        format!("{}/{}/{size}{unit}", hop.rate.as_bits_per_sec(), hop.delay.as_secs_f64())
    };
    setup.path.hops.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn sizes(setup: &Setup) -> &str {
    match &setup.workload.size {
        _ if !setup.pages.is_empty() => "pages",
        _ if setup.workload.arrivals.is_some() => "arrivals",
        SizeName::Fixed(_) => "fixed",
        SizeName::Named(name) => name,
        SizeName::File(file) => &file.name,
    }
}

/// Method of fetching pages; of several files with different ones, each in turn.
fn fetch(setup: &Setup) -> String {
    use headstart_sim::workload::page::Fetch;
    if setup.pages.is_empty() {
        return String::new();
    }
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
    text(value.to_possible_value().as_ref().map_or("", |value| value.get_name()))
}

fn text(value: impl ToString) -> Value {
    Value::Text(value.to_string())
}

fn file(file: &Option<TraceFile>) -> Value {
    text(file.as_ref().map_or("", |file| &file.name))
}

fn count(value: Option<u64>) -> Value {
    value.map_or(Value::NoCount, Value::Count)
}

/// The buffer's limit if it is counted in this unit.
fn buffer(setup: &Setup, in_packets: bool) -> Value {
    let limit = setup.path.buffer.limit(setup.bottleneck(), setup.rtt());
    let value = if in_packets { limit.packets } else { limit.bytes.get() };
    count((in_packets == (limit.packets != u64::MAX)).then_some(value))
}

fn seconds(span: Span) -> Value {
    Value::Number(Some(span.as_secs_f64()))
}

fn share(ratio: Ratio) -> Value {
    Value::Number(Some(ratio.as_f64()))
}

fn flag(is: bool) -> Value {
    Value::Count(u64::from(is))
}

#[cfg(test)]
mod tests {
    use headstart_report::rows::Kind;

    use super::*;
    use headstart_study::carrier::Carriers;
    use headstart_study::settings::Settings;

    fn of(line: &str) -> Vec<Condition> {
        conditions(&Settings::parse(Carriers::MODEL, line.split_whitespace()).expect("fine"))
    }

    fn value(all: &[Condition], name: &str) -> String {
        all.iter().find(|one| one.name == name).expect(name).value.to_string()
    }

    #[test]
    fn a_column_is_there_once_where_seeds_vary() {
        let setup = Settings::parse(Carriers::MODEL, ["--seed", "7"].into_iter()).expect("fine");
        let around = ConditionColumns::new(&setup, &[("seed".to_owned(), "7".to_owned())]);
        let own = Table { columns: vec![Column::new("seed", Kind::Count)], rows: vec![vec!["7".to_owned()]] };
        let table = around.around(own);
        assert_eq!(table.header().iter().filter(|name| **name == "seed").count(), 1);
        assert_eq!(table.rows[0].len(), table.columns.len());
        let other = around.around(Table::default());
        assert_eq!(other.header()[0], "seed", "where the table has none it stands first");
    }

    #[test]
    fn a_condition_that_is_not_there_has_the_kind_of_one_that_is() {
        for (with, without) in [("--policer 5mbit,50kB", ""), ("--buffer 104p", "--buffer 100kB")] {
            let kinds =
                [with, without].map(|line| of(line).iter().map(|one| one.value.kind()).collect::<Vec<_>>());
            assert_eq!(kinds[0], kinds[1], "{with}");
        }
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
        let rich = "--buffer 10p --burst-loss 1%,5 --hop 10mbit/5ms/50kB --pages archive2014 --up-rate 1mbit";
        assert_eq!(columns(rich), plain);
        let mut names: Vec<_> = plain.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), plain.len());
    }
}
