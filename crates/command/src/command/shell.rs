//! `headstart generate completions` and `man`: the command line as shell script and manual pages.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use clap_complete::Shell;

use super::terminal::print;
use headstart_report::errors::Refuse as _;

/// Options of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Options of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Folder for headstart.1, headstart-race.1 and the rest
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Prints a script that completes commands, options and their values.
///
/// # Errors
/// If nothing can be printed.
pub fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut super::parser(), "headstart", &mut script);
    print(&String::from_utf8(script)?)
}

/// Writes a page of the manual for each command.
///
/// # Errors
/// If the folder cannot be written.
pub fn man(args: &ManArgs) -> Result<()> {
    let folder = args.folder.display();
    if args.folder.is_file() {
        return Err(anyhow!("{folder}: found a file, expected a folder")).or_refuse();
    }
    std::fs::create_dir_all(&args.folder).with_context(|| format!("cannot create {folder}")).or_refuse()?;
    clap_mangen::generate_to(super::parser(), &args.folder)
        .with_context(|| format!("cannot write to {folder}"))?;
    print(&format!("{folder}: read with `man -l {folder}/headstart.1`\n"))
}
