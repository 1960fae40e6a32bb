//! The schemes that the kernel can carry, their parameters, and the reasons against the others.

use core::fmt;
use core::str::FromStr;

use headstart_startup::catalogue::{self, Server};
use headstart_units::{Bytes, Rate, Span};

use crate::Error;
use crate::layout::{Params, Settings};

/// A start-up scheme over the kernel's TCP. Names are as in [`headstart_startup::catalogue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Slow start from so many segments.
    SlowStart(u32),
    /// As much as receive window and cap allow, over one round trip.
    JumpStart,
    /// The recorded bandwidth-delay product, avoidance at the first ack.
    SCubic,
    /// The recorded window and threshold.
    TcpCache,
    /// The recorded bandwidth-delay product, then the rate measured over the first six acks.
    WiseStart,
    /// WiseStart without its adaptation to a limiting application.
    WiseStartWa,
    /// Half of the recorded bandwidth-delay product, once the path is confirmed.
    CarefulResume,
    /// The window that the client's hint suggests.
    Blitzstart,
    /// As much as a credit allows that each loss lowers, paced over one round trip.
    Headstart,
}

/// Schemes with a name of their own, in the order of tables.
pub const ALL: [Scheme; 9] = [
    Scheme::SlowStart(10),
    Scheme::JumpStart,
    Scheme::TcpCache,
    Scheme::SCubic,
    Scheme::WiseStart,
    Scheme::WiseStartWa,
    Scheme::CarefulResume,
    Scheme::Blitzstart,
    Scheme::Headstart,
];

/// The most segments that an initial window may have here.
const MAX_SEGMENTS: u32 = 1000;
/// Limit of a first flight of unknown size: about the BDP of 25 Mbit/s and 50 ms.
const JUMP_START_LIMIT: Bytes = Bytes::new(150_000);
/// RFC 6928.
const INITIAL_WINDOW: u32 = 10;

impl Scheme {
    /// The scheme's number in `enum hs_scheme`.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::SlowStart(_) => 0,
            Self::JumpStart => 1,
            Self::SCubic => 2,
            Self::TcpCache => 3,
            Self::WiseStart | Self::WiseStartWa => 4,
            Self::CarefulResume => 5,
            Self::Blitzstart => 6,
            Self::Headstart => 7,
        }
    }

    /// The scheme that these parameters are of.
    #[must_use]
    pub const fn of(params: &Params) -> Self {
        match (params.scheme, params.adaptation) {
            (1, _) => Self::JumpStart,
            (2, _) => Self::SCubic,
            (3, _) => Self::TcpCache,
            (4, true) => Self::WiseStart,
            (4, false) => Self::WiseStartWa,
            (5, _) => Self::CarefulResume,
            (6, _) => Self::Blitzstart,
            (7, _) => Self::Headstart,
            _ => Self::SlowStart(params.initial_window),
        }
    }

    /// Parameters of the scheme, each with the default of the Rust scheme but for the initial
    /// window: without record or hint a connection starts as the kernel's does.
    #[must_use]
    pub fn params(self) -> Params {
        let initial_window = match self {
            Self::SlowStart(segments) => segments,
            // BS section 4: Google QUIC's.
            Self::Blitzstart => 32,
            // HS: of a first contact while there is no outcome of another.
            Self::Headstart => 50,
            _ => INITIAL_WINDOW,
        };
        Params {
            scheme: self.code(),
            initial_window,
            gamma: 6,
            kappa: 20,
            adaptation: self != Self::WiseStartWa,
            burst: u32::from(self == Self::Blitzstart),
            cap: if self == Self::JumpStart { JUMP_START_LIMIT.get() } else { u64::MAX },
            lifetime: LIFETIME.as_nanos(),
        }
    }

    /// Default settings: the gates of the QUIC server, all connections eligible, sharing.
    #[must_use]
    pub fn settings(self) -> Settings {
        Settings {
            params: self.params(),
            max_rate: Rate::from_mbit_per_sec(1_000).as_bytes_per_sec(),
            max_window: 4 << 20,
            lifetime: LIFETIME.as_nanos(),
            hint_rate: Rate::from_mbit_per_sec(1_000).as_bytes_per_sec(),
            hundredths: 10_000,
            stopped: false,
            same_path: true,
            shares: true,
            traces: false,
            reads_hint: self == Self::Blitzstart,
            restarts_after_idle: true,
            outgoing: false,
            window: 32,
            window_rate: 0,
            is_default: false,
            is_exchanged: false,
            unused: 0,
            cgroup: 0,
            native: String::new(),
        }
    }
}

/// Ten minutes, as the QUIC server's gates and Careful Resume have it here.
const LIFETIME: Span = Span::from_secs(600);

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SlowStart(segments) => write!(f, "iw{segments}"),
            Self::JumpStart => f.pad("jump-start"),
            Self::SCubic => f.pad("s-cubic"),
            Self::TcpCache => f.pad("tcp-cache"),
            Self::WiseStart => f.pad("wise-start"),
            Self::WiseStartWa => f.pad("wise-start-wa"),
            Self::CarefulResume => f.pad("careful-resume"),
            Self::Blitzstart => f.pad("blitzstart"),
            Self::Headstart => f.pad("headstart"),
        }
    }
}

impl FromStr for Scheme {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(scheme) = ALL.into_iter().find(|scheme| scheme.to_string() == text) {
            return Ok(scheme);
        }
        if let Some(segments) = text.strip_prefix("iw").and_then(|it| it.parse().ok()) {
            if (1..=MAX_SEGMENTS).contains(&segments) {
                return Ok(Self::SlowStart(segments));
            }
            return Err(Error::new(format!(
                "scheme `{text}`: found an initial window of {segments} segments, expected 1 to {MAX_SEGMENTS}"
            )));
        }
        let names = ALL.map(|scheme| scheme.to_string()).join(", ");
        let expected = format!("expected one of {names}, or iwN for slow start from N segments");
        let Ok(entry) = catalogue::find(text) else {
            return Err(Error::new(format!("found no scheme `{text}`, {expected}")));
        };
        let Some(reason) = entry.refusal(Server::Tcp) else {
            // Another spelling of the name.
            let window = entry.name.strip_prefix("slow-start(initial-window=");
            let name = match window.and_then(|rest| rest.strip_suffix(')')) {
                Some(segments) => format!("iw{segments}"),
                None => entry.name.to_string(),
            };
            return name.parse();
        };
        Err(Error::new(format!("scheme `{text}` cannot run over the kernel's TCP ({reason}): {expected}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::SCHEMES;

    #[test]
    fn every_scheme_is_found_by_name_and_recognised_from_its_parameters() {
        for scheme in ALL.into_iter().chain([Scheme::SlowStart(2), Scheme::SlowStart(64)]) {
            assert_eq!(scheme.to_string().parse(), Ok(scheme));
            assert_eq!(Scheme::of(&scheme.params()), scheme);
            let name = SCHEMES[scheme.code() as usize];
            assert!(scheme.to_string().starts_with(name) || matches!(scheme, Scheme::SlowStart(_)), "{name}");
        }
    }

    #[test]
    fn the_kernel_has_the_schemes_of_which_the_catalogue_says_so() {
        for entry in catalogue::all() {
            let found = entry.name.parse::<Scheme>().map(|scheme| scheme.to_string());
            assert_eq!(found.is_ok(), entry.refusal(Server::Tcp).is_none(), "{}", entry.name);
            assert!(found.is_err() || found.as_deref() == Ok(entry.name.as_str()), "{}", entry.name);
        }
        for scheme in ALL {
            assert!(catalogue::find(&scheme.to_string()).is_ok(), "{scheme}");
        }
        assert_eq!("Wise Start".parse(), Ok(Scheme::WiseStart), "another spelling");
        assert_eq!("slow-start(initial-window=20)".parse(), Ok(Scheme::SlowStart(20)));
    }

    #[test]
    fn schemes_that_the_kernel_cannot_run_are_refused_with_the_reason() {
        for (name, reason) in [
            ("halfback", "cannot send a segment again"),
            ("proactive", "cannot send a segment again"),
            ("quick-start", "an IP option of its SYN-ACK"),
            ("rcp", "come from routers"),
            ("bbr", "stays in charge"),
            ("suss", "has not been ported"),
            ("iw10-search", "a HyStart of its own"),
            ("iw0", "expected 1 to 1000"),
            ("prague", "has not been ported"),
            ("rc3", "cannot send a segment again"),
            ("halfback(additional=25%)", "cannot send a segment again"),
            ("headstart(queue-weight=24)", "its parameters at their defaults"),
            ("wise", "found no scheme `wise`, expected one of iw10, jump-start"),
        ] {
            let error = name.parse::<Scheme>().expect_err(name).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
