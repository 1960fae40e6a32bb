//! Paths drawn at random: the wide area of PlanetLab, and four access networks before it.
//!
//! Source: Halfback (HB below) §4.1, §4.2.1 and §4.2.2. It states 2600 pairs of 100 hosts in five
//! continents, round-trip times from 0.2 to 400 ms, and flows of 100 kB. A quarter of the runs lost
//! a packet. Nothing else of its paths is published. `experiments/halfback/population.md` gives the
//! distribution of each part, its reasons and its effects. The same seed draws the same paths
//! everywhere; the draws of the parts of a path are independent.

use clap::ValueEnum;
use headstart_sim::{Random, Seed};
use headstart_units::{Bytes, Packets, Rate, Ratio, Span};

use crate::options::{Buffer, PathOptions, Rtts};

/// Distribution of the paths of a population. A run's seed is the number of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Population {
    /// Hosts in five continents behind access links of their own; shallow buffers, cross traffic
    /// and a little random loss.
    Continents,
    /// All uniform between bounds (rates, buffers: logarithmic); losses from full buffers only.
    Uniform,
    /// Servers as in the first draw to a home with DSL of about 6 Mbit/s behind Wi-Fi (HB §4.2.2).
    DslWifi,
    /// `DslWifi`'s home with a neighbour or a film: 0.8 Mbit/s are left of the 6.
    BusyDslWifi,
    /// To a home with cable of 25 Mbit/s, wired.
    Cable,
    /// To a Wi-Fi that a building shares.
    SharedWifi,
    /// To the same building's wire.
    Wired,
}

/// The path between two hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSpec {
    /// Round-trip time without queues.
    pub rtt: Span,
    /// Rate of the bottleneck towards the receiver.
    pub rate: Rate,
    /// Rate of the way back.
    pub up_rate: Rate,
    /// Buffer before the bottleneck.
    pub buffer: Bytes,
    /// Random loss, in packets of a million.
    pub loss_ppm: u32,
    /// Random extra delay up to this, order kept.
    pub jitter: Span,
    /// Load of other traffic on the bottleneck, in percent.
    pub cross_percent: u32,
}

impl PathSpec {
    /// The path as options of a command; its buffers are counted in packets where `counted` is.
    #[must_use]
    pub fn options(&self, counted: Buffer) -> PathOptions {
        let buffer = match counted {
            Buffer::Packets(_) => Buffer::Packets(Packets::new(self.buffer.get().div_ceil(PACKET))),
            _ => Buffer::Bytes(self.buffer),
        };
        let loss = Ratio::new(self.loss_ppm, 1_000_000);
        PathOptions {
            rate: self.rate,
            rtt: Rtts(vec![self.rtt]),
            buffer,
            loss,
            jitter: self.jitter,
            up_rate: Some(self.up_rate),
            up_buffer: Some(buffer),
            ..crate::options::defaults()
        }
    }
}

/// Bytes of a full packet on the link.
const PACKET: u64 = 1500;
/// Smallest and largest round-trip time, in milliseconds (HB §4.1).
const RTT_MS: (f64, f64) = (0.2, 400.0);
/// Hosts (HB §4.1).
const HOSTS: u64 = 100;
/// Typical RTTs between continents in ms: North and South America, Europe, Asia, Australia.
const BETWEEN: [[f64; 5]; 5] = [
    [50.0, 150.0, 110.0, 190.0, 200.0],
    [150.0, 40.0, 220.0, 320.0, 310.0],
    [110.0, 220.0, 30.0, 260.0, 310.0],
    [190.0, 320.0, 260.0, 80.0, 160.0],
    [200.0, 310.0, 310.0, 160.0, 20.0],
];

/// One host of the first draw.
struct Host {
    continent: usize,
    rate: f64,
    /// Buffer of its access link in milliseconds of that link.
    buffer_ms: f64,
    cross_percent: u32,
}

/// The hosts of the first draw, the same for all of its paths.
fn hosts() -> Vec<Host> {
    let seed = Seed(HOSTS).child("hosts");
    let (mut speed, mut room, mut harm) =
        (Random::named(seed, "speed"), Random::named(seed, "room"), Random::named(seed, "harm"));
    (0..HOSTS)
        .map(|number| Host {
            continent: (number % 5) as usize,
            // Sites cap a slice, most often at 10 Mbit/s; a few sit behind slow lines.
            rate: match speed.unit() {
                share if share < 0.06 => speed.log_uniform(1.0, 5.0),
                share if share < 0.50 => speed.between(8.0, 12.0),
                _ => speed.log_uniform(20.0, 100.0),
            },
            buffer_ms: room.log_uniform(15.0, 250.0),
            cross_percent: if harm.happens(0.45) { harm.between(5.0, 50.0) as u32 } else { 0 },
        })
        .collect()
}

impl Population {
    /// Path number `number`: the same everywhere, and independent of all others.
    #[must_use]
    pub fn path(self, number: u64) -> PathSpec {
        let seed = Seed(number).child("path of a population");
        let (mut place, mut speed) = (Random::named(seed, "place"), Random::named(seed, "speed"));
        let (mut room, mut harm) = (Random::named(seed, "room"), Random::named(seed, "harm"));
        match self {
            Self::Continents => {
                let hosts = hosts();
                let from = &hosts[place.below(HOSTS) as usize];
                let to = &hosts[place.below(HOSTS) as usize];
                let slow = if from.rate < to.rate { from } else { to };
                let typical = BETWEEN[from.continent][to.continent];
                // Some pairs share a site, with only a switch between them.
                let rtt = if from.continent == to.continent && place.happens(0.08) {
                    place.log_uniform(RTT_MS.0, 2.0)
                } else {
                    typical * place.log_uniform(0.5, 1.6)
                };
                PathSpec {
                    rtt: millis(rtt),
                    rate: mbit(slow.rate),
                    up_rate: mbit(f64::max(from.rate, to.rate)),
                    buffer: buffer_of(slow.rate, slow.buffer_ms),
                    loss_ppm: if harm.happens(0.08) { harm.log_uniform(200.0, 10_000.0) as u32 } else { 0 },
                    jitter: Span::from_micros(harm.log_uniform(10.0, 1000.0) as u64),
                    cross_percent: slow.cross_percent,
                }
            }
            Self::Uniform => {
                let rate = speed.log_uniform(1.5, 100.0);
                PathSpec {
                    rtt: millis(place.between(RTT_MS.0, RTT_MS.1)),
                    rate: mbit(rate),
                    up_rate: mbit(rate),
                    buffer: Bytes::new(room.log_uniform(8_000.0, 250_000.0) as u64),
                    loss_ppm: 0,
                    jitter: Span::ZERO,
                    cross_percent: if harm.happens(0.50) { harm.between(5.0, 50.0) as u32 } else { 0 },
                }
            }
            Self::DslWifi | Self::BusyDslWifi | Self::Cable | Self::SharedWifi | Self::Wired => {
                let rtt = BETWEEN[0][place.below(5) as usize] * place.log_uniform(0.5, 1.6);
                let server = if speed.happens(0.4) { speed.between(8.0, 12.0) } else { 100.0 };
                // Mbit/s down and up, buffer in ms of that, own delay in ms, jitter in ms, loss in
                // ppm, load in %.
                let (down, up, buffer, delay, jitter, loss, cross) = match self {
                    Self::DslWifi => (6.0, 0.75, 120.0, 20.0, 6.0, harm.log_uniform(1_000.0, 20_000.0), 0),
                    Self::BusyDslWifi => {
                        (0.8, 0.75, 900.0, 20.0, 6.0, harm.log_uniform(1_000.0, 20_000.0), 0)
                    }
                    Self::Cable => (25.0, 5.0, 100.0, 8.0, 1.0, 0.0, 0),
                    Self::SharedWifi => (20.0, 20.0, 100.0, 2.0, 8.0, harm.log_uniform(100.0, 3_000.0), 20),
                    _ => (100.0, 100.0, 30.0, 0.5, 0.1, 0.0, 0),
                };
                let rate = f64::min(down, server);
                PathSpec {
                    rtt: millis(rtt + delay),
                    rate: mbit(rate),
                    up_rate: mbit(up),
                    buffer: buffer_of(rate, buffer),
                    loss_ppm: loss as u32,
                    jitter: Span::from_micros((jitter * 1000.0) as u64),
                    cross_percent: cross,
                }
            }
        }
    }
}

fn millis(value: f64) -> Span {
    Span::from_micros((value.clamp(RTT_MS.0, RTT_MS.1) * 1000.0) as u64)
}

fn mbit(value: f64) -> Rate {
    Rate::from_bits_per_sec((value * 1e6) as u64)
}

/// A buffer of so many milliseconds, and of ten packets at least.
fn buffer_of(rate_mbit: f64, millis: f64) -> Bytes {
    Bytes::new(((rate_mbit * 1e6 / 8.0 * millis / 1e3) as u64).max(15_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: [Population; 2] = [Population::Continents, Population::Uniform];

    #[test]
    fn the_same_number_is_the_same_path_and_another_is_another() {
        for population in WIDE {
            assert_eq!(population.path(7), population.path(7));
            assert_ne!(population.path(7), population.path(8));
        }
    }

    #[test]
    fn round_trip_times_stay_within_the_range_of_the_paper() {
        let (least, most) = (Span::from_micros(200), Span::from_millis(400));
        for population in WIDE {
            let paths: Vec<_> = (0..2600).map(|number| population.path(number)).collect();
            assert!(paths.iter().all(|path| (least..=most).contains(&path.rtt)), "{population:?}");
            assert!(
                paths.iter().any(|path| path.rtt > Span::from_millis(300)),
                "{population:?}: some are far away"
            );
        }
        let near = |number| Population::Continents.path(number).rtt < Span::from_millis(2);
        assert!((0..2600).any(near), "and some share a site");
    }

    #[test]
    fn access_networks_use_the_same_servers() {
        for number in 0..170 {
            let (dsl, wired) = (Population::DslWifi.path(number), Population::Wired.path(number));
            assert!(dsl.rate <= Rate::from_mbit_per_sec(6));
            let between = dsl.rtt.saturating_sub(wired.rtt);
            assert!(between <= Span::from_millis(20), "only the access itself lies between them: {between}");
        }
    }
}
