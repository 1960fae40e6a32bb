//! `headstart downlink`: estimates of this machine's downlink.

use std::fs;

use anyhow::{Context, Result};

use super::format::Format;
use super::terminal::print;
use crate::errors::Refuse as _;
use crate::show;

pub use crate::show::downlink::DownlinkArgs;

/// Queries every estimator and prints the answers.
pub fn run(args: &DownlinkArgs) -> Result<()> {
    if let Some(file) = &args.networks {
        fs::read(file).with_context(|| format!("--networks {}", file.display())).or_refuse()?;
    }
    let report = show::downlink::ask(args);
    let table = show::downlink::table(&report, args.steps);
    match args.format {
        Format::Json => {
            let document = show::downlink::document(&report, args.steps);
            print(&(serde_json::to_string_pretty(&document)? + "\n"))
        }
        other => other.print_table(&table),
    }
}
