//! Schemes beside one another: which is fastest, and what it costs everybody else.
//!
//! | module | holds |
//! |---|---|
//! | [`race`] | schemes on one path, seed by seed |
//! | [`sweep`], [`crossing`] | a race at each point of a grid, and crossings of two schemes there |
//! | [`capacity`] | the load up to which a scheme is feasible |
//! | [`verdict`] | the winner of a race, and who harms others |
//! | [`measures`], [`conditions`], [`flows`] | columns of files; every flow as a row |

/// The version, with the commit that the program is built from where that is known.
pub const VERSION: &str = env!("HEADSTART_VERSION");

pub mod capacity;
pub mod conditions;
pub mod crossing;
pub mod flows;
pub mod measures;
pub mod race;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod sweep;
pub mod verdict;
