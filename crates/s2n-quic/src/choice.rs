//! Schemes by name, as far as s2n-quic can carry them.

use headstart_startup::catalogue::{self, Entry, Name, Needs};
use headstart_startup::{Scheme, parameters};

/// A scheme that s2n-quic carries.
#[derive(Clone, Copy, Debug)]
pub struct Choice(pub(crate) headstart_adapter::Choice);

/// Reasons to refuse a scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The catalogue has no such scheme, or the scheme no such parameters.
    #[error(transparent)]
    Unknown(#[from] parameters::Error),
    /// The scheme exists, but s2n-quic cannot carry it.
    #[error("`{name}` is not available over s2n-quic: {reason}")]
    Unsupported {
        /// The scheme requested.
        name: String,
        /// The part that is missing.
        reason: &'static str,
    },
}

impl Choice {
    /// The scheme that `text` names, with its parameters, as [`catalogue::find`] parses it.
    ///
    /// # Errors
    /// [`ChoiceError`] if the catalogue does not have it or s2n-quic cannot carry it.
    pub fn find(text: &str) -> Result<Self, ChoiceError> {
        Self::of(&catalogue::find(text)?)
    }

    /// A catalogue entry on s2n-quic.
    ///
    /// # Errors
    /// [`ChoiceError::Unsupported`] if s2n-quic cannot carry it.
    pub fn of(entry: &Entry) -> Result<Self, ChoiceError> {
        let refused = |reason| ChoiceError::Unsupported { name: entry.name.to_string(), reason };
        headstart_adapter::Choice::of(entry).map(Self).map_err(refused)
    }

    /// Its name in the catalogue.
    #[must_use]
    pub const fn name(&self) -> Name {
        self.0.name
    }

    /// The input that the scheme cannot do without: a record, a hint or the flow's size.
    #[must_use]
    pub const fn needs(&self) -> Needs {
        self.0.needs
    }

    /// The scheme.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.0.scheme
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_s2n_quic_cannot_carry_are_refused_by_name_and_with_the_reason() {
        for (name, reason) in [
            ("halfback", "sends packets again"),
            ("proactive", "sends packets again"),
            ("quick-start", "IP header"),
            ("rcp", "header between"),
            ("pcp", "trains of packets"),
            ("prague", "ECT(0)"),
        ] {
            let refused = Choice::find(name).expect_err(name).to_string();
            assert!(refused.contains(&format!("`{name}`")) && refused.contains(reason), "{refused}");
        }
        for carried in ["halfback(additional=0%)", "bbr-v3", "wise-start", "careful-resume"] {
            assert!(Choice::find(carried).is_ok(), "{carried}");
        }
    }
}
