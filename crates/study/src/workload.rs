//! Workloads that are read or drawn.

pub mod files;
pub mod web;
