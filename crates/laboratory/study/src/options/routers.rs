//! Settings of Quick-Start routers, for all commands that have `--routers`.

use std::str::FromStr;

use clap::Args;
use headstart_net::RouterPlan;
use headstart_startup::quick_start::router::utilisation::Measure;
use headstart_startup::quick_start::router::{self, Algorithm, Denial, Granularity, extreme};
use headstart_startup::rcp;
use headstart_units::{Rate, Ratio, Span};

use super::RouterName;
use super::choices::{DENIALS, EXTRAS, RATES, one_of};

/// The routers before the links.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Routers")]
pub struct RouterOptions {
    /// Target, Extreme: share of the link up to which they grant; Share: share of the free capacity
    /// that it grants [default: 90 %, Share 50 %]
    #[arg(long, value_name = "SHARE")]
    pub router_share: Option<Ratio>,
    /// Measurement of the link's use: peak:N (of the last N intervals) or average:WEIGHT (of the
    /// newest interval)
    #[arg(long, default_value = "peak:5", value_name = "MEASURE")]
    pub router_measure: MeasureName,
    /// Length of the intervals of --router-measure
    #[arg(long, default_value = "150 ms", value_name = "TIME")]
    pub router_interval: Span,
    /// Time during which a grant counts as used capacity
    #[arg(long, default_value = "150 ms", value_name = "TIME")]
    pub router_memory: Span,
    /// Bins that the memory is kept in: a grant counts for one bin more at most; the authors' ns-2
    /// router has 1
    #[arg(long, default_value_t = 16, value_name = "COUNT", value_parser = crate::options::whole(1..=16_u8))]
    pub router_memory_bins: u8,
    /// Granularity of the rates that routers grant
    #[arg(long, default_value = "four-bits", value_name = "STEPS", value_parser = one_of(RATES))]
    pub router_rates: Granularity,
    /// Action of a router on a request that it denies
    #[arg(long, default_value = "zero", value_name = "WHAT", value_parser = one_of(DENIALS))]
    pub router_denial: Denial,
    /// Rate of requests per second above which a router ignores further ones [default: no limit]
    #[arg(long, value_name = "COUNT")]
    pub router_requests: Option<u32>,
    /// Extreme: further state: fair (no host gets all while others get nothing), scores (of hosts),
    /// both, none
    #[arg(long, default_value = "both", value_name = "WHAT", value_parser = one_of(EXTRAS))]
    pub router_extras: [bool; 2],
    /// Link rates that routers assume [default: the actual rates]
    #[arg(long, value_name = "RATE")]
    pub router_assumed_rate: Option<Rate>,
}

impl Default for RouterOptions {
    fn default() -> Self {
        super::defaults()
    }
}

impl RouterOptions {
    /// The router before a link of this rate, if it does more than forward.
    #[must_use]
    pub fn router(&self, routers: RouterName, rate: Rate) -> Option<RouterPlan> {
        let rate = self.router_assumed_rate.unwrap_or(rate);
        let threshold = self.router_share.unwrap_or(Ratio::percent(90));
        let algorithm = match routers {
            RouterName::None => return None,
            RouterName::Rcp => return Some(RouterPlan::Rcp(rcp::Params::new(rate))),
            RouterName::Share => {
                Algorithm::Share { alloc_rate: self.router_share.unwrap_or(Ratio::percent(50)) }
            }
            RouterName::Target | RouterName::NonCapable => Algorithm::Target { threshold },
            RouterName::Extreme => {
                let [fair, scores] = self.router_extras;
                let tracking = extreme::Params { fair, scores, ..extreme::Params::default() };
                Algorithm::Extreme { threshold, tracking }
            }
        };
        let interval = self.router_interval;
        let measure = match self.router_measure {
            MeasureName::Peak(intervals) => Measure::Peak { interval, intervals },
            MeasureName::Average(weight) => Measure::MovingAverage { interval, weight },
        };
        let params = router::Params {
            algorithm,
            measure,
            memory: self.router_memory,
            memory_bins: self.router_memory_bins,
            granularity: self.router_rates,
            denial: self.router_denial,
            requests_per_second: self.router_requests,
            bandwidth: rate,
        };
        Some(RouterPlan::QuickStart(params))
    }

    /// The settings in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let share = self.router_share.map_or_else(
            || "up to 90 % of the link (Target, Extreme) or half of what is free (Share)".to_owned(),
            |share| format!("up to {share} of the link (Target, Extreme) or of what is free (Share)"),
        );
        let measure = match self.router_measure {
            MeasureName::Peak(intervals) => format!("peak of {intervals} times {}", self.router_interval),
            MeasureName::Average(weight) => {
                format!("average over intervals of {}, the newest weighing {weight}", self.router_interval)
            }
        };
        let rates = match self.router_rates {
            Granularity::Encoded => "four-bit rates",
            Granularity::Exact => "rates in any step",
        };
        let limit = self
            .router_requests
            .map_or(String::new(), |limit| format!(", at most {limit} requests a second"));
        format!("{rates}, {measure}, a memory of {}, {share}{limit}", self.router_memory)
    }
}

/// Measurement of the link's use.
#[derive(Clone, Copy, Debug)]
pub enum MeasureName {
    /// The peak of so many intervals.
    Peak(u16),
    /// The moving average in which the newest interval has this weight.
    Average(Ratio),
}

impl FromStr for MeasureName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let measure = match text.split_once(':') {
            Some(("peak", count)) => {
                count.parse().ok().filter(|count| (1..=1000).contains(count)).map(Self::Peak)
            }
            Some(("average", weight)) => {
                let is_weight = |weight: &Ratio| (1..=1_000_000).contains(&weight.of(1_000_000));
                weight.parse().ok().filter(is_weight).map(Self::Average)
            }
            _ => None,
        };
        measure.ok_or_else(|| {
            format!("found `{text}`, expected `peak:5` (intervals, at most 1000) or `average:10%` (weight)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_parsed_and_invalid_ones_refused() {
        assert!(matches!("peak:20".parse(), Ok(MeasureName::Peak(20))));
        assert!(matches!("average:5%".parse(), Ok(MeasureName::Average(_))));
        for text in ["", "peak", "peak:0", "peak:1001", "average:0%", "average:101%", "average:5", "mean:5"] {
            let error = text.parse::<MeasureName>().expect_err(text);
            assert!(error.contains(&format!("found `{text}`")) && error.contains("expected"), "{error}");
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_routers() {
        let rate = Rate::from_mbit_per_sec(10);
        let router = RouterOptions::default().router(RouterName::Target, rate);
        assert_eq!(router, Some(RouterPlan::QuickStart(router::Params::new(rate))));
        assert!(RouterOptions::default().describe().contains("peak of 5 times 150 ms"));
    }
}
