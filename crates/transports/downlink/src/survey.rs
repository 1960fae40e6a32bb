//! Queries every source and selects one.

use headstart_startup::hint::Steps;
use headstart_startup::prior::Hint;
use headstart_units::Time;

use crate::choose::{Choice, NoChoice, choose};
use crate::estimate::{Answer, Estimate, Meaning, Source, Unavailable, plausible};
use crate::machine::Machine;
use crate::network::Network;
use crate::past::{self, Past};

/// Sources and settings of a query; by default the running system.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The system's state.
    pub machine: Machine,
    /// The user's value.
    pub explicit: Option<Hint>,
    /// The observations of networks.
    pub past: Option<Past>,
}

/// Answers of all sources, and the one selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The network, if there is a default route.
    pub network: Option<Network>,
    /// One answer per source, in order of priority.
    pub answers: Vec<Answer>,
    /// The hint before quantisation.
    pub choice: Result<Choice, NoChoice>,
}

impl Report {
    /// The hint as sent, quantised with `steps`.
    #[must_use]
    pub fn hint(&self, steps: Steps) -> Option<Hint> {
        self.choice.as_ref().ok()?.hint.quantised(steps)
    }
}

impl Survey {
    /// Queries all sources. `now` is the wall clock ([`headstart_host::unix_now`]).
    #[must_use]
    pub fn query(&self, now: Time) -> Report {
        let network = Network::find(&self.machine);
        let network_ref = network.as_ref();
        let of = |source, outcome| Answer { source, outcome };
        let answers = vec![
            of(Source::Explicit, explicit_estimate(self.explicit)),
            of(Source::Past, past::estimate(self.past.as_ref(), network_ref, now)),
            of(Source::Ethernet, crate::ethernet::estimate(&self.machine, network_ref)),
        ];
        let choice = choose(&answers);
        Report { network, answers, choice }
    }
}

fn explicit_estimate(explicit: Option<Hint>) -> Result<Estimate, Unavailable> {
    let hint = explicit.ok_or_else(|| Unavailable::Absent("no value was given".into()))?;
    let reported = plausible(hint.bandwidth).map_err(Unavailable::Refused)?;
    Ok(Estimate {
        reported,
        expected: reported,
        access: hint.access,
        age: None,
        meaning: Meaning::Explicit,
        detail: "as given".into(),
    })
}
