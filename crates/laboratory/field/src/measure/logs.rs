//! The log of `headstart link` as the parts of a connection.

use std::collections::BTreeMap;
use std::io::BufRead;

use anyhow::Result;
use headstart_emu::record::{ParsedEvent, ParsedLog};
use headstart_net::Direction;
use headstart_units::{Span, Time};

use super::{Connection, Measured, combined};

/// Measures the direction of a link's log that carried more.
///
/// # Errors
/// If the log is malformed.
pub fn link(content: impl BufRead) -> Result<Measured> {
    let log = ParsedLog::read(content)?;
    let sent = |way: Direction| {
        let departures = log
            .entries
            .iter()
            .filter(move |it| it.direction == way && matches!(it.event, ParsedEvent::Departure { .. }));
        departures.map(|it| u64::from(it.bytes)).sum::<u64>()
    };
    let main = Direction::BOTH.into_iter().max_by_key(|way| sent(*way)).unwrap_or(Direction::Down);
    let mut it = Connection { bytes: sent(main), ..Connection::default() };
    let mut back = Span::MAX;
    let mut inside: BTreeMap<(bool, u64), Time> = BTreeMap::new();
    for line in &log.entries {
        let is_main = line.direction == main;
        let key = (is_main, line.number);
        match line.event {
            ParsedEvent::Arrival { .. } => {
                inside.insert(key, line.at);
                it.packets += u64::from(is_main);
            }
            ParsedEvent::Departure { .. } => {
                let Some(at) = inside.remove(&key) else { continue };
                let took = line.at.since(at);
                if is_main {
                    it.receiver.samples.push((at, took));
                    it.acknowledged.push((line.at, u64::from(line.bytes)));
                } else {
                    // The other direction may have a queue of its own.
                    back = back.min(took);
                }
            }
            ParsedEvent::Drop { .. } => {
                it.repeats.extend(inside.remove(&key).filter(|_| is_main).map(|at| (at, 1)));
            }
        }
    }
    if back < Span::MAX {
        it.sender.samples.push((Time::ZERO, back));
        it.handshake = it.receiver.least().map(|there| there + back);
    }
    Ok(combined(vec![it]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_its_columns_is_refused() {
        assert!(link(&b"# headstart link log 1\n"[..]).is_err());
    }
}
