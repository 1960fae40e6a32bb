//! Which fast start is best on my path, and what does it cost everybody else?
//!
//! The laboratory around the simulator: it turns options into runs, adds up their reports, and
//! shows the results. Tables, figures, pages and result files come from [`headstart_report`].
//!
//! | module | holds |
//! |---|---|
//! | [`race`], [`capacity`], [`sweep`] | the comparisons |
//! | [`crossing`] | crossings of the order of two schemes in a sweep |
//! | `ab` | a rollout with two arms, judged from a server's log or counters |
//! | [`measures`], [`conditions`], [`flows`] | columns of files; every flow as a row |
//! | [`verdict`] | the winner of a race |
//! | [`headstart_paper`] | papers as plans and claims, run and checked |
//! | [`show`] | tables, figures and reports of all these |
//! | [`link`] | the same path on real packets |
//! | `page` | pages of HAR files as sites for a real browser |
//! | [`command`] | the commands, one file each |
//! | [`errors`] | the message of a command that fails, and its exit code |

// Shadows `std`'s, which panics if standard error is closed: a note that nobody reads ends no run.
macro_rules! eprintln {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}

/// The version, with the commit that the program is built from where that is known.
pub const VERSION: &str = env!("HEADSTART_VERSION");

#[cfg(feature = "ab")]
pub mod ab;
pub mod capacity;
pub mod command;
pub mod conditions;
pub mod crossing;
pub mod errors;
pub mod flows;
#[cfg(feature = "network")]
pub mod link;
#[cfg(feature = "network")]
pub mod measure;
pub mod measures;
#[cfg(feature = "network")]
pub mod page;
pub mod race;
pub mod show;
pub mod sweep;
pub mod verdict;

pub use headstart_report::page as report;
pub use headstart_report::{figure, markup, output, statistics, table};
pub use headstart_study::{
    carrier, estimate, feasible, flow_rows, flow_trace, jobs, options, progress, runner, schemes, setup,
};

/// All carriers of runs.
pub const CARRIERS: carrier::Carriers = headstart_carriers::ALL;
