//! Quick-Start: a host requests a rate, which applies only if every router on the path approves.
//!
//! Sources: RFC 4782 (QSR below) for formats and rules, and the paper (QS below): P. Sarolahti, M.
//! Allman, S. Floyd, "Evaluating Quick-Start for TCP", February 2005, for the algorithms of routers
//! and senders.
//!
//! ```text
//!  sender                router         router              receiver
//!    | rate, TTL, nonce    |              |                    |
//!    |-------------------> | lowers rate, | ...                | echoes rate,
//!    |                     | TTL - 1      |------------------> | IP TTL - QS TTL, nonce
//!    | <------------------------------------------------------ |
//!    | the difference is the same: every router approved
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`rate`] | the four bits of a rate: 80 kbit/s x 2^n |
//! | [`nonce`] | thirty bits that expose a raised rate |
//! | [`option`] | the IPv4 and IPv6 options: request, and report of the approved rate |
//! | [`response`] | the TCP option that echoes |
//! | [`request`] | the request in transit, and the sender's check of the echo |
//! | [`request_inputs`] | the rate to request |
//! | [`router`] | the router's decision |

pub mod nonce;
pub mod option;
pub mod rate;
pub mod request;
pub mod request_inputs;
pub mod response;
pub mod router;

pub use nonce::Nonce;
pub use option::{IpOption, Malformed};
pub use rate::EncodedRate;
pub use request::{DenialReason, Echo, Request, SentRequest};
pub use request_inputs::{Amount, RequestInputs};
pub use response::Response;
pub use router::Router;
