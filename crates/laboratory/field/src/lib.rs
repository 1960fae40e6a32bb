//! Measured outside of the simulator.
//!
//! | module | holds |
//! |---|---|
//! | [`ab`] | a rollout with two arms, judged from a server's log or counters |
//! | `link` | the path of a race on real packets |
//! | `measure` | options of a path from captures, logs and commands of the machine |
//! | `page` | pages of HAR files as sites for a real browser |

#[cfg(feature = "rollout")]
pub mod ab;
#[cfg(feature = "network")]
pub mod link;
#[cfg(feature = "network")]
pub mod measure;
#[cfg(feature = "network")]
pub mod page;
