//! Runs and studies of start-up schemes: from options to a run, what carries it, and what each
//! study measures.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | what can be asked for on the command line and in plans |
//! | [`settings`] | the same as tables of a plan |
//! | [`setup`] | from options to runs |
//! | [`carrier`] | what carries a run: one trait, and the TCP model |
//! | [`jobs`] | many runs, of which none is done twice |
//! | [`estimate`] | what runs will cost, before they begin |
//! | [`progress`] | how far they are |
//! | [`feasible`] | up to which load a scheme still works |
//! | [`dependencies`] | options that count only beside others |
//! | [`runner`] | runs on all cores, the same results whatever their number |
//! | [`schemes`] | schemes by name, with parameters |
//! | [`flow_trace`] | one flow in detail |
//! | [`flow_rows`] | every flow as a row of a file |
//! | [`workload`] | pages as browsers save them, and as statistics describe them |
//! | [`study`], [`catalogue`] | what a study is, and the list of them |
//! | [`dumbbell`] | flows that arrive at one bottleneck |
//! | [`newcomers`] | short flows that enter a path on which others are established |
//! | [`wide_area`] | paths drawn at random, and one flow over each |
//! | [`quick_start`] | the set-up of the Quick-Start paper: three routers in a chain |
//! | [`connection_vectors`] | the set-up of the fast-startup slides: connection vectors over a dumbbell |
//! | [`history`] | starts that draw on what earlier connections measured |

pub mod carrier;
pub mod catalogue;
pub mod connection_vectors;
pub mod dependencies;
pub mod dumbbell;
pub mod estimate;
pub mod feasible;
pub mod flow_rows;
pub mod flow_trace;
pub mod history;
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
