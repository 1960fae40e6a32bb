//! Schemes by name, as far as quinn can carry them.

use headstart_startup::Scheme;

/// quinn, which sends at 1.25 windows in a round trip at least.
#[derive(Clone, Copy, Debug)]
pub struct Quinn;

/// A scheme that quinn carries.
pub type Choice = headstart_adapter::ChoiceOn<Quinn>;

const NO_PACE: &str = "it sets the pace of the whole connection, also below 1.25 windows in a round trip, \
                       which is the least at which quinn sends (quinn::congestion::BbrConfig is quinn's own BBR)";

impl headstart_adapter::Stack for Quinn {
    const NAME: &'static str = "quinn";

    fn refusal(scheme: &Scheme) -> Option<&'static str> {
        matches!(scheme, Scheme::Bbr(_) | Scheme::BbrV3(_)).then_some(NO_PACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_quinn_cannot_carry_are_refused_by_name_and_with_the_reason() {
        for name in ["bbr", "bbr-v3"] {
            let refused = Choice::find(name).expect_err(name).to_string();
            let expected = format!("`{name}` is not available over quinn: it sets the pace of the whole");
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }
}
