//! Schemes by name, as a server or client on this transport can ask for them.
//!
//! The names are those of [`headstart_startup::catalogue`], with the spellings of the papers beside them. A scheme that
//! this transport cannot carry is refused by name: nothing else is ever run under it.

use headstart_startup::Scheme;
use headstart_startup::catalogue::{self, Needs};
use headstart_startup::scheme::blitzstart::{self, Blitzstart, Factors};

/// A scheme, or the stack's own controller.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    name: &'static str,
    summary: &'static str,
    needs: Needs,
    controller: Controller,
}

#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each endpoint")]
enum Controller {
    Ours(Scheme),
    Stack(Stack),
}

/// The stack's own controllers, without any part of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// BBR version 3.
    Bbr,
    /// CUBIC from ten packets: the stack's default.
    Cubic,
}

/// Why a scheme cannot be had here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No scheme has that name.
    #[error("unknown scheme `{name}`: expected one of {expected}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        expected: String,
    },
    /// It exists, but not on this transport.
    #[error("`{name}` is not carried by QUIC yet: {why}")]
    NotCarried {
        /// What was asked for.
        name: &'static str,
        /// What is missing.
        why: &'static str,
    },
}

/// What stands in the way of the three that are not carried.
const NOT_CARRIED: [(&str, &str); 3] = [
    ("quick-start", "its requests are options of the IP header, which a UDP socket does not let through"),
    (
        "rcp",
        "routers stamp their rate in a header between IP and transport, which a UDP socket does not let through",
    ),
    (
        "pcp",
        "it judges trains of packets by the delay of each; the stack's acknowledgements cover several at once",
    ),
];

/// Why this transport cannot carry a scheme or, which is the same, a variant of it.
fn why_not(entry: &catalogue::Entry) -> Option<&'static str> {
    let is_of = |name: &str| {
        entry.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    NOT_CARRIED.into_iter().find(|(name, _)| is_of(name)).map(|(_, why)| why)
}

/// Names that papers and people use.
const ALIASES: [(&str, &str); 6] = [
    ("slow-start", "iw10"),
    ("initial-start", "iw10"),
    ("wisestart", "wise-start"),
    ("jumpstart", "jump-start"),
    ("stateful-tcp", "s-cubic"),
    ("blitz-start", "blitzstart"),
];

impl Choice {
    /// The scheme of that name.
    ///
    /// # Errors
    /// There is none, or this transport does not carry it.
    pub fn find(name: &str) -> Result<Self, Refused> {
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, known)| known);
        if name == "stack-cubic" {
            return Ok(Self::stack(Stack::Cubic));
        }
        let entry = catalogue::find(name).ok_or_else(|| Refused::Unknown {
            name: name.into(),
            expected: Self::all().map(|it| it.name).collect::<Vec<_>>().join(", "),
        })?;
        match why_not(entry) {
            Some(why) => Err(Refused::NotCarried { name: entry.name, why }),
            None => Ok(Self::of(entry)),
        }
    }

    /// A scheme with parameters of your own. `needs` says without what it falls back to slow start.
    #[must_use]
    pub const fn custom(name: &'static str, summary: &'static str, scheme: Scheme, needs: Needs) -> Self {
        Self { name, summary, needs, controller: Controller::Ours(scheme) }
    }

    /// The same with other factors for access technologies, where the scheme takes hints.
    #[must_use]
    pub fn with_factors(mut self, factors: Factors) -> Self {
        if let Controller::Ours(Scheme::Blitzstart(scheme)) = self.controller {
            let params = blitzstart::Params { factors, ..*scheme.params() };
            self.controller = Controller::Ours(Scheme::Blitzstart(Blitzstart::new(params)));
        }
        self
    }

    /// Everything that can be had, baselines first.
    pub fn all() -> impl Iterator<Item = Self> {
        let is_carried = |entry: &&catalogue::Entry| why_not(entry).is_none();
        let carried = catalogue::ALL.iter().chain(catalogue::VARIANTS).filter(is_carried).map(Self::of);
        carried.chain([Self::stack(Stack::Cubic)])
    }

    fn of(entry: &catalogue::Entry) -> Self {
        let Self { name, summary, .. } = Self::custom(entry.name, entry.summary, entry.scheme(), entry.needs);
        match entry.name {
            "bbr" => Self::stack(Stack::Bbr),
            "reactive" | "reactive-10" => Self {
                summary: "slow start; the probe for a lost tail is the stack's own probe timeout",
                ..Self::custom(name, summary, entry.scheme(), entry.needs)
            },
            _ => Self::custom(name, summary, entry.scheme(), entry.needs),
        }
    }

    /// Its name in the catalogue.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it is, in a few words.
    #[must_use]
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// What it must be told to be itself.
    #[must_use]
    pub const fn needs(&self) -> Needs {
        self.needs
    }

    /// Whether it sends copies of datagrams, for which it needs a [`Courier`](crate::Courier).
    #[must_use]
    pub fn needs_courier(&self) -> bool {
        // The repair of a scheme may depend on what it was told at establishment; these two ever have one.
        let Some(scheme) = self.scheme() else { return false };
        matches!(scheme, Scheme::Halfback(_) | Scheme::Proactive(_)) && scheme.repair().is_active()
    }

    /// The scheme itself; `None` for the stack's own controller.
    #[must_use]
    pub const fn scheme(&self) -> Option<Scheme> {
        match self.controller {
            Controller::Ours(scheme) => Some(scheme),
            Controller::Stack(_) => None,
        }
    }

    /// The stack's own controller, if it is that.
    #[must_use]
    pub const fn stack_controller(&self) -> Option<Stack> {
        match self.controller {
            Controller::Ours(_) => None,
            Controller::Stack(stack) => Some(stack),
        }
    }

    /// One of the stack's own controllers.
    #[must_use]
    pub const fn stack(which: Stack) -> Self {
        let (name, summary) = match which {
            Stack::Bbr => ("bbr", "the stack's own BBR version 3"),
            Stack::Cubic => ("stack-cubic", "the stack's own CUBIC from 10 packets, its default"),
        };
        Self { name, summary, needs: Needs::Nothing, controller: Controller::Stack(which) }
    }
}

/// Slow start from ten packets (RFC 9002 §7.2): what everybody does who knows nothing.
#[must_use]
pub fn slow_start() -> Choice {
    let scheme = Scheme::SlowStart(headstart_startup::scheme::SlowStart::new(Default::default()));
    Choice::custom("iw10", "slow start from 10 packets", scheme, Needs::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_carried_is_refused_by_name_and_with_a_reason() {
        for name in ["quick-start", "rcp", "pcp", "quick-start-3", "quick-start-20MB-halving"] {
            let refused = Choice::find(name).expect_err("refused");
            assert!(matches!(refused, Refused::NotCarried { .. }));
            assert!(refused.to_string().contains(name), "{refused}");
        }
        let unknown = Choice::find("tahoe").expect_err("no such scheme").to_string();
        assert!(unknown.contains("tahoe") && unknown.contains("wise-start"), "{unknown}");
        assert!(
            !unknown.contains("rcp") && !unknown.contains("quick-start"),
            "what is refused is not offered"
        );
        assert!(Choice::all().all(|choice| choice.needs() != Needs::Routers), "routers are not asked here");
    }

    #[test]
    fn everything_offered_is_found() {
        for choice in Choice::all() {
            assert_eq!(Choice::find(choice.name()).map(|found| found.name), Ok(choice.name));
        }
        for (alias, name) in ALIASES {
            assert_eq!(Choice::find(alias).map(|found| found.name), Ok(name), "{alias}");
        }
    }

    #[test]
    fn the_stacks_own_parts_are_named_as_such() {
        assert!(Choice::find("bbr").is_ok_and(|it| it.scheme().is_none() && it.summary().contains("stack")));
        assert!(Choice::find("reactive").is_ok_and(|it| it.summary().contains("stack")));
    }

    #[test]
    fn only_schemes_that_send_copies_need_a_courier() {
        let needy: Vec<_> = Choice::all().filter(Choice::needs_courier).map(|it| it.name).collect();
        #[rustfmt::skip]
        assert_eq!(needy, [
            "proactive", "halfback", "halfback-forward", "halfback-burst",
            "proactive-10", "halfback-25", "halfback-100", "halfback-forward-100", "halfback-10",
        ]);
    }
}
