//! Quick-Start: hosts ask for a rate, every router on the path agrees, or nothing happens.
//!
//! Sources: RFC 4782 (QSR below) for formats and rules, and the paper (QS below): P. Sarolahti, M.
//! Allman, S. Floyd, "Evaluating Quick-Start for TCP", February 2005, for what routers and senders
//! do with them.
//!
//! ```text
//!  sender                router         router                receiver
//!    | rate, TTL, nonce    |              |                      |
//!    |-------------------> | lowers rate, | ...                  |
//!    |                     | TTL - 1      |--------------------> | echoes rate, IP TTL - QS TTL, nonce
//!    | <------------------------------------------------------- |
//!    | the difference is the same: every router agreed
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`rate`] | the four bits of a rate: 80 kbit/s x 2^n |
//! | [`nonce`] | thirty bits that give away who raises a rate |
//! | [`option`] | the IPv4 and IPv6 options: request, and report of the approved rate |
//! | [`response`] | the TCP option that echoes |
//! | [`request`] | the request on its way, and what the sender makes of the echo |
//! | [`question`] | for how much to ask |
//! | [`router`] | what a router grants |

pub mod nonce;
pub mod option;
pub mod question;
pub mod rate;
pub mod request;
pub mod response;
pub mod router;

pub use nonce::Nonce;
pub use option::{IpOption, Malformed};
pub use question::{Amount, Question};
pub use rate::EncodedRate;
pub use request::{Asked, Denied, Echo, Request};
pub use response::Response;
pub use router::Router;
