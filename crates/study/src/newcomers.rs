//! Flows that enter a path on which others are established.
//!
//! | module | holds |
//! |---|---|
//! | [`requests`] | short flows from request to last byte, and what the long ones lose (Blitzstart) |
//! | [`throughput`] | the throughput of a flow that is there, in bins (Halfback Figure 15) |

pub mod requests;
pub mod throughput;
