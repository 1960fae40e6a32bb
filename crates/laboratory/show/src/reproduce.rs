//! A reproduced paper: its table of claims, its figures and its page.

pub mod headlines;
mod score;

use std::collections::BTreeSet;

use crate::counted;

pub use score::{counts_table, mutants_table, summary, surprises};

use headstart_paper::claim::form::PrintedTable;
use headstart_paper::claim::{Claim, Finding, Outcome, Verdict};
use headstart_paper::draw::Datum;
use headstart_paper::library::Experiment;
use headstart_paper::plan::{Paper, Variant};
use headstart_paper::run::Results;
use headstart_report::figure::{Axis, Svg};
use headstart_report::page::{Provenance, Report, Section};
use headstart_report::statistics::Interval;
use headstart_report::table::{Cell, Column, Table};

/// A figure's claims, judged.
#[derive(Clone, Debug)]
pub struct JudgedFigure<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Results of the experiment.
    pub results: &'a Results,
    /// Claims of the experiment.
    pub claims: Vec<JudgedClaim<'a>>,
}

/// One claim, judged.
#[derive(Clone, Debug)]
pub struct JudgedClaim<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// Findings under each variant; the first is the judge.
    pub findings: Vec<Finding>,
    /// The outcome.
    pub outcome: Outcome,
}

impl<'a> JudgedFigure<'a> {
    /// Judges all claims of a figure.
    #[must_use]
    pub fn new(experiment: &'a Experiment, results: &'a Results) -> Self {
        let plan = &experiment.plan;
        let judge = |claim: &'a Claim| {
            let findings: Vec<Finding> =
                (0..plan.variants.len()).map(|variant| claim.judge(plan, results, variant)).collect();
            let outcome = claim.outcome(verdict(&findings), plan.is_quick);
            JudgedClaim { claim, findings, outcome }
        };
        Self { experiment, results, claims: experiment.claims.iter().map(judge).collect() }
    }
}

impl JudgedClaim<'_> {
    /// The verdict under the judge's variant. An undecided claim holds at best in part.
    #[must_use]
    fn verdict(&self) -> Verdict {
        if self.outcome == Outcome::Undecided { Verdict::Wide } else { verdict(&self.findings) }
    }

    /// The outcome in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let word = verdict(&self.findings).word();
        match self.outcome {
            Outcome::Holds if self.claim.fitted.is_some() => format!("{word}, fitted"),
            Outcome::Holds => word.into(),
            Outcome::Undecided => format!("undecided: other seeds disagree (here: {word})"),
            Outcome::NotRun => "not run".into(),
            Outcome::Differs => "differs".into(),
        }
    }
}

/// The verdict under the judge's variant.
fn verdict(findings: &[Finding]) -> Verdict {
    findings.first().map_or(Verdict::NotRun, |finding| finding.verdict)
}

/// One figure's claims as a page shows them: every variant, with the source.
#[must_use]
pub fn claims_table(judged: &JudgedFigure<'_>) -> Table {
    let plan = &judged.experiment.plan;
    let mut columns = ["claim", "outcome", "paper", "accepted"].map(Column::text).to_vec();
    let ours = |variant: &Variant| Column::text(&format!("ours ({})", variant.name));
    columns.extend(plan.variants.iter().map(ours));
    let mut table = Table::new("", columns);
    for one in &judged.claims {
        let says = format!("{} ({})", one.claim.says, one.claim.source);
        let mut cells = [says, one.describe(), one.claim.paper(), one.claim.bound()]
            .map(|text| Cell::text(&text))
            .to_vec();
        for (number, finding) in one.findings.iter().enumerate() {
            let mut text = finding.shown.clone();
            if number > 0 && finding.verdict != Verdict::NotRun {
                text = format!("{text} ({})", finding.verdict.word());
            }
            cells.push(Cell::text(&text));
        }
        table.row(cells);
    }
    table
}

/// One figure's claims for a terminal of some width: the first variant only. Text too wide for its
/// column continues in rows below.
#[must_use]
pub fn terminal_table(judged: &JudgedFigure<'_>, width: usize) -> Table {
    /// Columns of paper, ours and outcome, and the gaps between all.
    const OTHERS: [usize; 4] = [16, 20, 30, 6];
    let plan = &judged.experiment.plan;
    let ours = plan.variants.first().map_or(String::new(), |variant| format!("ours ({})", variant.name));
    let columns = ["claim", "paper", &ours, "outcome"].map(Column::text);
    let mut table = Table::new(&format!("{}: {}", plan.source, plan.title), columns);
    let first = width.saturating_sub(OTHERS.iter().sum()).clamp(18, 70);
    for one in &judged.claims {
        let shown = one.findings.first().map_or("-", |finding| finding.shown.as_str());
        add_folded(
            &mut table,
            &[
                (&one.claim.says, first),
                (&or_bound(one.claim), OTHERS[0]),
                (shown, OTHERS[1]),
                (&one.describe(), OTHERS[2]),
            ],
        );
    }
    table
}

/// The paper's number, or ours of what is accepted where it prints none.
fn or_bound(claim: &Claim) -> String {
    Some(claim.paper()).filter(|paper| !paper.is_empty()).unwrap_or_else(|| claim.bound())
}

/// Adds a row of texts; what is wider than its column continues in rows below.
pub fn add_folded(table: &mut Table, cells: &[(&str, usize)]) {
    let cells: Vec<Vec<String>> = cells.iter().map(|(text, width)| folded(text, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..height {
        table.row(cells.iter().map(|cell| Cell::text(cell.get(line).map_or("", String::as_str))));
    }
}

/// Lines of at most so many characters, cut between words.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines
            .last_mut()
            .filter(|line| line.is_empty() || line.chars().count() + 1 + word.chars().count() <= width);
        match last {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Columns of `claims.csv`: a row for each claim under each variant; columns after
/// `verdict` are the claim's.
pub const CLAIM_COLUMNS: [&str; 14] = [
    "figure", "claim", "source", "variant", "paper", "accepted", "ours", "low", "high", "shown", "verdict",
    "outcome", "fitted", "cause",
];

/// Rows of `claims.csv`.
#[must_use]
pub fn claim_rows(judged: &[JudgedFigure<'_>]) -> Vec<Vec<String>> {
    let mut rows = vec![];
    for figure in judged {
        for one in &figure.claims {
            for (variant, finding) in figure.experiment.plan.variants.iter().zip(&one.findings) {
                let claim = one.claim;
                rows.push(vec![
                    figure.experiment.name.clone(),
                    claim.says.clone(),
                    claim.source.clone(),
                    variant.name.clone(),
                    claim.paper(),
                    claim.bound(),
                    number(finding.ours.value),
                    number(finding.ours.low),
                    number(finding.ours.high),
                    finding.shown.clone(),
                    finding.verdict.word().to_owned(),
                    one.outcome.word().to_owned(),
                    claim.fitted.clone().unwrap_or_default(),
                    claim.differs.clone().unwrap_or_default(),
                ]);
            }
        }
    }
    rows
}

/// Columns of a figure's data, by the titles and units of its axes.
#[must_use]
pub fn data_columns(x: &Axis, y: &Axis) -> Vec<String> {
    let named = |letter: &str, axis: &Axis| {
        let unit = axis.unit.replace('%', "percent").replace('/', " per ");
        let words = format!("{letter} {} {unit}", axis.title).to_lowercase();
        let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join("_");
        ["", "_low", "_high"].map(|end| format!("{name}{end}"))
    };
    let mut columns = vec!["scheme".to_owned(), "at".to_owned()];
    columns.extend(named("x", x).into_iter().chain(named("y", y)));
    columns
}

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

/// Six decimals: further ones are noise.
fn number(value: f64) -> String {
    if value.is_finite() { ((value * 1e6).round() / 1e6).to_string() } else { String::new() }
}

/// A figure drawn: its files' name, its data, its picture and caption.
#[derive(Clone, Debug)]
pub struct DrawnFigure {
    /// Name of its files.
    pub name: String,
    /// Caption of the figure.
    pub caption: String,
    /// The values.
    pub data: Vec<Datum>,
    /// Columns of the values.
    pub columns: Vec<String>,
    /// The picture.
    pub svg: Svg,
}

/// All drawings of a figure, under every variant.
#[must_use]
pub fn drawn(experiment: &Experiment, results: &Results) -> Vec<DrawnFigure> {
    let plan = &experiment.plan;
    let mut all = tables(experiment, results);
    for drawing in &experiment.drawings {
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
            let figure = drawing.figure(plan, &data, &title);
            let (columns, svg) = (data_columns(&figure.x, &figure.y), figure.svg());
            all.push(DrawnFigure {
                name: format!("{}-{}-{}", experiment.name, drawing.name, variant.name),
                caption: drawing.caption.clone(),
                data,
                columns,
                svg,
            });
        }
    }
    all
}

/// The tables that the paper prints, with ours.
fn tables(experiment: &Experiment, results: &Results) -> Vec<DrawnFigure> {
    let mut all = vec![];
    for claim in &experiment.claims {
        let Some(PrintedTable { map, numbers }) = claim.table(&experiment.plan, results) else { continue };
        let alone = |value: f64| Interval { value, low: f64::NAN, high: f64::NAN };
        let datum = |(label, paper, ours): (String, f64, f64)| Datum {
            scheme: claim.says.clone(),
            x: alone(paper),
            y: alone(ours),
            label,
        };
        let axes = ["paper", "ours"].map(|title| Axis::linear(title, ""));
        all.push(DrawnFigure {
            name: format!("{}-table-{}", experiment.name, all.len() + 1),
            caption: map.says.clone(),
            data: numbers.into_iter().map(datum).collect(),
            columns: data_columns(&axes[0], &axes[1]),
            svg: map.svg(),
        });
    }
    all
}

/// The schemes that are drawn somewhere, each once, in the order of the plans.
fn schemes(judged: &[JudgedFigure<'_>], drawings: &[Vec<DrawnFigure>]) -> Vec<String> {
    let drawn: BTreeSet<&str> = drawings
        .iter()
        .flatten()
        .flat_map(|drawing| &drawing.data)
        .map(|datum| datum.scheme.as_str())
        .collect();
    let mut names: Vec<String> = vec![];
    for name in judged.iter().flat_map(|one| &one.experiment.plan.known_schemes) {
        if drawn.contains(name.as_str()) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// The words of a run by `--quick`, on the first screen of its page and in the terminal.
pub const QUICK: &str = "This is the cut-down run (--quick), with fewer seeds, points and pairs of hosts than the \
                         captions say; without --quick it is the whole one.";

/// Headlines by their words, then the claims by their outcomes: the lines before anything else.
#[must_use]
pub fn answer(paper: &Paper, judged: &[JudgedFigure<'_>]) -> Vec<String> {
    let rows = headlines::rows(paper, judged).rows;
    let mut words: Vec<(&str, usize)> = vec![];
    for [_, word, ..] in &rows {
        match words.iter_mut().find(|(known, _)| known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    let counts: Vec<String> = words.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let headlines = format!("Of {}: {}.", counted(rows.len() as u64, "headline result"), counts.join(", "));
    (!rows.is_empty()).then_some(headlines).into_iter().chain([summary(judged)]).collect()
}

/// The paper's page.
#[must_use]
pub fn report(
    paper: &Paper,
    judged: &[JudgedFigure<'_>],
    drawings: &[Vec<DrawnFigure>],
    facts: Vec<(String, String)>,
) -> Report {
    let mut sections = vec![];
    let headlines = headlines::rows(paper, judged);
    let is_quick = judged.iter().any(|one| one.experiment.plan.is_quick);
    let mut lead = vec![paper.citation.clone()];
    if is_quick {
        lead.push(QUICK.to_owned());
    }
    if !headlines.rows.is_empty() {
        sections.push(Section::Table(headlines::table(&headlines)));
    }
    if !paper.out_of_scope.is_empty() {
        sections.push(Section::Text(format!("Out of scope: {}", paper.out_of_scope.join(" "))));
    }
    sections.push(Section::Picks(schemes(judged, drawings)));
    for (one, drawn) in judged.iter().zip(drawings) {
        let plan = &one.experiment.plan;
        sections.push(Section::Heading(format!("{}: {}", plan.source, plan.title)));
        sections.push(Section::Text(plan.shows.clone()));
        for drawing in drawn {
            let quick = if plan.is_quick { " (Cut-down run.)" } else { "" };
            let caption = format!("{}{quick}", drawing.caption);
            sections.push(Section::Figure { svg: drawing.svg.clone(), caption });
        }
        if !one.claims.is_empty() {
            let mut folded = vec![Section::Table(claims_table(one))];
            // Not in the table: a paragraph in a cell would make it too wide.
            let reasons: Vec<(String, String)> = one
                .claims
                .iter()
                .filter_map(|one| Some((one.claim.says.clone(), one.claim.differs.clone()?)))
                .collect();
            if !reasons.is_empty() {
                folded.push(Section::Definitions(reasons));
            }
            let held = one.claims.iter().filter(|one| one.outcome == Outcome::Holds).count();
            let summary = format!("Claims: {held} of {} hold", one.claims.len());
            sections.push(Section::Details { summary, sections: folded });
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
    sections.push(Section::Heading("How it was done, and all claims".into()));
    sections.push(Section::Text(paper.about.clone()));
    sections.push(Section::Table(counts_table(judged)));
    Report {
        title: format!("Reproduction: {}", paper.title),
        answer: answer(paper, judged),
        lead: lead.join(" "),
        sections,
        provenance: Provenance { facts, plan: String::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_folded_between_words() {
        assert_eq!(folded("one two three", 8), ["one two", "three"]);
        assert_eq!(
            folded("antidisestablishmentarianism is long", 8),
            ["antidisestablishmentarianism", "is long"]
        );
        assert_eq!(folded("", 8), [""]);
    }
}
