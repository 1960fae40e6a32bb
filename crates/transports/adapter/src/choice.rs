//! Schemes by name, as far as a stack can carry them.

use std::marker::PhantomData;

use headstart_startup::catalogue::{self, Entry, Name, Needs, Server};
use headstart_startup::{Scheme, parameters};

/// A scheme that the stack carries.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Name of the scheme in the catalogue.
    pub name: Name,
    /// The input that the scheme cannot do without: a record, a hint or the flow's size.
    pub needs: Needs,
    /// The scheme's code.
    pub scheme: Scheme,
}

/// Reasons to refuse a scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The catalogue has no such scheme, or the scheme no such parameters.
    #[error(transparent)]
    Unknown(#[from] parameters::Error),
    /// The scheme exists, but the stack cannot carry it.
    #[error("`{name}` is not available over {stack}: {reason}")]
    Unsupported {
        /// The scheme requested.
        name: String,
        /// The stack's name.
        stack: &'static str,
        /// The part that is missing.
        reason: &'static str,
    },
}

/// A stack with a congestion controller and nothing else.
pub trait Stack {
    /// Name of the stack in messages.
    const NAME: &'static str;

    /// The reason why it cannot carry a scheme that others carry.
    fn refusal(_: &Scheme) -> Option<&'static str> {
        None
    }
}

/// A scheme that the stack `S` carries.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceOn<S> {
    choice: Choice,
    stack: PhantomData<S>,
}

impl<S: Stack> ChoiceOn<S> {
    /// The scheme that `text` names, with its parameters, as [`catalogue::find`] parses it.
    ///
    /// # Errors
    /// [`ChoiceError`] if the catalogue does not have it or the stack cannot carry it.
    pub fn find(text: &str) -> Result<Self, ChoiceError> {
        Self::of(&catalogue::find(text)?)
    }

    /// A catalogue entry on the stack.
    ///
    /// # Errors
    /// [`ChoiceError::Unsupported`] if the stack cannot carry it.
    pub fn of(entry: &Entry) -> Result<Self, ChoiceError> {
        let scheme = entry.scheme();
        if let Some(reason) = entry.refusal(Server::Quinn).or_else(|| S::refusal(&scheme)) {
            let name = entry.name.to_string();
            return Err(ChoiceError::Unsupported { name, stack: S::NAME, reason });
        }
        Ok(Self { choice: Choice { name: entry.name, needs: entry.needs, scheme }, stack: PhantomData })
    }
}

impl<S> ChoiceOn<S> {
    /// The scheme, with its name.
    #[must_use]
    pub const fn choice(&self) -> Choice {
        self.choice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_no_congestion_controller_can_carry_are_refused_by_name_and_with_the_reason() {
        #[derive(Debug)]
        struct Plain;
        impl Stack for Plain {
            const NAME: &'static str = "plain";
        }
        for (name, reason) in [
            ("halfback", "sends packets again"),
            ("proactive", "sends packets again"),
            ("halfback(additional=25%)", "sends packets again"),
            ("quick-start", "IP header"),
            ("rcp", "header between"),
            ("pcp", "trains of packets"),
            ("prague", "ECT(0)"),
        ] {
            let refused = ChoiceOn::<Plain>::find(name).expect_err(name).to_string();
            let begins = format!("`{name}` is not available over plain: ");
            assert!(refused.starts_with(&begins) && refused.contains(reason), "{refused}");
        }
        for carried in ["halfback(additional=0%)", "bbr-v3", "wise-start", "careful-resume"] {
            assert!(ChoiceOn::<Plain>::find(carried).is_ok(), "{carried}");
        }
        let unknown = ChoiceOn::<Plain>::find("tahoe").expect_err("no such scheme").to_string();
        assert!(unknown.contains("tahoe") && unknown.contains("wise-start"), "{unknown}");
    }
}
