//! A reproduced paper: its table of claims, its figures and its page.

use crate::experiment::claim::{Claim, Finding, Verdict};
use crate::experiment::draw::Datum;
use crate::experiment::library::Experiment;
use crate::experiment::plan::Paper;
use crate::experiment::run::Results;
use crate::figure::Svg;
use crate::report::{Provenance, Report, Section};
use crate::table::{Cell, Column, Table};

/// A figure's claims, judged.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// What it gave.
    pub results: &'a Results,
    /// For each claim, the finding under each variant.
    pub findings: Vec<(&'a Claim, Vec<Finding>)>,
}

impl<'a> Judged<'a> {
    /// Judges all claims of a figure.
    #[must_use]
    pub fn new(experiment: &'a Experiment, results: &'a Results) -> Self {
        let plan = &experiment.plan;
        let judge = |claim: &Claim| {
            (0..plan.variants.len()).map(|variant| claim.judge(plan, results, variant)).collect()
        };
        let findings = experiment.claims.iter().map(|claim| (claim, judge(claim))).collect();
        Self { experiment, results, findings }
    }
}

/// How many claims came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// They hold.
    pub holds: usize,
    /// Another number in the paper's direction.
    pub direction: usize,
    /// They differ.
    pub differs: usize,
    /// Not run.
    pub not_run: usize,
    /// Of those that do not hold, how many have no reason.
    pub unexplained: usize,
    /// They hold although a reason says they would not.
    pub surprising: usize,
}

/// The score under the first variant of each plan.
#[must_use]
pub fn score(judged: &[Judged<'_>]) -> Score {
    let mut score = Score::default();
    for (claim, findings) in judged.iter().flat_map(|one| &one.findings) {
        let Some(finding) = findings.first() else { continue };
        match finding.verdict {
            Verdict::Holds => score.holds += 1,
            Verdict::Direction => score.direction += 1,
            Verdict::Differs => score.differs += 1,
            Verdict::NotRun => score.not_run += 1,
        }
        let has_reason = claim.differs.is_some();
        score.unexplained +=
            usize::from(!has_reason && matches!(finding.verdict, Verdict::Differs | Verdict::Direction));
        score.surprising += usize::from(has_reason && finding.verdict == Verdict::Holds);
    }
    score
}

/// The score in one sentence.
#[must_use]
pub fn summary(score: &Score) -> String {
    let judged = score.holds + score.direction + score.differs;
    format!(
        "Of {judged} claims {} hold, {} come out with another number in the paper's direction, {} differ; {} of those that \
         do not hold have no reason yet; {} hold although a reason says they would not; {} were not run.",
        score.holds, score.direction, score.differs, score.unexplained, score.surprising, score.not_run
    )
}

/// One figure's claims. `is_page`: with source and reasons in columns, which a terminal has no room for.
#[must_use]
pub fn claims_table(judged: &Judged<'_>, is_page: bool) -> Table {
    let plan = &judged.experiment.plan;
    let mut columns = vec![Column::text("claim"), Column::text("paper")];
    for (number, variant) in plan.variants.iter().enumerate() {
        columns.push(Column::text(&format!("ours ({})", variant.name)).priority(if number == 0 {
            100
        } else {
            1
        }));
    }
    columns.push(Column::text("verdict"));
    if is_page {
        columns.push(Column::text("source"));
        columns.push(Column::text("why"));
    }
    let title = format!("{}: {}", plan.source, plan.title);
    let mut table = Table::new(if is_page { "" } else { &title }, columns);
    for (claim, findings) in &judged.findings {
        let mut cells = vec![Cell::text(&claim.says), Cell::text(&claim.paper())];
        for (number, finding) in findings.iter().enumerate() {
            let mut text = finding.shown.clone();
            if number > 0 && finding.verdict != Verdict::NotRun {
                text = format!("{text} ({})", finding.verdict.word());
            }
            cells.push(Cell::text(&text));
        }
        let verdict = findings.first().map_or(Verdict::NotRun, |finding| finding.verdict);
        let is_surprise = verdict == Verdict::Holds && claim.differs.is_some();
        let unexplained = claim.differs.is_none() && matches!(verdict, Verdict::Differs | Verdict::Direction);
        let mark = if is_surprise {
            "!"
        } else if unexplained {
            "?"
        } else {
            ""
        };
        cells.push(Cell::text(&format!("{}{mark}", verdict.word())));
        if is_page {
            cells.push(Cell::text(&claim.source));
            cells.push(claim.differs.as_deref().map_or(Cell::Missing, Cell::text));
        }
        table.row(cells);
    }
    table
}

/// Columns of `claims.csv`.
pub const CLAIM_COLUMNS: [&str; 11] =
    ["figure", "claim", "source", "variant", "paper", "ours", "low", "high", "shown", "verdict", "why"];

/// Rows of `claims.csv`.
#[must_use]
pub fn claim_rows(judged: &[Judged<'_>]) -> Vec<Vec<String>> {
    let mut rows = vec![];
    for one in judged {
        for (claim, findings) in &one.findings {
            for (variant, finding) in one.experiment.plan.variants.iter().zip(findings) {
                rows.push(vec![
                    one.experiment.name.clone(),
                    claim.says.clone(),
                    claim.source.clone(),
                    variant.name.clone(),
                    claim.paper(),
                    number(finding.ours.value),
                    number(finding.ours.low),
                    number(finding.ours.high),
                    finding.shown.clone(),
                    finding.verdict.word().to_owned(),
                    claim.differs.clone().unwrap_or_default(),
                ]);
            }
        }
    }
    rows
}

/// Columns of a figure's data.
pub const DATA_COLUMNS: [&str; 8] = ["scheme", "at", "x", "x_low", "x_high", "y", "y_low", "y_high"];

/// A figure's data as rows.
#[must_use]
pub fn data_rows(data: &[Datum]) -> Vec<Vec<String>> {
    data.iter()
        .map(|datum| {
            let mut row = vec![datum.scheme.clone(), datum.label.clone()];
            row.extend(
                [&datum.x, &datum.y]
                    .iter()
                    .flat_map(|one| [number(one.value), number(one.low), number(one.high)]),
            );
            row
        })
        .collect()
}

/// Six decimals: what is beyond them is noise.
fn number(value: f64) -> String {
    if value.is_finite() { ((value * 1e6).round() / 1e6).to_string() } else { String::new() }
}

/// A figure drawn: its files' name, its data, its picture and caption.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Of the files.
    pub name: String,
    /// What it shows.
    pub caption: String,
    /// The values.
    pub data: Vec<Datum>,
    /// The picture.
    pub svg: Svg,
}

/// All drawings of a figure, under every variant.
#[must_use]
pub fn drawn(experiment: &Experiment, results: &Results) -> Vec<Drawn> {
    let plan = &experiment.plan;
    let mut all = vec![];
    for drawing in &plan.drawings {
        for (number, variant) in plan.variants.iter().enumerate() {
            let data = drawing.data(plan, results, number);
            if data.is_empty() {
                continue;
            }
            let title = if plan.variants.len() > 1 {
                format!("{} ({})", plan.title, variant.name)
            } else {
                plan.title.clone()
            };
            let svg = drawing.figure(plan, &data, &title).svg();
            all.push(Drawn {
                name: format!("{}-{}-{}", experiment.name, drawing.name, variant.name),
                caption: drawing.caption.clone(),
                data,
                svg,
            });
        }
    }
    all
}

/// The paper's page.
#[must_use]
pub fn report(
    paper: &Paper,
    judged: &[Judged<'_>],
    drawings: &[Vec<Drawn>],
    facts: Vec<(String, String)>,
) -> Report {
    let mut sections = vec![Section::Heading("How it was done".into()), Section::Text(paper.about.clone())];
    for (one, drawn) in judged.iter().zip(drawings) {
        let plan = &one.experiment.plan;
        sections.push(Section::Heading(format!("{}: {}", plan.source, plan.title)));
        sections.push(Section::Text(plan.shows.clone()));
        if !one.findings.is_empty() {
            sections.push(Section::Table(claims_table(one, true)));
        }
        for drawing in drawn {
            sections.push(Section::Figure { svg: drawing.svg.clone(), caption: drawing.caption.clone() });
        }
        sections.push(Section::Text(one.experiment.notes.clone()));
        let words: Vec<(String, String)> =
            plan.variants.iter().map(|variant| (variant.name.clone(), variant.about.clone())).collect();
        sections.push(Section::Definitions(words));
        sections.push(Section::Details {
            summary: "Plan".into(),
            sections: vec![Section::Pre(one.experiment.text.clone())],
        });
    }
    Report {
        title: format!("Reproduction: {}", paper.title),
        lead: format!("{} {}", paper.citation, summary(&score(judged))),
        sections,
        provenance: Provenance { facts, plan: String::new() },
    }
}
