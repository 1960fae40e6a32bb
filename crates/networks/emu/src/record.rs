//! Parser of a run's log.

use std::io::BufRead;

use headstart_units::Time;

use crate::log::{COLUMNS, FIRST_LINE};
use headstart_net::Direction;

/// A parsed log.
#[derive(Clone, Debug, Default)]
pub struct ParsedLog {
    /// Header entries, in order.
    pub header: Vec<(String, String)>,
    /// Lines of the log.
    pub entries: Vec<ParsedLine>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedLine {
    /// Time of the event.
    pub at: Time,
    /// Direction of the packet.
    pub direction: Direction,
    /// Number of the packet, from zero in each direction.
    pub number: u64,
    /// Size on the link, in bytes.
    pub bytes: u32,
    /// The event.
    pub event: ParsedEvent,
}

/// An event of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedEvent {
    /// The packet arrived.
    Arrival {
        /// Packets in the queue.
        queue_packets: u32,
    },
    /// The packet was sent.
    Departure {
        /// Deadline of the departure.
        due: Time,
    },
    /// The packet was dropped, or could not be sent.
    Drop {
        /// Reason.
        cause: String,
    },
}

/// Errors of a malformed log.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: found `{found}`, expected {expected}")]
pub struct ParseError {
    /// Counted from one.
    line: usize,
    found: String,
    expected: &'static str,
}

/// Most bytes of a line.
const LONGEST: usize = 4096;

impl ParsedLog {
    /// Parses a log. A log truncated in its last line, as after a crash, is read up to there.
    ///
    /// # Errors
    /// Line and reason, if the log is malformed.
    pub fn read(mut file: impl BufRead) -> Result<Self, ParseError> {
        let mut record = Self::default();
        let (mut text, mut number, mut is_body) = (vec![], 0, false);
        loop {
            text.clear();
            number += 1;
            let no = |text: &[u8], expected| {
                let shown = text.iter().take(60).copied().collect::<Vec<_>>();
                ParseError { line: number, found: shown.escape_ascii().to_string(), expected }
            };
            let read = std::io::Read::take(&mut file, LONGEST as u64).read_until(b'\n', &mut text);
            let read = read.map_err(|error| no(error.to_string().as_bytes(), "a file that can be read"))?;
            if read == 0 {
                break;
            }
            let is_whole = text.pop_if(|byte| *byte == b'\n').is_some();
            let line = std::str::from_utf8(&text).map_err(|_| no(&text, "text"))?;
            if number == 1 {
                if line != FIRST_LINE {
                    return Err(no(
                        &text,
                        "a log of `headstart link`, which begins with `# headstart link log 1`",
                    ));
                }
            } else if !is_body {
                match line.strip_prefix("# ").and_then(|line| line.split_once(": ")) {
                    Some((name, value)) => record.header.push((name.to_owned(), value.to_owned())),
                    None if line == COLUMNS => is_body = true,
                    None => return Err(no(&text, "`# name: value` or the names of the columns")),
                }
            } else if let Some(entry) = entry(line) {
                record.entries.push(entry);
            } else if is_whole {
                return Err(no(&text, "an arrival, a departure, a drop or an unsent packet"));
            }
        }
        if is_body {
            Ok(record)
        } else {
            Err(ParseError { line: number, found: String::new(), expected: "the names of the columns" })
        }
    }
}

fn entry(line: &str) -> Option<ParsedLine> {
    let fields: Vec<&str> = line.split(',').collect();
    if fields.len() != COLUMNS.split(',').count() {
        return None;
    }
    let time = |at: usize| fields[at].parse().ok().map(Time::from_nanos);
    let event = match fields[2] {
        "arrival" => ParsedEvent::Arrival { queue_packets: fields[5].parse().ok()? },
        "departure" => ParsedEvent::Departure { due: time(7)? },
        "drop" | "unsent" => ParsedEvent::Drop { cause: fields[8].to_owned() },
        _ => return None,
    };
    let direction = Direction::BOTH.into_iter().find(|direction| direction.name() == fields[1])?;
    Some(ParsedLine {
        at: time(0)?,
        direction,
        number: fields[3].parse().ok()?,
        bytes: fields[4].parse().ok()?,
        event,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Line, Log, LogEvent};
    use crate::packet::HeaderSummary;
    use proptest::prelude::*;

    fn log() -> String {
        let file = tests_file::Shared::default();
        let mut log = Log::new(file.clone(), &[("down", "12 Mbit/s".to_owned())]).expect("a thread");
        let line = |nanos, event| Line {
            at: Time::from_nanos(nanos),
            direction: Direction::Down,
            number: 3,
            bytes: 1500,
            event,
        };
        let header = HeaderSummary { protocol: 17, ..HeaderSummary::default() };
        log.add(line(5, LogEvent::Arrival { queue_packets: 2, queue_bytes: 3000, header }));
        log.add(line(9, LogEvent::Departure { due: Time::from_nanos(8) }));
        log.add(line(10, LogEvent::Drop(headstart_net::DropReason::CoDel)));
        log.add(line(11, LogEvent::Unsent(crate::error::RelayError::Full)));
        log.finish().expect("memory is never full");
        file.text()
    }

    mod tests_file {
        use std::io::{self, Write};
        use std::sync::{Arc, Mutex};

        #[derive(Clone, Default)]
        pub struct Shared(Arc<Mutex<Vec<u8>>>);

        impl Shared {
            pub fn text(&self) -> String {
                String::from_utf8(self.0.lock().expect("nobody panics").clone()).expect("text")
            }
        }

        impl Write for Shared {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().expect("nobody panics").write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    }

    #[test]
    fn a_written_log_is_parsed_to_the_same_entries() {
        let record = ParsedLog::read(log().as_bytes()).expect("a log");
        assert_eq!(record.header, [("down".to_owned(), "12 Mbit/s".to_owned())]);
        let event: Vec<ParsedEvent> = record.entries.iter().map(|entry| entry.event.clone()).collect();
        let drop_of = |cause: &str| ParsedEvent::Drop { cause: cause.to_owned() };
        let expected = [
            ParsedEvent::Arrival { queue_packets: 2 },
            ParsedEvent::Departure { due: Time::from_nanos(8) },
            drop_of("CoDel"),
            drop_of("device full"),
        ];
        assert_eq!(event, expected);
    }

    #[test]
    fn a_truncated_log_is_parsed_up_to_the_cut() {
        let text = log();
        let record = ParsedLog::read(&text.as_bytes()[..text.len() - 9]).expect("a log");
        assert_eq!(record.entries.len(), 3);
    }

    #[test]
    fn text_that_is_not_a_log_is_refused_with_line_and_reason() {
        for (text, message) in [
            ("time,way\n", "line 1: found `time,way`, expected a log of `headstart link`"),
            ("# headstart link log 1\nx\n", "line 2: found `x`, expected `# name: value`"),
            ("# headstart link log 1\n# a: b\n", "line 3: found ``, expected the names"),
        ] {
            let error = ParsedLog::read(text.as_bytes()).expect_err(text).to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let error =
            ParsedLog::read((log() + "1,down,birth,1,1,,,,,,,,,,\n").as_bytes()).expect_err("no event");
        assert!(error.to_string().starts_with("line 8: found `1,down,birth"), "{error}");
    }

    proptest! {
        #[test]
        fn no_log_text_causes_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..400) {
            let mut text = log().into_bytes();
            let at = at.min(text.len());
            text.splice(at..at, bytes);
            let _ = ParsedLog::read(&text[..]);
        }
    }
}
