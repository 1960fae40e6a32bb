//! Environment of a comparison: simulator or emulator.

use clap::ValueEnum;

/// Environment of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Environment {
    /// In virtual time.
    #[default]
    Simulator,
    /// In real time: real packets of a real transport cross the path's elements.
    Emulator,
}
