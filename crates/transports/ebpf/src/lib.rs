//! Fast starts for Linux TCP: servers that are neither changed nor restarted start fast, and the
//! congestion control that the server has is in charge after the start.
//!
//! A congestion control in eBPF (struct_ops) owns the window of a connection until its start is
//! over. A program at a cgroup (sock_ops) gives it to the connections that servers of the cgroup
//! accept. Nothing of it runs in user space: `load::Attached::attach` loads the object,
//! pins it and ends.
//!
//! | module | holds |
//! |---|---|
//! | [`scheme`] | schemes that the kernel can carry, their parameters; reasons against others |
//! | [`layout`] | the numbers that the object and this crate exchange |
//! | [`history`] | path records: from and to the kernel's clock and the QUIC server's format |
//! | [`stats`] | counters as Prometheus text, why records as lines, in the QUIC server's names |
//! | [`needs`] | missing features of a machine, and the level that it can run |
//! | `load` | attach, status, set, detach; with the feature `load` |
//! | `replay` | the decisions of the loaded object alone, for tests; with the feature `load` |
//!
//! The C source is in `src/bpf`, with the object that `build.sh` makes of it: no compiler
//! for it is needed where this crate is built. `decide.h` is the C twin of the schemes of
//! [`headstart_startup`]; the test `vectors` replays the Rust schemes' decisions on the object.
//!
//! # Limits of a congestion control in eBPF
//!
//! - The first ten segments are not paced; later ones leave in groups of about a millisecond.
//! - It is called before a group of segments leaves, not for each. Decisions that depend on the
//!   bytes in flight are made once per group (`WiseStart`'s 2, 0.5 and 1 times the rate).
//! - It cannot send a segment again: no Halfback, no Proactive TCP.

pub mod history;
pub mod layout;
#[cfg(feature = "load")]
pub mod load;
pub mod needs;
#[cfg(feature = "load")]
pub mod replay;
pub mod scheme;
pub mod stats;

/// An error in one line: the action, the state found, the state expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// An error with this message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
