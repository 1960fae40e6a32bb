//! Schemes by name.
//!
//! Names and parameters are as in [`headstart_startup::catalogue`]. A scheme that this
//! transport cannot carry is refused by name, never replaced by another.

use headstart_startup::catalogue::{self, Entry, Name, Native, Needs, Server};
use headstart_startup::{Scheme, Startup as _};

use crate::ChoiceError;

/// A scheme, or the stack's own controller.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    name: Name,
    summary: &'static str,
    needs: Needs,
    controller: Controller,
}

#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each endpoint")]
enum Controller {
    Scheme(Scheme),
    Stack(Stack),
}

/// The stack's own controllers, without any part of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// BBR version 3, as noq has it.
    Bbr,
    /// CUBIC with an initial window of ten packets: the stack's default.
    Cubic,
}

/// Name of the stack's own CUBIC, which the catalogue does not have.
const STACK_CUBIC: &str = "stack-cubic";

impl Choice {
    /// The scheme that `text` names, with its parameters, as [`catalogue::find`] parses it.
    ///
    /// # Errors
    /// [`ChoiceError`] if the catalogue does not have it or this transport cannot carry it.
    pub fn find(text: &str) -> Result<Self, ChoiceError> {
        if text.trim().eq_ignore_ascii_case(STACK_CUBIC) {
            return Ok(Self::stack(Stack::Cubic));
        }
        Self::of(&catalogue::find(text)?)
    }

    /// A catalogue entry on this transport; the stack's own controller where that is the same.
    ///
    /// # Errors
    /// [`ChoiceError::Unsupported`] if this transport cannot carry it.
    pub fn of(entry: &Entry) -> Result<Self, ChoiceError> {
        match entry.native {
            Some(Native::Bbr) => Ok(Self::stack(Stack::Bbr)),
            _ => Self::own(entry),
        }
    }

    /// A catalogue entry in this project's implementation, even where the stack has its own.
    ///
    /// # Errors
    /// [`ChoiceError::Unsupported`] if this transport cannot carry it.
    pub fn own(entry: &Entry) -> Result<Self, ChoiceError> {
        if let Some(reason) = entry.refusal(Server::Serve) {
            let name = entry.name.to_string();
            return Err(ChoiceError::Unsupported { name, stack: "QUIC", reason });
        }
        let scheme = entry.scheme();
        let summary = if scheme.requirements().tail_probe {
            "slow start; the probe for a lost tail is the stack's own probe timeout"
        } else {
            entry.summary
        };
        Ok(Self { name: entry.name, summary, needs: entry.needs, controller: Controller::Scheme(scheme) })
    }

    /// The scheme with default parameters.
    #[must_use]
    pub fn with_defaults(&self) -> Self {
        let plain = self.scheme().and_then(|scheme| Self::find(scheme.about().name).ok());
        plain.unwrap_or(*self)
    }

    /// Every choice with default parameters, baselines first.
    pub fn all() -> impl Iterator<Item = Self> {
        let carried = catalogue::all().into_iter().filter_map(|entry| Self::of(&entry).ok());
        carried.chain([Self::stack(Stack::Cubic)])
    }

    /// Name of the scheme in the catalogue.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the scheme as an owned name.
    #[must_use]
    pub const fn scheme_name(&self) -> Name {
        self.name
    }

    /// A description in a few words.
    #[must_use]
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// The input that the scheme cannot do without: a record, a hint or the flow's size.
    #[must_use]
    pub const fn needs(&self) -> Needs {
        self.needs
    }

    /// True if it sends copies of datagrams, for which it needs a
    /// [`DuplicateSender`](crate::DuplicateSender).
    #[must_use]
    pub fn needs_duplicate_sender(&self) -> bool {
        self.scheme().is_some_and(|scheme| scheme.repair().is_active())
    }

    /// The scheme; `None` for the stack's own controller.
    #[must_use]
    pub const fn scheme(&self) -> Option<Scheme> {
        match self.controller {
            Controller::Scheme(scheme) => Some(scheme),
            Controller::Stack(_) => None,
        }
    }

    /// The scheme for a [`Driver`](headstart_adapter::Driver). The stack's own controllers have
    /// none: slow start stands for them, and never runs.
    pub(crate) fn carried(&self) -> headstart_adapter::Choice {
        let plain = || Scheme::SlowStart(headstart_startup::scheme::SlowStart::new(Default::default()));
        let scheme = self.scheme().unwrap_or_else(plain);
        headstart_adapter::Choice { name: self.name, needs: self.needs, scheme }
    }

    /// The stack's own controller; `None` for a scheme.
    #[must_use]
    pub const fn stack_controller(&self) -> Option<Stack> {
        match self.controller {
            Controller::Scheme(_) => None,
            Controller::Stack(stack) => Some(stack),
        }
    }

    /// The choice of one of the stack's own controllers.
    #[must_use]
    pub fn stack(which: Stack) -> Self {
        let (name, summary) = match which {
            Stack::Bbr => ("bbr", "the stack's own BBR version 3"),
            Stack::Cubic => (STACK_CUBIC, "the stack's own CUBIC from 10 packets, its default"),
        };
        let name = Name::new(name).unwrap_or_default();
        Self { name, summary, needs: Needs::Nothing, controller: Controller::Stack(which) }
    }
}

/// Slow start from ten packets (RFC 9002 §7.2): the start without any prior information.
#[must_use]
pub fn slow_start() -> Choice {
    let name = Name::new("iw10").unwrap_or_default();
    let scheme = Scheme::SlowStart(headstart_startup::scheme::SlowStart::new(Default::default()));
    let controller = Controller::Scheme(scheme);
    Choice { name, summary: "slow start from 10 packets", needs: Needs::Nothing, controller }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_quic_cannot_run_are_refused_by_name_and_with_a_reason() {
        for name in ["quick-start", "rcp", "pcp", "quick-start(initial-window=3)", "pcp(train=7)"] {
            let refused = Choice::find(name).expect_err("refused");
            assert!(matches!(refused, ChoiceError::Unsupported { .. }));
            assert!(refused.to_string().contains(name), "{refused}");
        }
        let unknown = Choice::find("tahoe").expect_err("no such scheme").to_string();
        assert!(unknown.contains("tahoe") && unknown.contains("wise-start"), "{unknown}");
        assert!(Choice::all().all(|choice| choice.needs() != Needs::Routers), "routers are not asked here");
    }

    #[test]
    fn every_listed_scheme_is_found() {
        for choice in Choice::all() {
            assert_eq!(Choice::find(choice.name()).map(|found| found.name), Ok(choice.name));
        }
    }

    #[test]
    fn controllers_of_the_stack_are_named_as_such() {
        assert!(Choice::find("bbr").is_ok_and(|it| it.scheme().is_none() && it.summary().contains("stack")));
        assert!(
            Choice::find("bbr(as-ngtcp2=on)").is_ok_and(|it| it.scheme().is_some()),
            "not as the stack has it"
        );
        assert!(Choice::find("reactive").is_ok_and(|it| it.summary().contains("stack")));
    }

    #[test]
    fn only_schemes_that_send_copies_need_a_duplicate_sender() {
        let needy: Vec<_> = Choice::all().filter(Choice::needs_duplicate_sender).map(|it| it.name).collect();
        assert_eq!(needy, ["proactive", "halfback", "halfback-forward", "halfback-burst"]);
        for (text, expected) in [("halfback(additional=0%)", false), ("halfback(additional=25%)", true)] {
            assert_eq!(Choice::find(text).map(|it| it.needs_duplicate_sender()), Ok(expected), "{text}");
        }
    }
}
