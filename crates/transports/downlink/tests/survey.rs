//! Systems simulated by files: available sources, and the one selected.

use std::fs;
use std::path::Path;

use headstart_downlink::estimate::Unavailable;
use headstart_downlink::{Machine, Network, NoChoice, Past, Report, Source, Survey};
use headstart_startup::hint::Steps;
use headstart_startup::prior::{Access, Hint};
use headstart_units::{Rate, Span, Time};
use tempfile::TempDir;

/// A day in 2026.
const NOW: Time = Time::from_nanos(1_780_000_000_000_000_000);
const DAY: Span = Span::from_secs(86_400);

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// A home network behind 192.168.178.1 with the interface `name`.
fn machine(name: &str, files: &[(&str, &str)]) -> (TempDir, Machine) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let little_endian = |address: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(address));
    let gateway = little_endian([192, 168, 178, 1]);
    let header = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
    let rows = format!(
        "tun0\t00000000\t{gateway}\t0003\t0\t0\t900\t00000000\t0\t0\t0\n\
         {name}\t00000000\t{gateway}\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
         {name}\t{}\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n",
        little_endian([192, 168, 178, 0])
    );
    write(root, "proc/net/route", &format!("{header}{rows}"));
    write(
        root,
        "proc/net/arp",
        &format!(
            "IP address       HW type     Flags       HW address            Mask     Device\n\
             192.168.178.9    0x1         0x0         00:00:00:00:00:00     *        {name}\n\
             192.168.178.1    0x1         0x2         DC:39:6F:00:00:01     *        {name}\n"
        ),
    );
    for (file, text) in files {
        write(root, &format!("sys/class/net/{name}/{file}"), text);
    }
    let machine = Machine::under(root);
    (folder, machine)
}

const WIRE: [(&str, &str); 3] = [("type", "1\n"), ("device/vendor", "0x8086\n"), ("speed", "1000\n")];

fn survey(machine: &Machine) -> Survey {
    Survey { machine: machine.clone(), ..Survey::default() }
}

fn detail(report: &Report, source: Source) -> String {
    let answer = report.answers.iter().find(|answer| answer.source == source).expect("everybody answers");
    answer.outcome.as_ref().map_or_else(ToString::to_string, |estimate| estimate.detail.clone())
}

fn mbit(rate: u64) -> Rate {
    Rate::from_mbit_per_sec(rate)
}

#[test]
fn a_network_is_identified_by_its_gateways_hardware_address() {
    let (_folder, wired) = machine("eth0", &WIRE);
    let network = Network::find(&wired).expect("a default route");
    assert_eq!(
        (network.interface.as_str(), network.key().as_str()),
        ("eth0", "gateway dc:39:6f:00:00:01"),
        "of the smallest metric"
    );
    let (folder, unmet) = machine("eth0", &WIRE);
    fs::remove_file(folder.path().join("proc/net/arp")).expect("a file");
    assert_eq!(Network::find(&unmet).expect("a network").key(), "eth0 via 192.168.178.1");
}

#[test]
fn a_machine_without_any_source_reports_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = survey(&Machine::under(folder.path())).query(NOW);
    assert_eq!((report.network.as_ref(), report.hint(Steps::Ten)), (None, None));
    assert_eq!(report.choice, Err(NoChoice::Nothing));
    assert_eq!(detail(&report, Source::Ethernet), "there is no default route");
}

#[test]
fn an_ethernet_speed_alone_is_an_upper_bound_and_no_hint() {
    let (_folder, machine) = machine("eth0", &WIRE);
    let report = survey(&machine).query(NOW);
    assert_eq!(report.choice, Err(NoChoice::OnlyBounds(vec![Source::Ethernet])));
}

#[test]
fn ethernet_without_a_valid_speed_is_ignored() {
    for (speed, expected) in [
        ("-1\n", "the driver of eth0 does not know its speed"),
        ("65535\n", "the driver of eth0 does not know its speed"),
        ("0\n", "the driver of eth0 does not know its speed"),
        ("fast\n", "not believed: the speed of eth0 is not a number"),
        ("900000\n", "not believed: found a rate of 900 Gbit/s, expected 64 kbit/s to 400 Gbit/s"),
    ] {
        let (_folder, machine) =
            machine("eth0", &[("type", "1\n"), ("device/vendor", "1"), ("speed", speed)]);
        assert_eq!(detail(&survey(&machine).query(NOW), Source::Ethernet), expected, "{speed}");
    }
    let (_folder, pair) = machine("veth0", &[("type", "1\n"), ("speed", "10000\n")]);
    assert_eq!(
        detail(&survey(&pair).query(NOW), Source::Ethernet),
        "veth0 is no wire",
        "a virtual pair has no speed"
    );
}

#[test]
fn a_measurement_counts_for_thirty_days_and_only_on_its_network() {
    let (folder, machine) = machine("eth0", &WIRE);
    let past = Past::new(folder.path().join("state/networks.json"));
    let key = Network::find(&machine).expect("a network").key();
    for (age, rate) in [(40, 900), (20, 60), (10, 45), (1, 50)] {
        past.observe(&key, mbit(rate), Access::Dsl, NOW - DAY * age).expect("kept");
    }
    past.observe("another", mbit(700), Access::Cable, NOW).expect("kept");
    let asking = Survey { past: Some(past.clone()), ..survey(&machine) };
    let choice = asking.query(NOW).choice.expect("a hint");
    let expected = Hint { bandwidth: mbit(60), access: Access::Dsl };
    assert_eq!((choice.hint, choice.source, choice.bounded_by), (expected, Source::Past, None));
    assert_eq!(asking.query(NOW + DAY * 15).choice.expect("a hint").hint.bandwidth, mbit(50));
    assert_eq!(asking.query(NOW + DAY * 40).choice, Err(NoChoice::OnlyBounds(vec![Source::Ethernet])));
    assert!(past.observe(&key, Rate::ZERO, Access::Dsl, NOW).is_err(), "nothing is no observation");
}

#[test]
fn a_slower_wire_in_between_is_the_bottleneck() {
    let (folder, machine) = machine("eth0", &[("type", "1\n"), ("device/vendor", "1"), ("speed", "100\n")]);
    let past = Past::new(folder.path().join("networks.json"));
    past.observe("gateway dc:39:6f:00:00:01", mbit(400), Access::Cable, NOW).expect("kept");
    let report = Survey { past: Some(past), ..survey(&machine) }.query(NOW);
    let choice = report.choice.clone().expect("a hint");
    assert_eq!((choice.hint.bandwidth, choice.hint.access), (mbit(94), Access::Ethernet));
    assert_eq!((choice.source, choice.bounded_by), (Source::Past, Some(Source::Ethernet)));
    assert_eq!(report.hint(Steps::Ten).map(|hint| hint.bandwidth), Some(mbit(80)));
}

#[test]
fn an_explicit_value_is_used_unchanged() {
    let (_folder, machine) = machine("eth0", &WIRE);
    let explicit = Hint { bandwidth: Rate::from_mbit_per_sec(2500), access: Access::Lte };
    let choice = Survey { explicit: Some(explicit), ..survey(&machine) }.query(NOW).choice.expect("a hint");
    assert_eq!(
        (choice.hint, choice.source, choice.bounded_by),
        (explicit, Source::Explicit, None),
        "even above the wire's speed"
    );
    let absurd = Hint { bandwidth: Rate::from_bits_per_sec(8), access: Access::Lte };
    let report = Survey { explicit: Some(absurd), ..survey(&machine) }.query(NOW);
    assert_eq!(
        detail(&report, Source::Explicit),
        "not believed: found a rate of 8 bit/s, expected 64 kbit/s to 400 Gbit/s"
    );
}

#[test]
fn an_invalid_file_of_networks_is_refused_and_left_unchanged() {
    let (folder, machine) = machine("eth0", &WIRE);
    let path = folder.path().join("networks.json");
    #[rustfmt::skip]
    let rows = [
        ("",                              "EOF while parsing a value at line 1 column 0"),
        ("{\"version\":1,\"networks\":[]", "EOF while parsing an object at line 1 column 26"),
        ("{\"version\":2,\"networks\":[]}", "found version 2, expected 1"),
        ("{\"version\":1,\"networks\":[],\"x\":1}", "unknown field `x`, expected `version` or `networks` at line 1 column 30"),
        ("{\"version\":1,\"networks\":[{\"network\":\"a\",\"access\":\"adsl\",\"days\":[]}]}",
         "found access `adsl`, expected an access technology: unknown, ethernet, dsl, cable, wifi, 3g, lte"),
        ("{\"version\":1,\"networks\":[{\"network\":\"a\",\"access\":\"dsl\",\"days\":[{\"seen_at_unix_s\":1,\"bits_per_s\":0}]}]}",
         "found a rate of 0 bit/s, expected 64 kbit/s to 400 Gbit/s"),
    ];
    for (text, expected) in rows {
        fs::write(&path, text).expect("a file");
        let past = Past::new(&path);
        let error = past.observe("a", mbit(50), Access::Dsl, NOW).expect_err(expected).to_string();
        let end = "; it was left as it is, remove it to begin anew";
        assert_eq!(error, format!("file of networks {}: {expected}{end}", path.display()));
        assert_eq!(fs::read_to_string(&path).expect("a file"), text);
        let report = Survey { past: Some(past), ..survey(&machine) }.query(NOW);
        let answer = report.answers.iter().find(|answer| answer.source == Source::Past).expect("an answer");
        assert!(matches!(&answer.outcome, Err(Unavailable::Refused(_))), "{answer:?}");
    }
}

#[test]
fn the_file_of_networks_stays_small_over_many_networks_and_days() {
    let folder = tempfile::tempdir().expect("a folder");
    let past = Past::new(folder.path().join("networks.json"));
    for number in 0..80_u64 {
        past.observe(&format!("network {number}"), mbit(1 + number), Access::Wifi, NOW).expect("kept");
    }
    assert_eq!(past.best("network 15", NOW).expect("read"), None, "the first to go");
    assert!(past.best("network 16", NOW).expect("read").is_some());
    for day in 0..60 {
        past.observe("network 79", mbit(100 + day), Access::Wifi, NOW + DAY * day).expect("kept");
        past.observe("network 79", mbit(1), Access::Wifi, NOW + DAY * day).expect("kept");
    }
    let best = past.best("network 79", NOW + DAY * 59).expect("read").expect("kept");
    assert_eq!(best.rate, mbit(159));
    assert!(fs::metadata(past.path()).expect("a file").len() < 20_000);
}

#[test]
fn processes_that_observe_at_once_wait_for_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let past = Past::new(folder.path().join("networks.json"));
    std::thread::scope(|scope| {
        for part in 0..4_u64 {
            let past = past.clone();
            scope.spawn(move || {
                for number in 0..10 {
                    past.observe(&format!("network {part} {number}"), mbit(50), Access::Dsl, NOW)
                        .expect("kept");
                }
            });
        }
    });
    let kept = (0..4).flat_map(|part| (0..10).map(move |number| format!("network {part} {number}")));
    assert!(kept.into_iter().all(|name| past.best(&name, NOW).expect("read").is_some()));
}

#[test]
fn the_survey_runs_on_this_machine() {
    let report = Survey::default().query(headstart_host::unix_now());
    assert_eq!(report.answers.iter().map(|answer| answer.source).collect::<Vec<_>>(), Source::ALL);
}
