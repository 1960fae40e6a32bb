//! Delay packets as a recording says, one value for every ten milliseconds.
//!
//! The format is that of the delay traces which low-orbit satellite work has with mahimahi's rate
//! traces: a text of lines, each a number of milliseconds, decimals allowed. The value of line n,
//! from zero, holds from 10 n ms on; at its end the recording begins anew. A packet never overtakes
//! the one before.

use core::fmt;
use std::sync::Arc;

use headstart_units::{Span, Time};

use crate::element::{Element, Output, Packet, PushResult};
use crate::plan::{Part, Refusal, checked_time};
use crate::ring::Ring;
use crate::seed::Seed;

/// Time for which a value holds.
pub const STEP: Span = Span::from_millis(10);
/// The longest text that is read: 64 MiB.
pub const MAX_BYTES: usize = 64 << 20;
/// The most values of a recording: 2^22, more than eleven hours.
pub const MAX_VALUES: usize = 1 << 22;
/// The longest delay in milliseconds.
const MAX_MILLIS: f64 = 60_000.0;

/// A recording, and the place at which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Delays, one for each [`STEP`]; at least one.
    pub delays: Arc<[Span]>,
    /// Offset of the link's beginning in the recording.
    pub offset: Span,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delay trace of {}", STEP * self.delays.len() as u64)
    }
}

impl Part for Params {
    const NAME: &'static str = "delay trace";
    const OPTION: &'static str = "delay-trace";
    type Element<P> = DelayTrace<P>;

    fn build<P>(&self, _: Seed) -> DelayTrace<P> {
        DelayTrace { params: self.clone(), last: Time::ZERO, inside: Ring::new() }
    }

    fn check(&self) -> Result<(), Refusal> {
        checked_time("delay", self.delays.iter().copied().max().unwrap_or_default())
    }

    fn delay(&self) -> Span {
        self.delays.iter().copied().min().unwrap_or_default()
    }
}

/// Reads a recording from the bytes of a file.
///
/// # Errors
/// The first line that is no delay of 0 to 60000 ms, or a text that is too long or empty.
pub fn read(text: &[u8]) -> Result<Arc<[Span]>, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("found {} bytes, expected at most {MAX_BYTES}", text.len()));
    }
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut delays = vec![];
    for (found, line) in text.split(|byte| *byte == b'\n').zip(1..) {
        let number = number_of(found.strip_suffix(b"\r").unwrap_or(found)).ok_or_else(|| {
            let found = found[..found.len().min(24)].escape_ascii();
            format!("line {line}: found `{found}`, expected a delay of 0 to {MAX_MILLIS} milliseconds")
        })?;
        if delays.len() == MAX_VALUES {
            return Err(format!("found more than {MAX_VALUES} lines, expected at most these"));
        }
        delays.push(Span::from_nanos((number * 1e6).round() as u64));
    }
    Ok(delays.into())
}

fn number_of(text: &[u8]) -> Option<f64> {
    let is_plain = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let number: f64 = core::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok()?;
    (0.0..=MAX_MILLIS).contains(&number).then_some(number)
}

/// The packets that are delayed.
#[derive(Debug)]
pub struct DelayTrace<P> {
    params: Params,
    /// Time at which the last packet leaves.
    last: Time,
    inside: Ring<P>,
}

impl<P: Packet> Element<P> for DelayTrace<P> {
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        let Params { delays, offset } = &self.params;
        let step = (now + *offset).as_nanos() / STEP.as_nanos() % (delays.len() as u64).max(1);
        let delay = delays.get(step as usize).copied().unwrap_or_default();
        self.last = self.last.max(now + delay);
        self.inside.push(self.last, packet);
        PushResult::Accepted
    }

    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        self.inside.pop(now).map(Output::Delivered)
    }

    fn next_at(&self) -> Time {
        self.inside.next_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{drain, packet};

    #[test]
    fn packets_are_delayed_by_the_value_of_their_time_and_never_overtake() {
        let params = Params { delays: read(b"30\n5.5\n").expect("two values"), offset: Span::ZERO };
        assert_eq!(params.delay(), Span::from_micros(5_500));
        for (offset, expected) in [
            // Sent at 9, 10, 19, 29 and 31 ms, of a recording that repeats after 20 ms.
            (0, [39_000, 39_000, 39_000, 59_000, 59_000]),
            (10, [14_500, 40_000, 49_000, 49_000, 61_000]),
            (1_000_030, [14_500, 40_000, 49_000, 49_000, 61_000]),
        ] {
            let mut element = Params { offset: Span::from_millis(offset), ..params.clone() }.build(Seed(0));
            for (number, at) in [9, 10, 19, 29, 31].into_iter().enumerate() {
                let pushed = element.push(Time::from_millis(at), packet(number as u64));
                assert_eq!(pushed, PushResult::Accepted);
            }
            let left: Vec<u64> = drain(&mut element).into_iter().map(|(at, _)| at).collect();
            assert_eq!(left, expected, "offset {offset} ms");
        }
    }

    #[test]
    fn texts_that_are_no_recording_are_refused_with_line_and_form() {
        for (text, message) in [
            (&b""[..], "line 1: found ``, expected a delay of 0 to 60000 milliseconds"),
            (b"20\n\n", "line 2: found ``, expected"),
            (b"20\n-1\n", "line 2: found `-1`, expected"),
            (b"20\ninf\n", "line 2: found `inf`, expected"),
            (b"1e3\n", "line 1: found `1e3`, expected"),
            (b"60000.1\n", "line 1: found `60000.1`, expected"),
            (b"20,21\n", "line 1: found `20,21`, expected"),
            (b"20\n\xff\n", "line 2: found `\\xff`, expected"),
        ] {
            let error = read(text).expect_err("no recording");
            assert!(error.starts_with(message), "{error}");
        }
        assert_eq!(read(b"0\r\n60000\r\n").expect("two").len(), 2);
        let error = read(&b"1\n".repeat(MAX_VALUES + 1)).expect_err("too many");
        assert!(error.contains("expected at most"), "{error}");
    }
}
