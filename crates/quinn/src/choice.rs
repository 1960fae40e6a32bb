//! Schemes by name, as far as quinn can carry them.

use headstart_startup::catalogue::{self, Entry, Name, Needs};
use headstart_startup::{Scheme, parameters};

/// A scheme that quinn carries.
#[derive(Clone, Copy, Debug)]
pub struct Choice(pub(crate) headstart_adapter::Choice);

/// Reasons to refuse a scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The catalogue has no such scheme, or the scheme no such parameters.
    #[error(transparent)]
    Unknown(#[from] parameters::Error),
    /// The scheme exists, but quinn cannot carry it.
    #[error("`{name}` is not available over quinn: {reason}")]
    Unsupported {
        /// The scheme requested.
        name: String,
        /// The part that is missing.
        reason: &'static str,
    },
}

const NO_PACE: &str = "it sets the pace of the whole connection, also below 1.25 windows in a round trip, \
                       which is the least at which quinn sends (quinn::congestion::BbrConfig is quinn's own BBR)";

impl Choice {
    /// The scheme that `text` names, with its parameters, as [`catalogue::find`] parses it.
    ///
    /// # Errors
    /// [`ChoiceError`] if the catalogue does not have it or quinn cannot carry it.
    pub fn find(text: &str) -> Result<Self, ChoiceError> {
        Self::of(&catalogue::find(text)?)
    }

    /// A catalogue entry on quinn.
    ///
    /// # Errors
    /// [`ChoiceError::Unsupported`] if quinn cannot carry it.
    pub fn of(entry: &Entry) -> Result<Self, ChoiceError> {
        let carried = headstart_adapter::Choice::of(entry).and_then(|choice| match choice.scheme {
            Scheme::Bbr(_) | Scheme::BbrV3(_) => Err(NO_PACE),
            _ => Ok(Self(choice)),
        });
        carried.map_err(|reason| ChoiceError::Unsupported { name: entry.name.to_string(), reason })
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
    fn schemes_that_quinn_cannot_carry_are_refused_by_name_and_with_the_reason() {
        for (name, reason) in [
            ("halfback", "sends packets again"),
            ("proactive", "sends packets again"),
            ("halfback(additional=25%)", "sends packets again"),
            ("bbr", "pace of the whole connection"),
            ("bbr-v3", "pace of the whole connection"),
            ("quick-start", "IP header"),
            ("rcp", "header between"),
            ("pcp", "trains of packets"),
        ] {
            let refused = Choice::find(name).expect_err(name).to_string();
            assert!(refused.contains(&format!("`{name}`")) && refused.contains(reason), "{refused}");
        }
        assert!(Choice::find("halfback(additional=0%)").is_ok(), "without copies");
        let unknown = Choice::find("tahoe").expect_err("no such scheme").to_string();
        assert!(unknown.contains("tahoe") && unknown.contains("wise-start"), "{unknown}");
    }
}
