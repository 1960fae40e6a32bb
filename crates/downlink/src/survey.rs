//! Queries every source and selects one.

use core::fmt;
use std::time::Duration;

use headstart_startup::hint::Steps;
use headstart_startup::prior::Hint;
use headstart_units::Time;

use crate::choose::{Choice, NoChoice, choose};
use crate::estimate::{Answer, Estimate, Meaning, Source, Unavailable, plausible};
use crate::gateway;
use crate::machine::Machine;
use crate::network::{Kind, Network};
use crate::past::{self, Past};
use crate::wifi::{self, Nl80211, Radio};
use headstart_host::Deadline;

/// Sources and settings of a query.
pub struct Survey {
    /// The system's state.
    pub machine: Machine,
    /// Its radios.
    pub radio: Box<dyn Radio>,
    /// The user's value.
    pub explicit: Option<Hint>,
    /// The observations of networks.
    pub past: Option<Past>,
    /// Destinations of the gateway search; `None`: the default gateway and multicast; empty: none.
    pub search: Option<gateway::Options>,
    /// Searches a gateway.
    pub query_gateway: bool,
    /// Time limit for all answers together.
    pub timeout: Duration,
}

impl Default for Survey {
    /// The running system, its gateway, two seconds.
    fn default() -> Self {
        Self {
            machine: Machine::default(),
            radio: Box::new(Nl80211),
            explicit: None,
            past: None,
            search: None,
            query_gateway: true,
            timeout: Duration::from_secs(2),
        }
    }
}

impl fmt::Debug for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Survey")
            .field("explicit", &self.explicit)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
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
        let deadline = Deadline::after(self.timeout);
        let left = || deadline.left().unwrap_or_default();
        let mut network = Network::find(&self.machine);
        let connection = wifi::connection(&self.machine, &*self.radio, network.as_ref(), left());
        if let (Some(network), Ok(connection)) = (&mut network, &connection) {
            network.ssid.clone_from(&connection.ssid);
        }
        let network_ref = network.as_ref();
        let of = |source, outcome| Answer { source, outcome };
        let answers = vec![
            of(Source::Explicit, explicit_estimate(self.explicit)),
            of(Source::Past, past::estimate(self.past.as_ref(), network_ref, now)),
            of(Source::Gateway, self.gateway(network_ref, left())),
            of(Source::Wifi, connection.and_then(|connection| wifi::estimate(&connection))),
            of(Source::Ethernet, crate::ethernet::estimate(&self.machine, network_ref)),
        ];
        let choice = choose(&answers);
        Report { network, answers, choice }
    }

    fn gateway(&self, network: Option<&Network>, timeout: Duration) -> Result<Estimate, Unavailable> {
        if !self.query_gateway {
            return Err(Unavailable::Absent("it was not queried".into()));
        }
        let options = match &self.search {
            Some(options) => gateway::Options { timeout, ..options.clone() },
            None => match network {
                None => return Err(Unavailable::Absent("there is no default route".into())),
                // The gateway behind a tunnel, if any, is another network's.
                Some(network) if network.kind == Kind::Virtual && network.gateway.is_none() => {
                    return Err(Unavailable::Absent(format!("{} has no gateway", network.interface)));
                }
                Some(network) => gateway::Options::new(network.gateway, timeout),
            },
        };
        gateway::query(&options).map(|link| gateway::estimate_of(&link)).map_err(|error| {
            let reason = error.to_string();
            if error.is_absence() {
                Unavailable::Absent(reason)
            } else if error.is_failure() {
                Unavailable::Failed(reason)
            } else {
                Unavailable::Refused(reason)
            }
        })
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
