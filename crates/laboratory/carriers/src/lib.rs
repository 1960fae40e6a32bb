//! Carriers of runs other than the simulator's TCP model.
//!
//! | module | holds | feature |
//! |---|---|---|
//! | [`virtual_quic`] | the QUIC stack in virtual time | `quic` |
//! | [`emulator`] | the QUIC stack and the kernel's TCP in real time | `emulator` |
//!
//! A program passes [`ALL`] to the functions that build setups from options. A carrier that was not
//! built is not in the list, and options that choose it are refused by name.

#[cfg(feature = "emulator")]
pub mod emulator;
#[cfg(feature = "quic")]
pub mod virtual_quic;

use headstart_study::carrier::{Carriers, model::Model};

/// All carriers of this build.
pub const ALL: Carriers = Carriers(&[
    &Model,
    #[cfg(feature = "quic")]
    &virtual_quic::VirtualQuic,
    #[cfg(feature = "emulator")]
    &emulator::EmulatedQuic,
    #[cfg(feature = "emulator")]
    &emulator::KernelTcp,
]);
