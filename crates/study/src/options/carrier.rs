//! Transports that carry the data.

use clap::ValueEnum;

/// Transport of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TransportName {
    /// The simulator's TCP model.
    #[default]
    Tcp,
    /// The real QUIC stack in virtual time.
    Quic,
}

/// Protection of QUIC packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CryptoName {
    /// TLS 1.3.
    #[default]
    Tls,
    /// None: for large sweeps.
    Null,
}
