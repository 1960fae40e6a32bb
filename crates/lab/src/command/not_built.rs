//! Commands that this program was built without: they are listed, and say how to get them.

#[cfg(not(feature = "network"))]
use std::ffi::OsString;

/// The commands that need the feature `network`.
#[cfg(not(feature = "network"))]
const NOT_BUILT: [&str; 6] = ["downlink", "link", "show-link", "demo", "serve", "get"];

/// Marks, in the list of commands, those that are not in this program.
pub fn marked(parser: clap::Command) -> clap::Command {
    #[cfg(not(feature = "network"))]
    let parser = NOT_BUILT.iter().fold(parser, |parser, name| {
        parser.mut_subcommand(name, |command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            command.about(format!("{about} (not in this program: --features full)"))
        })
    });
    parser
}

/// Whatever is asked of a command that was not built.
#[cfg(not(feature = "network"))]
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct NotBuilt {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

#[cfg(not(feature = "network"))]
impl NotBuilt {
    /// Says how to get the command.
    ///
    /// # Errors
    /// Always, as a refusal.
    pub fn refuse(self) -> anyhow::Result<()> {
        use crate::errors::Refuse as _;
        let name = std::env::args().nth(1).unwrap_or_default();
        Err(anyhow::anyhow!(
            "{name}: found a program without it, expected {}",
            headstart_study::carrier::EVERYTHING
        ))
        .or_refuse()
    }
}
