//! Commands that this program was built without: they are listed, with the way to get them.

#[cfg(not(all(feature = "explore", feature = "fleet", feature = "shell")))]
use std::ffi::OsString;

/// The commands that need the feature `network`.
const NETWORK: [&str; 10] =
    ["downlink", "measure", "link", "show-link", "demo", "page", "serve", "proxy", "get", "ab"];
/// Commands that need `explore`.
const EXPLORE: [&str; 1] = ["explore"];
/// Commands that need `fleet`.
const FLEET: [&str; 1] = ["history"];
/// Commands that need `shell`.
const SHELL: [&str; 2] = ["completions", "man"];

/// Marks, in the list of commands, those that are not in this program.
pub fn marked(parser: clap::Command) -> clap::Command {
    let network = NETWORK.iter().filter(|_| !cfg!(feature = "network"));
    let shell = SHELL.iter().filter(|_| !cfg!(feature = "shell"));
    let explore = EXPLORE.iter().filter(|_| !cfg!(feature = "explore"));
    let fleet = FLEET.iter().filter(|_| !cfg!(feature = "fleet"));
    network.chain(explore).chain(fleet).chain(shell).fold(parser, |parser, name| {
        parser.mut_subcommand(name, |command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            command.about(format!("{about} [--features full]"))
        })
    })
}

/// Any arguments of a command that was not built.
#[cfg(not(all(feature = "explore", feature = "fleet", feature = "shell")))]
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct NotBuilt {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

#[cfg(not(all(feature = "explore", feature = "fleet", feature = "shell")))]
impl NotBuilt {
    /// Explains how to get the command.
    ///
    /// # Errors
    /// Always, as a refusal.
    pub fn refuse(self) -> anyhow::Result<()> {
        use headstart_report::errors::Refuse as _;
        let name = super::terminal::arguments().nth(1).unwrap_or_default();
        Err(anyhow::anyhow!("{name}: this build lacks it: expected {}", headstart_study::carrier::EVERYTHING))
            .or_refuse()
    }
}
