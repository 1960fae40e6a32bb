//! Workloads from files and from distributions.

pub mod files;
pub mod web;
