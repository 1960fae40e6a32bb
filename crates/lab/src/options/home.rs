//! Where a comparison is run, and whose transport it runs.

use clap::ValueEnum;

/// Where a comparison is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Home {
    /// In virtual time.
    #[default]
    Simulator,
    /// In real time: real packets of a real transport cross the path's elements.
    Emulator,
}

/// Whose transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TransportName {
    /// TCP: the simulator's model of it, the emulator's kernel.
    #[default]
    Tcp,
    /// QUIC.
    Quic,
}
