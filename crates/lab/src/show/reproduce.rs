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
    /// Of those that differ, how many come out in the variant that changes what is blamed.
    pub comes_out: usize,
    /// They are said to come out so, and do not.
    pub blamed_wrongly: usize,
    /// Of those that do not hold, how many have no reason.
    pub unexplained: usize,
    /// They hold although a reason says they would not.
    pub surprising: usize,
}

/// The score under the first variant of each plan.
#[must_use]
pub fn score(judged: &[Judged<'_>]) -> Score {
    let mut score = Score::default();
    for (one, (claim, findings)) in
        judged.iter().flat_map(|one| one.findings.iter().map(move |found| (one, found)))
    {
        let Some(finding) = findings.first() else { continue };
        match finding.verdict {
            Verdict::Holds => score.holds += 1,
            Verdict::Direction => score.direction += 1,
            Verdict::Differs => score.differs += 1,
            Verdict::NotRun => score.not_run += 1,
        }
        if finding.verdict == Verdict::Differs {
            match claim.is_explained(&one.experiment.plan, findings) {
                Some(true) => score.comes_out += 1,
                Some(false) => score.blamed_wrongly += 1,
                None => {}
            }
        }
        let has_reason = claim.differs.is_some() || claim.comes_out.is_some();
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
        "Of {judged} claims {} hold, {} come out with another number in the paper's direction, {} differ, of which {} come out when what \
         is blamed is changed and {} do not; {} of those that do not hold have no reason yet; {} hold although a reason says they would not; {} were not run.",
        score.holds,
        score.direction,
        score.differs,
        score.comes_out,
        score.blamed_wrongly,
        score.unexplained,
        score.surprising,
        score.not_run
    )
}

/// One figure's claims as a page shows them: every variant, with the source.
#[must_use]
pub fn claims_table(judged: &Judged<'_>) -> Table {
    let plan = &judged.experiment.plan;
    let mut columns = ["claim", "verdict", "paper"].map(Column::text).to_vec();
    columns.extend(plan.variants.iter().map(|variant| Column::text(&format!("ours ({})", variant.name))));
    columns.push(Column::text("source"));
    let mut table = Table::new("", columns);
    for (claim, findings) in &judged.findings {
        let mut cells =
            vec![Cell::text(&claim.says), Cell::text(&verdict(claim, findings)), Cell::text(&claim.paper())];
        for (number, finding) in findings.iter().enumerate() {
            let mut text = finding.shown.clone();
            if number > 0 && finding.verdict != Verdict::NotRun {
                text = format!("{text} ({})", finding.verdict.word());
            }
            cells.push(Cell::text(&text));
        }
        cells.push(Cell::text(&claim.source));
        table.row(cells);
    }
    table
}

/// One figure's claims as a terminal of some width shows them: the first variant only. What is too wide for its column
/// goes on in rows below.
#[must_use]
pub fn terminal_table(judged: &Judged<'_>, width: usize) -> Table {
    /// Columns of paper, ours and verdict, and the gaps between all.
    const OTHERS: [usize; 4] = [20, 24, 10, 6];
    let plan = &judged.experiment.plan;
    let ours = plan.variants.first().map_or(String::new(), |variant| format!("ours ({})", variant.name));
    let columns = ["claim", "paper", &ours, "verdict"].map(Column::text);
    let mut table = Table::new(&format!("{}: {}", plan.source, plan.title), columns);
    let first = width.saturating_sub(OTHERS.iter().sum()).clamp(18, 70);
    for (claim, findings) in &judged.findings {
        let shown = findings.first().map_or("-", |finding| finding.shown.as_str());
        let cells = [
            folded(&claim.says, first),
            folded(&claim.paper(), OTHERS[0]),
            folded(shown, OTHERS[1]),
            folded(&verdict(claim, findings), OTHERS[2]),
        ];
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            table.row(cells.iter().map(|cell| Cell::text(cell.get(line).map_or("", String::as_str))));
        }
    }
    table
}

/// Why a claim differs, as far as anybody knows.
fn reason(claim: &Claim) -> Option<String> {
    let comes_out =
        claim.comes_out.as_ref().map(|one| format!("Comes out when {} ({}).", one.when, one.variant));
    match (&claim.differs, comes_out) {
        (Some(reason), Some(comes_out)) => Some(format!("{reason}. {comes_out}")),
        (reason, comes_out) => comes_out.or_else(|| reason.clone()),
    }
}

/// The verdict under the first variant; `?` marks one without a reason, `!` one that holds against its reason.
fn verdict(claim: &Claim, findings: &[Finding]) -> String {
    let verdict = findings.first().map_or(Verdict::NotRun, |finding| finding.verdict);
    let mark = match (verdict, &reason(claim)) {
        (Verdict::Holds, Some(_)) => "!",
        (Verdict::Differs | Verdict::Direction, None) => "?",
        _ => "",
    };
    format!("{}{mark}", verdict.word())
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
                    reason(claim).unwrap_or_default(),
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
            sections.push(Section::Table(claims_table(one)));
            // Beside the table: a paragraph in a cell would push everything else off the page.
            let reasons: Vec<(String, String)> = one
                .findings
                .iter()
                .filter_map(|(claim, _)| Some((claim.says.clone(), reason(claim)?)))
                .collect();
            if !reasons.is_empty() {
                sections.push(Section::Details {
                    summary: "Why claims differ".into(),
                    sections: vec![Section::Definitions(reasons)],
                });
            }
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
