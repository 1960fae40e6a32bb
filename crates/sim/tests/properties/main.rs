//! Properties of every run, for every path, scheme, setting and workload.
//!
//! `HEADSTART_CASES=5000 cargo test -p headstart-sim --test properties` tests more cases than
//! usual.
//!
//! | module | holds |
//! |---|---|
//! | [`case`] | a run as data |
//! | [`draw`] | drawing of cases |
//! | [`watch`] | a recorder that notes forbidden actions of senders |
//! | [`delivery`] | everything is delivered once |
//! | [`recovery`] | timers, probes and retransmissions |
//! | [`handshake`] | the RTT of handshakes that lose packets |
//! | [`pace`] | the pace of first flights |

mod case;
mod delivery;
mod draw;
mod handshake;
mod pace;
mod recovery;
mod watch;
