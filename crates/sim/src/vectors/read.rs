//! Reads connection vectors in both formats of Tmix; anything else is refused with its line, the
//! text found and the text expected.
//!
//! # Deviations
//!
//! - ns-2 ignores the counts of a head. Here a trace that was cut short is refused.
//! - A file holds one format. Blank lines and lines that begin with `#` are skipped.
//! - A trailing time, and a data unit of no bytes, give the end of the connection. A replay ends it
//!   when all is read.
//! - Files longer than [`MAX_BYTES`], more than [`MAX_VECTORS`] connections or [`MAX_UNITS`] data
//!   units, a unit above [`MAX_UNIT_BYTES`] and times above [`MAX_MICROS`] are refused.

use core::fmt;

use headstart_units::{Bytes, Span, Time};

use super::{Observed, Side, Unit, Vector, Wait};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorError {
    /// Counted from one.
    pub line: usize,
    /// Text found, made printable.
    pub found: String,
    /// Text expected.
    pub expected: String,
}

impl fmt::Display for VectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: found {}, expected {}", self.line, self.found, self.expected)
    }
}

impl core::error::Error for VectorError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Original,
    Alternate,
}

/// A connection whose lines are being read.
#[derive(Debug)]
struct Draft {
    line: usize,
    counts: Vec<u64>,
    vector: Vector,
    /// Times read for the next unit: of a sequential connection the first, otherwise of each end.
    times: [Option<Span>; 2],
    /// In the alternate format: the end sends no more.
    is_over: [bool; 2],
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
    let mut reader = Reader { format: None, draft: None, vectors: vec![], units: 0 };
    let mut last = 1;
    for (line, text) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        last = line;
        let text = text.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        reader.line(Line { number: line, text })?;
    }
    reader.finish(last)?;
    if reader.vectors.is_empty() {
        return Err(VectorError { line: last, found: "the end".into(), expected: "a connection".into() });
    }
    Ok(reader.vectors)
}

#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    text: &'a [u8],
}

impl Line<'_> {
    fn wrong<T>(&self, expected: impl Into<String>) -> Result<T, VectorError> {
        Err(VectorError { line: self.number, found: shown(self.text), expected: expected.into() })
    }

    /// The numbers after the keyword: `least` to `most` of them.
    fn numbers(&self, least: usize, most: usize, expected: &str) -> Result<Vec<u64>, VectorError> {
        let words = self.words();
        let numbers: Option<Vec<u64>> = words.iter().map(|word| number(word)).collect();
        match numbers {
            Some(numbers) if (least..=most).contains(&numbers.len()) => Ok(numbers),
            _ => self.wrong(expected),
        }
    }

    fn words(&self) -> Vec<&[u8]> {
        self.text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).skip(1).take(16).collect()
    }

    fn keyword(&self) -> &[u8] {
        self.text.split(u8::is_ascii_whitespace).next().unwrap_or_default()
    }

    fn micros(&self, micros: u64) -> Result<Span, VectorError> {
        if micros > MAX_MICROS {
            self.wrong(format!("at most {MAX_MICROS} us"))
        } else {
            Ok(Span::from_micros(micros))
        }
    }

    fn bytes(&self, bytes: u64) -> Result<Bytes, VectorError> {
        if bytes > MAX_UNIT_BYTES {
            self.wrong(format!("at most {MAX_UNIT_BYTES} bytes"))
        } else {
            Ok(Bytes::new(bytes))
        }
    }
}

/// Digits only, not too many.
fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 18 || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(word.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// A share from 0 to 1 as decimals, in millionths.
fn share(word: &[u8]) -> Option<u32> {
    let (whole, decimals) = match word.iter().position(|byte| *byte == b'.') {
        Some(at) => (&word[..at], &word[at + 1..]),
        None => (word, &b"0"[..]),
    };
    let digits: Vec<u8> = decimals.iter().copied().chain(*b"000000").take(6).collect();
    number(decimals)?;
    let millionths = number(whole)?.checked_mul(1_000_000)?.checked_add(number(&digits)?)?;
    u32::try_from(millionths).ok().filter(|millionths| *millionths <= 1_000_000)
}

/// Zero is a microsecond, as in ns-2's converter: in the alternate format zero means no wait.
fn at_least(time: Span) -> Span {
    time.max(Span::from_micros(1))
}

/// The beginning of the text found, without control characters.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(80)]);
    let text: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).take(40).collect();
    format!("`{text}`")
}

struct Reader {
    format: Option<Format>,
    draft: Option<Draft>,
    vectors: Vec<Vector>,
    units: usize,
}

const HEAD: &str = "a connection: SEQ or S, CONC or C";

impl Reader {
    fn line(&mut self, line: Line<'_>) -> Result<(), VectorError> {
        let head = match line.keyword() {
            b"SEQ" => Some((Format::Original, false)),
            b"CONC" => Some((Format::Original, true)),
            b"S" => Some((Format::Alternate, false)),
            b"C" => Some((Format::Alternate, true)),
            _ => None,
        };
        if let Some((format, is_concurrent)) = head {
            self.finish(line.number)?;
            return self.begin(line, format, is_concurrent);
        }
        let Some(draft) = &mut self.draft else { return line.wrong(HEAD) };
        let before = draft.vector.units.len();
        match (line.keyword(), self.format) {
            (b"w" | b"r" | b"l", _) => draft.observe(line)?,
            (b"I" | b"A", Some(Format::Alternate)) => draft.alternate(line)?,
            (_, Some(Format::Alternate)) => {
                return line.wrong("I or A with two times and a size, w, r, l, S or C");
            }
            _ if draft.vector.is_concurrent => draft.concurrent(line)?,
            _ => draft.sequential(line)?,
        }
        self.units += draft.vector.units.len() - before;
        if self.units > MAX_UNITS { line.wrong(format!("at most {MAX_UNITS} data units")) } else { Ok(()) }
    }

    fn begin(&mut self, line: Line<'_>, format: Format, is_concurrent: bool) -> Result<(), VectorError> {
        if self.format.is_some_and(|known| known != format) {
            return line.wrong("the format of the connections before");
        }
        if self.vectors.len() == MAX_VECTORS {
            return line.wrong(format!("at most {MAX_VECTORS} connections"));
        }
        self.format = Some(format);
        let counts = 1 + usize::from(is_concurrent);
        let expected = if is_concurrent {
            "start in us, data units of the initiator and of the acceptor, and at most two numbers more"
        } else {
            "start in us, number of epochs, and at most two numbers more"
        };
        let numbers = line.numbers(1 + counts, 3 + counts, expected)?;
        let start = line.micros(numbers[0])?;
        self.draft = Some(Draft {
            line: line.number,
            counts: numbers[1..=counts].to_vec(),
            vector: Vector {
                start: Time::ZERO + start,
                is_concurrent,
                observed: Observed::default(),
                units: vec![],
            },
            times: [None; 2],
            is_over: [false; 2],
        });
        Ok(())
    }

    /// The connection is complete; `line` is where the next one begins, or the last.
    fn finish(&mut self, line: usize) -> Result<(), VectorError> {
        let Some(draft) = self.draft.take() else { return Ok(()) };
        let wrong = |found: String, expected: String| Err(VectorError { line, found, expected });
        if draft.vector.units.is_empty() {
            return wrong("no data".into(), format!("some for the connection of line {}", draft.line));
        }
        let counts = draft.vector.counts();
        if counts != draft.counts {
            let what = if draft.vector.is_concurrent { "data units of its ends" } else { "epochs" };
            let list = |counts: &[u64]| counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" and ");
            let expected = format!("{} as line {} says", list(&draft.counts), draft.line);
            return wrong(format!("{} {what}", list(&counts)), expected);
        }
        self.vectors.push(draft.vector);
        Ok(())
    }
}

impl Draft {
    fn observe(&mut self, line: Line<'_>) -> Result<(), VectorError> {
        if !self.vector.units.is_empty() {
            return line.wrong("w, r and l before the data");
        }
        let observed = &mut self.vector.observed;
        let is_again = match line.keyword() {
            b"w" => {
                let numbers = line.numbers(2, 2, "the windows of both ends in bytes")?;
                observed.windows.replace([line.bytes(numbers[0])?, line.bytes(numbers[1])?]).is_some()
            }
            b"r" => {
                let numbers = line.numbers(1, 1, "a round-trip time in us")?;
                observed.rtt.replace(line.micros(numbers[0])?).is_some()
            }
            _ => {
                let words = line.words();
                let shares: Vec<u32> = words.iter().filter_map(|word| share(word)).collect();
                match (&shares[..], words.len()) {
                    ([one, other], 2) => observed.loss.replace([*one, *other]).is_some(),
                    _ => return line.wrong("two shares from 0 to 1"),
                }
            }
        };
        if is_again { line.wrong("each of w, r and l once") } else { Ok(()) }
    }

    /// One line of a sequential connection in the original format.
    fn sequential(&mut self, line: Line<'_>) -> Result<(), VectorError> {
        let from = match line.keyword() {
            b">" => Side::Initiator,
            b"<" => Side::Acceptor,
            b"t" => {
                let numbers = line.numbers(1, 1, "a time in us")?;
                let time = line.micros(numbers[0])?;
                if self.vector.units.is_empty() || self.times[0].replace(time).is_some() {
                    return line.wrong("data before each time");
                }
                return Ok(());
            }
            _ => return line.wrong("> or < with a size, t with a time, w, r, l, SEQ or CONC"),
        };
        let time = self.times[0].take();
        let wait = match self.vector.units.last() {
            None => Wait::None,
            Some(before) if before.from == from => time.map_or(Wait::None, |time| Wait::Sent(at_least(time))),
            Some(_) => Wait::Received(at_least(time.unwrap_or_default())),
        };
        self.push(line, from, wait)
    }

    /// One line of a concurrent connection in the original format.
    fn concurrent(&mut self, line: Line<'_>) -> Result<(), VectorError> {
        let (from, is_time) = match line.keyword() {
            b"c>" => (Side::Initiator, false),
            b"c<" => (Side::Acceptor, false),
            b"t>" => (Side::Initiator, true),
            b"t<" => (Side::Acceptor, true),
            _ => return line.wrong("c> or c< with a size, t> or t< with a time, w, r, l, SEQ or CONC"),
        };
        if is_time {
            let numbers = line.numbers(1, 1, "a time in us")?;
            let time = line.micros(numbers[0])?;
            if self.times[from as usize].replace(time).is_some() {
                return line.wrong("data of this end after its last time");
            }
            return Ok(());
        }
        let wait = self.times[from as usize].take().map_or(Wait::None, |time| Wait::Sent(at_least(time)));
        self.push(line, from, wait)
    }

    /// One line in the alternate format.
    fn alternate(&mut self, line: Line<'_>) -> Result<(), VectorError> {
        let from = if line.keyword() == b"I" { Side::Initiator } else { Side::Acceptor };
        let numbers = line.numbers(3, 3, "two times in us, after sending and after receiving, and a size")?;
        let (sent, received) = (line.micros(numbers[0])?, line.micros(numbers[1])?);
        if self.is_over[from as usize] {
            return line.wrong("nothing of this end after its size of 0");
        }
        if numbers[2] == 0 {
            self.is_over[from as usize] = true;
            return Ok(());
        }
        let wait = match (sent.is_zero(), received.is_zero()) {
            (true, true) => Wait::None,
            (false, true) => Wait::Sent(sent),
            (true, false) => Wait::Received(received),
            (false, false) => return line.wrong("one of both times to be 0"),
        };
        if self.vector.is_concurrent && matches!(wait, Wait::Received(_)) {
            return line.wrong(
                "no time after receiving, since both ends of this connection send at their own times",
            );
        }
        self.push(line, from, wait)
    }

    fn push(&mut self, line: Line<'_>, from: Side, wait: Wait) -> Result<(), VectorError> {
        let size = *line.numbers(1, 3, "a size in bytes")?.last().unwrap_or(&0);
        if size == 0 {
            return line.wrong("a size of at least 1");
        }
        self.vector.units.push(Unit { from, wait, bytes: line.bytes(size)? });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ORIGINAL: &str = "# a comment\nSEQ 1500 3 7 21\nw 64240 8760\nr 20000\nl 0.000000 0.010000\n> 300\nt 5000\n< 4000\nt 70000\n\
        < 4100\n> 310\nt 0\n< 512\nt 2000\nCONC 3000 2 1 8 22\nc> 100\nt> 2500\nc> 90\nc< 700\nt< 40\n";
    const ALTERNATE: &str = "S 1500 3 7 21\nw 64240 8760\nr 20000\nl 0.000000 0.010000\nI 0 0 300\nA 0 5000 4000\nA 70000 0 4100\n\
        I 0 1 310\nA 0 1 512\nA 2000 0 0\n\nC 3000 2 1\r\nI 0 0 100\nI 2500 0 90\nA 0 0 700\nA 40 0 0\n";

    #[test]
    fn both_formats_parse_to_the_same_vectors() {
        let original = from_bytes(ORIGINAL.as_bytes()).expect("fine");
        assert_eq!(from_bytes(ALTERNATE.as_bytes()), Ok(original.clone()));
        let [one, other] = &original[..] else { panic!("two connections") };
        assert_eq!(one.start, Time::from_nanos(1_500_000));
        assert_eq!(one.observed.windows, Some([Bytes::new(64_240), Bytes::new(8_760)]));
        assert_eq!((one.observed.rtt, one.observed.loss), (Some(Span::from_millis(20)), Some([0, 10_000])));
        let micros = Span::from_micros;
        let waits: Vec<Wait> = one.units.iter().map(|unit| unit.wait).collect();
        #[rustfmt::skip]
        assert_eq!(waits, [
            Wait::None, Wait::Received(micros(5000)), Wait::Sent(micros(70_000)), Wait::Received(micros(1)), Wait::Received(micros(1)),
        ]);
        assert_eq!(one.epochs(), [0, 0, 1, 2, 2]);
        assert_eq!(one.payload(Side::Acceptor), Bytes::new(8612));
        assert!(other.is_concurrent);
        assert_eq!(other.units[1].wait, Wait::Sent(micros(2500)));
        assert_eq!(other.epochs(), [0, 1, 2]);
    }

    /// Refused texts: line, and the expected message.
    #[test]
    fn an_invalid_vector_is_refused_with_line_found_and_expected() {
        #[rustfmt::skip]
        let rows = [
            ("",                                     "line 1: found the end, expected a connection"),
            ("# nothing\n",                          "line 2: found the end, expected a connection"),
            ("> 300\n",                              "line 1: found `> 300`, expected a connection: SEQ"),
            ("SEQ 1\n",                              "line 1: found `SEQ 1`, expected start in us, number of epochs"),
            ("SEQ -1 1\n> 1\n",                      "line 1: found `SEQ -1 1`"),
            ("SEQ 1 1 1 1 1\n",                      "line 1: found `SEQ 1 1 1 1 1`"),
            ("CONC 1 1\n",                           "data units of the initiator and of the acceptor"),
            ("SEQ 9999999999999 1\n> 1\n",          "expected at most 1000000000000 us"),
            ("SEQ 0 1\nw 1\n> 1\n",                 "line 2: found `w 1`, expected the windows"),
            ("SEQ 0 1\nr 1\nr 1\n> 1\n",            "line 3: found `r 1`, expected each of w, r and l once"),
            ("SEQ 0 1\nl 0.5 1.1\n> 1\n",           "line 2: found `l 0.5 1.1`, expected two shares"),
            ("SEQ 0 1\nl 0.5 .\n> 1\n",             "line 2: found `l 0.5 .`, expected two shares"),
            ("SEQ 0 1\n> 1\nr 1\n",                 "line 3: found `r 1`, expected w, r and l before the data"),
            ("SEQ 0 1\n> 0\n",                      "line 2: found `> 0`, expected a size of at least 1"),
            ("SEQ 0 1\n> 1 2 3 4\n",                "line 2: found `> 1 2 3 4`, expected a size"),
            ("SEQ 0 1\n> 99999999999\n",            "expected at most 4294967296 bytes"),
            ("SEQ 0 1\nt 1\n> 1\n",                 "line 2: found `t 1`, expected data before each time"),
            ("SEQ 0 1\n> 1\nt 1\nt 1\n",            "line 4: found `t 1`, expected data before each time"),
            ("SEQ 0 1\nc> 1\n",                     "line 2: found `c> 1`, expected > or <"),
            ("CONC 0 1 0\n> 1\n",                   "line 2: found `> 1`, expected c> or c<"),
            ("CONC 0 1 0\nt> 1\nt> 1\n",            "line 3: found `t> 1`, expected data of this end"),
            ("SEQ 0 2\n> 1\n< 1\n",                 "line 4: found 1 epochs, expected 2 as line 1 says"),
            ("SEQ 0 1\nSEQ 0 1\n> 1\n",             "line 2: found no data, expected some for the connection of line 1"),
            ("CONC 0 1 1\nc> 1\n",                  "found 1 and 0 data units of its ends, expected 1 and 1"),
            ("SEQ 0 1\n> 1\nS 0 1\n",               "line 3: found `S 0 1`, expected the format of the connections before"),
            ("S 0 1\n> 1\n",                        "line 2: found `> 1`, expected I or A"),
            ("S 0 1\nI 0 1\n",                      "line 2: found `I 0 1`, expected two times in us"),
            ("S 0 1\nI 1 1 1\n",                    "line 2: found `I 1 1 1`, expected one of both times to be 0"),
            ("C 0 1 0\nI 0 1 1\n",                  "expected no time after receiving"),
            ("S 0 1\nI 0 0 1\nI 0 0 0\nI 0 0 1\n",  "line 4: found `I 0 0 1`, expected nothing of this end after its size of 0"),
            ("S 0 1\nI \u{7}\n",                    "line 2: found `I ?`"),
        ];
        for (text, message) in rows {
            let error = from_bytes(text.as_bytes()).expect_err(text).to_string();
            assert!(error.contains(message), "{text:?}: {error}");
            assert!(error.lines().count() == 1 && error.contains("expected"), "{error}");
        }
    }

    fn vector() -> impl Strategy<Value = Vector> {
        let side = prop_oneof![Just(Side::Initiator), Just(Side::Acceptor)];
        let wait = prop_oneof![
            Just(Wait::None),
            (1..=MAX_MICROS).prop_map(|micros| Wait::Sent(Span::from_micros(micros))),
            (1..=MAX_MICROS).prop_map(|micros| Wait::Received(Span::from_micros(micros))),
        ];
        let unit = (side, wait, 1..=MAX_UNIT_BYTES).prop_map(|(from, wait, bytes)| Unit {
            from,
            wait,
            bytes: Bytes::new(bytes),
        });
        let loss = proptest::option::of(proptest::array::uniform2(0..=1_000_000_u32));
        (0..=MAX_MICROS, any::<bool>(), loss, proptest::collection::vec(unit, 1..20)).prop_map(
            |(start, is_concurrent, loss, mut units)| {
                for unit in &mut units {
                    if is_concurrent && matches!(unit.wait, Wait::Received(_)) {
                        unit.wait = Wait::None;
                    }
                }
                let observed = Observed { loss, rtt: Some(Span::from_micros(start)), windows: None };
                Vector { start: Time::from_nanos(start * 1000), is_concurrent, observed, units }
            },
        )
    }

    proptest! {
        #[test]
        fn written_vectors_parse_to_themselves(vectors in proptest::collection::vec(vector(), 1..5)) {
            let text: String = vectors.iter().map(Vector::to_string).collect();
            prop_assert_eq!(from_bytes(text.as_bytes()), Ok(vectors));
        }

        #[test]
        fn a_missing_line_is_refused_or_changes_the_result(vectors in proptest::collection::vec(vector(), 1..4), at in 0..60_usize) {
            let text: String = vectors.iter().map(Vector::to_string).collect();
            let lines: Vec<&str> = text.lines().collect();
            let left: Vec<&str> = lines.iter().enumerate().filter(|(n, _)| *n != at % lines.len()).map(|(_, l)| *l).collect();
            prop_assert_ne!(from_bytes((left.join("\n") + "\n").as_bytes()), Ok(vectors));
        }

        #[test]
        fn no_bytes_cause_a_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = from_bytes(&text);
        }
    }
}
