//! Web pages as workloads.
//!
//! | module | holds |
//! |---|---|
//! | [`har`] | pages as browsers save them |
//! | [`front_pages`] | pages as statistics describe them |

pub mod front_pages;
pub mod har;
