//! Flows that enter a path on which others are established.
//!
//! | module | holds |
//! |---|---|
//! | [`requests`] | short flows from request to last byte, and the long ones' loss (Blitzstart) |
//! | [`throughput`] | the throughput of an established flow, in bins (Halfback Figure 15) |

pub mod requests;
pub mod throughput;

use clap::Args;

/// Number of newcomers.
#[derive(Args, Clone, Debug)]
pub struct NewcomerParams {
    /// Flows that enter a path on which another is established
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = crate::options::whole(1..=16_u8))]
    pub newcomers: u8,
}
