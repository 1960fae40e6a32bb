//! Conformance vectors: events in, window and pace out, as text. docs/conformance.md defines the
//! form.
//!
//! ```
//! use headstart_startup::{catalogue, conformance};
//!
//! let text = "begin packet=1200 packets=50 rtt=50000000 known=- \
//!     -> burst=12000 flight=12000 window=12000 pace=- phase=slow-start\n";
//! let iw10 = || catalogue::find("iw10").expect("a name of the catalogue").scheme();
//! assert_eq!(conformance::replay(iw10, text), Ok(1));
//! ```

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use headstart_units::{Bytes, Rate, Span, Time};

use crate::history::{Record, SharedCredit, SharedRecord};
use crate::prior::{Access, Hint};
use crate::sending::{RttSample, Sender};
use crate::{Controller, Prior, Scheme, base};

/// The longest flow of a vector in packets. Its departures are held in memory.
const MAX_PACKETS: usize = 1 << 20;

/// A line that does not conform, or that has another form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Number of the line, from 1.
    pub line: usize,
    /// The answer is another one; otherwise the line has another form.
    pub is_answer: bool,
    message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl core::error::Error for Error {}

/// The line `begin`: a flow, and what is known of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// Size of each packet in bytes.
    pub packet: Bytes,
    /// Length of the flow in packets.
    pub packets: u64,
    /// Duration of the handshake.
    pub rtt: Span,
    /// The rate on record, in the hint and of the grant; none of an unknown peer.
    pub known: Option<Rate>,
}

/// A sender that events are given to, and its answers as text.
#[derive(Debug)]
pub struct Player {
    sender: Sender,
    packet: Bytes,
    /// Departures by number.
    departures: Vec<Time>,
    has_phase: bool,
}

impl Player {
    /// A sender whose first flight begins, and the answer to that.
    #[must_use]
    pub fn begin(scheme: Scheme, flow: &Beginning) -> (Self, String) {
        let Beginning { packet, packets, rtt, known } = *flow;
        // A scheme of another language does not tell its phase.
        let has_phase = !matches!(scheme, Scheme::Foreign(_));
        let mut sender = Sender::new(Controller::new(scheme, base::Kind::Cubic, packet), packet);
        let record = |btl_bw| Record {
            btl_bw,
            rt_prop: rtt,
            window: btl_bw * rtt,
            ssthresh: btl_bw * rtt,
            credit: btl_bw * rtt,
            ..Record::default()
        };
        let prior = Prior {
            flow_size: Some(packet * packets),
            history: known.map(|rate| SharedRecord { record: record(rate), live: 0 }),
            shared_credit: Some(SharedCredit {
                credit: known.map(|rate| rate * rtt),
                ..SharedCredit::default()
            }),
            hint: known.map(|bandwidth| Hint { bandwidth, access: Access::Unknown }),
            granted: known,
            ..Prior::bare(Time::ZERO, packet, rtt, Bytes::new(1 << 20))
        };
        let _: RttSample = sender.on_rtt_sample(rtt);
        let plan = sender.update(|controller| controller.establish(&prior));
        sender.begin(plan.flight.min(packet * packets));
        let player = Self { sender, packet, departures: Vec::new(), has_phase };
        let answer = format!("burst={} flight={} {}", plan.burst.get(), plan.flight.get(), player.answer());
        (player, answer)
    }

    /// The sender in its present state.
    #[must_use]
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Number of packets that have left.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.departures.len() as u64
    }

    fn answer(&self) -> String {
        let controller = self.sender.controller();
        let allowance = controller.allowance();
        let pace = allowance.pace.map_or_else(|| "-".to_owned(), |pace| pace.as_bytes_per_sec().to_string());
        let mut answer = format!("window={} pace={pace}", allowance.window.get());
        if self.has_phase {
            answer += &format!(" phase={}", controller.phase().replace(' ', "-").to_lowercase());
        }
        answer
    }

    /// An event of packets, and the answer to it if it is one that may change something. Of packets
    /// that were sent `limit` is what held back the next one.
    ///
    /// # Errors
    /// If there is no such event, or packets are not in the order in which a transport has them.
    pub fn play(
        &mut self,
        event: &str,
        now: Time,
        packets: &[u64],
        limit: Option<&str>,
    ) -> Result<Option<String>, String> {
        if event == "sent" {
            for &number in packets {
                if number != self.sent() || self.departures.len() >= MAX_PACKETS {
                    return Err(format!("found packet {number} sent, expected packet {}", self.sent()));
                }
                self.departures.push(now);
                self.sender.on_sent(now, number, self.packet);
            }
            match limit {
                Some("limited") => self.sender.on_limited(),
                Some("idle") => self.sender.on_app_limited(false),
                other => return Err(format!("found {other:?} after packets, expected `limited` or `idle`")),
            }
            return Ok(None);
        }
        let newest = packets.iter().max().and_then(|it| self.departures.get(usize::try_from(*it).ok()?));
        let Some(left) = newest.copied().filter(|left| *left <= now) else {
            return Err(format!("found {event} of {packets:?}, expected packets that were sent before"));
        };
        match event {
            "acked" => {
                let smoothed = self.sender.rtt().smoothed;
                self.sender.opens_batch(|| smoothed);
                for &number in packets {
                    self.sender.on_delivered(number, self.departures[number as usize]);
                }
                let sample = self.sender.on_rtt_sample(now.since(left));
                self.sender.end_of_acks(now, Some(sample), false);
            }
            "lost" => {
                for &number in packets {
                    self.sender.on_lost(number, self.packet);
                }
                self.sender.end_of_losses(now, left, false);
            }
            other => return Err(format!("found the event `{other}`, expected sent, acked or lost")),
        }
        Ok(Some(self.answer()))
    }
}

/// Plays a file of vectors on connections of a scheme; returns the number of answers compared.
///
/// The phase of an answer is not compared if the scheme is a [`Foreign`](crate::scheme::Foreign)
/// one.
///
/// # Errors
/// The first line with another answer, or with another form.
pub fn replay(mut scheme: impl FnMut() -> Scheme, text: &str) -> Result<usize, Error> {
    let mut player = None;
    let mut compared = 0;
    for (number, line) in text.lines().enumerate() {
        let of_line = |message| Error { line: number + 1, is_answer: false, message };
        let (event, expected) = line.split_once(" -> ").map_or((line, None), |(it, then)| (it, Some(then)));
        let words: Vec<&str> = event.split(' ').collect();
        let (found, has_phase) = match words[..] {
            [] | [""] | ["#" | "scheme" | "scenario", ..] => continue,
            ["begin", ref settings @ ..] => {
                let (begun, answer) = Player::begin(scheme(), &beginning(settings).map_err(of_line)?);
                let has_phase = begun.has_phase;
                player = Some(begun);
                (Some(answer), has_phase)
            }
            [event, at, packets, ref limit @ ..] => {
                let numbers: Result<Vec<u64>, _> = packets.split(',').map(read).collect();
                let player =
                    player.as_mut().ok_or_else(|| of_line("found an event, expected `begin`".to_owned()))?;
                let (at, numbers) = (read(at).map_err(of_line)?, numbers.map_err(of_line)?);
                let answer = player.play(event, Time::from_nanos(at), &numbers, limit.first().copied());
                (answer.map_err(of_line)?, player.has_phase)
            }
            _ => return Err(of_line(format!("found `{line}`, expected an event of docs/conformance.md"))),
        };
        let compared_part = |answer: &str| -> String {
            let phase = answer.find(" phase=").filter(|_| !has_phase).unwrap_or(answer.len());
            answer[..phase].to_owned()
        };
        let expected = expected.map(compared_part);
        if found != expected {
            let shown = |answer: &Option<String>| answer.clone().unwrap_or_else(|| "no answer".to_owned());
            let message = format!("{event}: found {}, expected {}", shown(&found), shown(&expected));
            return Err(Error { is_answer: true, ..of_line(message) });
        }
        compared += usize::from(expected.is_some());
    }
    Ok(compared)
}

fn read<T: FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("found `{word}`, expected a number"))
}

fn beginning(settings: &[&str]) -> Result<Beginning, String> {
    let value = |name: &str| -> Result<&str, String> {
        let found = settings.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
        found.ok_or_else(|| format!("found no `{name}=`, expected it after `begin`"))
    };
    let within = |name: &str, most: u64| -> Result<u64, String> {
        let found = read(value(name)?)?;
        let is_within = (1..=most).contains(&found);
        is_within.then_some(found).ok_or_else(|| format!("{name}: found {found}, expected 1 to {most}"))
    };
    let known = match value("known")? {
        "-" => None,
        rate => Some(Rate::from_bits_per_sec(read(rate)?)),
    };
    Ok(Beginning {
        packet: Bytes::new(within("packet", 1 << 16)?),
        packets: within("packets", MAX_PACKETS as u64)?,
        rtt: Span::from_nanos(within("rtt", 3_600_000_000_000)?),
        known,
    })
}
