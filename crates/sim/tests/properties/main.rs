//! What holds of every run, whatever the path, the scheme, the settings and the workload.
//!
//! `HEADSTART_CASES=5000 cargo test -p headstart-sim --test properties` tests more cases than
//! usual.
//!
//! | module | holds |
//! |---|---|
//! | [`case`] | a run as data |
//! | [`draw`] | how cases are drawn |
//! | [`watch`] | a recorder that notes what no sender may do |
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
