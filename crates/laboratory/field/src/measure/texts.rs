//! Words of other programs on a path: `ss -ti`, `ping`, and `headstart get --format json`.

use std::borrow::Cow;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Estimate, Measured, crowd};

/// The text of a file: Windows' shell writes that of commands as UTF-16.
#[must_use]
pub fn decoded(content: &[u8]) -> Cow<'_, str> {
    let (rest, word): (_, fn([u8; 2]) -> u16) = match content {
        [0xff, 0xfe, rest @ ..] => (rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => (rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => return String::from_utf8_lossy(rest),
        rest => return String::from_utf8_lossy(rest),
    };
    let words: Vec<u16> = rest.chunks_exact(2).map(|pair| word([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&words).into()
}

/// Measures a path by such a text.
///
/// # Errors
/// If it is none of them.
pub fn read(text: &str) -> Result<Measured> {
    if text.contains("minrtt:") {
        Ok(ss(text))
    } else if text.contains("min/avg/max") {
        ping(text).context("found another form of summary, expected ping's `min/avg/max/mdev = 1/2/3/0 ms`")
    } else if let Some(replies) = replies(text) {
        Ok(replies)
    } else if text.trim_start().starts_with('[') {
        get(text)
    } else {
        bail!(
            "found no header of pcap or pcapng, expected a packet capture (tcpdump -w), a sender's qlog, a log of \
             `headstart link`, or output of `ss -tin`, `ping` or `headstart get --format json`"
        )
    }
}

fn exactly(value: f64) -> Estimate {
    Estimate { value, low: value, high: value }
}

/// Headers of IPv4 and TCP with timestamps, which the rates of the kernel leave out.
const HEADERS: f64 = 52.0;

/// A sender's connections, again and again during a download: the fields of each line.
fn ss(text: &str) -> Measured {
    let mut it = Measured { has_handshake: true, has_packets: false, ..Measured::default() };
    let (mut rates, mut least, mut longest, mut repeats) = (vec![], f64::MAX, 0.0_f64, 0);
    for line in text.lines().filter(|line| line.contains("minrtt:")) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let field = |name: &str| words.iter().find_map(|word| word.strip_prefix(name));
        let number = |name| field(name)?.split(['/', ',']).next()?.parse::<f64>().ok();
        let Some((minimum, smoothed)) = number("minrtt:").zip(number("rtt:")) else { continue };
        least = least.min(minimum / 1e3);
        longest = longest.max(smoothed / 1e3);
        repeats =
            repeats.max(field("retrans:").and_then(|it| it.split_once('/')?.1.parse().ok()).unwrap_or(0));
        let rate =
            words.iter().position(|word| *word == "delivery_rate").and_then(|place| words.get(place + 1));
        let rate = rate.and_then(|rate| rate.strip_suffix("bps")).and_then(bits);
        if !words.contains(&"app_limited")
            && let Some((rate, segment)) = rate.zip(number("mss:"))
        {
            rates.push(rate * (segment + HEADERS) / segment);
        }
    }
    rates.sort_by(f64::total_cmp);
    it.rate = crowd(&rates);
    it.rtt = (least < f64::MAX).then(|| exactly(least));
    it.queue = longest - least;
    if let Some(rate) = it.rate {
        it.was_busy = it.queue > (4.0 * 1500.0 * 8.0 / rate.value).max(0.001);
        // The smoothed time is of many packets; the queue overflowed near its longest.
        let bytes = |rate: f64| rate / 8.0 * it.queue;
        it.buffer = (it.was_busy && repeats > 0).then(|| Estimate {
            value: bytes(rate.value),
            low: bytes(rate.low),
            high: bytes(rate.high),
        });
    }
    it
}

/// A rate as `ss` writes it: plain, or with K, M or G before the unit.
fn bits(text: &str) -> Option<f64> {
    let (number, factor) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(number) if text.ends_with('K') => (number, 1e3),
        Some(number) if text.ends_with('M') => (number, 1e6),
        Some(number) => (number, 1e9),
        None => (text, 1.0),
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// The summary of `ping`: the shortest round trip. Its losses are too few to be a share.
fn ping(text: &str) -> Option<Measured> {
    let line = text.lines().find(|line| line.contains("min/avg/max"))?;
    let (_, numbers) = line.split_once('=')?;
    let least: f64 = numbers.trim().split('/').next()?.parse().ok()?;
    Some(Measured {
        rtt: Some(exactly(least / 1e3)),
        has_handshake: true,
        has_packets: false,
        ..Measured::default()
    })
}

/// The replies that `ping` lists, where it has no summary in one line: that of Windows, whose times
/// are whole milliseconds without their rest, or one that was cut. Words are of any language.
fn replies(text: &str) -> Option<Measured> {
    // `icmp_seq=1 ttl=53 time=25.1 ms`, `bytes=32 time=25ms TTL=53`, `Zeit<1ms`
    let time = |line: &str| {
        let (number, is_below) = line.match_indices(['=', '<']).find_map(|(at, sign)| {
            let (number, _) = line[at + 1..].split_once("ms")?;
            Some((number.trim().replace(',', ".").parse::<f64>().ok()?, sign == "<"))
        })?;
        // A reply, or the summary of Windows: the least, the most and the mean.
        let is_told = line.to_ascii_lowercase().contains("ttl=") || line.matches("ms").count() == 3;
        is_told.then_some(if is_below { 0.0 } else { number })
    };
    let least = text.lines().filter_map(time).reduce(f64::min)?;
    // A fraction tells a program whose times have one.
    let is_whole = text.lines().filter_map(time).all(|time| time.fract() == 0.0);
    let rest = if is_whole { 1.0 } else { 0.0 };
    let value = if least > 0.0 { least } else { rest / 2.0 };
    let rtt = Estimate { value: value / 1e3, low: least / 1e3, high: (least + rest) / 1e3 };
    Some(Measured { rtt: Some(rtt), has_handshake: true, has_packets: false, ..Measured::default() })
}

/// The fastest page of `headstart get`, from its first byte to its last: a lower bound.
fn get(text: &str) -> Result<Measured> {
    let rows: Vec<Value> =
        serde_json::from_str(text).context("found other JSON, expected that of `headstart get`")?;
    let (mut best, mut least) = (None::<f64>, None::<f64>);
    for row in &rows {
        let number = |name: &str| row[name].as_f64();
        if let (Some(bytes), Some(first), Some(complete)) =
            (number("bytes"), number("first_byte_ms"), number("complete_ms"))
            && complete > first
        {
            best = Some(best.unwrap_or(0.0).max(bytes * 8e3 / (complete - first)));
        }
        let times = [number("rtt_ms"), number("handshake_ms"), least];
        least = times.into_iter().flatten().reduce(f64::min);
    }
    best.context("found no page with its times, expected output of `headstart get --format json`")?;
    Ok(Measured {
        rate: best.map(exactly),
        // The one is smoothed over the download's queue, the other has the time of cryptography.
        rtt: least.map(|least| exactly(least / 1e3)),
        has_packets: false,
        ..Measured::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SS: &str = "State Recv-Q Send-Q\n\
        \t cubic wscale:7,7 rto:244 rtt:42.2/2.3 mss:1448 cwnd:24 delivery_rate 3Mbps app_limited minrtt:40.5\n\
        \t cubic wscale:7,7 rto:280 rtt:98.5/0.1 mss:1448 cwnd:24 delivery_rate 19300880bps retrans:0/41 minrtt:40.45\n\
        \t cubic wscale:7,7 rto:280 rtt:71.5/0.1 mss:1448 cwnd:24 delivery_rate 19.3Mbps retrans:0/41 minrtt:40.45\n";

    #[test]
    fn the_kernels_words_are_rates_without_headers_and_smoothed_times() {
        let found = read(SS).expect("it is known");
        let rate = found.rate.expect("two lines have it").value;
        assert!((rate / 19.3e6 - 1500.0 / 1448.0).abs() < 1e-3 && found.was_busy, "{found:?}");
        assert_eq!(found.rtt.map(|rtt| rtt.value), Some(0.04045));
        let buffer = found.buffer.expect("packets were lost").value;
        assert!((buffer - rate / 8.0 * 0.05805).abs() < 1.0, "{found:?}");
        let whole = read(&SS.replace("retrans:0/41", "")).expect("it is known");
        assert!(whole.buffer.is_none() && whole.was_busy, "{whole:?}");
        let idle = read(&SS.lines().take(2).collect::<Vec<_>>().join("\n")).expect("it is known");
        assert!(idle.rate.is_none(), "the application was the limit: {idle:?}");
        for (text, expected) in [("8bps", 8.0), ("1.5Kbps", 1500.0), ("2Gbps", 2e9)] {
            assert_eq!(text.strip_suffix("bps").and_then(bits), Some(expected));
        }
    }

    #[test]
    fn a_ping_has_a_round_trip_and_a_download_a_lower_bound() {
        let pings =
            "4 packets transmitted, 4 received\nrtt min/avg/max/mdev = 40.558/40.587/40.653/0.038 ms\n";
        let busybox = "round-trip min/avg/max = 40.558/40.587/40.653 ms\n";
        for text in [pings, busybox] {
            let found = read(text).expect("it is known");
            assert_eq!(found.rtt.map(|rtt| rtt.value), Some(0.040558));
            assert!(found.rate.is_none());
        }
        let windows = "Pinging 1.1.1.1 with 32 bytes of data:\r\n\
            Reply from 1.1.1.1: bytes=32 time=25ms TTL=53\r\nReply from 1.1.1.1: bytes=32 time=24ms TTL=53\r\n\
            Request timed out.\r\nApproximate round trip times in milli-seconds:\r\n    Minimum = 24ms, Maximum = 25ms, Average = 24ms\r\n";
        let german = "Antwort von 1.1.1.1: Bytes=32 Zeit=24ms TTL=53\n    Minimum = 24ms, Maximum = 24ms";
        let wide: Vec<u8> = windows.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wide = decoded(&[&[0xff, 0xfe], &wide[..]].concat()).into_owned();
        for text in [windows, german, &wide, &decoded(&[b"\xef\xbb\xbf", windows.as_bytes()].concat())] {
            let rtt = read(text).expect("it is known").rtt.expect("it has times");
            assert_eq!((rtt.value, rtt.low, rtt.high), (0.024, 0.024, 0.025), "{text}");
        }
        let summary = "Reply from 1.1.1.1: bytes=32 time=25ms TTL=53\n    Minimum = 24ms, Maximum = 25ms, Average = 24ms";
        assert_eq!(read(summary).expect("it is known").rtt.map(|rtt| rtt.value), Some(0.024));
        let near = read("Reply from 127.0.0.1: bytes=32 time<1ms TTL=128").expect("it is known").rtt;
        assert_eq!(near, Some(Estimate { value: 0.0005, low: 0.0, high: 0.001 }));
        let cut = "64 bytes from 1.1.1.1: icmp_seq=1 ttl=53 time=25.1 ms\n64 bytes from 1.1.1.1: icmp_seq=2 ttl=53 time=24.0 ms";
        assert_eq!(read(cut).expect("it is known").rtt, Some(exactly(0.024)));
        let page = r#"[{"bytes":1000,"first_byte_ms":10.0,"complete_ms":18.0,"rtt_ms":4.5,"handshake_ms":5.0},
            {"bytes":1000,"first_byte_ms":10.0,"complete_ms":12.0,"rtt_ms":5.5,"handshake_ms":4.25}]"#;
        let found = read(page).expect("it is known");
        assert_eq!(found.rate.map(|rate| rate.value), Some(4e6));
        assert_eq!(found.rtt.map(|rtt| rtt.value), Some(0.00425));
        assert!(!found.was_busy && found.buffer.is_none() && !found.has_handshake);
        for other in ["[]", "[1", "[{\"bytes\":1}]", "rtt min/avg/max", "min/avg/max = x", "words"] {
            assert!(read(other).is_err(), "{other}");
        }
        assert!(read("minrtt:").is_ok_and(|found| found.rtt.is_none()));
    }
}
