//! Integration tests, as one program.

mod comparison;
mod conformance;
mod example;
mod on_noq;
mod on_quinn;
mod scenario;
