//! Resets of connections that a former process of a server had (RFC 9000 §10.3).
//!
//! A client whose server was killed waits for its time limit, unless the next process knows the
//! connection's identifier for one of the server's and can compute its token.

use std::sync::Arc;

use noq_proto::{EndpointConfig, HashedConnectionIdGenerator};
use ring::hmac;

/// Derives the keys of identifiers and of resets from `secret`, which a server has again after a
/// restart. Two servers must not have the same one if a client's packets may reach either: the one
/// would reset connections of the other.
pub fn keep_across_restarts(config: &mut EndpointConfig, secret: &[u8]) {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let derived = |label: &[u8]| hmac::sign(&secret, label);
    let reset_key = hmac::Key::new(hmac::HMAC_SHA256, derived(b"stateless reset").as_ref());
    let ids = derived(b"connection identifiers");
    let seed = ids.as_ref().iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    config.reset_key(Arc::new(reset_key));
    config.cid_generator(Arc::new(move || Box::new(HashedConnectionIdGenerator::from_key(seed))));
}
