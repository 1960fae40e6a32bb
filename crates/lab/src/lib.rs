//! Which fast start is best on my path, and what does it cost everybody else?
//!
//! | module | holds |
//! |---|---|
//! | [`har`] | reads pages as browsers save them |
//! | [`output`] | result files, whole or not at all |
//! | [`statistics`] | means, intervals and quantiles of repeated runs |

pub mod har;
pub mod output;
pub mod statistics;
