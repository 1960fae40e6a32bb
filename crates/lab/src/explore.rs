//! `headstart explore`: the race as a local page.
//!
//! The page has the options of a race as sliders and fields ([`state`]). Every change is a run on
//! the simulator: its first answer has one seed of a short simulated time, and later ones add seeds
//! ([`runs`]). Each answer is that of a `headstart race` whose command line stands beside it.
//! Figures and tables are those of the report. One flow of each of two schemes is shown packet by
//! packet ([`packets`]). [`server`] is reached from this machine only, with a token, and bounds the
//! work that requests can cause.

pub mod packets;
pub mod runs;
pub mod server;
pub mod state;
