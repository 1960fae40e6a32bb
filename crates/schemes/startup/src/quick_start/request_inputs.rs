//! The rate to request: the four ways of QS §6.2.
//!
//! Each approved request reduces the rate left to others, so a sender should request only a rate
//! that it can use. Little is known when the SYN leaves; where a way needs an unknown number, it
//! falls back as documented.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::ops::RangeInclusive;

use headstart_units::{Bytes, Rate, Span};

use crate::parameters::{Value, Word, as_word, from_word, words_expected};

/// The sender's knowledge at the time of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestInputs {
    /// Payload bytes of a full segment.
    pub mss: Bytes,
    /// Bytes to send, if known.
    pub size: Option<Bytes>,
    /// The round-trip time, if one was measured, on this connection or an earlier one.
    pub rtt: Option<Span>,
    /// The window that the peer advertised; unknown when the SYN leaves (QS §6.2, note 5).
    pub receive_window: Option<Bytes>,
    /// The connection is established and was idle (RFC 4782 §4.8).
    pub is_after_idle: bool,
}

/// Rule for the rate that a sender requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// No request.
    Never,
    /// A fixed rate, such as the access link's.
    Fixed(Rate),
    /// min(S, W) / R: the limit by the socket's buffer S and the peer's window W (where known).
    Window,
    /// (O + O/MSS x H) / R: the rate that sends the object in one RTT; no request if it fits into
    /// the initial window. If its size is unknown, as [`Self::Window`].
    Object,
    /// The rate that sends the object in one RTT; without a known size no request: the sender
    /// requests later, when it is known.
    Known,
}

impl Amount {
    /// The rate to request; `None`: no request. `header` is H, `initial` the default initial
    /// window, `assumed_rtt` replaces an unknown RTT, `socket_buffer` is S.
    #[must_use]
    pub fn rate(
        self,
        known: &RequestInputs,
        header: Bytes,
        initial: Bytes,
        assumed_rtt: Span,
        socket_buffer: Bytes,
    ) -> Option<Rate> {
        let rtt = known.rtt.unwrap_or(assumed_rtt);
        let window = socket_buffer.min(known.receive_window.unwrap_or(Bytes::MAX)) / rtt;
        // QS §6.2 requests nothing where the default window carries all of it.
        if known.size.is_some_and(|size| size <= initial) {
            return None;
        }
        let rate = match self {
            Self::Never => return None,
            Self::Fixed(rate) => rate,
            Self::Window => window,
            Self::Object | Self::Known if known.size.is_some() => {
                let size = known.size.unwrap_or_default();
                (size + header * size.get().div_ceil(known.mss.get().max(1))) / rtt
            }
            Self::Object => window,
            Self::Known => return None,
        };
        (!rate.is_zero()).then_some(rate)
    }
}

const WORDS: &[Word<Amount>] = &[
    ("never", Amount::Never),
    ("window", Amount::Window),
    ("object", Amount::Object),
    ("known", Amount::Known),
];

/// A rate, which is [`Amount::Fixed`], or a word.
impl Value for Amount {
    type Bound = Rate;

    const KIND: &'static str = "rate";

    fn parse(text: &str) -> Option<Self> {
        from_word(WORDS, text).or_else(|| Value::parse(text).map(Self::Fixed))
    }

    fn print(&self, out: &mut dyn Write) -> fmt::Result {
        match self {
            Self::Fixed(rate) => rate.print(out),
            word => out.write_str(as_word(WORDS, word)),
        }
    }

    fn expected(range: Option<RangeInclusive<Rate>>, out: &mut dyn Write) -> fmt::Result {
        words_expected(WORDS, out)?;
        out.write_str(", or ")?;
        Rate::expected(range, out)
    }

    fn is_within(&self, range: Option<RangeInclusive<Rate>>) -> bool {
        match self {
            Self::Fixed(rate) => rate.is_within(range),
            _ => true,
        }
    }

    fn ends(range: Option<RangeInclusive<Rate>>) -> Vec<String> {
        let mut ends = Rate::ends(range);
        ends.extend(WORDS.iter().map(|(word, _)| String::from(*word)));
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_requests_a_rate_from_its_inputs() {
        let nothing = RequestInputs {
            mss: Bytes::new(1460),
            size: None,
            rtt: None,
            receive_window: None,
            is_after_idle: false,
        };
        let object = RequestInputs { size: Some(Bytes::new(14_600)), ..nothing };
        let later = RequestInputs {
            rtt: Some(Span::from_millis(50)),
            receive_window: Some(Bytes::new(20_000)),
            ..object
        };
        let tiny = RequestInputs { size: Some(Bytes::new(4_380)), ..later };
        let fixed = Amount::Fixed(Rate::from_bytes_per_sec(2_000_000));
        let (window, exact) = (Amount::Window, Amount::Object);
        #[rustfmt::skip]
        let rows = [
            (Amount::Never, later,   None,            "never"),
            (fixed,         nothing, Some(2_000_000), "always the same"),
            (window,        nothing, Some(640_000),   "S over the assumed RTT"),
            (window,        later,   Some(400_000),   "W is smaller, and the RTT was measured"),
            (exact,         object,  Some(150_000),   "ten segments of 1500 bytes in 100 ms"),
            (exact,         later,   Some(300_000),   "in 50 ms"),
            (exact,         nothing, Some(640_000),   "nobody knows the size: the window"),
            (Amount::Known, later,   Some(300_000),   "exactly what is known"),
            (Amount::Known, nothing, None,            "nobody knows the size: later"),
            (exact,         tiny,    None,            "it fits into the initial window"),
            (fixed,         tiny,    None,            "whatever the way"),
        ];
        for (amount, known, expected, why) in rows {
            let (rtt, buffer) = (Span::from_millis(100), Bytes::new(64_000));
            let rate = amount.rate(&known, Bytes::new(40), Bytes::new(4_380), rtt, buffer);
            assert_eq!(rate.map(Rate::as_bytes_per_sec), expected, "{why}");
        }
    }
}
