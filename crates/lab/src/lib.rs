//! Which fast start is best on my path, and what does it cost everybody else?
//!
//! The laboratory around the simulator: it turns options into runs, adds up what happened, and shows it.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | what can be asked for on the command line |
//! | [`setup`] | from options to scenarios |
//! | [`runner`] | runs on all cores, the same results whatever their number |
//! | [`race`], [`capacity`], [`sweep`] | the comparisons |
//! | [`experiment`] | papers as plans and claims, run and checked |
//! | [`lens`] | one flow in detail |
//! | [`show`] | tables, figures and reports of all these |
//! | [`har`] | pages as browsers save them |
//! | [`statistics`] | means, quantiles, confidence intervals |
//! | [`figure`], [`table`], [`report`], [`markup`] | how numbers become pictures, tables and pages |
//! | [`output`] | result files, whole or not at all |

pub mod capacity;
pub mod experiment;
pub mod figure;
pub mod har;
pub mod lens;
pub mod markup;
pub mod options;
pub mod output;
pub mod race;
pub mod report;
pub mod runner;
pub mod setup;
pub mod show;
pub mod statistics;
pub mod sweep;
pub mod table;
