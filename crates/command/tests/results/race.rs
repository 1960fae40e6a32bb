//! Output of `race` for its user: verdict, title, missing results and their reasons.

use std::path::Path;
use std::process::{Command, Output};

use super::folder;

fn race(name: &str, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headstart"))
        .arg("race")
        .args(arguments.split_whitespace())
        .args(["--out", "out"])
        .env("COLUMNS", "200")
        .current_dir(folder("race", name))
        .output()
        .expect("headstart starts")
}

fn stdout(name: &str, arguments: &str) -> String {
    let output = race(name, arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn file(name: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("race").join(name).join("out").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A column of race.csv.
fn column(name: &str, column: &str) -> Vec<String> {
    let text = file(name, "race.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let place = reader.headers().expect("a header").iter().position(|it| it == column).expect(column);
    reader.records().map(|record| record.expect("a row")[place].to_owned()).collect()
}

#[test]
fn the_verdict_follows_the_table_and_includes_harm_to_long_flows() {
    let message = stdout(
        "long",
        "--background 2 --duration 30s --repeats 3 --schemes iw10,halfback,jump-start,blitzstart",
    );
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[0].to_lowercase().contains("iw10"), "the advice is first: {message}");
    assert!(lines.iter().take(3).any(|line| line.starts_with("Cost to others by ")), "{message}");
    let verdict = lines.iter().position(|line| line.starts_with("Verdict: ")).expect("a verdict");
    assert!(
        ["iw10", "halfback", "jump-start", "blitzstart"]
            .iter()
            .any(|name| lines[verdict - 1].starts_with(name)),
        "it stands right below the rows: {message}"
    );
    // Halfback takes a tenth of the long flows' rate.
    assert!(message.contains("long flows get"), "{message}");
    assert!(!message.contains("does not show: halfback"), "{message}");
    assert!(message.contains("iw10 *"), "{message}");
    let report = file("long", "report.html");
    assert!(report.contains("It harms others: long flows get"), "the report says the same");
}

#[test]
fn the_title_has_the_conditions_and_the_sample() {
    let message = stdout(
        "title",
        "--queue codel --ecn --loss 1% --jitter 5ms --acks quic --base reno --up-rate 1mbit --background 2 --schemes iw10,halfback \
         --duration 5s --repeats 2",
    );
    let title = message.lines().take(2).collect::<Vec<_>>().join(" ");
    for part in [
        "queue codel",
        "ecn",
        "loss 1 %",
        "jitter 5 ms",
        "acks quic",
        "base reno",
        "up-rate 1 Mbit/s",
        "background 2 flows",
        "flows of each scheme, 2 seeds",
    ] {
        assert!(title.contains(part), "{part}: {title}");
    }
    assert!(message.contains("Only 2 seeds, hence no intervals: use --repeats 8"), "{message}");
    assert!(file("title", "report.html").contains("queue codel"), "the report says the same");
}

#[test]
fn rows_are_in_the_order_that_is_asked_for() {
    let names = |sort: &str| -> Vec<String> {
        let line = format!("--schemes iw10,halfback,iw2 --duration 5s --repeats 2 {sort}");
        let message = stdout(&format!("sort{sort}"), &line);
        let rows = message.lines().skip_while(|line| !line.starts_with('\u{2500}')).skip(1);
        rows.take(3).map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(names(""), ["halfback", "iw10", "iw2"]);
    assert_eq!(names("--sort=given"), ["iw10", "halfback", "iw2"]);
    assert_eq!(names("--sort=sent")[2], "halfback", "it sends copies");
}

#[test]
fn no_arrival_at_all_is_an_error_with_a_remedy() {
    let output = race("nothing", "--size 10GB --duration 5s --schemes iw10,halfback --repeats 2");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("no flow arrived in 2 runs of 5 s") && message.contains("--duration of 21334 s"),
        "{message}"
    );
    assert!(output.stdout.is_empty());
    assert!(!folder("race", "nothing").join("out/report.html").exists());
}

#[test]
fn flows_of_which_none_was_finished_are_not_ranked_and_have_no_round_trips() {
    let message = stdout("lost", "--loss 99.9% --duration 5s --schemes iw10,halfback --repeats 2");
    assert!(message.contains("no scheme can be ranked: no flow was finished"), "{message}");
    for name in ["mean_round_trips", "bytes_sent_over_useful", "mean_without_handshake_ms"] {
        assert_eq!(column("lost", name), ["", ""], "{name}");
    }
    for text in [message, file("lost", "report.html"), file("lost", "race.csv"), file("lost", "race.json")] {
        assert!(!text.contains("NaN") && !text.contains("000000000.0"), "{text:.2000}");
    }
}

#[test]
fn random_losses_are_reported_beside_queue_drops() {
    let message = stdout("random", "--loss 5% --load 5% --schemes iw10 --duration 20s --repeats 2");
    assert!(message.contains("dropped") && message.contains("lost at"), "{message}");
    let random: f64 = column("random", "random_loss_percent")[0].parse().expect("a number");
    assert!((4.0..6.0).contains(&random), "{random}");
    let dropped: f64 = column("random", "loss_percent")[0].parse().expect("a number");
    assert!(dropped < 1.0, "{dropped}");
    let plain = stdout("not random", "--schemes iw10 --duration 5s --repeats 2");
    assert!(!plain.contains("lost at") && column("not random", "random_loss_percent") == [""], "{plain}");
}

#[test]
fn intervals_stay_within_the_range_of_their_quantity() {
    stdout("bounds", "--schemes iw10,halfback,pcp --load 60% --duration 6s --repeats 2");
    for (low, high, least, most) in
        [("mean_ms_low", "mean_ms_high", 0.0, f64::MAX), ("harm_low", "harm_high", 0.0, f64::MAX)]
    {
        for (low, high) in column("bounds", low).iter().zip(column("bounds", high)) {
            let (low, high): (f64, f64) = (low.parse().expect("a number"), high.parse().expect("a number"));
            assert!(least < low && low <= high && high < most, "{low} {high}");
        }
    }
    let report = file("bounds", "report.html");
    assert!(!report.contains("[\u{2212}"), "no interval of the report begins below zero");
}

#[test]
fn the_fingerprint_is_written_as_text() {
    stdout("text", "--schemes iw10,halfback --duration 3s --repeats 2");
    let found = column("text", "fingerprint");
    assert!(found.iter().all(|it| it.len() == 19 && it.starts_with("fp:")), "{found:?}");
    assert_ne!(found[0], found[1]);
}

/// A page of one origin, as a browser saves it: a document and eleven parts.
fn har() -> String {
    let sizes = [12_000, 20_000, 40_000, 3_000, 12_000, 24_000, 1_500, 36_000, 48_000, 6_000, 60_000, 72_000];
    let entry = |(number, bytes): (usize, &u32)| {
        format!(
            r#"{{"startedDateTime":"2024-01-01T00:00:00.000Z","time":1,
            "request":{{"method":"GET","url":"https://a.example/{number}","headers":[]}},
            "response":{{"status":200,"headers":[],"bodySize":{bytes},"headersSize":100,
            "content":{{"size":{bytes},"mimeType":"text/html"}}}}}}"#
        )
    };
    let entries: Vec<String> = sizes.iter().enumerate().map(entry).collect();
    format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","))
}

/// Mean page times of JumpStart and Halfback over slow start's.
fn pages(transport: &str, options: &str) -> [f64; 2] {
    let name = format!("pages {transport} {options}");
    let saved = Path::new(env!("CARGO_TARGET_TMPDIR")).join("race").join("page.har");
    std::fs::create_dir_all(saved.parent().expect("in a folder")).expect("it can be made");
    std::fs::write(&saved, har()).expect("it can be written");
    let line = format!(
        "--har ../page.har --transport {transport} --crypto null {options} --schemes iw10,jump-start,halfback --load 10% --duration 20s \
         --repeats 2"
    );
    stdout(&name, &line);
    let means: Vec<f64> = column(&name, "mean_ms").iter().map(|it| it.parse().expect("a number")).collect();
    let names = column(&name, "scheme");
    let of = |scheme: &str| means[names.iter().position(|name| name == scheme).expect(scheme)];
    ["jump-start", "halfback"].map(|scheme| of(scheme) / of("iw10"))
}

const FETCHES: [&str; 2] = ["--fetch persistent:6", "--fetch multiplexed"];

#[test]
fn a_page_over_the_tcp_model_is_not_slower_for_a_fast_start() {
    for fetch in FETCHES {
        let found = pages("tcp", fetch);
        assert!(found.iter().all(|ratio| *ratio < 1.1), "{fetch}: {found:?}");
        // The papers' models differ, and can be selected.
        let papers = pages("tcp", &format!("{fetch} --later-responses window"));
        assert!(papers[1] > 1.1 * found[1], "{fetch}: {papers:?} {found:?}");
    }
}

#[cfg(feature = "quic")]
#[test]
fn pages_over_the_tcp_model_and_over_quic_agree_on_the_gain_of_a_fast_start() {
    for fetch in FETCHES {
        let (tcp, quic) = (pages("tcp", fetch), pages("quic", fetch));
        for (tcp, quic) in tcp.iter().zip(quic) {
            assert!((0.8..1.25).contains(&(tcp / quic)), "{fetch}: {tcp} over TCP, {quic} over QUIC");
        }
    }
}

/// Four seeds do not tell means apart that differ by less.
#[cfg(feature = "quic")]
const TIE: f64 = 0.03;

/// With a browser's window JumpStart sends megabytes at once, and model and stack repair so many
/// losses differently. Over the model it is 4 % slower than iw10 here, over the stack 22 % faster.
#[cfg(feature = "quic")]
const WINDOW: &str = "--receive-window 141kB";

/// Of two schemes, the faster one over the model is the faster one over the stack. The stack paces
/// what a scheme does not. At least eight of fifteen pairs differ by more than a tie over both.
#[cfg(feature = "quic")]
#[test]
fn the_tcp_model_and_quic_agree_on_the_order_of_schemes_for_pages() {
    const SCHEMES: [&str; 6] = ["iw10", "iw32", "wise-start", "jump-start", "headstart", "blitzstart"];
    let mut examples = Command::new(env!("CARGO_BIN_EXE_headstart"));
    let examples = examples.arg("examples").current_dir(folder("race", "examples")).output();
    assert!(examples.expect("headstart starts").status.success());
    for pages in ["--har ../examples/page.har", "--pages survey2010"] {
        let [tcp, quic] = ["tcp", "quic"].map(|transport| {
            let name = format!("order {transport} {}", pages.replace(['.', '/'], ""));
            let pacing = if transport == "tcp" { "--pacing linux" } else { "--crypto null" };
            let line = format!(
                "{pages} --transport {transport} {pacing} {WINDOW} --duration 30s --repeats 4 --schemes"
            );
            stdout(&name, &format!("{line} {}", SCHEMES.join(",")));
            let (names, means) = (column(&name, "scheme"), column(&name, "mean_ms"));
            SCHEMES.map(|scheme| {
                let place = names.iter().position(|name| name == scheme).expect(scheme);
                means[place].parse::<f64>().expect("a number")
            })
        });
        let mut agree = 0;
        for (one, first) in SCHEMES.iter().enumerate() {
            for (other, second) in SCHEMES.iter().enumerate().skip(one + 1) {
                let [over_tcp, over_quic] = [&tcp, &quic].map(|means| means[other] / means[one] - 1.0);
                if over_tcp.abs() > TIE && over_quic.abs() > TIE {
                    let found =
                        format!("{pages}: {second} over {first}: {over_tcp} over TCP, {over_quic} over QUIC");
                    assert!(over_tcp * over_quic > 0.0, "{found}");
                    agree += 1;
                }
            }
        }
        println!("{pages}: {agree} of fifteen pairs: {tcp:?} {quic:?}");
        assert!(agree >= 8, "{pages}: {agree} of fifteen pairs differ: {tcp:?} {quic:?}");
    }
}

/// A name with a break in it is another, and a line of a table breaks without one.
#[test]
fn the_report_defines_its_columns_by_their_names() {
    stdout("columns", "--repeats 2 --duration 3s --schemes iw10,halfback");
    let report = file("columns", "report.html").replace("<wbr>", "");
    let named = |mark: &str| -> Vec<String> {
        let parts = report.split(mark).skip(1).filter_map(|part| part.split_once('>')?.1.split('<').next());
        parts.flat_map(|part| part.split(", ")).map(|name| name.trim().to_owned()).collect()
    };
    let defined = named("<dt");
    let heads = named("<th scope=\"col\"");
    assert!(heads.len() > 10, "{heads:?}");
    let unknown: Vec<_> = heads.iter().filter(|name| !defined.contains(name) && *name != "scheme").collect();
    assert!(unknown.is_empty(), "{unknown:?} of {defined:?}");
}

/// A scheme that is faster in the table is faster in the picture.
#[test]
fn the_flow_shown_is_near_the_medians() {
    let schemes = ["iw10", "jump-start", "headstart", "halfback", "blitzstart"];
    stdout("shown", &format!("--repeats 2 --duration 60s --schemes {}", schemes.join(",")));
    let report = file("shown", "report.html");
    let medians = column("shown", "p50_ms");
    for (name, median) in column("shown", "scheme").iter().zip(&medians) {
        let of_scheme = report.split(&format!("aria-label=\"{name}, place in the stream")).nth(1);
        let note = of_scheme.and_then(|text| text.split("complete after ").nth(1));
        let shown: f64 = note.and_then(|text| text.split(' ').next()?.parse().ok()).expect("its time");
        let median: f64 = median.parse().expect("a number");
        assert!((0.85..1.15).contains(&(shown / median)), "{name}: {shown} ms, {median} in the table");
    }
}

#[test]
fn a_flood_at_overload_loses_by_drops_and_copies_and_the_verdict_says_so() {
    let message = stdout("flood", "--load 85% --duration 60s --repeats 4 --schemes iw10,halfback");
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let of = |name: &str| -> Vec<f64> {
        column("flood", name).iter().map(|value| value.parse().expect("a number")).collect()
    };
    let [dropped, copies, flows, overhead] =
        ["loss_percent", "copies", "flows", "bytes_sent_over_useful"].map(of);
    assert!(dropped[1] > 40.0 && copies[0] == 0.0, "{dropped:?} {copies:?}");
    let counted =
        format!("{:.1} % of packets are dropped by the queue (with iw10 {:.2}), ", dropped[1], dropped[0]);
    let share = message.split(&counted).nth(1).expect("what was counted");
    let (share, _) = share.split_once(" % of packets sent are copies (0), ").expect("copies");
    let share: f64 = share.parse().expect("a number");
    // 70 segments for each flow of 100 kB, and what is sent over them.
    let expected = 100.0 * copies[1] / (flows[1] * 70.0 * overhead[1]);
    assert!(share > 15.0 && (share / expected - 1.0).abs() < 0.1, "{share}, expected about {expected}");
    assert!(message.contains(" Why halfback loses: ") && message.contains(&counted), "{counted}: {message}");
    assert!(!message.contains("Why iw10 loses"), "{message}");
    assert!(file("flood", "report.html").contains(&counted), "the report says the same");
}

#[test]
fn a_scheme_that_waits_for_timers_loses_by_them_and_the_verdict_says_so() {
    // A burst of 21 packets into a queue of five loses its end, which only the timeout finds. Paced
    // packets are not lost.
    let message = stdout(
        "timer",
        "--probe none --load 5% --duration 60s --size 30kB --buffer 5packets --repeats 4 --schemes jump-start,iw64",
    );
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let of = |name: &str| -> Vec<f64> {
        column("timer", name).iter().map(|value| value.parse().expect("a number")).collect()
    };
    let [timeouts, flows, mean] = ["timeouts", "flows", "mean_ms"].map(of);
    let place = column("timer", "scheme").iter().position(|name| name == "iw64").expect("it took part");
    assert!(timeouts[place] >= flows[place] && timeouts[1 - place] == 0.0, "{timeouts:?} {flows:?}");
    let (_, why) = message.split_once(" Why iw64 loses: ").expect("it is clearly slower");
    // All flows finished, so that the accounting by limits adds up to the difference of the means.
    let longer = format!(
        "a flow that finishes takes {:.0} ms longer than one of jump-start: ",
        mean[place] - mean[1 - place]
    );
    let (_, parts) = why.split_once(&longer).expect(why);
    let (recovery, counted) = parts.split_once(" ms recovery. ").expect(parts);
    assert!(recovery.parse::<f64>().expect(recovery) > 300.0, "{why}");
    let timeouts = format!(" 100 flows have {:.0} timeouts (0).", 100.0 * timeouts[place] / flows[place]);
    assert!(counted.contains(&timeouts), "{timeouts}: {why}");
}

/// Needs the real QUIC stack.
#[cfg(feature = "quic")]
#[test]
fn as_quic_the_model_takes_the_times_of_the_stack_under_load() {
    let of = |name: &str, options: &str| -> Vec<f64> {
        stdout(name, options);
        column(name, "mean_ms").iter().map(|mean| mean.parse().expect("milliseconds")).collect()
    };
    let eight = "iw10,iw64,jump-start,halfback,wise-start,blitzstart,headstart,proactive";
    // SUSS judges by the times of the first acks: at which packet the receiver begins to count.
    for run in [
        "suss --load 5% --duration 5s --repeats 1",
        &format!("{eight} --load 30% --duration 30s --repeats 4"),
    ] {
        let model = of("as-quic", &format!("--schemes {run} --as-quic"));
        let stack = of("stack", &format!("--schemes {run} --transport quic --crypto null"));
        for ((name, model), stack) in column("stack", "scheme").iter().zip(&model).zip(&stack) {
            println!("{name}: {model:.0} ms, over the stack {stack:.0} ms");
            assert!((model / stack - 1.0).abs() < 0.05, "{name}: {model} ms, over the stack {stack} ms");
        }
    }
    let names = column("stack", "scheme");
    // A packet whose copy was lost as well is congestion over either.
    let ends = |name: &str| column(name, "slow_start_loss_percent");
    let proactive = names.iter().position(|name| name == "proactive").expect("it ran");
    for name in ["as-quic", "stack"] {
        let share: f64 = ends(name)[proactive].parse().expect("a share");
        assert!(share > 20.0, "{name}: {share} % of the starts ended by loss");
    }
}
