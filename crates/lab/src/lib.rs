//! Which fast start is best on my path, and what does it cost everybody else?
//!
//! The laboratory around the simulator: it turns options into runs, adds up what happened, and shows it. Tables, figures, pages and
//! result files are those of [`headstart_report`].
//!
//! | module | holds |
//! |---|---|
//! | [`race`], [`capacity`], [`sweep`] | the comparisons |
//! | [`experiment`] | papers as plans and claims, run and checked |
//! | [`show`] | tables, figures and reports of all these |
//! | [`link`] | the same path on real packets |
//! | [`serve`], [`get`], [`demo`] | a real server and client, and both with a path between them |
//! | [`examples`] | lines that `--help` ends with |
//! | [`complaint`] | what is said when a command fails, and its exit code |

pub mod capacity;
pub mod complaint;
pub mod demo;
pub mod examples;
pub mod experiment;
pub mod get;
pub mod link;
pub mod race;
pub mod serve;
pub mod show;
pub mod sweep;

pub use headstart_report::page as report;
pub use headstart_report::{figure, markup, output, statistics, table};
pub use headstart_study::{carrier, flow_trace, options, runner, setup};

/// Everything that can carry a run.
pub const CARRIERS: carrier::Carriers = headstart_carriers::ALL;
