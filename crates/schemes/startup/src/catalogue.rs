//! Every scheme by name, for command lines, plans and server configurations.
//!
//! The rows come from the list in [`crate::scheme`] and from each scheme's own file, which declares
//! its name, its [parameters](mod@crate::parameters) and its requirements ([`About`]). A scheme is
//! selected by its name, with parameters other than the defaults in parentheses: [`find`] reads
//! `halfback`, `Jump-Start`, `halfback(additional=25%)`.
//!
//! Settings that are compared often have names of their own ([`Preset`]): `iw32` is
//! `slow-start(initial-window=32)`.
//!
//! ```
//! use headstart_startup::catalogue;
//!
//! let entry = catalogue::find("Slow-Start(initial-window=32)")?;
//! assert_eq!(entry.name.as_str(), "iw32");
//! assert!(catalogue::find("halfback(additional=2)").is_err());
//! # Ok::<(), headstart_startup::parameters::Error>(())
//! ```

use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::parameters::{Description, Error, is_same_name, settings, split};
use crate::scheme::foreign::ForeignScheme;
use crate::scheme::{FAMILIES, Foreign, Scheme, Startup as _};

pub use crate::about::{About, Native, Needs, Preset, Server};
pub use crate::name::Name;
pub use crate::scheme::Family;

/// A scheme with its parameters, selectable by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Canonical name of the entry: a preset's, or the scheme's with parameters other than the
    /// defaults.
    pub name: Name,
    /// Summary in a few words.
    pub summary: &'static str,
    /// Prior knowledge that it needs; without it, it falls back to slow start.
    pub needs: Needs,
    /// The transport's own start that it equals.
    pub native: Option<Native>,
    scheme: Scheme,
}

impl Entry {
    /// The entry of a scheme.
    ///
    /// # Errors
    /// If its name with all parameters is too long to be printed.
    fn of(scheme: Scheme) -> Result<Self, Error> {
        let about = scheme.about();
        let mut name = Name::default();
        let written = name.write_str(about.name).and_then(|()| scheme.print_parameters(&mut name));
        let is_default = name == about.name;
        if written.is_err() {
            return Err(Error::shape(about.name, "fewer parameters: its name is longer than 255 bytes"));
        }
        let preset = presets().find(|preset| name == preset.text);
        let summary = preset.map_or(about.summary, |preset| preset.summary);
        let name = preset.and_then(|preset| Name::new(preset.name)).unwrap_or(name);
        let native = about.native.filter(|_| is_default);
        let needs = scheme.requirements().needs.unwrap_or(about.needs);
        Ok(Self { name, summary, needs, native, scheme })
    }

    /// The entry of a scheme that is not in the catalogue.
    ///
    /// # Errors
    /// If its name is empty, longer than 255 bytes, not in lower-case letters, digits and hyphens,
    /// or that of a scheme in the catalogue.
    pub fn foreign(scheme: &'static dyn ForeignScheme) -> Result<Self, Error> {
        let name = scheme.about().name;
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_part) {
            return Err(Error::shape(name, "a name of lower-case letters, digits and hyphens"));
        }
        if find(name).is_ok() {
            return Err(Error::shape(name, "a name that no scheme of the catalogue has"));
        }
        Self::of(Scheme::Foreign(Foreign::new(scheme)))
    }

    /// The scheme, before its connection is established.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The reason why a server cannot run the scheme; `None` if it can.
    #[must_use]
    pub fn refusal(&self, server: Server) -> Option<&'static str> {
        let about = self.about();
        let copies = self.scheme.repair().is_active();
        match server {
            Server::Serve => about.not_over_udp,
            Server::Quinn => about.not_over_udp.or(copies.then_some(
                "it sends packets again that are not lost, and a congestion controller cannot ask for that",
            )),
            Server::Tcp if copies => {
                Some("a congestion control of the kernel cannot send a segment again or twice")
            }
            Server::Tcp => about.not_over_tcp.or_else(|| self.parameters_over_tcp()),
        }
    }

    /// The reason why the kernel's port cannot have these parameters.
    fn parameters_over_tcp(&self) -> Option<&'static str> {
        let mut text = Name::default();
        if self.scheme.print_parameters(&mut text).is_err() || text.is_empty() {
            return None;
        }
        let inner = text.trim_start_matches('(').trim_end_matches(')');
        match inner.split_once('=') {
            Some(("initial-window" | "adaptation", value)) if !value.contains(',') => None,
            Some(("exit", _)) => {
                Some("slow start is the kernel's there, which leaves it by a HyStart of its own")
            }
            _ => Some("the kernel has its parameters at their defaults"),
        }
    }

    /// The scheme's parameters, with their defaults.
    #[must_use]
    pub fn parameters(&self) -> Vec<Description> {
        family(self.about().name).map(|family| (family.describe)()).unwrap_or_default()
    }

    /// The scheme's row, whatever its parameters are.
    #[must_use]
    pub fn about(&self) -> &'static About {
        self.scheme.about()
    }
}

/// All schemes, compared by default or not.
#[must_use]
pub const fn families() -> &'static [Family] {
    FAMILIES
}

fn presets() -> impl Iterator<Item = &'static Preset> + Clone {
    FAMILIES.iter().flat_map(|family| family.about.presets)
}

/// The schemes of a comparison without an explicit list, baselines first.
#[must_use]
pub fn all() -> Vec<Entry> {
    let names = FAMILIES.iter().flat_map(|Family { about, .. }| {
        let own = about.is_compared.then_some(about.name);
        own.into_iter().chain(about.presets.iter().map(|preset| preset.name))
    });
    // A test finds every one of them.
    names.filter_map(|name| find(name).ok()).collect()
}

/// The scheme named by a text: a name, and in parentheses parameters other than the defaults.
///
/// # Errors
/// If there is no such scheme or parameter, or a value is out of range: with scheme, parameter,
/// text found and form expected.
pub fn find(text: &str) -> Result<Entry, Error> {
    let (name, inner) = split(text)?;
    let preset = presets().find(|preset| is_same_name(preset.name, name));
    let (family, mut all) = match preset {
        Some(preset) => {
            let (scheme, given) = split(preset.text)?;
            (family(scheme), settings(preset.name, given)?)
        }
        None => (family(name), Vec::new()),
    };
    let Some(family) = family else {
        let names = FAMILIES.iter().map(|family| family.about.name);
        return Err(Error::unknown_scheme(name, names.chain(presets().map(|preset| preset.name))));
    };
    all.extend(settings(family.about.name, inner)?);
    Entry::of((family.make)(&all)?)
}

fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|Family { about, .. }| {
        is_same_name(about.name, name) || about.also.iter().any(|also| is_same_name(also, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::{String, ToString};

    fn name(text: &str) -> String {
        find(text).unwrap_or_else(|error| panic!("{text}: {error}")).name.to_string()
    }

    #[test]
    fn the_needs_of_a_scheme_follow_from_its_parameters() {
        for (text, needs) in [
            ("bbr", Needs::Nothing),
            ("bbr(begins-from-hint=on)", Needs::Hint),
            ("blitzstart(dsl=200%)", Needs::Hint),
            ("halfback(additional=25%)", Needs::FlowSize),
        ] {
            assert_eq!(find(text).expect(text).needs, needs, "{text}");
        }
    }

    #[test]
    fn every_listed_scheme_is_found_by_its_name() {
        let listed: usize = FAMILIES
            .iter()
            .map(|family| family.about.presets.len() + usize::from(family.about.is_compared))
            .sum();
        assert_eq!(all().len(), listed);
        for entry in all() {
            assert_eq!(find(&entry.name).map(|found| found.name), Ok(entry.name));
        }
        for Family { about, .. } in FAMILIES {
            for name in about.also.iter().chain([&about.name]) {
                assert_eq!(find(name).map(|found| found.about().name), Ok(about.name), "{name}");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let presets = presets().map(|preset| preset.name);
        let families =
            FAMILIES.iter().flat_map(|Family { about, .. }| about.also.iter().chain([&about.name]));
        let all: Vec<&str> = presets.chain(families.copied()).collect();
        for (at, name) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| !is_same_name(name, other)), "{name} twice");
        }
    }

    /// A preset is found by its canonical text, else its name would never be used.
    #[test]
    fn presets_are_written_canonically() {
        for preset in presets() {
            assert_eq!(name(preset.text), preset.name);
            assert_eq!(name(preset.name), preset.name);
        }
    }

    #[test]
    fn one_setting_has_one_name() {
        for (texts, expected) in [
            (&["iw10", "IW10", "IW 10", "slow-start", "Slow Start()", "TCP-10", "Initial-Start"][..], "iw10"),
            (&["slow-start( initial-window = 2 )", "iw10(InitialWindow=2)", "iw64(initial-window=2)"], "iw2"),
            (&["WiseStart", "wise-start", "WISE START"], "wise-start"),
            (&["wise-start-wa(adaptation=on)"], "wise-start"),
            (&["jumpstart", "Jump-Start", "jump-start(cap=none)"], "jump-start"),
            (&["Blitz-Start", "BLITZSTART"], "blitzstart"),
            (&["Stateful-TCP"], "s-cubic"),
            (&["halfback(additional=25%)", "Halfback(Additional=25.0 percent)"], "halfback(additional=25%)"),
            (
                &[
                    "halfback(burst=10,additional=100%)",
                    "halfback(additional=100%, burst=0010, threshold=141 kB)",
                ],
                "halfback(burst=10,additional=100%)",
            ),
            (
                &["jump-start(min-window=3,cap=64KiB)", "jump-start(cap=65.536 kB,min-window=3)"],
                "jump-start(cap=65.536kB,min-window=3)",
            ),
            (
                &["quick-start(amount=2MB/s)", "quick-start(amount=16 Mbit/s, granularity=encoded)"],
                "quick-start(amount=16Mbit/s)",
            ),
            (&["halfback(clock=line-rate,order=reverse)"], "halfback-burst"),
        ] {
            for text in texts {
                assert_eq!(name(text), expected, "{text}");
                assert_eq!(name(expected), expected, "a name is read as what it was printed for");
            }
        }
    }

    #[test]
    fn errors_name_found_and_expected_once() {
        for (text, expected) in [
            ("halfbak", "found `halfbak`, expected one of "),
            ("halfbak", "; did you mean `halfback`?"),
            ("", "found ``, expected a scheme such as `halfback` or `halfback(additional=25%)`"),
            ("halfback(", "found `halfback(`, expected a scheme such as"),
            ("halfback(burst=1", "expected a scheme such as"),
            ("halfback)", "found `halfback)`, expected a scheme such as"),
            ("additional=25%", "expected a scheme such as"),
            ("halfback((burst=1))", "expected a scheme such as"),
            ("halfback(burst=1)x", "expected a scheme such as"),
            ("(burst=1)", "expected a scheme such as"),
            ("halfback(burst)", "halfback: found `burst`, expected `parameter=value`"),
            ("halfback(burst=1,)", "halfback: found ``, expected `parameter=value`"),
            ("halfback(burst=1,Burst=2)", "halfback: found `Burst` twice, expected each parameter once"),
            ("halfback(bursts=1)", "halfback: found the parameter `bursts`, expected one of threshold, "),
            ("halfback(bursts=1)", "; did you mean `burst`?"),
            (
                "halfback(burst=many)",
                "halfback: burst: found `many`, expected a whole number, from 0 to 10000",
            ),
            ("halfback(burst=-1)", "halfback: burst: found `-1`, expected a whole number"),
            (
                "halfback(burst=10001)",
                "halfback: burst: found `10001`, expected a whole number, from 0 to 10000",
            ),
            (
                "halfback(additional=250%)",
                "halfback: additional: found `250%`, expected `met`, or a share in percent such as `25%`, from 0% to 100%",
            ),
            ("halfback(additional=0.25)", "found `0.25`, expected `met`, or a share in percent"),
            (
                "halfback(order=backward)",
                "halfback: order: found `backward`, expected `reverse` or `forward`",
            ),
            ("halfback(stops-at-congestion=maybe)", "found `maybe`, expected `on` or `off`"),
            ("jump-start(cap=0B)", "jump-start: cap: found `0B`, expected `none`, or a size such as"),
            (
                "quick-start(amount=2)",
                "found `2`, expected `never`, `window`, `object` or `known`, or a rate such",
            ),
        ] {
            let error = find(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn hostile_text_is_refused_with_a_short_message() {
        let long = "x".repeat(100_000);
        for text in [
            long.clone(),
            format!("halfback({long}=1)"),
            format!("halfback(burst={long})"),
            format!("halfback({})", "burst=1,".repeat(10_000)),
            "(".repeat(1000),
            "halfback(\u{0}\n=\u{1b}[31m)".to_string(),
            "ｈａｌｆｂａｃｋ".to_string(),
        ] {
            let error = find(&text).expect_err("refused").to_string();
            assert!(error.len() < 700 && !error.contains(char::is_control), "{error}");
        }
    }

    /// Of every scheme, each parameter can be set to the ends of its range, all of them together
    /// too, and the name shows the settings.
    #[test]
    fn every_parameter_accepts_its_documented_range() {
        for Family { about, .. } in FAMILIES {
            let entry = find(about.name).expect("in the list");
            let parameters = entry.parameters();
            for parameter in &parameters {
                let name = &parameter.name;
                assert!(
                    !parameter.about.is_empty() && !parameter.source.is_empty(),
                    "{}: {name}",
                    about.name
                );
                assert!(parameter.ends.len() > 1, "{}: {name}: a number needs a range", about.name);
                let default = format!("{}({name}={})", about.name, parameter.default);
                assert!(find(&default).is_ok(), "{default}: a default is within its range");
                for value in &parameter.ends {
                    let text = format!("{}({name}={value})", about.name);
                    let found = find(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                    assert_eq!(find(&found.name).map(|again| again.name), Ok(found.name));
                }
            }
            for end in 0..2 {
                let settings = parameters.iter().map(|it| format!("{}={}", it.name, it.ends[end]));
                let text = format!("{}({})", about.name, settings.collect::<Vec<_>>().join(","));
                let found = find(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                assert_eq!(find(&found.name).map(|again| again.name), Ok(found.name));
            }
        }
    }

    /// A scheme is the transport's own only as long as nothing is changed.
    #[test]
    fn native_starts_equal_the_default_settings_of_their_schemes() {
        assert_eq!(find("iw10").map(|it| it.native), Ok(Some(Native::SlowStart)));
        assert_eq!(find("bbr").map(|it| it.native), Ok(Some(Native::Bbr)));
        assert_eq!(find("iw32").map(|it| it.native), Ok(None));
        assert_eq!(find("bbr(as-ngtcp2=on)").map(|it| it.native), Ok(None));
    }
}
