//! Options of the commands on real packets that have no effect in this run. Options of races are in
//! [`crate::dependencies`].

use headstart_startup::Scheme;
use headstart_startup::catalogue::Needs;

use super::demo::DemoArgs;
use super::get::GetArgs;
use super::serve::ServerArgs;
use headstart_field::link::LinkArgs;
use headstart_study::options::RouterName;

/// An option, the words behind "has no effect", and whether it has an effect here.
type Rule = (&'static str, &'static str, bool);

/// Says which of the given options have no effect.
pub fn print_notes(given_options: &[String], rules: &[Rule]) {
    for (option, idle, counts) in rules {
        if !counts && given_options.iter().any(|given| given == option) {
            eprintln!("headstart: --{option} has no effect {idle}");
        }
    }
}

/// Rules of `link`.
#[must_use]
pub fn of_link(args: &LinkArgs) -> Vec<Rule> {
    let LinkArgs { path, up, ends, .. } = args;
    let is_udp = ends.udp.is_some();
    let has_way_back = path.up_rate.is_some() || path.up_trace.is_some();
    let quick_start = !matches!(path.routers, RouterName::None | RouterName::Rcp);
    let mut rules = vec![
        ("listen", "without --udp", is_udp),
        ("clients", "without --udp", is_udp),
        ("idle", "without --udp", is_udp),
        ("mtu", "with --udp", !is_udp),
        ("rate", "with --trace and --up-rate", path.trace.is_none() || !has_way_back),
        ("up-rate", "with --up-trace", path.up_trace.is_none()),
        ("trace-offset", "without a trace", path.is_traced()),
        ("reorder", "without --jitter", !path.jitter.is_zero()),
        ("up-reorder", "without --up-jitter", !up.up_jitter.is_zero()),
        ("router-extras", "without --routers extreme", path.routers == RouterName::Extreme),
        ("router-assumed-rate", "without --routers", path.routers != RouterName::None),
    ];
    let idle = "without --routers share, target or extreme";
    let names = [
        "router-share",
        "router-measure",
        "router-interval",
        "router-memory",
        "router-memory-bins",
        "router-rates",
        "router-denial",
        "router-requests",
    ];
    rules.extend(names.map(|name| (name, idle, quick_start)));
    rules
}

/// Rules of `demo`.
#[must_use]
pub fn of_demo(args: &DemoArgs) -> Vec<Rule> {
    let remembers = args.schemes.0.iter().any(|choice| choice.needs() == Needs::History);
    vec![("visit", "without a scheme that draws on a history", remembers)]
}

/// Rules of `serve` and `proxy`.
#[must_use]
pub fn of_server(args: &ServerArgs) -> Vec<Rule> {
    let is_chosen = args.operation.allow_scheme_choice;
    let share = args.operation.rollout.as_f64();
    let has_control = share > 0.0 && share < 1.0;
    let is_capped = matches!(args.scheme.needs(), Needs::Hint | Needs::History);
    let is_slow_start = matches!(args.scheme.scheme(), None | Some(Scheme::SlowStart(_)));
    vec![
        ("hint-cap", "without a scheme that takes hints or draws on a history", is_chosen || is_capped),
        ("guard-slower", "without a control arm: --rollout below 100 %", has_control),
        ("guard-loss", "without a control arm: --rollout below 100 %", has_control),
        ("no-guard", "without a control arm: --rollout below 100 %", has_control),
        ("shortest-rtt", "with slow start", is_chosen || !is_slow_start),
    ]
}

/// Rules of `get`.
#[must_use]
pub fn of_get(args: &GetArgs) -> Vec<Rule> {
    vec![("0rtt", "without --repeat: a first visit has no ticket", args.repeat > 1)]
}
