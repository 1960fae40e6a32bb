//! Waiting for Ctrl-C, for a child, or for some time.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use headstart_units::Span;
use rustix::event::{PollFd, PollFlags, poll};
pub use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::udp::timespec;

/// Tells a child. One that has ended, and has not been waited for, does not mind.
pub fn tell(child: &std::process::Child, signal: Signal) {
    let process = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(process) = process {
        let _ = rustix::process::kill_process(process, signal);
    }
}

/// Whether Ctrl-C at a terminal would reach this process, and then its children of the same process
/// group too. What reaches one that is in front of no terminal (a script's, a supervisor's) was
/// sent to it, and its children know nothing.
#[must_use]
pub fn is_in_front() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let front = terminal.ok().and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok());
    front.is_some_and(|front| front == rustix::process::getpgrp())
}

/// What was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Ctrl-C or Ctrl-\, or what somebody sent instead. A terminal has told every process in front
    /// of it ([`is_in_front`]).
    Interrupt(Signal),
    /// A request to end that only this process has heard.
    Terminate,
    /// A child has ended, or something else.
    Other,
    /// The time is over.
    Nothing,
}

/// Signals of this process, from the time this is made. They do not end it any more.
#[derive(Debug)]
pub struct Signals {
    receiver: UnixStream,
    requests: Arc<AtomicUsize>,
}

const INTERRUPT: usize = 1;
const TERMINATE: usize = 2;
const QUIT: usize = 3;

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn new() -> io::Result<Self> {
        let (receiver, sender) = UnixStream::pair()?;
        receiver.set_nonblocking(true)?;
        let requests = Arc::<AtomicUsize>::default();
        for (signal, value) in
            [(SIGINT, INTERRUPT), (SIGQUIT, QUIT), (SIGTERM, TERMINATE), (SIGHUP, TERMINATE)]
        {
            signal_hook::flag::register_usize(signal, Arc::clone(&requests), value)?;
        }
        for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD] {
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        Ok(Self { receiver, requests })
    }

    /// Waits for the next signal, or until the time is over.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn wait(&mut self, at_most: Option<Span>) -> io::Result<Heard> {
        let timeout = at_most.map(timespec);
        let mut polled = [PollFd::new(&self.receiver, PollFlags::IN)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return Ok(Heard::Nothing),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 64];
        while self.receiver.read(&mut bytes).is_ok_and(|length| length == bytes.len()) {}
        Ok(match self.requests.swap(0, Ordering::AcqRel) {
            INTERRUPT => Heard::Interrupt(Signal::INT),
            QUIT => Heard::Interrupt(Signal::QUIT),
            TERMINATE => Heard::Terminate,
            _ => Heard::Other,
        })
    }
}
