//! Where a comparison is run.

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
