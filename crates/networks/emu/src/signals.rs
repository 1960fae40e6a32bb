//! Waits for Ctrl-C, a child or a time limit.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use headstart_units::Span;
use rustix::event::{PollFd, PollFlags, poll};
pub use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::udp::timespec;

/// Sends a signal to a child, which may be a zombie.
pub fn send(child: &std::process::Child, signal: Signal) {
    let process = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(process) = process {
        let _ = rustix::process::kill_process(process, signal);
    }
}

/// True if this process' group is in the foreground of a terminal: Ctrl-C then reaches this process
/// and its children of that group. Otherwise (under a script or a supervisor) a signal reaches this
/// process only.
#[must_use]
pub fn is_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let front = terminal.ok().and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok());
    front.is_some_and(|front| front == rustix::process::getpgrp())
}

/// Outcome of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// SIGINT or SIGQUIT, from Ctrl-C, Ctrl-\ or another process. A terminal sends it to every
    /// process in the foreground ([`is_foreground`]).
    Interrupt(Signal),
    /// A request to terminate, sent to this process only.
    Terminate,
    /// A child has ended, or another signal.
    OtherSignal,
    /// The time limit passed.
    TimedOut,
}

/// Handles this process' signals from its creation on. They no longer terminate it.
#[derive(Debug)]
pub struct Signals {
    receiver: UnixStream,
    requests: Arc<AtomicUsize>,
}

const INTERRUPT: usize = 1;
const TERMINATE: usize = 2;
const QUIT: usize = 3;

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// If the system refuses.
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

    /// Waits for the next signal, or for the time limit.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn wait(&mut self, at_most: Option<Span>) -> io::Result<WaitOutcome> {
        let timeout = at_most.map(timespec);
        let mut polled = [PollFd::new(&self.receiver, PollFlags::IN)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return Ok(WaitOutcome::TimedOut),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 64];
        while self.receiver.read(&mut bytes).is_ok_and(|length| length == bytes.len()) {}
        Ok(match self.requests.swap(0, Ordering::AcqRel) {
            INTERRUPT => WaitOutcome::Interrupt(Signal::INT),
            QUIT => WaitOutcome::Interrupt(Signal::QUIT),
            TERMINATE => WaitOutcome::Terminate,
            _ => WaitOutcome::OtherSignal,
        })
    }
}
