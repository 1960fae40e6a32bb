//! A paper's common part, and the plan of one of its figures.
//!
//! ```toml
//! # paper.toml
//! title = "..."
//! citation = "..."
//! about = "..."            # what is modelled how, for all figures
//! [path]                   # options as on the command line; also [transport], [workload], [run]
//! rtt = "60 ms"
//! [schemes]                # the paper's names, and ours
//! "TCP-10" = "iw10"
//! [variants.udt]           # settings that are run beside each other; the first is the one claims are judged by
//! about = "..."
//! transport = { acks = "delayed" }
//!
//! # plan.toml
//! title = "..."
//! source = "Figure 12, §4.3.1"
//! shows = "..."
//! schemes = ["TCP", "TCP-10"]
//! [run]                    # over the paper's
//! duration = "600 s"
//! [sweep]                  # any option over a list; several make all combinations
//! load = ["5 %", "25 %"]
//! [quick]                  # schemes, variants, run, sweep in place of those above
//! run = { duration = "60 s" }
//! [[figure]]               # see `crate::experiment::draw`
//! ```

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use headstart_startup::catalogue::{self, Entry};
use headstart_units::{Bytes, Rate, Ratio, Span};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::draw::{Drawing, FigureText};
use super::settings::{Settings, Tables};
use super::study::Study;
use crate::setup::Setup;

/// What all figures of a paper share.
#[derive(Clone, Debug)]
pub struct Paper {
    /// What is reproduced.
    pub title: String,
    /// Where it was published.
    pub citation: String,
    /// What is modelled how.
    pub about: String,
    settings: Settings,
    schemes: Vec<Scheme>,
    variants: Vec<Variant>,
}

/// A scheme under the paper's name.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// As the paper calls it.
    pub name: String,
    /// The catalogue's entry.
    pub entry: &'static Entry,
}

/// Settings that are run beside each other.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// What is different, in words.
    pub about: String,
    settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperText {
    title: String,
    citation: String,
    about: String,
    #[serde(default)]
    path: Table,
    #[serde(default)]
    transport: Table,
    #[serde(default)]
    workload: Table,
    #[serde(default)]
    run: Table,
    schemes: Table,
    variants: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantText {
    about: String,
    #[serde(default)]
    path: Table,
    #[serde(default)]
    transport: Table,
    #[serde(default)]
    workload: Table,
    #[serde(default)]
    run: Table,
}

impl Paper {
    /// Reads `paper.toml`.
    ///
    /// # Errors
    /// With key, found and expected.
    pub fn read(text: &str) -> Result<Self> {
        let text: PaperText = from_toml(text)?;
        let tables =
            Tables { path: text.path, transport: text.transport, workload: text.workload, run: text.run };
        let schemes = text
            .schemes
            .iter()
            .map(|(name, value)| {
                let found = value.as_str().and_then(catalogue::find);
                let entry = found.with_context(|| {
                    format!("schemes.{name}: found `{value}`, expected one that `headstart schemes` lists")
                })?;
                Ok(Scheme { name: name.clone(), entry })
            })
            .collect::<Result<_>>()?;
        let variants = text
            .variants
            .into_iter()
            .map(|(name, value)| {
                let at = format!("variants.{name}");
                let text: VariantText = value.try_into().with_context(|| at.clone())?;
                let tables = Tables {
                    path: text.path,
                    transport: text.transport,
                    workload: text.workload,
                    run: text.run,
                };
                Ok(Variant { name, about: text.about, settings: Settings::read(&tables).context(at)? })
            })
            .collect::<Result<Vec<_>>>()?;
        ensure!(!variants.is_empty(), "variants: found none, expected one at least");
        Ok(Self {
            title: text.title,
            citation: text.citation,
            about: text.about,
            settings: Settings::read(&tables)?,
            schemes,
            variants,
        })
    }

    fn scheme(&self, name: &str) -> Result<Scheme> {
        self.schemes.iter().find(|scheme| scheme.name == name).cloned().with_context(|| {
            let known: Vec<&str> = self.schemes.iter().map(|scheme| scheme.name.as_str()).collect();
            format!("found the scheme `{name}`, expected one of {}", known.join(", "))
        })
    }

    fn variant(&self, name: &str) -> Result<Variant> {
        self.variants.iter().find(|variant| variant.name == name).cloned().with_context(|| {
            let known: Vec<&str> = self.variants.iter().map(|variant| variant.name.as_str()).collect();
            format!("found the variant `{name}`, expected one of {}", known.join(", "))
        })
    }
}

/// Reads a TOML text strictly; the error names the key.
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T> {
    let deserializer = toml::Deserializer::parse(text)?;
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        let line = inner.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
        anyhow::anyhow!("line {line}, {path}: {}", inner.message())
    })
}

/// Which flows run what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CastName {
    /// Every flow runs the scheme.
    #[default]
    Alone,
    /// Every second flow runs the plan's `beside` instead.
    Mixed,
}

/// One combination of the swept options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point(pub Vec<(String, String)>);

impl Point {
    /// The value of a swept option here.
    #[must_use]
    pub fn value(&self, axis: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
    }
}

/// A figure's plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it is.
    pub title: String,
    /// Where in the paper.
    pub source: String,
    /// What must be seen.
    pub shows: String,
    /// How a setup becomes a run.
    pub study: Study,
    /// Who is compared.
    pub schemes: Vec<Scheme>,
    /// Under which settings; the first is the one by which claims are judged.
    pub variants: Vec<Variant>,
    /// Which mixtures are run.
    pub casts: Vec<CastName>,
    /// Who runs beside the scheme in a mixture.
    pub beside: Option<Scheme>,
    /// Every combination that is run.
    pub points: Vec<Point>,
    /// Every value of every swept option, in full: what a claim may name.
    pub axes: Vec<(String, Vec<String>)>,
    /// Names of all schemes of the full plan: what a claim may name.
    pub known_schemes: Vec<String>,
    /// What is drawn.
    pub drawings: Vec<Drawing>,
    settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    title: String,
    source: String,
    shows: String,
    #[serde(default)]
    study: Study,
    schemes: Vec<String>,
    #[serde(default)]
    variants: Vec<String>,
    #[serde(default)]
    casts: Vec<CastName>,
    beside: Option<String>,
    #[serde(default)]
    path: Table,
    #[serde(default)]
    transport: Table,
    #[serde(default)]
    workload: Table,
    #[serde(default)]
    run: Table,
    #[serde(default)]
    sweep: Table,
    #[serde(default)]
    quick: QuickText,
    #[serde(default)]
    figure: Vec<FigureText>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuickText {
    schemes: Option<Vec<String>>,
    variants: Option<Vec<String>>,
    #[serde(default)]
    run: Table,
    #[serde(default)]
    workload: Table,
    #[serde(default)]
    sweep: Table,
}

impl Plan {
    /// Reads `plan.toml`.
    ///
    /// # Errors
    /// With key, found and expected.
    pub fn read(text: &str, paper: &Paper, is_quick: bool) -> Result<Self> {
        let text: PlanText = from_toml(text)?;
        let tables =
            Tables { path: text.path, transport: text.transport, workload: text.workload, run: text.run };
        let mut settings = paper.settings.with(&Settings::read(&tables)?);
        let quick_tables = Tables { run: text.quick.run, workload: text.quick.workload, ..Tables::default() };
        let quick = Settings::read(&quick_tables).context("quick")?;
        let named = |key: &str, names: &[String]| -> Result<Vec<Scheme>> {
            names.iter().map(|name| paper.scheme(name)).collect::<Result<_>>().with_context(|| key.to_owned())
        };
        let variants = |key: &str, names: &[String]| -> Result<Vec<Variant>> {
            names
                .iter()
                .map(|name| paper.variant(name))
                .collect::<Result<_>>()
                .with_context(|| key.to_owned())
        };
        let all_schemes = named("schemes", &text.schemes)?;
        let known_schemes = all_schemes.iter().map(|scheme| scheme.name.clone()).collect();
        let mut chosen_schemes = all_schemes;
        let mut chosen_variants = if text.variants.is_empty() {
            paper.variants[..1].to_vec()
        } else {
            variants("variants", &text.variants)?
        };
        let axes = axes(&text.sweep).context("sweep")?;
        let mut run_axes = axes.clone();
        if is_quick {
            settings = settings.with(&quick);
            if let Some(names) = &text.quick.schemes {
                chosen_schemes = named("quick.schemes", names)?;
            }
            if let Some(names) = &text.quick.variants {
                chosen_variants = variants("quick.variants", names)?;
            }
            for (axis, values) in self::axes(&text.quick.sweep).context("quick.sweep")? {
                let full = run_axes.iter_mut().find(|(name, _)| *name == axis);
                let (_, full) =
                    full.with_context(|| format!("quick.sweep.{axis}: found an option that is not swept"))?;
                for value in &values {
                    ensure!(
                        full.contains(value),
                        "quick.sweep.{axis}: found `{value}`, expected one of {}",
                        full.join(", ")
                    );
                }
                *full = values;
            }
        }
        let casts = if text.casts.is_empty() { vec![CastName::Alone] } else { text.casts };
        let beside = text.beside.map(|name| paper.scheme(&name)).transpose().context("beside")?;
        ensure!(
            beside.is_some() || !casts.contains(&CastName::Mixed),
            "casts: found `mixed` without the key `beside`"
        );
        ensure!(!chosen_schemes.is_empty(), "schemes: found none, expected one at least");
        let mut plan = Self {
            title: text.title,
            source: text.source,
            shows: text.shows,
            study: text.study,
            schemes: chosen_schemes,
            variants: chosen_variants,
            casts,
            beside,
            points: points(&run_axes),
            axes,
            known_schemes,
            drawings: vec![],
            settings,
        };
        for (number, figure) in text.figure.into_iter().enumerate() {
            let drawing = Drawing::read(figure, &plan).with_context(|| format!("figure {}", number + 1))?;
            plan.drawings.push(drawing);
        }
        Ok(plan)
    }

    /// The settings of a point under a variant.
    ///
    /// # Errors
    /// If a swept value is none of its option's.
    pub fn settings(&self, variant: &Variant, point: &Point) -> Result<Settings> {
        let mut settings = self.settings.with(&variant.settings);
        for (option, value) in &point.0 {
            settings.set(option, &typed(value)).with_context(|| format!("sweep.{option}"))?;
        }
        Ok(settings)
    }

    /// The setup of every point under every variant: variants outside, points inside.
    ///
    /// # Errors
    /// As [`Self::settings`], or if settings contradict each other.
    pub fn setups(&self) -> Result<Vec<(Settings, Setup)>> {
        let mut setups = vec![];
        for variant in &self.variants {
            for point in &self.points {
                let settings = self.settings(variant, point)?;
                let setup = settings.setup()?;
                setups.push((settings, setup));
            }
        }
        Ok(setups)
    }
}

/// A swept value as a plan's tables have it: numbers bare, everything else quoted.
fn typed(value: &str) -> Value {
    value.parse().map_or_else(|_| Value::String(value.to_owned()), Value::Integer)
}

fn axes(table: &Table) -> Result<Vec<(String, Vec<String>)>> {
    table
        .iter()
        .map(|(option, value)| {
            let Value::Array(values) = value else { bail!("{option}: found `{value}`, expected a list") };
            ensure!(!values.is_empty(), "{option}: found an empty list, expected values");
            let mut texts: Vec<String> = vec![];
            for value in values {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Integer(number) => number.to_string(),
                    other => bail!("{option}: found `{other}`, expected texts with units, or whole numbers"),
                };
                ensure!(!texts.contains(&text), "{option}: found `{text}` twice");
                let mut settings = Settings::default();
                settings.set(option, &typed(&text)).with_context(|| option.clone())?;
                texts.push(text);
            }
            Ok((option.clone(), texts))
        })
        .collect()
}

fn points(axes: &[(String, Vec<String>)]) -> Vec<Point> {
    axes.iter().fold(vec![Point::default()], |points, (axis, values)| {
        let longer = |point: &Point, value: &String| {
            let mut longer = point.clone();
            longer.0.push((axis.clone(), value.clone()));
            longer
        };
        points.iter().flat_map(|point| values.iter().map(|value| longer(point, value))).collect()
    })
}

/// A swept value as a number on an axis, and the axis' unit.
#[must_use]
pub fn number_of(value: &str) -> Option<(f64, &'static str)> {
    if let Ok(share) = value.parse::<Ratio>() {
        return Some((share.of(1_000_000) as f64 / 10_000.0, "%"));
    }
    if let Ok(bytes) = value.parse::<Bytes>() {
        return Some((bytes.get() as f64 / 1000.0, "kB"));
    }
    if let Ok(time) = value.parse::<Span>() {
        return Some((time.as_millis_f64(), "ms"));
    }
    if let Ok(rate) = value.parse::<Rate>() {
        return Some((rate.as_bits_per_sec() as f64 / 1e6, "Mbit/s"));
    }
    value.parse().ok().map(|number| (number, ""))
}

/// Values of options by name, as a claim or a figure fixes them.
pub type Fixed = BTreeMap<String, String>;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const PAPER: &str = r#"
        title = "A paper"
        citation = "Somebody, somewhere"
        about = "Nothing special."
        path = { rtt = "20 ms" }
        run = { duration = "10 s", repeats = 3 }
        [schemes]
        "TCP" = "iw2"
        "TCP-10" = "iw10"
        "JumpStart" = "jump-start"
        [variants.modern]
        about = "as it is"
        [variants.old]
        about = "as it was"
        transport = { detection = "rfc6675" }
    "#;

    pub(crate) const PLAN: &str = r#"
        title = "A figure"
        source = "Figure 1"
        shows = "something"
        schemes = ["TCP", "TCP-10", "JumpStart"]
        variants = ["modern", "old"]
        [sweep]
        load = ["10 %", "50 %"]
        buffer = ["30 kB", "115 kB"]
        [quick]
        schemes = ["TCP", "TCP-10"]
        variants = ["modern"]
        run = { repeats = 2 }
        sweep = { buffer = ["30 kB"] }
    "#;

    pub(crate) fn plan(text: &str, is_quick: bool) -> Result<Plan> {
        Plan::read(text, &Paper::read(PAPER)?, is_quick)
    }

    #[test]
    fn a_plan_is_the_product_of_its_lists_and_quick_cuts_it_down() {
        let full = plan(PLAN, false).expect("fine");
        assert_eq!((full.points.len(), full.schemes.len(), full.variants.len()), (4, 3, 2));
        assert_eq!(full.points[1].value("buffer"), Some("115 kB"));
        let setups = full.setups().expect("fine");
        assert_eq!(setups.len(), 8);
        assert_eq!(setups[4].1.transport.detection, crate::options::DetectionName::Rfc6675);
        assert_eq!(setups[0].1.run.repeats, 3);

        let quick = plan(PLAN, true).expect("fine");
        assert_eq!((quick.points.len(), quick.schemes.len(), quick.variants.len()), (2, 2, 1));
        assert_eq!(quick.setups().expect("fine")[0].1.run.repeats, 2);
        assert_eq!(quick.axes, full.axes, "claims may name what only the full plan runs");
    }

    #[test]
    fn mistakes_are_told_with_key_found_and_expected() {
        for (from, to, parts) in [
            ("shows =", "show =", ["show", "unknown field", "expected one of"]),
            ("\"TCP-10\", \"J", "\"TCP-11\", \"J", ["schemes", "`TCP-11`", "TCP, TCP-10, JumpStart"]),
            ("\"50 %\"]", "\"50\"]", ["sweep: load", "found `50`", "a share in percent"]),
            ("load =", "laod =", ["sweep", "laod", "unexpected argument"]),
            (
                "buffer = [\"30 kB\"]",
                "buffer = [\"31 kB\"]",
                ["quick.sweep.buffer", "`31 kB`", "30 kB, 115 kB"],
            ),
            ("repeats = 2", "repeat = 2", ["quick", "run.repeat", "unknown key"]),
            ("[\"modern\"]", "[\"new\"]", ["quick.variants", "`new`", "modern, old"]),
        ] {
            let text = PLAN.replace(from, to);
            assert_ne!(text, PLAN, "{from}");
            let error = format!("{:#}", plan(&text, true).expect_err(to));
            for part in parts {
                assert!(error.contains(part), "{to}: {error}");
            }
        }
        let paper = PAPER.replace("\"iw2\"", "\"tahoe\"");
        let error = format!("{:#}", Paper::read(&paper).expect_err("no such scheme"));
        assert!(error.contains("schemes.TCP: found `\"tahoe\"`"), "{error}");
    }

    #[test]
    fn swept_values_become_numbers_in_their_unit() {
        for (text, expected) in [
            ("25 %", (25.0, "%")),
            ("115 kB", (115.0, "kB")),
            ("60 ms", (60.0, "ms")),
            ("15 Mbit/s", (15.0, "Mbit/s")),
            ("20", (20.0, "")),
        ] {
            assert_eq!(number_of(text), Some(expected));
        }
        assert_eq!(number_of("rack"), None);
    }
}
