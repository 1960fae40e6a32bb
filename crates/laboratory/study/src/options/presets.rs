//! Paths by name, with defaults for users who do not know their buffer.

use clap::ValueEnum;

/// A path by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PathPreset {
    /// 1.5 Mbit/s, up 384 kbit/s, 50 ms
    Dsl,
    /// 5 Mbit/s, up 1 Mbit/s, 28 ms
    Cable,
    /// 20 Mbit/s, up 5 Mbit/s, 4 ms
    #[value(alias = "fiber")]
    Fibre,
    /// 12 Mbit/s both ways, 70 ms
    Lte,
    /// 100 Mbit/s, up 50 Mbit/s, 8 ms: the radio alone
    #[value(name = "5g")]
    FiveG,
    /// 30 Mbit/s, up 15 Mbit/s, 2 ms: the last hop alone
    Wifi,
    /// 20 Mbit/s, up 2 Mbit/s, 600 ms
    #[value(alias = "satellite")]
    Geo,
    /// 1 Gbit/s, 0.25 ms, 100 packets
    #[value(alias = "datacenter")]
    Datacentre,
    /// 10 Mbit/s both ways, 4 ms+28 ms+54 ms+74 ms+98 ms+124 ms+150 ms+174 ms+200 ms: the TCP
    /// evaluation suite
    Suite,
}

/// A number of a path and its source.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The option that it sets.
    pub option: &'static str,
    /// The option's value.
    pub value: &'static str,
    /// Source of the number; one that begins with "assumption" is in none.
    pub source: &'static str,
}

const WEBPAGETEST: &str = "WebPageTest, connectivity.ini.sample";
const IMT_2020: &str = "ITU-R M.2410-0, 2017, user experienced data rate";
const DEVTOOLS: &str = "Chromium, NetworkConditionsSelector.js of 2015: the last hop alone";
const SATELLITE: &str =
    "Endres et al., QUIC over geostationary satellites, 2022: scenario SAT of its interop runner";
const DCTCP: &str = "Alizadeh et al., Data Center TCP, SIGCOMM 2010: 1 and 10 Gbit/s";
const SUITE: &str = "Andrew et al., Towards a Common TCP Evaluation Suite, PFLDnet 2008: nine pairs of hosts";
const SCHARF: &str = "Scharf, slides on fast startup congestion control, 2009";
const SAME_UP: &str = "assumption: as down";
const RULE: &str = "assumption: one bandwidth-delay product of a path of 100 ms";

impl PathPreset {
    /// The numbers of that path. Both directions have the buffer.
    #[must_use]
    pub const fn numbers(self) -> [Number; 4] {
        let (values, sources) = match self {
            Self::Dsl => (
                ["1.5 Mbit/s", "384 kbit/s", "50 ms", "100 ms"],
                [WEBPAGETEST, WEBPAGETEST, WEBPAGETEST, RULE],
            ),
            Self::Cable => {
                (["5 Mbit/s", "1 Mbit/s", "28 ms", "100 ms"], [WEBPAGETEST, WEBPAGETEST, WEBPAGETEST, RULE])
            }
            Self::Fibre => {
                const FIOS: &str = "WebPageTest, connectivity.ini.sample (FIOS)";
                (["20 Mbit/s", "5 Mbit/s", "4 ms", "100 ms"], [FIOS, FIOS, FIOS, RULE])
            }
            Self::Lte => {
                (["12 Mbit/s", "12 Mbit/s", "70 ms", "100 ms"], [WEBPAGETEST, WEBPAGETEST, WEBPAGETEST, RULE])
            }
            Self::FiveG => {
                let rtt = "the same, user plane latency: 4 ms each way, the radio alone";
                (["100 Mbit/s", "50 Mbit/s", "8 ms", "100 ms"], [IMT_2020, IMT_2020, rtt, RULE])
            }
            Self::Wifi => {
                let up = "assumption: half of the rate down";
                (["30 Mbit/s", "15 Mbit/s", "2 ms", "100 ms"], [DEVTOOLS, up, DEVTOOLS, RULE])
            }
            Self::Geo => {
                let buffer = "assumption: one bandwidth-delay product (the runner has 25 packets)";
                (["20 Mbit/s", "2 Mbit/s", "600 ms", "1 BDP"], [SATELLITE, SATELLITE, SATELLITE, buffer])
            }
            Self::Datacentre => {
                let rtt = "assumption: an idle network in one building";
                let buffer = "assumption: a switch with shallow buffers";
                (["1 Gbit/s", "1 Gbit/s", "0.25 ms", "100 packets"], [DCTCP, SAME_UP, rtt, buffer])
            }
            Self::Suite => {
                let rtts = "4 ms+28 ms+54 ms+74 ms+98 ms+124 ms+150 ms+174 ms+200 ms";
                (["10 Mbit/s", "10 Mbit/s", rtts, "50 packets"], [SCHARF, SCHARF, SUITE, SCHARF])
            }
        };
        let [rate, up_rate, rtt, buffer] = values;
        let [of_rate, of_up_rate, of_rtt, of_buffer] = sources;
        [
            Number { option: "rate", value: rate, source: of_rate },
            Number { option: "up-rate", value: up_rate, source: of_up_rate },
            Number { option: "rtt", value: rtt, source: of_rtt },
            Number { option: "buffer", value: buffer, source: of_buffer },
        ]
    }

    /// The options of that path, each with its value.
    #[must_use]
    pub const fn options(self) -> [(&'static str, &'static str); 5] {
        let [rate, up_rate, rtt, buffer] = self.numbers();
        [
            (rate.option, rate.value),
            (up_rate.option, up_rate.value),
            (rtt.option, rtt.value),
            (buffer.option, buffer.value),
            ("up-buffer", buffer.value),
        ]
    }

    /// Name of the preset.
    #[must_use]
    pub fn name(self) -> String {
        super::choice_name(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_path_and_its_help_has_its_numbers() {
        for preset in PathPreset::value_variants() {
            let words: Vec<String> =
                preset.options().iter().map(|(option, value)| format!("--{option}={value}")).collect();
            let setup = crate::settings::Settings::parse(
                crate::carrier::Carriers::MODEL,
                words.iter().map(String::as_str),
            );
            let setup = setup.unwrap_or_else(|error| panic!("{preset:?}: {error:#}"));
            let numbers = preset.numbers();
            assert!(numbers.iter().all(|number| !number.source.is_empty()), "{preset:?}");
            let [rate, up_rate, rtt, _] = numbers.map(|number| number.value);
            assert_eq!(setup.path.rate, rate.parse().expect(rate));
            let help = preset.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
            let help = help.unwrap_or_default();
            for number in [rate, rtt] {
                assert!(help.contains(number), "{preset:?}: {help} without {number}");
            }
            assert!(help.contains(up_rate) || rate == up_rate, "{preset:?}: {help}");
        }
    }
}
