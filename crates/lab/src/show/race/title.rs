//! Path, load and all conditions that differ from the default, in one line.

use headstart_study::settings::Settings;

use crate::carrier::Carriers;
use crate::conditions::{Condition, conditions};
use crate::options::SizeName;
use crate::setup::Setup;
use crate::show::counted;

/// Conditions at the beginning of every title, or that only set the length of the measurement.
const OMITTED: [&str; 9] =
    ["rate", "trace", "rtt", "size", "load", "arrivals", "duration", "warm-up", "drain"];

/// The title.
#[must_use]
pub fn headline(setup: &Setup) -> String {
    let path = &setup.path;
    let rate = match &path.trace {
        Some(file) => format!("{} ({} on average)", file.name, setup.bottleneck()),
        None => path.rate.to_string(),
    };
    let rtts: Vec<String> = path.rtt.0.iter().map(ToString::to_string).collect();
    let what = if setup.pages.is_empty() {
        match (&setup.workload.arrivals, &setup.workload.size) {
            (Some(file), _) => format!("arrivals: {}", file.name),
            (None, SizeName::Fixed(bytes)) => format!("{bytes} flows"),
            (None, SizeName::Named(name)) => format!("flow sizes: {name}"),
            (None, SizeName::File(file)) => format!("flow sizes: {}", file.name),
        }
    } else {
        counted(setup.pages.len() as u64, "page")
    };
    let mut parts =
        vec![rate, format!("RTT {}", rtts.join(" + ")), what, format!("load {}", setup.workload.load)];
    parts.extend(special(setup));
    parts.join(", ")
}

/// Differences from the default, each option once.
fn special(setup: &Setup) -> Vec<String> {
    let Ok(plain) = Settings::parse(Carriers::MODEL, std::iter::empty()) else { return vec![] };
    let text = |condition: &Condition| condition.value.to_string();
    let mut options: Vec<(&str, String)> = vec![];
    for (here, default) in conditions(setup).iter().zip(conditions(&plain)) {
        let is_new = options.iter().all(|(option, _)| *option != here.option);
        if is_new && !OMITTED.contains(&here.option) && text(here) != text(&default) {
            options.push((here.option, text(here)));
        }
    }
    options.into_iter().filter_map(|(option, value)| phrase(setup, option, &value)).collect()
}

/// A condition in a few words; nothing where others imply it.
fn phrase(setup: &Setup, option: &str, value: &str) -> Option<String> {
    let Setup { path, transport, workload, .. } = setup;
    let named = |words: &str, value: &dyn std::fmt::Display| Some(format!("{words} {value}"));
    match option {
        "in" => named("in the", &value),
        "transport" => named("over", &value.to_uppercase()),
        "buffer" => named("buffer", &super::buffer(setup)),
        "ecn" => Some("ECN".to_owned()),
        "policer" => path.policer.map(|policer| format!("policer {} and {}", policer.rate, policer.burst)),
        "loss" => named("random loss", &path.loss),
        "burst-loss" => path.burst_loss.map(|burst| {
            format!("bursts of loss {} of {}", burst.enter, counted(u64::from(burst.length), "packet"))
        }),
        "jitter" => named("jitter", &path.jitter),
        "reorder" => Some("reordered".to_owned()),
        "duplicate" => named("duplicates", &path.duplicate),
        "ip-options" => path.ip_options.and_then(|filter| named("IP options", &filter)),
        // The way back has the same settings unless it has its own.
        "up-rate" => path.up_rate.and_then(|rate| named("up", &rate)),
        "up-trace" => named("up", &value),
        "hop" => {
            Some(path.hops.iter().map(|hop| format!("then {}", hop.rate)).collect::<Vec<_>>().join(", "))
        }
        "har" | "pages" => None,
        "background" => Some(counted(u64::from(workload.background), "long flow")),
        "long-share" => named("of it long flows", &workload.long_share),
        "hint" => named("hints", &workload.hint),
        "min-rto" => named("min-rto", &transport.min_rto),
        "initial-rto" => named("initial-rto", &transport.initial_rto),
        "receive-window" => named("receive window", &transport.receive_window),
        "fetch" if value.is_empty() || value == "persistent:6" => None,
        _ => Some(format!("{option} {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        headline(&Settings::parse(Carriers::MODEL, line.split_whitespace()).expect("fine"))
    }

    #[test]
    fn by_default_the_title_has_path_and_load() {
        assert_eq!(of(""), "15 Mbit/s, RTT 60 ms, 100 kB flows, load 25 %");
        assert_eq!(
            of("--rate 1mbit --duration 5s --pages archive2014"),
            "1 Mbit/s, RTT 60 ms, 100 pages, load 25 %"
        );
    }

    #[test]
    fn settings_that_differ_from_the_default_are_in_the_title() {
        assert_eq!(
            of(
                "--queue codel --ecn --loss 1% --jitter 5ms --acks quic --base reno --up-rate 1mbit --background 2"
            ),
            "15 Mbit/s, RTT 60 ms, 100 kB flows, load 25 %, queue codel, random loss 1 %, jitter 5 ms, up 1 Mbit/s, \
             2 long flows, base reno, acks quic, ECN"
        );
        assert_eq!(
            of("--policer 5mbit,50kB --loss 1%"),
            "15 Mbit/s, RTT 60 ms, 100 kB flows, load 25 %, policer 5 Mbit/s and 50 kB, random loss 1 %"
        );
        assert_eq!(
            of("--buffer 20p --hop 10mbit/5ms/50kB --burst-loss 1%,5 --background 1 --peers 3"),
            "15 Mbit/s, RTT 60 ms, 100 kB flows, load 25 %, buffer 20 packets, bursts of loss 1 % of 5 packets, then 10 Mbit/s, \
             1 long flow, peers 3"
        );
    }

    #[test]
    fn every_differing_condition_changes_the_title() {
        let plain = of("");
        for line in [
            "--reorder --jitter 1ms",
            "--duplicate 1%",
            "--ip-options drop",
            "--routers target",
            "--long-share 10%",
            "--long-scheme iw2 --background 1",
            "--history 5",
            "--hint 50%",
            "--detection rfc6675",
            "--probe none",
            "--pacing linux",
            "--min-rto 300ms",
            "--initial-rto 3s",
            "--receive-window 1MB",
            "--fetch multiplexed --pages archive2014",
        ] {
            assert!(of(line).len() > plain.len(), "{line}: {}", of(line));
        }
    }
}
