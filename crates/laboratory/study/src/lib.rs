//! Runs and studies of start-up schemes: options to runs, carriers, measures of each study.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | options of the command line and of plans |
//! | [`settings`] | the same as tables of a plan |
//! | [`setup`] | from options to runs |
//! | [`carrier`] | carriers of runs: one trait, and the TCP model |
//! | [`jobs`] | many runs, none of them repeated |
//! | [`estimate`] | cost of runs, estimated before they begin |
//! | [`progress`] | progress of runs |
//! | [`feasible`] | the highest load at which a scheme still works |
//! | [`dependencies`] | options that take effect only with others |
//! | [`runner`] | runs on all cores, the same results whatever their number |
//! | [`schemes`] | schemes by name, with parameters |
//! | [`flow_trace`] | one flow in detail |
//! | [`flow_rows`] | every flow as a row of a file |
//! | [`workload`] | pages as browsers save them, and drawn from statistics |
//! | [`study`], [`catalogue`] | the interface of studies, and the list of them |
//! | [`dumbbell`] | flows that arrive at one bottleneck |
//! | [`informed`] | the start that knows the state of the path |
//! | [`newcomers`] | short flows that enter a path on which others are established |
//! | [`drawn_paths`] | a scheme compared with `iw10` on paths drawn from distributions |
//! | [`wide_area`] | paths drawn at random, and one flow over each |
//! | [`quick_start`] | the set-up of the Quick-Start paper: three routers in a chain |
//! | [`connection_vectors`] | the set-up of the fast-startup slides: vectors over a dumbbell |
//! | [`history`] | starts that draw on records of earlier connections |

// Shadows `std`'s, which panics if standard error is closed: a note that nobody reads ends no run.
macro_rules! eprintln {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}

pub mod carrier;
pub mod catalogue;
pub mod connection_vectors;
pub mod dependencies;
pub mod drawn_paths;
pub mod dumbbell;
pub mod estimate;
pub mod feasible;
pub mod flow_rows;
pub mod flow_trace;
pub mod history;
pub mod informed;
pub mod jobs;
pub mod newcomers;
pub mod options;
pub mod progress;
pub mod quick_start;
pub mod runner;
pub mod schemes;
pub mod settings;
pub mod setup;
pub mod study;
pub mod wide_area;
pub mod workload;
