//! The decisions of the loaded object alone, for tests and measurements.

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};

use libbpf_rs::{MapCore as _, Object, ProgramInput};

use crate::Error;
use crate::layout::{self, ReplayHint, ReplayPeers};
use crate::load::{failed, open, program, refused};
use crate::needs::Level;

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

    /// Applies the event of `call`, which then holds the object's answer.
    ///
    /// # Errors
    /// If the kernel does not run it, or the object has no such event.
    pub fn apply(&self, call: &mut layout::Replay) -> Result<(), Error> {
        let answer = self.run("hs_replay", call.to_bytes())?;
        *call = layout::Replay::from_bytes(&answer).unwrap_or(*call);
        Ok(())
    }

    /// The rate in bytes per second that the object reads from a TCP option of which the kernel has
    /// reported `found` bytes; `None` if it is malformed.
    ///
    /// # Errors
    /// If the kernel does not run it.
    pub fn read_hint(&self, option: [u8; 12], found: i32) -> Result<Option<u64>, Error> {
        let answer = self.run("hs_replay_hint", ReplayHint { option, found, rate: 0 }.to_bytes())?;
        Ok(ReplayHint::from_bytes(&answer).map(|it| it.rate).filter(|rate| *rate > 0))
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
        let call = ReplayPeers { count, inserts, ..ReplayPeers::default() };
        let answer = self.run("hs_replay_peers", call.to_bytes())?;
        Ok(ReplayPeers::from_bytes(&answer).map_or((0, 0), |it| (it.found, it.took)))
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

    fn run(&self, name: &str, mut context: Vec<u8>) -> Result<Vec<u8>, Error> {
        let input = ProgramInput { context_in: Some(&mut context), ..ProgramInput::default() };
        let output = program(&self.object, name)?.test_run(input).map_err(failed("apply an event"))?;
        match output.return_value {
            0 => Ok(context),
            other => Err(Error::new(format!("the object refused the event ({other})"))),
        }
    }
}
