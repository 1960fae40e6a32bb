//! Packet-delivery traces in the format of mahimahi: a link's opportunities to send a packet.
//!
//! Source: R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015,
//! and the program's behaviour (`ravinet/mahimahi`, `src/frontend/link_queue.cc` and
//! `traces/README`).
//!
//! A text of lines, each a decimal number: milliseconds since the trace began, never decreasing.
//! Each line is one opportunity to send a packet of 1500 bytes; equal lines are several in one
//! millisecond. No header, no comment, no empty line; the last number is the length of the trace
//! and not zero.
//!
//! # Deviations
//!
//! - mahimahi reads numbers with `strtol`, so it accepts a sign or blanks before the digits. Here
//!   only digits are read.
//! - Lines may end in CR LF, as in a checkout on Windows, and the last line may be empty.
//! - Files longer than [`MAX_BYTES`], traces of more than [`MAX_LINES`] lines or longer than
//!   [`MAX_MILLIS`] are refused: a trace is held in memory, four bytes for a line.

pub mod cellular;
pub mod mobile;

use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

use headstart_units::{Bytes, Rate, Span};

/// Bytes of one opportunity, as the format's rates are counted.
pub const PACKET: Bytes = Bytes::new(1500);
/// The longest text that is read: 128 MiB.
pub const MAX_BYTES: usize = 128 << 20;
/// The most lines of a trace: 2^24, more than half an hour of 100 Mbit/s.
pub const MAX_LINES: usize = 1 << 24;
/// The largest time of a trace: 2^32 - 1 ms, more than 49 days.
pub const MAX_MILLIS: u64 = u32::MAX as u64;

/// The opportunities of a link; at least one, in order, the last not at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    millis: Arc<[u32]>,
    /// Less than the period.
    begins_at: u32,
}

/// The reason why a text is no trace, or a trace cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// More than [`MAX_BYTES`].
    #[error("found {bytes} bytes, expected at most {MAX_BYTES}")]
    TooLong {
        /// Number of bytes found.
        bytes: usize,
    },
    /// More than [`MAX_LINES`].
    #[error("found more than {MAX_LINES} lines, expected at most these")]
    TooManyLines,
    /// No line at all.
    #[error("found no line, expected at least one time in milliseconds")]
    NoLines,
    /// A line with other characters than digits.
    #[error("line {line}: found {}", not_millis(found))]
    NotMillis {
        /// Number of the line, from one.
        line: usize,
        /// The beginning of the line, made printable.
        found: String,
    },
    /// More than [`MAX_MILLIS`].
    #[error("line {line}: found {found}, expected at most {MAX_MILLIS} milliseconds")]
    TooLate {
        /// Number of the line, from one.
        line: usize,
        /// The beginning of the line.
        found: String,
    },
    /// A time is less than the one before.
    #[error("line {line}: found {found} after {previous}, expected times that never decrease")]
    Decreasing {
        /// Number of the line, from one.
        line: usize,
        /// The time in milliseconds.
        found: u32,
        /// The time of the line before in milliseconds.
        previous: u32,
    },
    /// The last line is zero, so that the trace has no length.
    #[error("line {line}: found 0 as the last time, expected a trace that lasts some time")]
    NoLength {
        /// Number of the line, from one.
        line: usize,
    },
    /// A generator's parameter is out of its range.
    #[error("found {found}, expected {expected}")]
    OutOfRange {
        /// The value found.
        found: String,
        /// The range.
        expected: &'static str,
    },
}

impl Trace {
    /// Reads a trace from the bytes of a file.
    ///
    /// # Errors
    /// If the text is too long or violates the format: see [`TraceError`].
    pub fn from_bytes(text: &[u8]) -> Result<Self, TraceError> {
        if text.len() > MAX_BYTES {
            return Err(TraceError::TooLong { bytes: text.len() });
        }
        let text = without_line_end(without_line_end(text));
        if text.is_empty() {
            return Err(TraceError::NoLines);
        }
        let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        Self::checked(lines.zip(1..).map(|(text, line)| read_line(line, text)))
    }

    /// A trace of these times in milliseconds.
    ///
    /// # Errors
    /// If they violate the rules of the format.
    pub fn from_millis(millis: impl IntoIterator<Item = u32>) -> Result<Self, TraceError> {
        Self::checked(millis.into_iter().map(Ok))
    }

    fn checked(numbers: impl Iterator<Item = Result<u32, TraceError>>) -> Result<Self, TraceError> {
        let mut millis: Vec<u32> = vec![];
        for number in numbers {
            let number = number?;
            let line = millis.len() + 1;
            if line > MAX_LINES {
                return Err(TraceError::TooManyLines);
            }
            if let Some(&previous) = millis.last().filter(|previous| number < **previous) {
                return Err(TraceError::Decreasing { line, found: number, previous });
            }
            millis.push(number);
        }
        match millis.last() {
            None => Err(TraceError::NoLines),
            Some(0) => Err(TraceError::NoLength { line: millis.len() }),
            Some(_) => Ok(Self { millis: millis.into(), begins_at: 0 }),
        }
    }

    /// A trace of `rate` with opportunities as evenly spaced as milliseconds allow, none of them
    /// early; 12 Mbit/s is the one line `1`.
    ///
    /// Exact for every rate whose opportunities are a whole number in a minute or less, which
    /// includes all whole kbit/s. Else it lasts a minute and lacks less than a packet (200 bit/s).
    ///
    /// # Errors
    /// If no trace can have that rate.
    pub fn constant(rate: Rate) -> Result<Self, TraceError> {
        // A packet per millisecond.
        const UNIT: u64 = 1_500_000;
        const MINUTE: u64 = 60_000;
        let rate_in_units = rate.as_bytes_per_sec();
        let divisor = greatest_common_divisor(rate_in_units, UNIT);
        let (lines, period) = match (rate_in_units / divisor, UNIT / divisor) {
            exact @ (_, ..=MINUTE) => exact,
            _ => (rate_in_units / (UNIT / MINUTE), MINUTE),
        };
        if lines == 0 || lines > MAX_LINES as u64 {
            let expected = "between one packet in a minute and what 2^24 lines hold";
            return Err(TraceError::OutOfRange { found: rate.to_string(), expected });
        }
        Self::from_millis((1..=lines).map(|line| (line * period).div_ceil(lines) as u32))
    }

    /// This trace for a link that begins in the middle of it, at `offset`, and wraps at its end.
    /// Parts of a millisecond are dropped; an offset above the period wraps too.
    #[must_use]
    pub fn beginning_at(&self, offset: Span) -> Self {
        let offset = offset.as_nanos() % self.period().as_nanos().max(1);
        Self { millis: Arc::clone(&self.millis), begins_at: (offset / 1_000_000) as u32 }
    }

    /// Offset at which a link begins, in milliseconds.
    #[must_use]
    pub const fn begins_at_millis(&self) -> u64 {
        self.begins_at as u64
    }

    /// Bytes that a link that begins there can send in `time`, in full packets.
    #[must_use]
    pub fn bytes_in(&self, time: Span) -> Bytes {
        let period = u64::from(self.millis.last().copied().unwrap_or(1).max(1));
        // Opportunities from the trace's beginning up to a time.
        let until = |millis: u64| {
            let in_round = self.millis.partition_point(|at| u64::from(*at) <= millis % period);
            (millis / period) * self.millis.len() as u64 + in_round as u64
        };
        let from = self.begins_at_millis();
        PACKET * (until(from + time.as_nanos() / 1_000_000) - until(from))
    }

    /// The times of the opportunities in milliseconds, from the trace's beginning.
    #[must_use]
    pub fn as_millis(&self) -> &[u32] {
        &self.millis
    }

    /// Length of the trace, after which it begins anew: the last time of all.
    #[must_use]
    pub fn period(&self) -> Span {
        Span::from_millis(self.millis.last().copied().unwrap_or(0).into())
    }

    /// The mean rate of a link that uses every opportunity, in full packets.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        PACKET * self.millis.len() as u64 / self.period()
    }
}

fn without_line_end(text: &[u8]) -> &[u8] {
    let Some(text) = text.strip_suffix(b"\n") else { return text };
    text.strip_suffix(b"\r").unwrap_or(text)
}

fn read_line(line: usize, text: &[u8]) -> Result<u32, TraceError> {
    let found = || {
        let head = &text[..text.len().min(24)];
        format!("{}{}", head.escape_ascii(), if head.len() < text.len() { ".." } else { "" })
    };
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(TraceError::NotMillis { line, found: found() });
    }
    let number = text.iter().try_fold(0_u32, |number, digit| {
        number.checked_mul(10).and_then(|tens| tens.checked_add(u32::from(digit - b'0')))
    });
    number.ok_or_else(|| TraceError::TooLate { line, found: found() })
}

fn not_millis(found: &str) -> String {
    match found {
        "" => "an empty line, expected a time in milliseconds".to_owned(),
        _ => format!("`{found}`, expected a time in milliseconds, digits only"),
    }
}

/// Of zero and `b`: `b`.
const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while a != 0 {
        (a, b) = (b % a, a);
    }
    b
}

impl FromStr for Trace {
    type Err = TraceError;
    fn from_str(text: &str) -> Result<Self, TraceError> {
        Self::from_bytes(text.as_bytes())
    }
}

impl fmt::Display for Trace {
    /// Writes the text that [`Trace::from_bytes`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.millis.iter().try_for_each(|millis| writeln!(f, "{millis}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_the_format_are_parsed() {
        for (text, millis) in [
            ("1\n", &[1][..]),
            ("1", &[1]),
            ("0\n0\n5\n5\n", &[0, 0, 5, 5]),
            ("0\r\n5\r\n", &[0, 5]),
            ("0\n5\n\n", &[0, 5]),
            ("0\r\n5\r\n\r\n", &[0, 5]),
            ("007\n4294967295\n", &[7, 4_294_967_295]),
        ] {
            assert_eq!(text.parse::<Trace>().expect(text).as_millis(), millis);
        }
    }

    #[test]
    fn invalid_traces_are_refused_with_line_and_reason() {
        for (text, message) in [
            (&b""[..], "found no line, expected at least one time in milliseconds"),
            (b"\n", "found no line, expected at least one time in milliseconds"),
            (b"1\n\n2\n", "line 2: found an empty line, expected a time in milliseconds"),
            (b"1\n\n\n", "line 2: found an empty line, expected a time in milliseconds"),
            (b"0\n0\n", "line 2: found 0 as the last time, expected a trace that lasts some time"),
            (b"1\n5\n4\n", "line 3: found 4 after 5, expected times that never decrease"),
            (b"-1\n", "line 1: found `-1`, expected a time in milliseconds, digits only"),
            (b"+1\n", "line 1: found `+1`, expected a time in milliseconds, digits only"),
            (b" 1\n", "line 1: found ` 1`, expected a time in milliseconds, digits only"),
            (b"1\r5\n", "line 1: found `1\\r5`, expected a time in milliseconds, digits only"),
            (b"1.5\n", "line 1: found `1.5`, expected a time in milliseconds, digits only"),
            (b"# x\n", "line 1: found `# x`, expected a time in milliseconds, digits only"),
            (b"1\n\xff\0", "line 2: found `\\xff\\x00`, expected a time in milliseconds, digits only"),
            (b"4294967296\n", "line 1: found 4294967296, expected at most 4294967295 milliseconds"),
            (
                b"99999999999999999999999999\n",
                "line 1: found 999999999999999999999999.., expected at most 4294967295 milliseconds",
            ),
        ] {
            assert_eq!(Trace::from_bytes(text).expect_err("no trace").to_string(), message);
        }
    }

    #[test]
    fn texts_too_long_to_hold_are_refused() {
        let error = Trace::from_bytes(&vec![b'1'; MAX_BYTES + 1]).expect_err("too long").to_string();
        assert_eq!(error, "found 134217729 bytes, expected at most 134217728");
        let error = Trace::from_bytes(&b"1\n".repeat(MAX_LINES + 1)).expect_err("too many").to_string();
        assert_eq!(error, "found more than 16777216 lines, expected at most these");
        assert!(Trace::from_bytes(&b"1\n".repeat(MAX_LINES)).is_ok());
    }

    #[test]
    fn printing_a_parsed_trace_gives_its_text() {
        let text = "0\n0\n48\n57\n57\n120002\n";
        assert_eq!(text.parse::<Trace>().expect("a trace").to_string(), text);
    }

    #[test]
    fn a_constant_rate_is_a_short_trace_where_it_can_be() {
        for (mbit, millis) in [(12, &[1][..]), (24, &[1, 1]), (6, &[2]), (18, &[1, 2, 2]), (9, &[2, 3, 4])] {
            let trace = Trace::constant(Rate::from_mbit_per_sec(mbit)).expect("in range");
            assert_eq!(trace.as_millis(), millis);
            assert_eq!(trace.mean_rate(), Rate::from_mbit_per_sec(mbit));
        }
    }

    #[test]
    fn a_constant_rate_is_exact_or_slow_by_less_than_a_packet_in_a_minute() {
        for bytes_per_sec in [25, 26, 125, 1_875_000, 1_875_001, 1_874_999, 125_000_000, 123_456_789] {
            let rate = Rate::from_bytes_per_sec(bytes_per_sec);
            let trace = Trace::constant(rate).expect("in range");
            let mean = trace.mean_rate();
            assert!(mean <= rate && bytes_per_sec - mean.as_bytes_per_sec() <= 25, "{mean} of {rate}");
            let early = trace.as_millis().iter().zip(1..).find(|(at, line)| {
                PACKET * *line > rate * Span::from_millis(u64::from(**at)) + Bytes::new(1)
            });
            assert_eq!(early, None, "{rate}");
        }
        for kbit in 1..2000 {
            let rate = Rate::from_bits_per_sec(kbit * 1000);
            assert_eq!(Trace::constant(rate).expect("in range").mean_rate(), rate);
        }
    }

    #[test]
    fn a_rate_beyond_the_range_of_traces_is_refused() {
        for rate in [Rate::ZERO, Rate::from_bytes_per_sec(24), Rate::MAX] {
            let error = Trace::constant(rate).expect_err("out of range").to_string();
            assert!(error.contains("expected between one packet in a minute"), "{error}");
        }
    }

    #[test]
    fn the_bytes_of_a_part_of_a_trace_are_counted_across_its_end() {
        let trace: Trace = "0\n10\n20\n20\n".parse().expect("a trace");
        let packets = |offset, millis| {
            let part = trace.beginning_at(Span::from_millis(offset));
            part.bytes_in(Span::from_millis(millis)).get() / PACKET.get()
        };
        assert_eq!([packets(0, 10), packets(0, 20), packets(0, 40)], [1, 4, 8]);
        assert_eq!([packets(10, 10), packets(10, 20), packets(15, 4), packets(15, 5)], [3, 4, 0, 3]);
        assert_eq!(packets(25, 20), packets(5, 20), "after its period it begins anew");
        assert_eq!(trace.beginning_at(Span::from_millis(15)).mean_rate(), trace.mean_rate());
        assert_eq!(trace.beginning_at(Span::from_micros(15_900)).begins_at_millis(), 15);
    }

    #[test]
    fn the_mean_rate_counts_full_packets_over_the_length() {
        let trace: Trace = "0\n10\n20\n".parse().expect("a trace");
        assert_eq!(trace.mean_rate(), Rate::from_bytes_per_sec(225_000));
        assert_eq!(trace.period(), Span::from_millis(20));
    }
}
