//! The decisions of the loaded object alone, for tests and measurements.

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};

use libbpf_rs::{MapCore as _, Object, ProgramInput};

use crate::Error;
use crate::load::{failed, open, program, refused};
use crate::needs::Level;

/// Bytes of the parts of `struct hs_replay`, in order: the parameters.
pub const PARAMS: usize = 40;
/// Numbers of eight bytes at the beginning of the start; ten of four follow.
pub const LONGS: usize = 26;
/// The start.
pub const START: usize = LONGS * 8 + 10 * 4;
/// The prior of the start.
pub const PRIOR: usize = 15 * 8;
/// A departure.
pub const SENT: usize = 3 * 8;
/// An acknowledgement.
pub const ACK: usize = 9 * 8 + 8;
/// A congestion signal or a timeout.
pub const CONGESTION: usize = 4 * 8 + 8;
/// All of them, and the number of the event.
pub const ALL: usize = PARAMS + START + PRIOR + SENT + ACK + CONGESTION + 8;

/// The decisions of the loaded object alone, for the test vectors.
#[derive(Debug)]
pub struct Replay {
    object: Object,
}

impl Replay {
    /// Loads only the programs that apply events.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn load() -> Result<Self, Error> {
        Ok(Self { object: open(Level::Window, 1, &["hs_replay", "hs_replay_hint"])? })
    }

    /// Applies the event in `context` (`struct hs_replay`), which then holds the object's answer.
    ///
    /// # Errors
    /// If the kernel does not run it, or the object has no such event.
    pub fn apply(&self, context: &mut [u8]) -> Result<(), Error> {
        self.run("hs_replay", context)
    }

    /// The rate in bytes per second that the object reads from a TCP option of which the kernel has
    /// reported `found` bytes; `None` if it is malformed.
    ///
    /// # Errors
    /// If the kernel does not run it.
    pub fn read_hint(&self, option: [u8; 12], found: i32) -> Result<Option<u64>, Error> {
        let mut context = option.to_vec();
        context.extend(found.to_ne_bytes());
        context.extend([0; 8]);
        self.run("hs_replay_hint", &mut context)?;
        let rate = context[16..].try_into().map_or(0, u64::from_ne_bytes);
        Ok((rate > 0).then_some(rate))
    }

    /// Loads only the history, of so many peers, and the program that searches it.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn with_peers(peers: u32) -> Result<Self, Error> {
        Ok(Self { object: open(Level::Window, peers, &["hs_replay_peers"])? })
    }

    /// Inserts so many peers, or finds them: number of successes, and nanoseconds taken.
    ///
    /// # Errors
    /// If the kernel does not run it.
    pub fn peers(&self, count: u32, inserts: bool) -> Result<(u64, u64), Error> {
        let mut context = [count.to_ne_bytes(), u32::from(inserts).to_ne_bytes()].concat();
        context.extend([0; 16]);
        self.run("hs_replay_peers", &mut context)?;
        let long = |at: usize| context[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        Ok((long(8), long(16)))
    }

    /// Bytes that the kernel holds for the history.
    ///
    /// # Errors
    /// If the kernel does not report them.
    pub fn history_bytes(&self) -> Result<u64, Error> {
        let map = self.object.maps().find(|map| map.name() == "history");
        let map = map.ok_or_else(|| Error::new("the object has no map `history`"))?;
        let path = format!("/proc/self/fdinfo/{}", map.as_fd().as_raw_fd());
        let text = fs::read_to_string(&path).map_err(refused("ask for the size of the history"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("memlock:"));
        line.and_then(|it| it.trim().parse().ok())
            .ok_or_else(|| Error::new(format!("found no size in {path}, expected a line `memlock:`")))
    }

    fn run(&self, name: &str, context: &mut [u8]) -> Result<(), Error> {
        let input = ProgramInput { context_in: Some(context), ..ProgramInput::default() };
        let output = program(&self.object, name)?.test_run(input).map_err(failed("apply an event"))?;
        match output.return_value {
            0 => Ok(()),
            other => Err(Error::new(format!("the object refused the event ({other})"))),
        }
    }
}
