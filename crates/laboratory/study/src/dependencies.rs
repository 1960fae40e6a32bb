//! Options that take effect only with others: source of notes on those that change nothing.

use headstart_net::QueueDiscipline;
use headstart_sim::tcp::Pacing;
use headstart_startup::catalogue::{Entry, Needs};

use crate::options::{AckName, AttackName, DetectionName, Environment, RouterName, SizeName, TransportName};
use crate::setup::Setup;

/// An option, and the runs in which it takes effect.
#[derive(Clone, Copy, Debug)]
pub struct Dependency {
    /// The option's long name.
    pub option: &'static str,
    /// The runs in which it has no effect, after "has no effect".
    pub idle: &'static str,
    /// True if it counts in the races of this setup.
    counts: fn(&Setup) -> bool,
    /// For tests: arguments that set it.
    pub example: &'static str,
    /// Arguments of a race in which they change nothing, and of one in which they do, or [`NONE`].
    pub races: [&'static str; 2],
}

const fn row(
    option: &'static str,
    idle: &'static str,
    counts: fn(&Setup) -> bool,
    example: &'static str,
    races: [&'static str; 2],
) -> Dependency {
    Dependency { option, idle, counts, example, races }
}

/// All dependencies. A test runs each race with and without each example: the results are equal if
/// and only if the table claims it.
#[rustfmt::skip]
pub static DEPENDENCIES: &[Dependency] = &[
    row("rate", "with --trace", |setup| setup.path.trace.is_none(), "--rate 3mbit", ["--trace TRACE", ""]),
    row("up-rate", "with --up-trace", |setup| setup.path.up_trace.is_none(), "--up-rate 300kbit", ["--up-trace TRACE", ""]),
    row("trace-offset", "without a trace", |setup| setup.path.is_traced(), "--trace-offset 1s", ["", "--trace TRACE"]),
    row("reorder", "without --jitter", |setup| !setup.path.jitter.is_zero(), "--reorder", ["", "--jitter 30ms"]),
    row("routers", "without a scheme that asks routers for a rate", asks_routers, "--routers target",
        ["--schemes halfback", "--schemes quick-start"]),
    row("router-share", QUICK_START, has_quick_start, "--router-share 10%",
        ["--routers rcp --schemes rcp", "--routers target --schemes quick-start"]),
    row("router-measure", QUICK_START, has_quick_start, "--router-measure average:90%",
        ["--routers rcp --schemes rcp", "--routers target --schemes quick-start"]),
    row("router-interval", QUICK_START, has_quick_start, "--router-interval 10ms",
        ["--routers rcp --schemes rcp", "--routers target --schemes quick-start"]),
    row("router-memory", QUICK_START, has_quick_start, "--router-memory 5s",
        ["--routers rcp --schemes rcp", "--routers target --schemes quick-start"]),
    row("router-memory-bins", QUICK_START, has_quick_start, "--router-memory-bins 1",
        ["--routers rcp --schemes rcp", "--routers target --schemes quick-start --router-memory 2s"]),
    row("router-rates", QUICK_START, has_quick_start, "--router-rates exact",
        ["--routers rcp --schemes rcp", "--routers target --schemes quick-start"]),
    row("router-denial", QUICK_START, has_quick_start, "--router-denial ignore",
        ["--routers rcp --schemes rcp", "--routers target --schemes quick-start --router-share 10%"]),
    row("router-requests", QUICK_START, has_quick_start, "--router-requests 1",
        ["--routers rcp --schemes rcp", "--routers target --schemes quick-start"]),
    row("router-extras", "without --routers extreme and a scheme that asks them", |setup| asks_routers(setup) && setup.path.routers == RouterName::Extreme,
        "--router-extras none", ["--routers target --schemes quick-start", "--routers extreme --schemes quick-start --rate 90mbit --rtt 90ms --size internet"]),
    row("router-assumed-rate", "without --routers and a scheme that asks them", |setup| asks_routers(setup) && setup.path.routers != RouterName::None,
        "--router-assumed-rate 1mbit", ["--schemes quick-start", "--routers target --schemes quick-start"]),
    row("crypto", "outside of the QUIC stack in virtual time", |setup| setup.carrier().selection() == (Environment::Simulator, TransportName::Quic),
        "--crypto null", ["", "--transport quic"]),
    row("detection", MODEL, is_model, "--detection rfc6675", ["--transport quic", ""]),
    row("header", MODEL, is_model, "--header 44B", ["--transport quic", ""]),
    row("handshakes", MODEL, is_model, "--handshakes 2", ["--transport quic", ""]),
    row("receive-growth", MODEL, is_model, "--receive-growth chromium", ["--transport quic", "--receive-window 20kB --schemes iw10"]),
    row("probe", MODEL, is_model, "--probe none", ["--transport quic", "--schemes iw10"]),
    row("acks", MODEL, |setup| is_model(setup) || setup.transport.acks == AckName::Tenth, "--acks linux", ["--transport quic", ""]),
    row("min-rto", MODEL, is_model, "--min-rto 900ms", ["--transport quic", ""]),
    row("initial-rto", MODEL, is_model, "--initial-rto 3s", ["--transport quic", "--loss 20%"]),
    row("pacing", MODEL, is_model, "--pacing linux", ["--transport quic", "--schemes iw10"]),
    row("quantum", MODEL, is_model, "--quantum 8", ["--transport quic", ""]),
    row("quantum", "without a scheme that paces, or --pacing", |setup| !is_model(setup) || paces(setup), "--quantum 8",
        ["--schemes iw10", "--schemes iw10 --pacing linux"]),
    row("no-prr", MODEL, is_model, "--no-prr", ["--transport quic", "--schemes iw10"]),
    row("no-rescue", "without --detection rfc6675 in the simulator's TCP model", |setup| is_model(setup) && counts(setup), "--no-rescue",
        ["", "--detection rfc6675 --probe none --no-prr --base reno --schemes jump-start --buffer 20packets"]),
    row("recovery-period", MODEL, is_model, "--recovery-period", ["--transport quic", "--schemes iw10"]),
    row("prr-slow-start", MODEL, is_model, "--prr-slow-start", ["--transport quic", "--schemes iw10"]),
    row("no-idle-restart", NO_IDLE_TIME, has_idle_times, "--no-idle-restart", ["--pages archive2014 --schemes iw10", IDLE_TIMES]),
    row("idle-decay", NO_IDLE_TIME, has_idle_times, "--idle-decay", ["--pages archive2014 --schemes iw10", IDLE_TIMES]),
    row("pipe-ack", MODEL, is_model, "--pipe-ack", ["--transport quic", IDLE_TIMES]),
    row("rate-limited-increase", MODEL, is_model, "--rate-limited-increase",
        ["--transport quic", "--pages archive2014 --schemes iw10"]),
    row("think", "without --answers", |setup| setup.workload.answers > 1, "--think 3s", ["", "--answers 3 --schemes iw10"]),
    row("no-window-validation", MODEL, is_model, "--no-window-validation",
        ["--transport quic", "--pages archive2014 --schemes iw10"]),
    row("as-linux", MODEL, is_model, "--as-linux", ["--transport quic", ""]),
    row("as-quic", MODEL, is_model, "--as-quic", ["--transport quic", ""]),
    row("record-limited", MODEL, is_model, "--record-limited", ["--transport quic", RECORDS]),
    row("record-limited", "without a scheme that draws on a history", |setup| runs(setup, draws_on_history), "--record-limited",
        ["--schemes halfback", RECORDS]),
    row("history", "without a scheme that draws on a history", |setup| runs(setup, draws_on_history), "--history 1",
        ["--schemes halfback", "--schemes s-cubic --peers 5"]),
    row("ecn", "with --queue drop-tail", |setup| setup.path.queue != QueueDiscipline::DropTail, "--ecn", ["", "--queue codel"]),
    row("size", "with --har or --pages", |setup| setup.workload.har.is_empty() && setup.workload.pages.is_none(), "--size 20kB", ["--pages archive2014", ""]),
    row("media", MODEL, is_model, "--media 1mbit", ["--transport quic", ""]),
    row("attack", MODEL, is_model, "--attack framing", ["--transport quic", "--routers target --schemes quick-start"]),
    row("attack-requests", "without --attack in the simulator's TCP model", |setup| is_model(setup) && setup.workload.attack != AttackName::None,
        "--attack-requests 200", ["", "--attack flood"]),
    row("cap", "without flows of a distribution of sizes, such as --size internet", has_distribution, "--cap 30kB",
        ["", "--size internet"]),
    row("later-responses", "without pages over kept connections of the TCP model", |setup| is_model(setup) && setup.has_several_answers(),
        "--later-responses window", ["", "--pages archive2014 --fetch multiplexed --schemes halfback"]),
    row("fetch", "without --har or --pages", |setup| !setup.pages.is_empty(), "--fetch multiplexed", ["", "--pages archive2014"]),
    row("opener", "with --har or --pages", |setup| setup.pages.is_empty() || has_long_share(setup), "--opener receiver",
        ["--pages archive2014", ""]),
    row("opener", MODEL, is_model, "--opener receiver", ["--transport quic", ""]),
    row("long-size", "without --long-share", has_long_share, "--long-size 300kB", ["--background 1", "--long-share 50%"]),
    row("long-scheme", "without --background or --long-share", Setup::has_long_flows, "--long-scheme bbr", ["", "--background 1"]),
    row("long-window", "without --background or --long-share", Setup::has_long_flows, "--long-window 142kB",
        ["", "--background 1 --rtt 300ms --loss 0% --load 20% --schemes iw10 --receive-window 100kB"]),
    row("long-window", "below --receive-window", |setup| !setup.has_long_flows() || setup.workload.long_window > setup.transport.receive_window,
        "--long-window 142kB", ["--background 1", "--background 1 --rtt 300ms --loss 0% --load 20% --schemes iw10 --receive-window 100kB"]),
    row("hint", "without a scheme that takes hints", |setup| runs(setup, takes_hints), "--hint 30%",
        ["--schemes halfback", "--schemes blitzstart"]),
    row("hint-share", "without a scheme that takes hints", |setup| runs(setup, takes_hints), "--hint-share 50%",
        ["--schemes halfback", "--schemes blitzstart"]),
    row("hint-share", MODEL, is_model, "--hint-share 50%", ["--transport quic --schemes blitzstart", "--schemes blitzstart"]),
    row("hint-lie", "without a scheme that takes hints", |setup| runs(setup, takes_hints), "--hint-share 50% --hint-lie 300%",
        ["--schemes halfback", "--schemes blitzstart"]),
    row("hint-lie", MODEL, is_model, "--hint-share 50% --hint-lie 300%", ["--transport quic --schemes blitzstart", "--schemes blitzstart"]),
];

/// No race in which it takes effect.
pub const NONE: &str = "none";
const RECORDS: &str = "--schemes s-cubic --rate 90mbit --rtt 60ms --load 20% --pages archive2014 --peers 2 --loss 0% --duration 10s";

/// Note for options that only the simulator's TCP model implements.
const MODEL: &str = "outside of the simulator's TCP model";

/// Note for options of the time after a pause, and a race that has some.
const NO_IDLE_TIME: &str =
    "without --answers in the simulator's TCP model: no request comes after an idle time";
const IDLE_TIMES: &str = "--answers 4 --think 500ms --size 300kB --loss 0% --duration 15s --schemes iw10";

/// Note for options of routers that approve Quick-Start requests.
const QUICK_START: &str = "without --routers share, target or extreme and a scheme that asks them";

/// Options without effect in a trace of one flow, which is alone on the path.
const UNUSED_IN_TRACE: &[&str] = &[
    "load",
    "background",
    "long-share",
    "long-size",
    "long-scheme",
    "long-window",
    "media",
    "attack",
    "attack-requests",
    "fetch",
    "answers",
    "think",
    "peers",
    "history",
];

/// Notes on the options that were set and change nothing, in the order of the table. They are for a
/// race of this setup, or for a trace of one flow that `is_alone`.
#[must_use]
pub fn idle(setup: &Setup, given_options: &[String], is_alone: bool) -> Vec<String> {
    let is_asked = |option: &str| given_options.iter().any(|given| given == option);
    let alone = UNUSED_IN_TRACE.iter().filter(|option| is_alone && is_asked(option));
    let alone =
        alone.map(|option| format!("--{option} has no effect without --flow: nothing else is on the path"));
    let is_told = |option: &str| is_alone && UNUSED_IN_TRACE.contains(&option);
    let rows = DEPENDENCIES
        .iter()
        .filter(|row| is_asked(row.option) && !is_told(row.option) && !(row.counts)(setup));
    alone.chain(rows.map(|row| format!("--{} has no effect {}", row.option, row.idle))).collect()
}

fn counts(setup: &Setup) -> bool {
    matches!(setup.transport.detection, DetectionName::Rfc6675 | DetectionName::Rfc6675Copies)
}

fn is_model(setup: &Setup) -> bool {
    setup.is_tcp_model()
}

fn has_idle_times(setup: &Setup) -> bool {
    is_model(setup) && setup.workload.answers > 1
}

fn has_distribution(setup: &Setup) -> bool {
    setup.pages.is_empty() && matches!(setup.workload.size, SizeName::Named(_))
}

fn has_long_share(setup: &Setup) -> bool {
    setup.workload.long_share.of(1_000_000) > 0
}

fn asks_routers(setup: &Setup) -> bool {
    runs(setup, |entry| entry.needs == Needs::Routers)
}

fn has_quick_start(setup: &Setup) -> bool {
    asks_routers(setup) && !matches!(setup.path.routers, RouterName::None | RouterName::Rcp)
}

/// True if a scheme of the setup is so; without `--schemes`, all are compared.
fn runs(setup: &Setup, is_so: fn(&Entry) -> bool) -> bool {
    let schemes = setup.run.schemes();
    let long = Some(setup.workload.long_scheme.0).filter(|_| setup.has_long_flows());
    schemes.is_empty() || schemes.iter().map(|name| name.0).chain(long).any(is_so)
}

fn takes_hints(entry: &Entry) -> bool {
    entry.needs == Needs::Hint
}

fn paces(setup: &Setup) -> bool {
    let has_pace = |entry: &Entry| {
        !["slow-start", "iw10-linux", "reactive", "proactive", "tcp-cache", "prefix-window"]
            .contains(&entry.about().name)
    };
    setup.transport.pacing != Pacing::Off || runs(setup, has_pace)
}

fn draws_on_history(entry: &Entry) -> bool {
    entry.needs == Needs::History
        || ["headstart", "pcp", "blitzstart"].contains(&entry.about().name)
        || entry.name.as_str().contains("-by-history=on")
}
