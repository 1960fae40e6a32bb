//! The command `headstart`: what a user types, and what she sees.
//!
//! Comparisons come from [`headstart_compare`], what is measured outside of the simulator from
//! `headstart_field`, and tables, words and figures from [`headstart_show`].

// Shadows `std`'s, which panics if standard error is closed: a note that nobody reads ends no run.
macro_rules! eprintln {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}

pub mod command;
