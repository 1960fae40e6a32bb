//! Papers as data: what a paper ran, what it says came out, and whether the same comes out here.
//!
//! A paper is a folder of `experiments/`, each of its figures a folder in that:
//!
//! | file | holds |
//! |---|---|
//! | `<paper>/paper.toml` | common part: path, transport, schemes by the paper's names, variants |
//! | `<paper>/<figure>/plan.toml` | what is varied, what is drawn ([`plan`]) |
//! | `<paper>/<figure>/claims.toml` | the paper's numbers ([`claim`]) |
//! | `<paper>/<figure>/notes.md` | how and why ours differ |
//!
//! # To add a figure
//!
//! Write the three files and add the folder's name to the list in [`library`]. Tables `[path]`,
//! `[transport]`, `[workload]` and `[run]` of a plan take the command line's options under the
//! command line's names, so that each is declared once. A figure needs code only if
//!
//! - a run is not a dumbbell with arriving flows: add a [`Study`](headstart_study::study::Study),
//!   whose one job is to turn a setup, a mix and a seed into
//!   [`Numbers`](headstart_study::study::Numbers) (names and values). Seeds, threads, resuming,
//!   claims, tables and drawings then work as they are. A population of paths draws one path for
//!   each seed and runs all schemes on it; quantities are then paired by path, and `draw =
//!   "distribution"` shows the distribution over paths;
//! - a number is not measured yet: declare it there.
//!
//! | module | holds |
//! |---|---|
//! | [`library`] | the experiments that are built in |
//! | [`plan`] | a paper's common part and a figure's plan |
//! | [`run`] | all runs of all figures, on all cores; what was run before is kept |
//! | [`quantity`] | a number of a claim or a figure, with its interval |
//! | [`claim`] | the paper's numbers, and the verdict |
//! | [`draw`] | figures and their tables |

pub mod claim;
pub mod draw;
pub mod library;
pub mod plan;
pub mod quantity;
pub mod run;
