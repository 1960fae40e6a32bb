//! Transports that carry the data.

use clap::ValueEnum;

/// Transport of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TransportName {
    /// TCP: the simulator's model; in the emulator that of the kernel.
    #[default]
    Tcp,
    /// The real QUIC stack: in virtual time; in the emulator in real time.
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
