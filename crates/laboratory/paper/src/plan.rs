//! A paper's common part, and the plan of one of its figures.
//!
//! ```toml
//! # paper.toml
//! title = "..."
//! citation = "..."
//! about = "..."            # the model, for all figures
//! out-of-scope = ["..."]   # results that nobody can reproduce, and why
//! [path]                   # options as on the command line; also [transport], [workload], [run]
//! rtt = "60 ms"
//! [schemes]                # the paper's names, and ours
//! "TCP-10" = "iw10"
//! [variants.udt]           # settings that are all run; claims are judged by the first
//! about = "..."
//! transport = { acks = "delayed" }
//! [variants.udt-shallow]
//! about = "..."
//! like = "udt"             # everything that this one, further up, sets; and
//! path = { buffer = "50 kB" }
//! [mutants.TCP-10]         # wrong versions of a scheme, by which claims are tested (`--mutants`)
//! "three times as much" = "iw32"
//! [[headline]]             # a result that a reader of the paper looks for first
//! result = "..."
//! paper = "90 and 85 % of load"
//! claims = [{ figure = "figure-12", says = "TCP's feasible capacity" }]
//! reason = "..."           # one sentence, where it does not come out
//!
//! # plan.toml
//! title = "..."
//! source = "Figure 12, §4.3.1"
//! shows = "..."
//! schemes = ["TCP", "TCP-10"]
//! [run]                    # over the paper's
//! duration = "600 s"
//! [workload]               # and the parameters of the plan's study
//! [sweep]                  # any option or parameter over a list; several make all combinations
//! load = ["5 %", "25 %"]
//! [quick]                  # schemes, variants, run, sweep in place of those above
//! run = { duration = "60 s" }
//! [[figure]]               # see `crate::draw`
//! ```

mod paper;
mod sweep;
#[cfg(test)]
pub(super) mod tests;

pub use paper::{Headline, NamedClaim, Paper, Scheme, Variant};
pub use sweep::{Axis, Fixed, MAX_POINTS, Point, number_of};

use anyhow::{Context, Result, ensure};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use toml::Table;

use headstart_startup::catalogue::Entry;
use headstart_study::carrier::Carriers;
use headstart_study::catalogue;
use headstart_study::settings::{Settings, Tables};
use headstart_study::study::{PreparedStudy, StudyEntry};
use sweep::{axes, points, typed};

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
pub enum MixName {
    /// Every flow runs the scheme.
    #[default]
    Alone,
    /// Every second flow runs the plan's `beside` instead.
    Mixed,
}

/// A figure's plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Title of the figure.
    pub title: String,
    /// Place in the paper.
    pub source: String,
    /// The finding to look for.
    pub shows: String,
    /// Study that turns a setup into a run.
    pub study: &'static StudyEntry,
    /// Schemes that are compared.
    pub schemes: Vec<Scheme>,
    /// True if the claims are ours, not the paper's.
    pub is_ours: bool,
    /// Wrong versions of schemes: whose, and the version.
    pub mutants: Vec<(String, Scheme)>,
    /// All of the paper's variants.
    paper_variants: Vec<Variant>,
    /// Under which settings; the first is the one by which claims are judged.
    pub variants: Vec<Variant>,
    /// Which mixtures are run.
    pub mixes: Vec<MixName>,
    /// Scheme that runs with the tested one in a mixture.
    pub beside: Option<Scheme>,
    /// Every combination that is run.
    pub points: Vec<Point>,
    /// Every value of every swept option, in full: what a claim may name.
    pub axes: Vec<Axis>,
    /// Names of all schemes of the full plan: what a claim may name.
    pub known_schemes: Vec<String>,
    /// True if the cut-down run was read.
    pub is_quick: bool,
    /// Added to all seeds of the plan.
    pub further_seeds: u64,
    settings: Settings,
}

/// A figure with a wrong version of one scheme.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// The scheme.
    pub subject: String,
    /// The version that runs under its name.
    pub by: String,
    /// The plan, with that scheme in its place and the judge's variant only.
    pub plan: Plan,
}

/// The study of a plan that names none.
fn dumbbell() -> String {
    "dumbbell".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    title: String,
    source: String,
    shows: String,
    #[serde(default)]
    ours: bool,
    #[serde(default = "dumbbell")]
    study: String,
    schemes: Vec<String>,
    #[serde(default)]
    variants: Vec<String>,
    #[serde(default)]
    mixes: Vec<MixName>,
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
    /// Read by `crate::draw`.
    #[serde(default, rename = "figure")]
    _figures: Vec<IgnoredAny>,
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

/// The part of a plan's lists that a run uses.
#[derive(Clone, Debug)]
struct ReducedPlan {
    settings: Settings,
    schemes: Vec<Scheme>,
    variants: Vec<Variant>,
    axes: Vec<Axis>,
}

impl ReducedPlan {
    /// The part that the quick run uses.
    fn reduce(mut self, quick: QuickText, paper: &Paper, study: &StudyEntry) -> Result<Self> {
        let tables = Tables { run: quick.run, workload: quick.workload, ..Tables::default() };
        self.settings = self.settings.with(&Settings::read(&tables, Some(study)).context("quick")?);
        if let Some(names) = &quick.schemes {
            self.schemes = paper.schemes("quick.schemes", names)?;
        }
        if let Some(names) = &quick.variants {
            self.variants = paper.variants("quick.variants", names)?;
        }
        for (axis, values) in axes(&quick.sweep, study).context("quick.sweep")? {
            let full = self.axes.iter_mut().find(|(name, _)| *name == axis);
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
        Ok(self)
    }
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
        let study = catalogue::find(&text.study)?;
        let axes = axes(&text.sweep, study).context("sweep")?;
        let mut cut = ReducedPlan {
            settings: paper.settings.with(&Settings::read(&tables, Some(study))?),
            schemes: paper.schemes("schemes", &text.schemes)?,
            variants: if text.variants.is_empty() {
                paper.variants[..1].to_vec()
            } else {
                paper.variants("variants", &text.variants)?
            },
            axes: axes.clone(),
        };
        let known_schemes: Vec<String> = cut.schemes.iter().map(|scheme| scheme.name.clone()).collect();
        let quick = cut.clone().reduce(text.quick, paper, study)?;
        if is_quick {
            cut = quick;
        }
        cut.settings.check(study).context("paper")?;
        for variant in &cut.variants {
            variant.settings.check(study).with_context(|| format!("variants.{}", variant.name))?;
        }
        let mixes = if text.mixes.is_empty() { vec![MixName::Alone] } else { text.mixes };
        let beside = text.beside.map(|name| paper.scheme(&name)).transpose().context("beside")?;
        ensure!(
            beside.is_some() || !mixes.contains(&MixName::Mixed),
            "mixes: found `mixed` without the key `beside`"
        );
        ensure!(!cut.schemes.is_empty(), "schemes: found none, expected one at least");
        Ok(Self {
            title: text.title,
            source: text.source,
            shows: text.shows,
            study,
            schemes: cut.schemes,
            is_ours: text.ours,
            mutants: paper.mutants.clone(),
            paper_variants: paper.variants.clone(),
            variants: cut.variants,
            mixes,
            beside,
            points: points(&cut.axes).context("sweep")?,
            axes,
            known_schemes,
            is_quick,
            further_seeds: 0,
            settings: cut.settings,
        })
    }

    /// The plan with each wrong version of the schemes that it runs, under the judge's variant.
    #[must_use]
    pub fn with_mutants(&self) -> Vec<Replacement> {
        self.mutants.iter().filter_map(|(subject, by)| self.replacing(subject, by)).collect()
    }

    fn replacing(&self, subject: &str, by: &Scheme) -> Option<Replacement> {
        let mut plan = self.clone();
        let mut is_run = false;
        for scheme in plan.schemes.iter_mut().chain(&mut plan.beside) {
            if scheme.name == subject {
                scheme.entry = by.entry;
                is_run = true;
            }
        }
        plan.variants.truncate(1);
        is_run.then(|| Replacement { subject: subject.to_owned(), by: by.name.clone(), plan })
    }

    /// Another scheme under a name.
    pub fn put(&mut self, name: &str, entry: &'static Entry) {
        for scheme in self.schemes.iter_mut().chain(&mut self.beside).filter(|scheme| scheme.name == name) {
            scheme.entry = entry;
        }
    }

    /// The plan under all of the paper's variants that its study knows, the judge's first.
    #[must_use]
    pub fn with_all_variants(&self) -> Self {
        let mut plan = self.clone();
        plan.variants.truncate(1);
        for variant in &self.paper_variants {
            if variant.name != plan.variants[0].name && variant.settings.check(self.study).is_ok() {
                plan.variants.push(variant.clone());
            }
        }
        plan
    }

    /// Sets an option at all points, whatever the files say.
    ///
    /// # Errors
    /// If there is no such option, or not with such a value.
    pub fn set(&mut self, option: &str, value: &toml::Value) -> Result<()> {
        self.settings.set(option, value, Some(self.study))
    }

    /// The settings of a point under a variant.
    ///
    /// # Errors
    /// If a swept value is none of its option's.
    pub fn settings(&self, variant: &Variant, point: &Point) -> Result<Settings> {
        let mut settings = self.settings.with(&variant.settings);
        for (option, value) in &point.0 {
            settings
                .set(option, &typed(value), Some(self.study))
                .with_context(|| format!("sweep.{option}"))?;
        }
        Ok(settings)
    }

    /// The study at every point of every variant, with its setup: variants outside, points inside.
    ///
    /// # Errors
    /// As [`Self::settings`]; if settings contradict each other, or the study is not for the
    /// carrier that they choose.
    pub fn setups(&self, carriers: Carriers) -> Result<Vec<(Settings, PreparedStudy)>> {
        let mut setups = vec![];
        for variant in &self.variants {
            for point in &self.points {
                let settings = self.settings(variant, point)?;
                let prepared = settings.prepare(self.study, carriers)?;
                setups.push((settings, prepared));
            }
        }
        Ok(setups)
    }
}
