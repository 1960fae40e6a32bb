//! Options of `tcp` that have no effect with the scheme and level in use.

use headstart_ebpf::layout::Settings;
use headstart_ebpf::needs::Level;
use headstart_ebpf::scheme::Scheme;

use super::options::{SettingOptions, StartOptions};

/// Notes on options of `attach` and `run`.
pub fn of_start(options: &StartOptions, settings: &Settings, level: Level) -> Vec<String> {
    let mut idle = of_settings(&options.settings, settings, level);
    if level != Level::Window && options.window_rate.is_some() {
        idle.push(note("window-rate", "without --level window"));
    }
    if level == Level::Window {
        if options.peers.is_some() {
            idle.push(note("peers", "at level window, which has no history"));
        }
        if matches!(options.scheme, Scheme::SlowStart(_)) && options.settings.initial_window.is_some() {
            idle.push(note("initial-window", "at level window with a scheme that names its window"));
        }
    }
    idle
}

/// Notes on settings, of `set` too; `settings` are those that result.
pub fn of_settings(options: &SettingOptions, settings: &Settings, level: Level) -> Vec<String> {
    let scheme = Scheme::of(&settings.params);
    let records = !matches!(scheme, Scheme::SlowStart(_) | Scheme::JumpStart);
    let has_cap = !matches!(
        scheme,
        Scheme::SlowStart(_) | Scheme::SCubic | Scheme::TcpCache | Scheme::WiseStart | Scheme::WiseStartWa
    );
    let SettingOptions { percent, max_rate, max_window, lifetime, max_hint, .. } = options;
    let given = [
        ("percent", percent.is_some(), None),
        ("max-rate", max_rate.is_some(), None),
        ("max-window", max_window.is_some(), None),
        (
            "lifetime",
            lifetime.is_some(),
            match scheme {
                Scheme::Headstart => Some(format!("with {scheme}, whose records do not age")),
                _ => (!records).then(|| format!("with {scheme}, which reads no records")),
            },
        ),
        ("max-hint", max_hint.is_some(), (!settings.reads_hint).then(|| "without --hints yes".to_owned())),
        ("hints", options.hints.is_some(), None),
        ("share", options.share.is_some(), None),
        (
            "same-path",
            options.same_path.is_some(),
            (!records).then(|| format!("with {scheme}, which reads no records")),
        ),
        ("after-idle", options.after_idle.is_some(), None),
        ("outgoing", options.outgoing.is_some(), None),
        ("cap", options.cap.is_some(), (!has_cap).then(|| format!("with {scheme}"))),
    ];
    let at_window = (level == Level::Window).then(|| "at level window".to_owned());
    let note_of = |(option, is_given, idle): (&str, bool, Option<String>)| {
        at_window.clone().or(idle).filter(|_| is_given).map(|idle| note(option, &idle))
    };
    given.into_iter().filter_map(note_of).collect()
}

fn note(option: &str, idle: &str) -> String {
    format!("--{option} has no effect {idle}")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        start: StartOptions,
    }

    fn idle(line: &str, level: Level) -> Vec<String> {
        let Line { start } = Line::try_parse_from(format!("tcp {line}").split(' ')).expect(line);
        let mut settings = start.scheme.settings();
        start.settings.apply(&mut settings).expect(line);
        of_start(&start, &settings, level)
    }

    #[test]
    fn an_option_without_an_effect_is_said_with_what_it_needs() {
        for (line, level, expected) in [
            ("--window-rate 25mbit", Level::Control, "--window-rate has no effect without --level window"),
            ("--max-hint 5mbit", Level::Control, "--max-hint has no effect without --hints yes"),
            ("--scheme iw10 --cap 100kB", Level::Control, "--cap has no effect with iw10"),
            ("--scheme wise-start --cap 100kB", Level::Control, "--cap has no effect with wise-start"),
            (
                "--scheme jump-start --lifetime 60s",
                Level::Control,
                "--lifetime has no effect with jump-start",
            ),
            ("--lifetime 60s", Level::Control, "--lifetime has no effect with headstart"),
            ("--percent 50", Level::Window, "--percent has no effect at level window"),
            ("--peers 10", Level::Window, "--peers has no effect at level window"),
            ("--scheme iw32 --initial-window 10", Level::Window, "--initial-window has no effect at level"),
        ] {
            let found = idle(line, level);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{line}: {found:?}");
        }
    }

    #[test]
    fn an_option_with_an_effect_is_not_mentioned() {
        for (line, level) in [
            ("--scheme jump-start --cap 100kB", Level::Control),
            ("--scheme careful-resume --cap 100kB --lifetime 60s", Level::Control),
            ("--scheme blitzstart --max-hint 5mbit", Level::Control),
            ("--hints yes --max-hint 5mbit", Level::Control),
            ("--percent 50 --peers 10 --initial-window 20 --share no", Level::Control),
            ("--initial-window 20 --window-rate 25mbit", Level::Window),
        ] {
            assert_eq!(idle(line, level), [""; 0], "{line}");
        }
    }
}
