//! Which fast start is best on my path, and what does it cost everybody else?
//!
//! The laboratory around the simulator: it turns options into runs, adds up what happened, and shows it. Tables, figures, pages and
//! result files are those of [`headstart_report`].
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | what can be asked for on the command line |
//! | [`setup`] | from options to scenarios |
//! | [`carrier`] | what carries a run, and the TCP model |
//! | [`virtual_quic`] | the QUIC stack in virtual time |
//! | [`runner`] | runs on all cores, the same results whatever their number |
//! | [`race`], [`capacity`], [`sweep`] | the comparisons |
//! | [`experiment`] | papers as plans and claims, run and checked |
//! | [`lens`] | one flow in detail |
//! | [`show`] | tables, figures and reports of all these |
//! | [`har`], [`front_pages`] | pages as browsers save them, and as statistics describe them |
//! | [`link`] | the same path on real packets |
//! | [`emulator`] | QUIC and the kernel's TCP in real time |
//! | [`serve`], [`get`], [`demo`] | a real server and client, and both with a path between them |
//! | [`population`], [`wide_area`] | paths drawn at random, and one flow over each |
//! | [`chain`] | the set-up of the Quick-Start paper: three routers in a chain |
//! | [`conversations`] | the set-up of the fast-startup slides: connection vectors over a dumbbell |
//! | [`contest`] | short flows that enter a path on which long ones are established |
//! | [`newcomer`] | what a new flow takes from one that is there |
//! | [`reuse`] | starts that draw on what earlier connections measured |
//! | [`examples`] | lines that `--help` ends with |
//! | [`complaint`] | what is said when a command fails, and its exit code |

pub mod capacity;
pub mod carrier;
pub mod chain;
pub mod complaint;
pub mod contest;
pub mod conversations;
pub mod demo;
pub mod emulator;
pub mod examples;
pub mod experiment;
pub mod front_pages;
pub mod get;
pub mod har;
pub mod lens;
pub mod link;
pub mod newcomer;
pub mod options;
pub mod population;
pub mod race;
pub mod reuse;
pub mod runner;
pub mod serve;
pub mod setup;
pub mod show;
pub mod sweep;
pub mod virtual_quic;
pub mod wide_area;

pub use headstart_report::page as report;
pub use headstart_report::{figure, markup, output, statistics, table};

/// Everything that can carry a run.
pub const CARRIERS: carrier::Carriers = carrier::Carriers(&[
    &carrier::model::Model,
    &virtual_quic::VirtualQuic,
    &emulator::EmulatedQuic,
    &emulator::KernelTcp,
]);
