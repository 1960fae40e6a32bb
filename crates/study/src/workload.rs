//! Workloads that are read or drawn.

pub mod web;
