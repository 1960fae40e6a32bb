//! Flow sizes and arrivals from the user's CSV files. `docs/data.md` defines the formats.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use headstart_host::read_text_at_most;
use headstart_net::trace::{MAX_LINES, PACKET, Trace};
use headstart_sim::sizes::Sizes;
use headstart_units::hash::{FNV128, fnv128};
use headstart_units::{Bytes, Span, Time};

/// The longest file of sizes, and its most lines.
const SIZES: Cap = Cap { bytes: 1 << 20, lines: 10_000 };
/// The longest file of arrivals, and its most lines.
const ARRIVALS: Cap = Cap { bytes: 64 << 20, lines: 1_000_000 };
/// The largest flow.
const MAX_BYTES: u64 = 1_000_000_000_000;
/// The latest arrival, in seconds: the longest run.
const LATEST: f64 = 1e6;

struct Cap {
    bytes: usize,
    lines: usize,
}

/// A distribution of sizes, read and parsed.
#[derive(Clone)]
pub struct SizeFile {
    /// File of the distribution.
    pub name: String,
    /// Contents of the file.
    pub sizes: Sizes,
    hash: u128,
}

/// Arrivals, read and parsed: time and size, in order.
#[derive(Clone)]
pub struct ArrivalFile {
    /// File of the arrivals.
    pub name: String,
    /// Contents of the file.
    pub arrivals: Arc<[(Time, Bytes)]>,
    hash: u128,
}

// Prints the contents, which determine the result of a run; the name does not.
impl fmt::Debug for SizeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sizes {:032x}", self.hash)
    }
}

impl fmt::Debug for ArrivalFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "arrivals {:032x}", self.hash)
    }
}

impl PartialEq for SizeFile {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for SizeFile {}

impl FromStr for SizeFile {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let (text, hash) = read(name, &SIZES)?;
        Ok(Self {
            name: name.to_owned(),
            sizes: sizes(&text).map_err(|error| format!("{name}{error}"))?,
            hash,
        })
    }
}

impl FromStr for ArrivalFile {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let (text, hash) = read(name, &ARRIVALS)?;
        let arrivals = arrivals(&text).map_err(|error| format!("{name}{error}"))?.into();
        Ok(Self { name: name.to_owned(), arrivals, hash })
    }
}

/// A file's text and hash; reading stops at the cap.
fn read(name: &str, cap: &Cap) -> Result<(String, u128), String> {
    let text = read_text_at_most(Path::new(name), cap.bytes).map_err(|error| format!("{name}: {error}"))?;
    let hash = fnv128(FNV128, text.bytes());
    Ok((text, hash))
}

/// Description of the error, behind the file's name.
fn error_at(line: usize, found: &str, expected: &str) -> String {
    let shown: String = found.chars().take(60).collect();
    let more = if shown.len() < found.len() { "..." } else { "" };
    format!(", line {line}: found `{shown}{more}`, expected {expected}")
}

/// The header and the rows of two numbers, with their lines.
type Rows<'a> = (&'a str, Vec<(usize, &'a str, f64, f64)>);

fn rows<'a>(text: &'a str, headers: &[&str], lines: usize) -> Result<Rows<'a>, String> {
    let mut all = text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty());
    let expected = headers.iter().map(|header| format!("`{header}`")).collect::<Vec<_>>().join(" or ");
    let (header, at) =
        all.next().ok_or_else(|| format!(": found nothing, expected the header {expected}"))?;
    if !headers.contains(&header) {
        return Err(error_at(at, header, &format!("the header {expected}")));
    }
    let mut rows = vec![];
    for (line, at) in all {
        if rows.len() == lines {
            return Err(error_at(at, line, &format!("at most {lines} rows")));
        }
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let numbers = line.split_once(',').and_then(|(one, other)| number(one).zip(number(other)));
        let (one, other) = numbers.ok_or_else(|| error_at(at, line, &format!("two numbers, `{header}`")))?;
        rows.push((at, line, one, other));
    }
    if rows.is_empty() {
        return Err(format!(": found no row, expected one at least below `{header}`"));
    }
    Ok((header, rows))
}

/// A size in whole bytes.
fn size(at: usize, line: &str, bytes: f64) -> Result<u64, String> {
    if bytes.fract() == 0.0 && (1.0..=MAX_BYTES as f64).contains(&bytes) {
        return Ok(bytes as u64);
    }
    Err(error_at(at, line, &format!("a size of 1 to {MAX_BYTES} whole bytes")))
}

const WEIGHTS: &str = "size_bytes,weight";
const SHARES: &str = "size_bytes,cumulative_share";

fn sizes(text: &str) -> Result<Sizes, String> {
    let (header, rows) = rows(text, &[WEIGHTS, SHARES], SIZES.lines)?;
    let mut found: Vec<(u64, f64)> = vec![];
    for &(at, line, bytes, number) in &rows {
        let bytes = size(at, line, bytes)?;
        if header == WEIGHTS {
            if !(0.0..=1e12).contains(&number) {
                return Err(error_at(at, line, "a weight of 0 to 10^12"));
            }
        } else {
            let last = found.last().copied();
            if !(0.0..=1.0).contains(&number) {
                return Err(error_at(at, line, "a share of 0 to 1"));
            }
            if last.is_none() && number != 0.0 {
                return Err(error_at(
                    at,
                    line,
                    "the share 0 in the first row: no flow is smaller than its size",
                ));
            }
            if last.is_some_and(|(before, share)| bytes <= before || number < share) {
                return Err(error_at(at, line, "sizes that rise and shares that do not fall"));
            }
        }
        found.push((bytes, number));
    }
    let &(at, line, _, last) = &rows[rows.len() - 1];
    if header == SHARES {
        if last != 1.0 || found.len() < 2 {
            return Err(error_at(
                at,
                line,
                "the share 1 in the last row: all flows are no larger than its size",
            ));
        }
        return Ok(Sizes::cumulative(found));
    }
    Sizes::weighted(found).ok_or_else(|| error_at(at, line, "a weight above 0 in one row at least"))
}

const RATES: &str = "time_s,rate_mbit_per_s";
/// The longest file of rates, and its most lines.
const RATE_CAP: Cap = Cap { bytes: 16 << 20, lines: 1_000_000 };
/// The highest rate, in Mbit/s.
const MAX_RATE: f64 = 1e6;

/// A trace of rates, each of which holds until the next row's time. The last one holds as long as
/// the one before it; a single one is for a second.
///
/// # Errors
/// The first row that is out of its range or order, described behind the file's name.
pub fn rates(text: &str) -> Result<Trace, String> {
    if text.len() > RATE_CAP.bytes {
        return Err(format!(": found {} bytes, expected at most {}", text.len(), RATE_CAP.bytes));
    }
    let (_, rows) = rows(text, &[RATES], RATE_CAP.lines)?;
    let mut steps: Vec<(u64, u64)> = vec![];
    for &(at, line, seconds, rate) in &rows {
        if !(0.0..=LATEST).contains(&seconds) {
            return Err(error_at(at, line, "a time of 0 to 1000000 s"));
        }
        if !(0.0..=MAX_RATE).contains(&rate) {
            return Err(error_at(at, line, "a rate of 0 to 1000000 Mbit/s"));
        }
        let millis = (seconds * 1e3).round() as u64;
        match steps.last() {
            None if millis > 0 => return Err(error_at(at, line, "the time 0 in the first row")),
            Some((before, _)) if millis <= *before => {
                return Err(error_at(at, line, "times that rise by a millisecond at least"));
            }
            _ => steps.push((millis, (rate * 1e6).round() as u64)),
        }
    }
    let ends = steps.windows(2).map(|pair| pair[1].0);
    let last = match steps[..] {
        [.., (before, _), (at, _)] => at + (at - before),
        _ => 1000,
    };
    // In thousandths of a bit: a rate in bit/s times milliseconds.
    let packet = PACKET.get() * 8 * 1000;
    let (mut saved, mut opportunities) = (0, vec![]);
    for (&(begin, rate), end) in steps.iter().zip(ends.chain([last])) {
        let mut at = begin;
        // The next packet is due once all its bits are saved; at a rate of zero it never is.
        while let Some(takes) = (packet - saved).checked_next_multiple_of(rate).map(|bits| bits / rate) {
            if takes > end - at {
                saved += rate * (end - at);
                break;
            }
            at += takes;
            saved += rate * takes;
            let sent = saved / packet;
            saved %= packet;
            if opportunities.len() as u64 + sent > MAX_LINES as u64 {
                return Err(format!(
                    ": found more than {MAX_LINES} packets of {PACKET}, expected at most these"
                ));
            }
            let millis = u32::try_from(at).map_err(|error| format!(": {error}"))?;
            opportunities.extend(std::iter::repeat_n(millis, sent as usize));
        }
    }
    if opportunities.is_empty() {
        return Err(format!(": found no packet of {PACKET} in {last} ms, expected one at least"));
    }
    Trace::from_millis(opportunities).map_err(|error| format!(": {error}"))
}

const STARTS: &str = "start_s,size_bytes";

fn arrivals(text: &str) -> Result<Vec<(Time, Bytes)>, String> {
    let (_, rows) = rows(text, &[STARTS], ARRIVALS.lines)?;
    let mut found: Vec<(Time, Bytes)> = vec![];
    for (at, line, start, bytes) in rows {
        if !(0.0..=LATEST).contains(&start) {
            return Err(error_at(at, line, "a start of 0 to 1000000 s"));
        }
        // To the nanosecond: a conversion from a float saturates.
        let start = Time::ZERO + Span::from_nanos((start * 1e9).round() as u64);
        if found.last().is_some_and(|(before, _)| start < *before) {
            return Err(error_at(at, line, "starts in order"));
        }
        found.push((start, Bytes::new(size(at, line, bytes)?)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_give_each_size_its_share() {
        let sizes = sizes("size_bytes,weight\n1000,3\r\n50000,1\n\n").expect("fine");
        assert!((sizes.mean() - 13_250.0).abs() < 1e-6);
        assert!((sizes.share_of_flows(Bytes::new(1000)) - 0.75).abs() < 1e-9);
        assert_eq!((sizes.pick(0), sizes.pick(u64::MAX)), (Bytes::new(1000), Bytes::new(50_000)));
        assert_eq!(sizes.pick(u64::MAX / 4 * 3 - 1000), Bytes::new(1000));
        assert!((sizes.share_of_bytes(Bytes::new(1000)) - 3000.0 / 53_000.0).abs() < 1e-9);
    }

    /// Between anchors the share grows with the logarithm: of 1 to 100 kB half are below 10 kB.
    #[test]
    fn a_cumulative_share_is_joined_as_the_measured_distributions_are() {
        let sizes = sizes("size_bytes,cumulative_share\n1000,0\n100000,1\n").expect("fine");
        assert!((sizes.share_of_flows(Bytes::new(10_000)) - 0.5).abs() < 1e-9);
        assert!((sizes.mean() - 99_000.0 / 100_f64.ln()).abs() < 1e-6);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_file_and_utf_16_is_named() {
        let file = std::env::temp_dir().join(format!("headstart-mark-{}.csv", std::process::id()));
        let name = file.to_str().expect("a plain path");
        std::fs::write(&file, "\u{feff}start_s,size_bytes\n0.1,100000\n").expect("written");
        assert_eq!(name.parse::<ArrivalFile>().expect("a mark is skipped").arrivals.len(), 1);
        std::fs::write(&file, b"\xff\xfes\0t\0").expect("written");
        let refused = name.parse::<ArrivalFile>().expect_err("UTF-16");
        std::fs::remove_file(&file).expect("it is there");
        assert!(refused.contains("found UTF-16, expected UTF-8"), "{refused}");
    }

    #[test]
    fn arrivals_are_read_to_the_nanosecond() {
        let found = arrivals("start_s,size_bytes\n0,1448\n0.000000001,2\n0.5,100000\n").expect("fine");
        let starts: Vec<u64> = found.iter().map(|(at, _)| at.as_nanos()).collect();
        assert_eq!(starts, [0, 1, 500_000_000]);
        assert_eq!(found[2].1, Bytes::new(100_000));
    }

    #[test]
    fn hostile_files_are_refused_with_line_found_and_expected() {
        for (text, parts) in [
            ("", &["found nothing", "`size_bytes,weight`"][..]),
            ("size,weight\n", &["line 1", "found `size,weight`", "expected the header"]),
            ("size_bytes,weight\n", &["found no row"]),
            ("size_bytes,weight\n1000\n", &["line 2", "found `1000`", "two numbers"]),
            ("size_bytes,weight\n1000,nan\n", &["line 2", "nan", "two numbers"]),
            ("size_bytes,weight\n1000,1e400\n", &["line 2", "two numbers"]),
            ("size_bytes,weight\n0,1\n", &["line 2", "a size of 1 to"]),
            ("size_bytes,weight\n1.5,1\n", &["line 2", "whole bytes"]),
            ("size_bytes,weight\n1e13,1\n", &["line 2", "a size of 1 to"]),
            ("size_bytes,weight\n10,-1\n", &["line 2", "a weight of 0"]),
            ("size_bytes,weight\n10,0\n", &["line 2", "a weight above 0"]),
            ("size_bytes,cumulative_share\n10,0.5\n20,1\n", &["line 2", "the share 0 in the first row"]),
            ("size_bytes,cumulative_share\n10,0\n20,0.9\n", &["line 3", "the share 1 in the last row"]),
            ("size_bytes,cumulative_share\n10,0\n10,1\n", &["line 3", "sizes that rise"]),
            (
                "size_bytes,cumulative_share\n10,0\n20,0.5\n30,0.4\n40,1\n",
                &["line 4", "shares that do not fall"],
            ),
            ("size_bytes,cumulative_share\n10,0\n20,7\n", &["line 3", "a share of 0 to 1"]),
        ] {
            let error = sizes(text).expect_err(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
        for (text, parts) in [
            ("start_s,size_bytes\n1,10\n0.5,10\n", &["line 3", "found `0.5,10`", "starts in order"][..]),
            ("start_s,size_bytes\n-1,10\n", &["line 2", "a start of 0"]),
            ("start_s,size_bytes\n1,10,3\n", &["line 2", "two numbers"]),
            ("size_bytes,weight\n1,10\n", &["line 1", "`start_s,size_bytes`"]),
        ] {
            let error = arrivals(text).expect_err(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
        let many = "size_bytes,weight\n".to_owned() + &"1,1\n".repeat(SIZES.lines + 1);
        assert!(sizes(&many).expect_err("too many").contains("line 10002"));
        let long = format!("size_bytes,weight\n{}\n", "9".repeat(500));
        assert!(sizes(&long).expect_err("no comma").len() < 200, "what was found is not told at length");
    }

    #[test]
    fn rates_hold_until_the_next_row() {
        // 12 Mbit/s are a packet a millisecond, 3 Mbit/s one in four.
        let trace = rates("time_s,rate_mbit_per_s\n0,12\n0.004,0\n0.006,3\n0.014,24\n").expect("fine");
        let last = (15..=22).flat_map(|millis| [millis, millis]);
        let expected: Vec<u32> = [1, 2, 3, 4, 10, 14].into_iter().chain(last).collect();
        assert_eq!(trace.as_millis(), expected);
        assert_eq!(rates("time_s,rate_mbit_per_s\n0,12\n").expect("a second").as_millis().len(), 1000);
        for (text, parts) in [
            ("0,12\n", &["line 1", "`time_s,rate_mbit_per_s`"][..]),
            ("time_s,rate_mbit_per_s\n1,12\n", &["line 2", "the time 0"]),
            ("time_s,rate_mbit_per_s\n0,12\n0,13\n", &["line 3", "times that rise"]),
            ("time_s,rate_mbit_per_s\n0,-1\n", &["line 2", "a rate of 0"]),
            ("time_s,rate_mbit_per_s\n0,1000001\n", &["line 2", "a rate of 0"]),
            ("time_s,rate_mbit_per_s\n0,0\n999999,0\n", &["found no packet"]),
            ("time_s,rate_mbit_per_s\n0,1000000\n999999,0\n", &["more than 16777216 packets"]),
        ] {
            let error = rates(text).expect_err(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }

    #[test]
    fn an_endless_file_is_read_up_to_its_limit() {
        let error = "/dev/zero".parse::<SizeFile>().expect_err("endless");
        assert!(error.contains("found more than 1048576 bytes"), "{error}");
    }
}
