//! Values of options, read from text.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use headstart_host::{read_at_most, without_mark};
use headstart_net::option_filter::{self, Action};
use headstart_net::{Limit, Trace, delay_trace, trace};
use headstart_sim::workload::page::Fetch;
use headstart_startup::catalogue::Entry;
use headstart_startup::parameters::{is_same_name, split_list};
use headstart_units::hash::{FNV128, fnv128};
use headstart_units::{Bytes, Packets, ParseError, Rate, Ratio, Span};

use super::example_links;
use crate::schemes;
use crate::workload::files::SizeFile;

/// Round-trip times of the classes of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rtts(pub Vec<Span>);

impl FromStr for Rtts {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let times: Result<Vec<Span>, _> = text.split('+').map(str::parse).collect();
        let times = times.map_err(|error| error.to_string())?;
        if times.len() > 64 {
            return Err(format!("found {} classes of hosts, expected at most 64", times.len()));
        }
        Ok(Self(times))
    }
}

/// Size of a buffer, in one of several units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// In bytes.
    Bytes(Bytes),
    /// In packets.
    Packets(Packets),
    /// Data that the link sends in this time.
    Time(Span),
    /// A share of rate x RTT.
    Bdp(Ratio),
}

impl FromStr for Buffer {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        if let Some(number) = lower.strip_suffix("bdp") {
            let hundredths = format!("{}%", number.trim());
            // `1.5 BDP` is 1.5 times; the percentage reader takes the digits.
            return hundredths
                .parse()
                .map(|share: Ratio| Self::Bdp(share))
                .map_err(|_| format!("found `{text}`, expected a number before `BDP`, such as `1.5 BDP`"));
        }
        if let Ok(packets) = text.parse() {
            return Ok(Self::Packets(packets));
        }
        if let Ok(time) = text.parse() {
            return Ok(Self::Time(time));
        }
        let parts = [text.parse::<Packets>().err(), text.parse::<Span>().err()];
        if let Some(part) = parts.into_iter().flatten().find(ParseError::is_part) {
            return Err(part.to_string());
        }
        text.parse().map(Self::Bytes).map_err(|error: ParseError| {
            if error.is_part() {
                return error.to_string();
            }
            format!("found `{text}`, expected a buffer such as `115 kB`, `104 packets`, `50 ms` or `1 BDP`")
        })
    }
}

impl Buffer {
    /// The limit on a link of this rate and round-trip time.
    #[must_use]
    pub fn limit(self, rate: Rate, rtt: Span) -> Limit {
        match self {
            Self::Bytes(bytes) => Limit::bytes(bytes),
            Self::Packets(packets) => Limit::packets(packets),
            Self::Time(time) => Limit::bytes(rate * time),
            // The share was read as a percentage.
            Self::Bdp(share) => Limit::bytes(rate * rtt * 100 * share),
        }
    }
}

/// A trace, read and parsed.
#[derive(Clone)]
pub struct TraceFile {
    /// File of the trace.
    pub name: String,
    /// Contents of the file.
    pub trace: Arc<Trace>,
}

impl fmt::Debug for TraceFile {
    /// Prints the contents, which determine the result of a run; the name does not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.trace.as_millis().iter().flat_map(|millis| millis.to_le_bytes());
        write!(f, "trace {:032x}", fnv128(FNV128, bytes))
    }
}

impl FromStr for TraceFile {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(link) = example_links::find(text) {
            let trace = crate::workload::files::rates(&link?.traces().0)?;
            return Ok(Self { name: text.to_owned(), trace: Arc::new(trace) });
        }
        let bytes = read_at_most(Path::new(text), trace::MAX_BYTES);
        let bytes = bytes.map_err(|error| format!("cannot read `{text}`: {error}"))?;
        let bytes = without_mark(&bytes).map_err(|error| error.to_string())?;
        let trace = if text.to_ascii_lowercase().ends_with(".csv") {
            crate::workload::files::rates(&String::from_utf8_lossy(bytes))
                .map_err(|error| text.to_owned() + &error)
        } else {
            Trace::from_bytes(bytes).map_err(|error| error.to_string())
        };
        Ok(Self { name: text.to_owned(), trace: Arc::new(trace?) })
    }
}

/// Recorded delays, read and parsed.
#[derive(Clone)]
pub struct DelayFile {
    /// File of the delays.
    pub name: String,
    delays: Arc<[Span]>,
}

impl DelayFile {
    /// Time after which they begin anew.
    #[must_use]
    pub fn period(&self) -> Span {
        delay_trace::STEP * self.delays.len() as u64
    }

    /// The part of a path, for a run that begins at this offset.
    #[must_use]
    pub fn params(&self, offset: Span) -> delay_trace::Params {
        delay_trace::Params { delays: Arc::clone(&self.delays), offset }
    }
}

impl fmt::Debug for DelayFile {
    /// Prints the contents, which determine the result of a run; the name does not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.delays.iter().flat_map(|delay| delay.as_nanos().to_le_bytes());
        write!(f, "delays {:032x}", fnv128(FNV128, bytes))
    }
}

impl FromStr for DelayFile {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(link) = example_links::find(text) {
            return Ok(Self {
                name: text.to_owned(),
                delays: delay_trace::read(link?.traces().1.as_bytes())?,
            });
        }
        let bytes = read_at_most(Path::new(text), delay_trace::MAX_BYTES);
        let bytes = bytes.map_err(|error| format!("cannot read `{text}`: {error}"))?;
        let bytes = without_mark(&bytes).map_err(|error| error.to_string())?;
        Ok(Self { name: text.to_owned(), delays: delay_trace::read(bytes)? })
    }
}

/// A burst of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Share of packets that begin one.
    pub enter: Ratio,
    /// Mean length in packets.
    pub length: u32,
}

impl FromStr for Burst {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found `{text}`, expected share and mean length, such as `0.1%,5`");
        let (share, length) = text.split_once(',').ok_or_else(expected)?;
        let enter = share.parse().map_err(|_| expected())?;
        let length = length.trim().parse().map_err(|_| expected())?;
        if length == 0 { Err(expected()) } else { Ok(Self { enter, length }) }
    }
}

/// A box that acts on packets with IP options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpOptions(pub option_filter::Params);

impl IpOptions {
    /// The parameters of its element.
    #[must_use]
    pub const fn params(self) -> option_filter::Params {
        self.0
    }
}

impl fmt::Display for IpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.0.action {
            Action::Drop => "drop",
            Action::Remove => "remove",
        };
        write!(f, "{action}:{}", self.0.share)
    }
}

impl FromStr for IpOptions {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found `{text}`, expected `drop` or `remove`, or with a share `drop:30%`");
        let (action, share) = text.split_once(':').unwrap_or((text, "100%"));
        let action = match action.trim() {
            "drop" => Action::Drop,
            "remove" => Action::Remove,
            _ => return Err(expected()),
        };
        let share = share.parse().map_err(|_| expected())?;
        Ok(Self(option_filter::Params { action, share }))
    }
}

/// Another link of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopLink {
    /// Rate of the link.
    pub rate: Rate,
    /// Propagation delay of the link, each way.
    pub delay: Span,
    /// Buffer of the link.
    pub buffer: Buffer,
}

impl FromStr for HopLink {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found `{text}`, expected rate/delay/buffer, such as `10mbit/5ms/50kB`");
        let (rest, buffer) = text.rsplit_once('/').ok_or_else(expected)?;
        let (rate, delay) = rest.rsplit_once('/').ok_or_else(expected)?;
        Ok(Self {
            rate: rate.parse().map_err(|_| expected())?,
            delay: delay.parse().map_err(|_| expected())?,
            buffer: buffer.parse().map_err(|_| expected())?,
        })
    }
}

/// A scheme of the catalogue, with parameters or without.
#[derive(Clone, Copy)]
pub struct SchemeName(pub &'static Entry);

impl fmt::Debug for SchemeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.name)
    }
}

impl FromStr for SchemeName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        schemes::find(text).map(Self).map_err(|error| error.to_string())
    }
}

/// Several schemes, `iw10,halfback(additional=25%)`: commas within parentheses do not separate.
#[derive(Clone, Debug, Default)]
pub struct SchemeNames(pub Vec<SchemeName>);

impl FromStr for SchemeNames {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        split_list(text).map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// Flow sizes, as given by an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeName {
    /// All flows have this size.
    Fixed(Bytes),
    /// A published distribution.
    Named(String),
    /// A distribution from a file of the user's.
    File(SizeFile),
}

impl FromStr for SizeName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names = headstart_sim::sizes::Sizes::NAMES;
        if let Some(name) = names.into_iter().find(|name| is_same_name(name, text)) {
            return Ok(Self::Named(name.to_owned()));
        }
        if text.to_ascii_lowercase().ends_with(".csv") {
            return text.parse().map(Self::File);
        }
        match text.parse::<Bytes>() {
            Ok(bytes) if !bytes.is_zero() => Ok(Self::Fixed(bytes)),
            Err(error) if error.is_part() => Err(error.to_string()),
            _ => Err(format!(
                "found `{text}`, expected a size above zero with its unit (B, kB, MB, GB, KiB, MiB or GiB), such as `100 kB`, or {} or a file.csv",
                names.join(", ")
            )),
        }
    }
}

/// Method by which pages are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchName(pub Fetch);

impl FromStr for FetchName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let count = |number: &str| number.parse().ok().filter(|count| (1..=100).contains(count));
        let fetch = match text.split_once(':') {
            Some(("persistent", number)) => count(number).map(Fetch::Persistent),
            Some(("parallel", number)) => count(number).map(Fetch::Parallel),
            None if text == "multiplexed" => Some(Fetch::Multiplexed),
            _ => None,
        };
        fetch.map(Self).ok_or_else(|| {
            format!("found `{text}`, expected `persistent:6`, `parallel:6` (connections for each origin) or `multiplexed`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_read_in_every_unit() {
        let rate = Rate::from_mbit_per_sec(15);
        let rtt = Span::from_millis(60);
        for (text, expected) in [
            ("115 kB", Limit::bytes(Bytes::new(115_000))),
            ("104p", Limit::packets(Packets::new(104))),
            ("104 packets", Limit::packets(Packets::new(104))),
            ("60 ms", Limit::bytes(Bytes::new(112_500))),
            ("1 BDP", Limit::bytes(Bytes::new(112_500))),
            ("0.5bdp", Limit::bytes(Bytes::new(56_250))),
        ] {
            assert_eq!(text.parse::<Buffer>().expect(text).limit(rate, rtt), expected, "{text}");
        }
        for text in ["", "115", "BDP", "-1 BDP", "12 parsecs"] {
            let error = text.parse::<Buffer>().expect_err(text);
            assert!(error.contains("expected"), "{error}");
        }
    }

    #[test]
    fn misspelt_values_are_refused_with_the_expected_ones() {
        for error in [
            "tahoe".parse::<SchemeName>().map(|_| ()).expect_err("no such scheme"),
            "10mbit".parse::<HopLink>().map(|_| ()).expect_err("no delay"),
            "1%".parse::<Burst>().map(|_| ()).expect_err("no length"),
            "keep:1%".parse::<IpOptions>().map(|_| ()).expect_err("no action"),
            "1%,0".parse::<Burst>().map(|_| ()).expect_err("no burst"),
            "persistent:0".parse::<FetchName>().map(|_| ()).expect_err("no connection"),
            "0 B".parse::<SizeName>().map(|_| ()).expect_err("nothing"),
            "60ms,70ms".parse::<Rtts>().map(|_| ()).expect_err("no plus"),
        ] {
            assert!(error.contains("expected"), "{error}");
        }
    }
}
