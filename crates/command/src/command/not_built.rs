//! Commands that this program was built without: they are listed, with the way to get them.

use std::ffi::OsString;

use headstart_report::errors::Refuse as _;

use super::table::Acts;

/// Any arguments of a command that was not built.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
struct NotBuilt {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// A command that needs the Cargo feature: it explains how to get it.
pub const fn acts(feature: &'static str) -> Acts {
    let (lacks, run): (_, fn(&clap::ArgMatches, &super::Line) -> _) = match feature.as_bytes() {
        b"tcp" => ("tcp", |_, _| {
            refuse(
                "tcp: found a headstart that was built without it, expected one of `cargo install --path crates/command --features tcp` \
                 (it compiles libbpf: apt-get install gcc make pkg-config libelf-dev zlib1g-dev)",
            )
        }),
        _ => ("full", |_, _| {
            let name = super::terminal::arguments().nth(1).unwrap_or_default();
            let everything = headstart_study::carrier::EVERYTHING;
            refuse(&format!("{name}: this build lacks it: expected {everything}"))
        }),
    };
    Acts { augment: <NotBuilt as clap::Args>::augment_args, run, lacks: Some(lacks) }
}

fn refuse(message: &str) -> anyhow::Result<u8> {
    Err(anyhow::anyhow!("{message}")).or_refuse()
}
