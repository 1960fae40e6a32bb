//! A web server whose connections start fast, and a client that measures them.
//!
//! The server answers over HTTP/3 on an unmodified QUIC stack and, on the same port number of TCP,
//! over HTTP/1.1 and 2, which tell browsers where HTTP/3 is. What makes connections start fast is
//! not here: it enters by one door, [`admission`].
//!
//! | module | holds |
//! |---|---|
//! | [`site`] | what is served: files of a folder, or bytes made up for measurements |
//! | [`server`] | the server over HTTP/3 |
//! | [`tcp`] | HTTP/1.1 and 2 beside it |
//! | [`admission`] | how connections are let in and configured; the stack as it comes |
//! | [`open`] | from a certificate, schemes and a history to an endpoint |
//! | [`start`] | connections that start fast, by `headstart_quic` |
//! | [`choice`] | how a client asks for a scheme |
//! | [`identity`] | the certificate: one's own, or made on first use |
//! | [`metrics`] | counters over plain HTTP |
//! | [`client`] | fetches pages and says how long it took |

mod adapter;
pub mod admission;
pub mod choice;
pub mod client;
pub mod identity;
pub mod metrics;
pub mod open;
pub mod server;
pub mod site;
pub mod start;
pub mod tcp;

use std::sync::Arc;

/// The cryptography that all of this crate uses.
#[must_use]
pub fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
