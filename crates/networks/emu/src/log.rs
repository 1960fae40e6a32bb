//! The log of a run: a header that describes it, then a line per arrival, departure and drop.
//!
//! The relay only copies a [`Line`] for each event into a block; another thread formats blocks as
//! text. If the disk is too slow, blocks are dropped and counted: a log delays no packet.
//!
//! ```text
//! # headstart link log 1
//! # version: 0.1.0
//! # plan: ...
//! time_ns,way,event,number,bytes,queue_packets,queue_bytes,due_ns,cause,protocol,\
//!     from,to,flags,sequence,payload
//! 1000,down,arrival,0,1500,0,0,,,tcp,80,51000,A,1,1448
//! 480000,down,departure,0,1500,,,479990,,,,,,,
//! 500000,down,drop,7,1500,,,,queue full,,,,,,
//! ```

use std::fmt::Write as _;
use std::io::{self, Write};

use headstart_net::Direction;
use headstart_units::Time;

use crate::background::Background;
use crate::error::RelayError;
use crate::packet::{HeaderSummary, TCP, UDP};

/// The first line of every log.
pub const FIRST_LINE: &str = "# headstart link log 1";
/// The names of a line's fields.
pub const COLUMNS: &str = "time_ns,way,event,number,bytes,queue_packets,queue_bytes,due_ns,cause,protocol,from,to,flags,sequence,payload";

/// Lines in a block.
const BLOCK: usize = 512;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Time of the event.
    pub at: Time,
    /// Direction of the packet.
    pub direction: Direction,
    /// Number of the packet, from zero in each direction.
    pub number: u64,
    /// Size on the link, in bytes.
    pub bytes: u32,
    /// The event.
    pub event: LogEvent,
}

/// An event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// The packet arrived; the queue is the first link's (the packet included if it is queued
    /// there).
    Arrival {
        /// Packets in the queue.
        queue_packets: u32,
        /// Bytes in the queue.
        queue_bytes: u64,
        /// Fields of its headers.
        header: HeaderSummary,
    },
    /// The packet was sent.
    Departure {
        /// Deadline of the departure.
        due: Time,
    },
    /// An element dropped the packet.
    Drop(headstart_net::DropReason),
    /// The packet was due and could not be sent.
    Unsent(RelayError),
}

/// The relay's log.
#[derive(Debug)]
pub struct Log {
    block: Vec<Line>,
    left_out: u64,
    background: Background<Line>,
}

impl Log {
    /// Writes to `file`; `header` is `name: value` pairs, control characters replaced by spaces.
    ///
    /// # Errors
    /// If the header cannot be written, or no thread can be started.
    pub fn new(mut file: impl Write + Send + 'static, header: &[(&str, String)]) -> io::Result<Self> {
        let mut text = format!("{FIRST_LINE}\n");
        for (name, value) in header {
            let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let _ = writeln!(text, "# {name}: {value}");
        }
        text += COLUMNS;
        text += "\n";
        file.write_all(text.as_bytes())?;
        let mut text = String::new();
        let background = Background::start("headstart-log", BLOCK, move |block: Option<&[Line]>| {
            let Some(block) = block else { return file.flush() };
            text.clear();
            for line in block {
                // Writing into a string cannot fail.
                let _ = line.write(&mut text);
            }
            file.write_all(text.as_bytes())
        })?;
        Ok(Self { block: background.empty(), left_out: 0, background })
    }

    /// Adds a line.
    #[inline]
    pub fn add(&mut self, line: Line) {
        self.block.push(line);
        if self.block.len() >= BLOCK {
            let lines = self.block.len() as u64;
            if !self.background.submit(&mut self.block) {
                self.left_out += lines;
            }
        }
    }

    /// Lines dropped because the disk was too slow.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Writes the rest and waits for the disk.
    ///
    /// # Errors
    /// If a write failed.
    /// If something could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        let last = core::mem::take(&mut self.block);
        self.background.finish(last)
    }
}

impl Line {
    fn write(&self, text: &mut String) -> core::fmt::Result {
        let Self { at, direction, number, bytes, event } = self;
        let (at, direction) = (at.as_nanos(), direction.name());
        match event {
            LogEvent::Arrival { queue_packets, queue_bytes, header } => {
                write!(text, "{at},{direction},arrival,{number},{bytes},{queue_packets},{queue_bytes},,,")?;
                header.write(text)
            }
            LogEvent::Departure { due } => {
                writeln!(text, "{at},{direction},departure,{number},{bytes},,,{},,,,,,,", due.as_nanos())
            }
            LogEvent::Drop(reason) => {
                writeln!(text, "{at},{direction},drop,{number},{bytes},,,,{},,,,,,", reason.name())
            }
            LogEvent::Unsent(error) => {
                writeln!(text, "{at},{direction},unsent,{number},{bytes},,,,{},,,,,,", error.name())
            }
        }
    }
}

impl HeaderSummary {
    fn write(&self, text: &mut String) -> core::fmt::Result {
        let Self { protocol, tcp_flags, from, to, sequence, payload } = *self;
        match protocol {
            TCP => {
                write!(text, "tcp,{from},{to},")?;
                for (bit, letter) in "FSRPAUEC".char_indices() {
                    if tcp_flags >> bit & 1 == 1 {
                        text.push(letter);
                    }
                }
                writeln!(text, ",{sequence},{payload}")
            }
            UDP => writeln!(text, "udp,{from},{to},,,{payload}"),
            other => writeln!(text, "{other},,,,,{payload}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Shared;

    #[test]
    fn a_log_has_its_header_and_every_line_in_order() {
        let file = Shared::default();
        let header = [("version", "1".to_owned()), ("plan", "a\nb".to_owned())];
        let mut log = Log::new(file.clone(), &header).expect("a thread");
        let header =
            HeaderSummary { protocol: TCP, tcp_flags: 0x12, from: 80, to: 9, sequence: 5, payload: 0 };
        let line = |number, event| Line {
            at: Time::from_nanos(7),
            direction: Direction::Down,
            number,
            bytes: 40,
            event,
        };
        log.add(line(0, LogEvent::Arrival { queue_packets: 2, queue_bytes: 80, header }));
        log.add(line(0, LogEvent::Departure { due: Time::from_nanos(6) }));
        for number in 1..2000 {
            log.add(line(number, LogEvent::Drop(headstart_net::DropReason::QueueFull)));
        }
        log.finish().expect("memory is never full");
        let text = String::from_utf8(file.0.lock().expect("nobody panics").clone()).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..7],
            [
                FIRST_LINE,
                "# version: 1",
                "# plan: a b",
                COLUMNS,
                "7,down,arrival,0,40,2,80,,,tcp,80,9,SA,5,0",
                "7,down,departure,0,40,,,6,,,,,,,",
                "7,down,drop,1,40,,,,queue full,,,,,,",
            ]
        );
        assert_eq!(lines.len(), 4 + 2001);
        let fields = COLUMNS.split(',').count();
        assert!(lines[4..].iter().all(|line| line.split(',').count() == fields));
    }

    #[test]
    fn a_full_disk_is_reported_at_the_end_and_does_not_stop_the_relay() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                if self.0 > 1 { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(bytes.len()) }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut log = Log::new(Full(0), &[]).expect("a thread");
        for number in 0..10_000 {
            let event = LogEvent::Departure { due: Time::ZERO };
            log.add(Line { at: Time::ZERO, direction: Direction::Up, number, bytes: 1, event });
        }
        assert!(log.finish().is_err());
    }
}
