//! Options of a start that `attach`, `run` and `set` share.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use headstart_ebpf::layout::Settings;
use headstart_ebpf::load::Options;
use headstart_ebpf::needs::{Level, Machine};
use headstart_ebpf::scheme::Scheme;
use headstart_units::{Bytes, Rate, Span};

use super::idle;
use headstart_study::options::{at_least, whole};

/// Peers remembered at most, by default.
const PEERS: u32 = 65_536;

/// Prints notes on options without an effect.
pub fn print_notes(notes: &[String]) {
    notes.iter().for_each(|note| eprintln!("headstart: {note}"));
}

/// Options of attach and set.
#[derive(Args, Clone, Debug)]
pub struct SettingOptions {
    /// Percent of the eligible connections that get the scheme; the others are the control arm
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub percent: Option<u32>,
    /// The most that a record or hint may claim
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<Rate>,
    /// The most bytes of a first flight
    #[arg(long, value_name = "SIZE")]
    pub max_window: Option<Bytes>,
    /// Largest age of a record
    #[arg(long, value_name = "TIME", value_parser = at_least(Span::from_millis(1)))]
    pub lifetime: Option<Span>,
    /// The most that a hint may claim
    #[arg(long, value_name = "RATE")]
    pub max_hint: Option<Rate>,
    /// Read hints of clients, whatever the scheme [default: blitzstart does]
    #[arg(long, value_name = "YES|NO")]
    pub hints: Option<Answer>,
    /// Several live starts to one peer share its rate; otherwise the first has it all and the
    /// others start normally [default: yes]
    #[arg(long, value_name = "YES|NO")]
    pub share: Option<Answer>,
    /// Refuse a record of another round-trip time [default: yes]
    #[arg(long, value_name = "YES|NO")]
    pub same_path: Option<Answer>,
    /// Start fast again after idle [default: yes]
    #[arg(long, value_name = "YES|NO")]
    pub after_idle: Option<Answer>,
    /// The connections that this host opens, too [default: no]
    #[arg(long, value_name = "YES|NO")]
    pub outgoing: Option<Answer>,
    /// jump-start: most bytes of a flight, since an answer's size is unknown in the kernel;
    /// careful-resume: of a jump
    #[arg(long, value_name = "SIZE", value_parser = at_least(Bytes::new(1)))]
    pub cap: Option<Bytes>,
    /// Segments of the initial window where nothing is known
    #[arg(long, value_name = "SEGMENTS", value_parser = whole(1..=1000_u32))]
    pub initial_window: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Answer {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelName {
    /// The best that this machine can run
    Auto,
    /// The congestion control
    Control,
    /// sock_ops only, for older kernels: a larger, paced first window over the present control
    Window,
}

/// Options of attach and run.
#[derive(Args, Clone, Debug)]
pub struct StartOptions {
    /// The scheme: headstart, wise-start, jump-start ...
    #[arg(long, value_name = "NAME", default_value = "headstart", value_parser = str::parse::<Scheme>)]
    pub scheme: Scheme,
    #[command(flatten)]
    pub settings: SettingOptions,
    /// Peers remembered at most [default: 65536]
    #[arg(long, value_name = "NUMBER", value_parser = whole(1..=1_u32 << 22))]
    pub peers: Option<u32>,
    /// Level of the loaded programs
    #[arg(long, value_enum, default_value = "auto")]
    pub level: LevelName,
    /// With --level window: the pacing limit of the first window [default: none]
    #[arg(long, value_name = "RATE", value_parser = at_least(Rate::from_bytes_per_sec(1)))]
    pub window_rate: Option<Rate>,
}

fn percent(text: &str) -> Result<u32, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok((percent * 100.0).round() as u32),
        _ => Err(format!("found `{text}`, expected 0 to 100")),
    }
}

impl SettingOptions {
    pub fn apply(&self, settings: &mut Settings) -> Result<()> {
        let Self { percent, max_rate, max_window, lifetime, max_hint, .. } = self;
        let yes = |answer: Option<Answer>, now: bool| answer.map_or(now, |it| it == Answer::Yes);
        if let Some(rate) = max_rate {
            ensure!(
                !rate.is_zero(),
                "--max-rate: found {rate}, expected more than 0 (`headstart tcp set --stop` ends all fast starts)"
            );
            settings.max_rate = rate.as_bytes_per_sec();
        }
        if let Some(window) = max_window {
            ensure!(
                *window >= Bytes::new(14_600),
                "--max-window: found {window}, expected at least ten segments"
            );
            settings.max_window = window.get();
        }
        if let Some(lifetime) = lifetime {
            settings.lifetime = lifetime.as_nanos().min(i64::MAX as u64);
            settings.params.lifetime = settings.lifetime;
        }
        settings.hundredths = percent.unwrap_or(settings.hundredths);
        settings.hint_rate = max_hint.map_or(settings.hint_rate, Rate::as_bytes_per_sec);
        settings.reads_hint = yes(self.hints, settings.reads_hint);
        settings.shares = yes(self.share, settings.shares);
        settings.same_path = yes(self.same_path, settings.same_path);
        settings.restarts_after_idle = yes(self.after_idle, settings.restarts_after_idle);
        settings.outgoing = yes(self.outgoing, settings.outgoing);
        settings.params.cap = self.cap.map_or(settings.params.cap, Bytes::get);
        settings.params.initial_window = self.initial_window.unwrap_or(settings.params.initial_window);
        Ok(())
    }
}

impl StartOptions {
    pub fn level(&self) -> Result<Level> {
        let machine = Machine::detect();
        let wanted = match self.level {
            LevelName::Auto => machine.level(),
            LevelName::Control => Some(Level::Control),
            LevelName::Window => Some(Level::Window),
        };
        let level = wanted.unwrap_or(Level::Window);
        let missing = machine.missing(level);
        ensure!(missing.is_empty(), "level {level} cannot run here: {}", missing.join("; "));
        if self.level == LevelName::Auto && level == Level::Window {
            let missing = machine.missing(Level::Control).join("; ");
            eprintln!(
                "headstart: level window, which has no history and no scheme but a larger first window: {missing}"
            );
        }
        Ok(level)
    }

    pub fn options(&self, cgroup: Option<PathBuf>, namespace_default: bool) -> Result<Options> {
        let level = self.level()?;
        let mut settings = self.scheme.settings();
        self.settings.apply(&mut settings)?;
        print_notes(&idle::of_start(self, &settings, level));
        if level == Level::Window {
            settings.window = match self.scheme {
                Scheme::SlowStart(segments) => segments,
                _ => self.settings.initial_window.unwrap_or(settings.window),
            };
            settings.window_rate = self.window_rate.map_or(0, Rate::as_bytes_per_sec);
        }
        Ok(Options { settings, level, peers: self.peers.unwrap_or(PEERS), cgroup, namespace_default })
    }
}
