//! Reads connection vectors in Tmix's original format; anything else is refused with its line, the
//! text found and the text expected.
//!
//! # Deviations
//!
//! - ns-2 ignores the counts of a head. Here a trace that was cut short is refused.
//! - Blank lines and lines that begin with `#` are skipped.
//! - A trailing time is the end of the connection. A replay ends it when all is read.
//! - Files longer than [`MAX_BYTES`], more than [`MAX_VECTORS`] connections or [`MAX_UNITS`] data
//!   units, a unit above [`MAX_UNIT_BYTES`] and times above [`MAX_MICROS`] are refused.

use headstart_units::{Bytes, Span, Time};

use super::{Side, Unit, Vector, Wait};

/// The longest text that is read: 256 MiB.
pub const MAX_BYTES: usize = 256 << 20;
/// The most connections: 2^21.
pub const MAX_VECTORS: usize = 1 << 21;
/// The most data units of all connections together: 2^24.
pub const MAX_UNITS: usize = 1 << 24;
/// The largest data unit: 4 GiB.
pub const MAX_UNIT_BYTES: u64 = 1 << 32;
/// The largest time: 10^12 us, eleven days.
pub const MAX_MICROS: u64 = 1_000_000_000_000;

/// Reason that a text holds no connection vectors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: found {found}, expected {expected}")]
pub struct VectorError {
    /// Counted from one.
    pub line: usize,
    /// Text found, made printable.
    pub found: String,
    /// Text expected.
    pub expected: String,
}

/// Reads the connections of a file.
///
/// # Errors
/// With the line, the text found and the text expected.
pub fn from_bytes(text: &[u8]) -> Result<Vec<Vector>, VectorError> {
    if text.len() > MAX_BYTES {
        let found = format!("{} bytes", text.len());
        return Err(VectorError { line: 1, found, expected: format!("{MAX_BYTES} at most") });
    }
    let (mut vectors, mut draft, mut units, mut last) = (vec![], None, 0, 1);
    for (line, text) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        last = line;
        let text = text.trim_ascii();
        let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(keyword) = words.next().filter(|word| !word.starts_with(b"#")) else { continue };
        let wrong = |expected: &str| VectorError { line, found: shown(text), expected: expected.to_owned() };
        let words: Vec<&[u8]> = words.take(6).collect();
        let numbers: Option<Vec<u64>> = words.iter().copied().map(number).collect();
        let is_concurrent = keyword == b"CONC";
        if is_concurrent || keyword == b"SEQ" {
            vectors.extend(draft.take().map(|draft: Draft| draft.finish(line)).transpose()?);
            if vectors.len() == MAX_VECTORS {
                return Err(wrong("fewer connections: 2^21 at most"));
            }
            draft = Some(Draft::begin(line, is_concurrent, numbers.as_deref()).map_err(wrong)?);
            continue;
        }
        let Some(draft) = &mut draft else { return Err(wrong("a connection: SEQ or CONC")) };
        let numbers = numbers.as_deref().unwrap_or_default();
        units += match keyword {
            b"w" | b"r" | b"l" => draft.pass_over(keyword, &words, numbers),
            _ => draft.add(keyword, numbers),
        }
        .map_err(wrong)?;
        if units > MAX_UNITS {
            return Err(wrong("fewer data units: 2^24 at most"));
        }
    }
    vectors.extend(draft.map(|draft| draft.finish(last)).transpose()?);
    if vectors.is_empty() {
        return Err(VectorError { line: last, found: "the end".into(), expected: "a connection".into() });
    }
    Ok(vectors)
}

/// Digits only, not too many.
fn number(word: &[u8]) -> Option<u64> {
    if word.len() > 18 || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(word.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// The beginning of the text found, without control characters.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(80)]);
    let text: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).take(40).collect();
    format!("`{text}`")
}

/// A connection whose lines are being read.
struct Draft {
    line: usize,
    /// Epochs, or data units of the initiator and of the acceptor.
    counts: Vec<u64>,
    vector: Vector,
    /// Times read for the next unit: of a sequential connection the first, otherwise of each end.
    times: [Option<Span>; 2],
}

impl Draft {
    fn begin(line: usize, is_concurrent: bool, numbers: Option<&[u64]>) -> Result<Self, &'static str> {
        let counts = 1 + usize::from(is_concurrent);
        match numbers {
            Some([start, rest @ ..])
                if *start <= MAX_MICROS && (counts..=counts + 2).contains(&rest.len()) =>
            {
                let start = Time::ZERO + Span::from_micros(*start);
                let vector = Vector { start, is_concurrent, units: vec![] };
                Ok(Self { line, counts: rest[..counts].to_vec(), vector, times: [None; 2] })
            }
            _ if is_concurrent => {
                Err("start in us, data units of the initiator and of the acceptor, at most two numbers more")
            }
            _ => Err("start in us, number of epochs, and at most two numbers more"),
        }
    }

    /// Checks window, round-trip time or loss of the recorded path. A replay has its own.
    fn pass_over(&self, keyword: &[u8], words: &[&[u8]], numbers: &[u64]) -> Result<usize, &'static str> {
        let is_share = |word: &&[u8]| {
            let share = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
            share.is_some_and(|share: f64| (0.0..=1.0).contains(&share))
        };
        let is_fine = match keyword {
            b"w" => numbers.len() == 2,
            b"r" => matches!(numbers, [0..=MAX_MICROS]),
            _ => words.len() == 2 && words.iter().all(is_share),
        };
        match (self.vector.units.is_empty(), is_fine) {
            (false, _) => Err("w, r and l before the data"),
            (true, false) => Err("w with two windows, r with a time in us, l with two shares from 0 to 1"),
            (true, true) => Ok(0),
        }
    }

    /// Takes a line of data or a time; the number of units that it adds.
    fn add(&mut self, keyword: &[u8], numbers: &[u64]) -> Result<usize, &'static str> {
        let Vector { is_concurrent, units, .. } = &mut self.vector;
        let (from, is_time) = match (keyword, *is_concurrent) {
            (b">", false) | (b"c>", true) => (Side::Initiator, false),
            (b"<", false) | (b"c<", true) => (Side::Acceptor, false),
            (b"t", false) | (b"t>", true) => (Side::Initiator, true),
            (b"t<", true) => (Side::Acceptor, true),
            (_, false) => return Err("> or < with a size, t with a time, w, r, l, SEQ or CONC"),
            (_, true) => return Err("c> or c< with a size, t> or t< with a time, w, r, l, SEQ or CONC"),
        };
        let place = if *is_concurrent { from as usize } else { 0 };
        if is_time {
            let [micros @ 0..=MAX_MICROS] = *numbers else { return Err("a time in us, at most 10^12") };
            // Zero is a microsecond, as in ns-2's converter.
            let time = Span::from_micros(micros.max(1));
            let is_early = !*is_concurrent && units.is_empty();
            let is_second = self.times[place].replace(time).is_some();
            return if is_early || is_second { Err("data before each time") } else { Ok(0) };
        }
        let size = match *numbers {
            [size] | [_, size] | [_, _, size] if (1..=MAX_UNIT_BYTES).contains(&size) => size,
            _ => return Err("a size of at least 1 and at most 2^32 bytes"),
        };
        let time = self.times[place].take();
        let wait = match units.last() {
            Some(before) if !*is_concurrent && before.from != from => {
                Wait::Received(time.unwrap_or(Span::from_micros(1)))
            }
            _ => time.map_or(Wait::None, Wait::Sent),
        };
        units.push(Unit { from, wait, bytes: Bytes::new(size) });
        Ok(1)
    }

    /// The connection; `line` is where the next one begins, or the last.
    fn finish(self, line: usize) -> Result<Vector, VectorError> {
        let Self { line: begun, counts, vector, .. } = self;
        let wrong = |found: String, expected: String| Err(VectorError { line, found, expected });
        let Some(last) = vector.epochs().last().copied() else {
            return wrong("no data".into(), format!("some for the connection of line {begun}"));
        };
        let of = |side: Side| vector.units.iter().filter(|unit| unit.from == side).count() as u64;
        let (found, what) = if vector.is_concurrent {
            (vec![of(Side::Initiator), of(Side::Acceptor)], "data units of its ends")
        } else {
            (vec![u64::from(last) + 1], "epochs")
        };
        if found == counts {
            return Ok(vector);
        }
        let list = |counts: &[u64]| counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" and ");
        wrong(format!("{} {what}", list(&found)), format!("{} as line {begun} says", list(&counts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequential_and_a_concurrent_connection_are_read() {
        let text = "# a comment\nSEQ 1500 3 7 21\nw 64240 8760\nr 20000\nl 0.000000 0.010000\n> 300\nt 5000\n\
            < 4000\nt 70000\n< 4100\n> 310\r\nt 0\n< 512\nt 2000\n\nCONC 3000 2 1 8 22\nc> 100\nt> 2500\nc> 90\n\
            c< 700\nt< 40\n";
        let read = from_bytes(text.as_bytes()).expect("fine");
        let [one, other] = &read[..] else { panic!("two connections") };
        assert_eq!((one.start, one.is_concurrent), (Time::from_nanos(1_500_000), false));
        let micros = Span::from_micros;
        let waits: Vec<Wait> = one.units.iter().map(|unit| unit.wait).collect();
        let received = |time| Wait::Received(micros(time));
        let sent = Wait::Sent(micros(70_000));
        assert_eq!(waits, [Wait::None, received(5000), sent, received(1), received(1)]);
        assert_eq!(one.epochs(), [0, 0, 1, 2, 2]);
        assert_eq!(one.payload(), Bytes::new(8612 + 610));
        assert!(other.is_concurrent);
        assert_eq!(other.units[1].wait, Wait::Sent(micros(2500)));
        assert_eq!(other.epochs(), [0, 1, 2]);
    }

    #[test]
    fn an_invalid_vector_is_refused_with_line_found_and_expected() {
        #[rustfmt::skip]
        let rows = [
            ("# nothing\n",              "line 2: found the end, expected a connection"),
            ("> 300\n",                  "line 1: found `> 300`, expected a connection: SEQ"),
            ("SEQ 1\n",                  "line 1: found `SEQ 1`, expected start in us, number of epochs"),
            ("SEQ -1 1\n> 1\n",          "line 1: found `SEQ -1 1`"),
            ("SEQ 1 1 1 1 1\n",          "line 1: found `SEQ 1 1 1 1 1`"),
            ("CONC 1 1\n",               "data units of the initiator and of the acceptor"),
            ("SEQ 9999999999999 1\n",    "expected start in us"),
            ("SEQ 0 1\n> 0\n",           "line 2: found `> 0`, expected a size of at least 1"),
            ("SEQ 0 1\n> 99999999999\n", "at most 2^32 bytes"),
            ("SEQ 0 1\nt 1\n> 1\n",      "line 2: found `t 1`, expected data before each time"),
            ("SEQ 0 1\n> 1\nt 1\nt 1\n", "line 4: found `t 1`, expected data before each time"),
            ("SEQ 0 1\nc> 1\n",          "line 2: found `c> 1`, expected > or <"),
            ("SEQ 0 1\n> 3 8 9 10\n",    "line 2: found `> 3 8 9 10`, expected a size"),
            ("SEQ 0 1\nw garbage\n",     "line 2: found `w garbage`, expected w with two windows"),
            ("SEQ 0 1\nr 1 2\n",         "line 2: found `r 1 2`, expected w with two windows"),
            ("SEQ 0 1\nl 0.1 1.1\n",     "line 2: found `l 0.1 1.1`, expected w with two windows"),
            ("SEQ 0 1\n> 1\nw 1 2\n",    "line 3: found `w 1 2`, expected w, r and l before the data"),
            ("SEQ 0 1\nI \u{7}\n",       "line 2: found `I ?`, expected > or <"),
            ("CONC 0 1 0\n> 1\n",        "line 2: found `> 1`, expected c> or c<"),
            ("CONC 0 1 0\nt> 1\nt> 1\n", "line 3: found `t> 1`, expected data before each time"),
            ("SEQ 0 2\n> 1\n< 1\n",      "line 4: found 1 epochs, expected 2 as line 1 says"),
            ("SEQ 0 1\nSEQ 0 1\n> 1\n",  "line 2: found no data, expected some for the connection of line 1"),
            ("CONC 0 1 1\nc> 1\n",       "found 1 and 0 data units of its ends, expected 1 and 1"),
        ];
        for (text, message) in rows {
            let error = from_bytes(text.as_bytes()).expect_err(text).to_string();
            assert!(error.contains(message), "{text:?}: {error}");
            assert!(error.lines().count() == 1 && error.contains("expected"), "{error}");
        }
    }
}
