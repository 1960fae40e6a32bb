//! Path, load and all conditions that differ from the default, in one line.

use headstart_study::dependencies::idle;
use headstart_study::settings::{self, Settings};
use headstart_units::{Bytes, Rate, Ratio, Span};

use crate::counted;
use headstart_compare::conditions::{Condition, conditions};
use headstart_report::rows::Value;
use headstart_study::carrier::Carriers;
use headstart_study::options::SizeName;
use headstart_study::setup::Setup;

/// Conditions at the beginning of every title, or that only set the length of the measurement.
const OMITTED: [&str; 10] =
    ["rate", "trace", "rtt", "size", "load", "arrivals", "har", "duration", "warm-up", "drain"];

/// The title.
#[must_use]
pub fn headline(setup: &Setup) -> String {
    line(setup, true)
}

/// Path and size of a flow that is alone on it, where the load says nothing.
pub fn headline_of_one(setup: &Setup) -> String {
    line(setup, false)
}

fn line(setup: &Setup, has_load: bool) -> String {
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
    let mut parts = vec![rate, format!("RTT {}", rtts.join(" + ")), what];
    parts.extend(has_load.then(|| format!("load {}", setup.workload.load)));
    parts.extend(special(setup));
    parts.join(", ")
}

/// Differences from the default that have an effect: options by their names, with the values that
/// their columns have.
fn special(setup: &Setup) -> Vec<String> {
    let Ok(plain) = Settings::parse(Carriers::MODEL, std::iter::empty()) else { return vec![] };
    let (here, plain) = (conditions(setup), conditions(&plain));
    let is_new = |(here, plain): &(&Condition, &Condition)| here.value.to_string() != plain.value.to_string();
    let mut options: Vec<&str> =
        here.iter().zip(&plain).filter(is_new).map(|(here, _)| here.option).collect();
    options.dedup();
    // The way back has the rate of the way there unless it has its own; pages are fetched as usual.
    let is_implied = |option: &str| match option {
        "up-rate" => setup.path.up_rate.is_none(),
        "fetch" => here.iter().any(|one| one.name == "fetch" && one.value.to_string() == "persistent:6"),
        _ => false,
    };
    let is_idle = |option: &str| !idle(setup, &[option.to_owned()], false).is_empty();
    options.retain(|option| !OMITTED.contains(option) && !is_implied(option) && !is_idle(option));
    let phrase = |option: &str| {
        if settings::is_switch(option) {
            return option.to_owned();
        }
        if option == "hop" {
            let rates: Vec<String> = setup.path.hops.iter().map(|hop| format!("then {}", hop.rate)).collect();
            return rates.join(", ");
        }
        let values = here.iter().filter(|one| one.option == option).map(with_unit);
        let values: Vec<String> = values.filter(|value| !value.is_empty()).collect();
        format!("{option} {}", values.join(" and "))
    };
    options.into_iter().map(phrase).collect()
}

/// A value with its unit, which ends its column's name.
fn with_unit(condition: &Condition) -> String {
    let number = match condition.value {
        Value::Count(count) => count as f64,
        Value::Number(Some(number)) => number,
        _ => return condition.value.to_string(),
    };
    let has = |unit| condition.name.ends_with(unit);
    match () {
        () if has("_bits_per_s") => Rate::from_bits_per_sec(number as u64).to_string(),
        () if has("_s") => Span::from_nanos((number * 1e9).round() as u64).to_string(),
        () if has("_bytes") => Bytes::new(number as u64).to_string(),
        () if has("_share") => Ratio::new((number * 1e6).round() as u32, 1_000_000).to_string(),
        () if has("_packets") => counted(number as u64, "packet"),
        () if has("_flows") => counted(number as u64, "flow"),
        () => number.to_string(),
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
    fn what_has_no_effect_is_not_in_the_title() {
        let line = "--schemes iw10 --history 100 --trace-offset 5s --long-size 3MB --router-share 10%";
        assert_eq!(of(line), of(""));
    }

    #[test]
    fn settings_that_differ_from_the_default_are_in_the_title() {
        assert_eq!(
            of(
                "--queue codel --ecn --loss 1% --jitter 5ms --acks quic --base reno --up-rate 1mbit --background 2"
            ),
            "15 Mbit/s, RTT 60 ms, 100 kB flows, load 25 %, queue codel, loss 1 %, jitter 5 ms, \
             up-rate 1 Mbit/s, background 2 flows, base reno, acks quic, ecn"
        );
        assert_eq!(
            of("--policer 5mbit,50kB --loss 1%"),
            "15 Mbit/s, RTT 60 ms, 100 kB flows, load 25 %, policer 5 Mbit/s and 50 kB, loss 1 %"
        );
        assert_eq!(
            of("--attack flood --attack-requests 500 --load 10%"),
            "15 Mbit/s, RTT 60 ms, 100 kB flows, load 10 %, attack flood, attack-requests 500"
        );
        assert_eq!(
            of("--buffer 20p --hop 10mbit/5ms/50kB --burst-loss 1%,5 --background 1 --peers 3"),
            "15 Mbit/s, RTT 60 ms, 100 kB flows, load 25 %, buffer 20 packets, burst-loss 1 % and 5 packets, \
             then 10 Mbit/s, background 1 flow, peers 3"
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
