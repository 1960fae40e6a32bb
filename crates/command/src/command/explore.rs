//! `headstart explore`: the race as a local page.
//!
//! The page has the options of a race as sliders and fields ([`state`]). Every change is a run on
//! the simulator: its first answer has one seed of a short simulated time, and later ones add seeds
//! ([`runs`]). Each answer is the result of a `headstart race`, whose command line the page shows.
//! Figures and tables are the report's. One flow of each of two schemes is shown packet by
//! packet ([`packets`]). [`server`] is reached from this machine only, with a token, and bounds the
//! work that requests can cause.

mod packets;
mod runs;
mod server;
mod state;

use anyhow::{Context as _, Result};
use clap::Args;

use super::plan::PlanOptions;
use super::terminal::print;
use headstart_report::errors::Refuse as _;
use headstart_study::options::{PathOptions, RunOptions, WorkloadOptions};
use server::{Server, bind};
use state::{OPTIONS, State};

/// Options of the command that the page does not have.
const OWN: [&str; 5] = ["help", "no-open", "plan", "port", "save-plan"];

/// True for an option of the command or of the page.
pub fn is_known(long: &str) -> bool {
    OWN.contains(&long) || OPTIONS.contains(&long)
}

/// Options of `explore`.
#[derive(Args, Debug)]
pub struct ExploreArgs {
    #[command(flatten)]
    pub plan: PlanOptions,
    #[command(flatten)]
    pub path: PathOptions,
    #[command(flatten)]
    pub workload: WorkloadOptions,
    #[command(flatten)]
    pub run: RunOptions,
    /// Port of the page on 127.0.0.1; 0 is any that is free
    #[arg(long, default_value_t = 0, value_name = "PORT", help_heading = "Page", value_parser = headstart_study::options::whole(0..=u16::MAX))]
    pub port: u16,
    /// Print the address and open no browser
    #[arg(long, help_heading = "Page")]
    pub no_open: bool,
}

/// Serves the page until Ctrl-C; it begins with the `given_options`.
///
/// # Errors
/// If an option is refused, or the port is in use.
pub fn run(args: &ExploreArgs, given_options: &[String]) -> Result<()> {
    let is_own = |word: &String| {
        let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        OWN.contains(&name)
    };
    let words: Vec<String> = given_options.iter().filter(|word| !is_own(word)).cloned().collect();
    let first = State::of_words(&words).or_refuse()?;
    runs::prepare(first.clone()).or_refuse()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start threads")?;
    runtime.block_on(async {
        let listener = bind(args.port)
            .await
            .with_context(|| format!("--port: cannot listen on 127.0.0.1:{}", args.port))?;
        let server = Server::new(listener.local_addr()?.port(), first)?;
        let address = server.address();
        print(&format!("{address}\n"))?;
        eprintln!("headstart: the page is served to this machine only; Ctrl-C ends it");
        if !args.no_open
            && let Err(error) = open::that_detached(&address)
        {
            eprintln!("headstart: no browser could be opened ({error}): open the address above");
        }
        server.serve(listener).await;
        Ok(())
    })
}
