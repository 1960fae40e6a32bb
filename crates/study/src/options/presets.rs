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
    /// 100 Mbit/s, up 50 Mbit/s, 8 ms
    #[value(name = "5g")]
    FiveG,
    /// 30 Mbit/s, up 15 Mbit/s, 2 ms
    Wifi,
    /// 20 Mbit/s, up 2 Mbit/s, 600 ms
    #[value(alias = "satellite")]
    Geo,
    /// 1 Gbit/s, 0.25 ms, 100 packets
    #[value(alias = "datacenter")]
    Datacentre,
}

/// The numbers of a path, each an option of the path, and where they are from.
#[derive(Clone, Copy, Debug)]
pub struct PresetPath {
    /// `--rate`.
    pub rate: &'static str,
    /// `--up-rate`.
    pub up_rate: &'static str,
    /// `--rtt`.
    pub rtt: &'static str,
    /// `--buffer`, of both directions.
    pub buffer: &'static str,
    /// Source of rates and round-trip time.
    pub source: &'static str,
    /// Source of the buffer.
    pub buffer_source: &'static str,
}

const WEBPAGETEST: &str = "WebPageTest, connectivity.ini.sample";
/// Note for sources of rates and times that do not state the size of the buffer.
const RULE: &str =
    "not in the source: rate times 100 ms, the rule of Villamizar and Song, CCR 1994, for a path of 100 ms";

impl PathPreset {
    /// The options' values and their sources.
    #[must_use]
    pub const fn path(self) -> PresetPath {
        let (rate, up_rate, rtt, source) = match self {
            Self::Dsl => ("1.5 Mbit/s", "384 kbit/s", "50 ms", WEBPAGETEST),
            Self::Cable => ("5 Mbit/s", "1 Mbit/s", "28 ms", WEBPAGETEST),
            Self::Fibre => ("20 Mbit/s", "5 Mbit/s", "4 ms", "WebPageTest, connectivity.ini.sample (FIOS)"),
            Self::Lte => ("12 Mbit/s", "12 Mbit/s", "70 ms", WEBPAGETEST),
            Self::FiveG => (
                "100 Mbit/s",
                "50 Mbit/s",
                "8 ms",
                "ITU-R M.2410-0, 2017: user experienced rates, 4 ms each way; the radio alone",
            ),
            Self::Wifi => {
                ("30 Mbit/s", "15 Mbit/s", "2 ms", "Chrome DevTools, preset WiFi; the last hop alone")
            }
            Self::Geo => {
                let source = "Endres et al., QUIC over geostationary satellites, 2022 (QUIC Interop Runner, Satellite Edition: SAT)";
                ("20 Mbit/s", "2 Mbit/s", "600 ms", source)
            }
            Self::Datacentre => (
                "1 Gbit/s",
                "1 Gbit/s",
                "0.25 ms",
                "Alizadeh et al., DCTCP, SIGCOMM 2010, §1 (RTT below 250 us) and §2",
            ),
        };
        let (buffer, buffer_source) = match self {
            Self::Geo => ("1 BDP", "not in the source: rate times round-trip time"),
            Self::Datacentre => ("100 packets", "the same, §4: static buffers of 100 packets"),
            _ => ("100 ms", RULE),
        };
        PresetPath { rate, up_rate, rtt, buffer, source, buffer_source }
    }

    /// The options of that path, each with its value.
    #[must_use]
    pub const fn options(self) -> [(&'static str, &'static str); 5] {
        let PresetPath { rate, up_rate, rtt, buffer, .. } = self.path();
        [("rate", rate), ("up-rate", up_rate), ("rtt", rtt), ("buffer", buffer), ("up-buffer", buffer)]
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
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
            let PresetPath { rate, up_rate, rtt, .. } = preset.path();
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
