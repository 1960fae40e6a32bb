//! The experiments that are built into the program (no checkout is needed) and those of a folder.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use headstart_startup::catalogue::Needs;
use serde::Deserialize;

use super::claim::{self, Claim};
use super::draw::{self, Drawing};
use crate::plan::{Paper, Plan};
use headstart_study::options::{Environment, TransportName};

/// The files of one figure, as they are in the repository.
#[derive(Clone, Debug)]
pub struct FigureFiles {
    /// The folder's name, by which `--figure` asks for it.
    pub name: Cow<'static, str>,
    /// `plan.toml`.
    pub plan: Cow<'static, str>,
    /// `claims.toml`.
    pub claims: Cow<'static, str>,
    /// `notes.md`.
    pub notes: Cow<'static, str>,
}

/// The files of one paper.
#[derive(Clone, Debug)]
pub struct PaperFiles {
    /// The folder's name, by which `reproduce` asks for it.
    pub name: Cow<'static, str>,
    /// The folder, as errors name it.
    pub folder: Cow<'static, str>,
    /// `paper.toml`.
    pub paper: Cow<'static, str>,
    /// Figures of the paper, in the order of the report.
    pub figures: Cow<'static, [FigureFiles]>,
}

macro_rules! paper {
    ($paper:literal: $($figure:literal),+ $(,)?) => {
        PaperFiles {
            name: Cow::Borrowed($paper),
            folder: Cow::Borrowed(concat!("experiments/", $paper)),
            paper: Cow::Borrowed(include_str!(concat!("../../../../experiments/", $paper, "/paper.toml"))),
            figures: Cow::Borrowed(&[$(FigureFiles {
                name: Cow::Borrowed($figure),
                plan: Cow::Borrowed(include_str!(concat!("../../../../experiments/", $paper, "/", $figure, "/plan.toml"))),
                claims: Cow::Borrowed(include_str!(concat!("../../../../experiments/", $paper, "/", $figure, "/claims.toml"))),
                notes: Cow::Borrowed(include_str!(concat!("../../../../experiments/", $paper, "/", $figure, "/notes.md"))),
            }),+]),
        }
    };
}

/// Every paper.
pub const ALL: &[PaperFiles] = &[
    paper! {
        "halfback":
        "figure-3", "figure-6", "figure-9", "figure-10", "figure-11", "figure-12", "figure-13",
        "figure-14", "figure-15", "figure-16", "figure-17", "first-flight",
        "sensitivity", "beyond",
    },
    paper! {
        "fast-startup":
        "duration", "loss", "fairness", "stacks", "quick-start",
    },
    paper! {
        "quick-start":
        "figure-1", "figure-2", "figure-3", "figure-4", "figure-5", "figure-6", "figure-9",
        "figure-10", "figure-11", "figure-12", "figure-13", "cheating", "attacks", "options",
        "ecn", "request-flood",
    },
    paper! {
        "wisestart":
        "slow-start", "figure-1", "figure-2", "figure-8", "figure-9", "figure-10", "figure-11",
        "stack-figure-9",
    },
    paper! {
        "blitzstart":
        "figure-1-alone", "figure-1-beside", "table-1-dsl-slow", "table-1-dsl-fast", "table-1-3g",
        "table-1-lte", "figure-3", "small-buffer", "lte-for-good", "several-at-once",
        "false-hints", "bbr", "quic-dsl-fast",
    },
    paper! {
        "headstart":
        "plane", "harm", "frontier", "ablations", "paths", "matrix", "kinds",
    },
    paper! {
        "rivals":
        "suss", "search", "hystart", "rapid-start", "careful-resume", "first-cut",
    },
];

/// Points of a paper that have another carrier than the simulator, as separate experiments. All
/// figures over a real transport in real time would take too long, and it lacks some schemes.
#[derive(Clone, Debug)]
pub struct CarriedPaper {
    /// Of which paper.
    pub paper: &'static str,
    /// Environment and transport of the files.
    pub selection: (Environment, TransportName),
    /// Files of the paper there.
    pub files: PaperFiles,
}

/// Every such set.
pub const CARRIED: &[CarriedPaper] = &[
    CarriedPaper {
        paper: "wisestart",
        selection: (Environment::Emulator, TransportName::Tcp),
        files: paper! { "wisestart-tcp": "figure-9" },
    },
    CarriedPaper {
        paper: "wisestart",
        selection: (Environment::Emulator, TransportName::Quic),
        files: paper! { "wisestart-real-time": "figure-9" },
    },
    CarriedPaper {
        paper: "halfback",
        selection: (Environment::Emulator, TransportName::Tcp),
        files: paper! { "halfback-tcp": "jump-start", "known-peer" },
    },
];

/// A paper's folder by name.
#[must_use]
pub fn find(name: &str) -> Option<&'static PaperFiles> {
    ALL.iter().find(|paper| paper.name == name)
}

/// A paper's folder on disk: figures are its folders with a plan, in the order of their names
/// and numbers.
///
/// # Errors
/// If a file is missing or cannot be read.
pub fn open(folder: &Path) -> Result<PaperFiles> {
    let text = |path: &Path| -> Result<Cow<'static, str>> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Cow::Owned(text))
    };
    let named = |path: &Path| Cow::Owned(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let folder = folder.canonicalize().with_context(|| format!("cannot read {}", folder.display()))?;
    let paper = folder.join("paper.toml");
    if !paper.is_file() {
        let known: Vec<&str> = ALL.iter().map(|paper| paper.name.as_ref()).collect();
        bail!(
            "found no paper.toml in {}, expected a folder of experiments or one of {}",
            folder.display(),
            known.join(", ")
        );
    }
    let paper = text(&paper)?;
    let mut places = vec![];
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let place = entry?.path();
        if place.join("plan.toml").is_file() {
            places.push(place);
        }
    }
    // `figure-2` before `figure-10`.
    places.sort_by_cached_key(|place| {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        (name[..digits].to_owned(), name[digits..].parse::<u64>().ok(), name)
    });
    let figures = places
        .iter()
        .map(|place| {
            Ok(FigureFiles {
                name: named(place),
                plan: text(&place.join("plan.toml"))?,
                claims: text(&place.join("claims.toml"))?,
                notes: text(&place.join("notes.md"))?,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    ensure!(!figures.is_empty(), "{}: found no folder with a plan.toml", folder.display());
    Ok(PaperFiles {
        name: named(&folder),
        folder: Cow::Owned(folder.display().to_string()),
        paper,
        figures: Cow::Owned(figures),
    })
}

/// The criteria by which congestion control is judged, as experiments on one scheme.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// The plans, in the form of a paper.
    pub files: PaperFiles,
    /// The criteria that no run can show.
    pub statements: Vec<Statement>,
}

/// A criterion that the scheme's author answers in words.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The criterion.
    pub says: String,
    /// The place in a standard, with the force that the criterion has there.
    pub source: String,
    /// The schemes that it is for.
    pub applies: Applies,
    /// The place of the answer, by scheme.
    #[serde(default)]
    pub words: BTreeMap<String, String>,
}

/// Schemes that a criterion is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Applies {
    /// Every scheme.
    Always,
    /// Schemes that draw on a history, a hint or routers.
    Informed,
    /// Schemes with signals of routers.
    Routers,
}

impl Applies {
    /// True for a scheme with these needs.
    #[must_use]
    pub fn is_for(self, needs: Needs) -> bool {
        match self {
            Self::Always => true,
            Self::Informed => matches!(needs, Needs::History | Needs::Hint | Needs::Routers),
            Self::Routers => needs == Needs::Routers,
        }
    }
}

/// The scheme under assessment, in the plans.
pub const ASSESSED: &str = "Assessed";

/// Reads the assessment, which is one file: each `[[plan]]` is a `plan.toml` with its claims and
/// notes, all else but `[[statement]]` is a `paper.toml`.
///
/// # Errors
/// If a part of the file is not one of these.
pub fn assessment() -> Result<Assessment> {
    let mut paper: toml::Table = include_str!("../../../../experiments/assessment.toml").parse()?;
    let array = |table: &mut toml::Table, key: &str| -> Result<Vec<toml::Table>> {
        let array = table.remove(key).unwrap_or(toml::Value::Array(vec![]));
        array.try_into().with_context(|| format!("{key}: expected tables"))
    };
    let mut figures = vec![];
    for mut plan in array(&mut paper, "plan")? {
        let mut text = |key: &str| -> Result<String> {
            let text = plan.remove(key).unwrap_or_else(|| String::new().into());
            Ok(text.as_str().with_context(|| format!("{key}: expected a text"))?.to_owned())
        };
        let (name, notes) = (text("name")?, text("notes")?);
        let claims = toml::Table::from_iter([("claim".to_owned(), array(&mut plan, "claim")?.into())]);
        figures.push(FigureFiles {
            name: name.into(),
            plan: toml::to_string(&plan)?.into(),
            claims: toml::to_string(&claims)?.into(),
            notes: notes.into(),
        });
    }
    let statements = array(&mut paper, "statement")?.into_iter();
    let statements = statements.map(|one| toml::Value::Table(one).try_into()).collect::<Result<_, _>>()?;
    let files = PaperFiles {
        name: "assessment".into(),
        folder: "experiments/assessment.toml".into(),
        paper: toml::to_string(&paper)?.into(),
        figures: figures.into(),
    };
    Ok(Assessment { files, statements })
}

/// One figure, read and checked.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The folder's name.
    pub name: String,
    /// Runs of the experiment.
    pub plan: Plan,
    /// Drawings of the runs.
    pub drawings: Vec<Drawing>,
    /// Claims of the paper.
    pub claims: Vec<Claim>,
    /// Differences from the paper, and their reasons.
    pub notes: String,
    /// `plan.toml` as it is.
    pub text: String,
}

impl Experiment {
    /// Reads a figure's files; `folder` names them in messages.
    ///
    /// # Errors
    /// With file, key, what was found and what was expected.
    pub fn read(paper: &Paper, folder: &str, files: &FigureFiles, is_quick: bool) -> Result<Self> {
        let at = |file: &str| format!("{folder}/{}/{file}", files.name);
        let plan = Plan::read(&files.plan, paper, is_quick).with_context(|| at("plan.toml"))?;
        let drawings = draw::read(&files.plan, &plan).with_context(|| at("plan.toml"))?;
        let claims = claim::read(&files.claims, &plan).with_context(|| at("claims.toml"))?;
        Ok(Self {
            name: files.name.to_string(),
            plan,
            drawings,
            claims,
            notes: files.notes.to_string(),
            text: files.plan.to_string(),
        })
    }
}

/// Reads a paper and the figures that `is_wanted` names.
///
/// # Errors
/// As [`Experiment::read`].
pub fn read(
    files: &PaperFiles,
    is_quick: bool,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(Paper, Vec<Experiment>)> {
    let folder = &files.folder;
    let paper = Paper::read(&files.paper).with_context(|| format!("{folder}/paper.toml"))?;
    let experiments = files
        .figures
        .iter()
        .filter(|figure| is_wanted(&figure.name))
        .map(|figure| Experiment::read(&paper, folder, figure, is_quick))
        .collect::<Result<_>>()?;
    Ok((paper, experiments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_paper_is_refused_with_the_papers_there_are() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let refused = open(&folder).expect_err("no paper.toml there").to_string();
        assert!(
            refused.starts_with("found no paper.toml in ") && refused.contains("halfback, "),
            "{refused}"
        );
    }

    #[test]
    fn an_error_names_the_file_of_the_users_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("figure")).expect("a folder");
        for (file, text) in [
            ("paper.toml", "title = 1"),
            ("figure/plan.toml", ""),
            ("figure/claims.toml", ""),
            ("figure/notes.md", ""),
        ] {
            std::fs::write(folder.path().join(file), text).expect("written");
        }
        let files = open(folder.path()).expect("a folder of experiments");
        let refused = read(&files, true, |_| true).map(drop).expect_err("a title is text");
        let file = folder.path().canonicalize().expect("a path").join("paper.toml");
        assert!(format!("{refused:#}").starts_with(&file.display().to_string()), "{refused:#}");
    }

    #[test]
    fn every_built_in_experiment_is_read_in_full_and_quick() {
        for files in ALL {
            for is_quick in [false, true] {
                let (_, experiments) = read(files, is_quick, |_| true).expect(&files.name);
                assert_eq!(experiments.len(), files.figures.len());
                for experiment in &experiments {
                    assert!(!experiment.notes.trim().is_empty(), "{} has no notes", experiment.name);
                    experiment.plan.setups(headstart_carriers::ALL).expect(&experiment.name);
                }
            }
        }
    }

    #[test]
    fn every_plan_of_the_assessment_is_read_in_full_and_quick() {
        let Assessment { files, statements } = assessment().expect("the file");
        assert!(files.figures.len() > 10 && statements.len() > 5);
        for name in statements.iter().flat_map(|one| one.words.keys()) {
            assert!(headstart_startup::catalogue::find(name).is_ok(), "{name}");
        }
        for is_quick in [false, true] {
            let (_, experiments) = read(&files, is_quick, |_| true).expect("the plans");
            for experiment in &experiments {
                assert!(
                    experiment.plan.known_schemes.iter().any(|name| name == ASSESSED),
                    "{}",
                    experiment.name
                );
                assert!(!experiment.claims.is_empty() && !experiment.notes.is_empty(), "{}", experiment.name);
                experiment.plan.setups(headstart_carriers::ALL).expect(&experiment.name);
            }
        }
    }

    /// Setups of those over the kernel's TCP are made in the tests of `headstart tcp`.
    #[test]
    fn every_set_of_another_carrier_is_read_in_full_and_quick_and_is_of_a_known_paper() {
        for carried in CARRIED {
            assert!(find(carried.paper).is_some(), "{}", carried.paper);
            for is_quick in [false, true] {
                let (_, experiments) = read(&carried.files, is_quick, |_| true).expect(&carried.files.name);
                assert_eq!(experiments.len(), carried.files.figures.len());
                let has_notes = |one: &Experiment| !one.notes.trim().is_empty();
                assert!(experiments.iter().all(has_notes), "{}", carried.files.name);
            }
        }
    }
}
