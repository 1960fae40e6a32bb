//! The results that a reader of a paper looks for first, each with its status.

use headstart_paper::claim::{Claim, Outcome, Verdict};
use headstart_paper::library::Experiment;
use headstart_paper::plan::{Headline, NamedClaim, Paper};

use super::{JudgedClaim, JudgedFigure};
use headstart_report::table::{Cell, Column, Table};

/// The word for a headline, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reproduced {
    /// All of its claims hold with their whole intervals, and none was used to choose the set-up.
    Reproduced,
    /// All hold, some not with their whole intervals.
    Within,
    /// Some hold, or seeds disagree on one, or the set-up was chosen by one.
    Partly,
    /// None does.
    Differs,
}

impl Reproduced {
    /// As the page has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Within => "within tolerance, interval wider",
            Self::Partly => "partly",
            Self::Differs => "differs",
        }
    }

    /// All, the best first.
    const ALL: [Self; 4] = [Self::Reproduced, Self::Within, Self::Partly, Self::Differs];

    /// From the claims of a headline, the outcome of each and the verdict; `None` without claims.
    fn of(claims: &[(&Claim, Outcome, Verdict)]) -> Option<Self> {
        let is_open = |(claim, outcome, _): &(&Claim, Outcome, _)| {
            claim.fitted.is_some() || *outcome == Outcome::Undecided
        };
        Some(match claims {
            [] => return None,
            all if all.iter().any(is_open) => Self::Partly,
            all if all.iter().all(|(.., it)| *it == Verdict::Holds) => Self::Reproduced,
            all if all.iter().all(|(.., it)| it.holds()) => Self::Within,
            all if all.iter().any(|(.., it)| it.holds()) => Self::Partly,
            _ => Self::Differs,
        })
    }
}

/// The best word that a headline can have by the outcomes on record for a run. These do
/// not say how wide intervals are. `None` if it names a claim that is not there.
#[must_use]
pub fn recorded(headline: &Headline, experiments: &[Experiment], is_quick: bool) -> Option<Reproduced> {
    let find = |named: &NamedClaim| {
        let figure = experiments.iter().find(|one| one.name == named.figure)?;
        let claim = figure.claims.iter().find(|one| one.says == named.says)?;
        let verdict = match claim.recorded(is_quick) {
            Outcome::Holds => Verdict::Holds,
            Outcome::Undecided => Verdict::Wide,
            _ => Verdict::Differs,
        };
        Some((claim, claim.recorded(is_quick), verdict))
    };
    Reproduced::of(&headline.claims.iter().map(find).collect::<Option<Vec<_>>>()?)
}

/// Headlines of a paper.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The variant beside the judge.
    pub beside: Option<String>,
    /// Result, word, the paper's number, ours, the one beside it, reason.
    pub rows: Vec<[String; 6]>,
}

/// The headlines of figures that were run.
#[must_use]
pub fn rows(paper: &Paper, judged: &[JudgedFigure<'_>]) -> Rows {
    let mut rows = vec![];
    for headline in &paper.headlines {
        let found: Vec<_> = headline
            .claims
            .iter()
            .filter_map(|named| {
                let figure = judged.iter().find(|one| one.experiment.name == named.figure)?;
                Some((figure, figure.claims.iter().find(|one| one.claim.says == named.says)?))
            })
            .filter(|(_, one)| one.outcome != Outcome::NotRun)
            .collect();
        let verdicts: Vec<(&Claim, Outcome, Verdict)> =
            found.iter().map(|(_, one)| (one.claim, one.outcome, one.verdict())).collect();
        let (Some(word), true) = (Reproduced::of(&verdicts), found.len() == headline.claims.len()) else {
            continue;
        };
        let shown = |name: Option<&String>| {
            let finding = |(figure, one): &(&JudgedFigure<'_>, &JudgedClaim<'_>)| {
                let variants = &figure.experiment.plan.variants;
                let number = match name {
                    None => 0,
                    Some(name) => variants.iter().position(|variant| variant.name == *name)?,
                };
                Some(one.findings.get(number)?.shown.clone())
            };
            found.iter().filter_map(finding).collect::<Vec<_>>().join("; ")
        };
        rows.push([
            headline.result.clone(),
            word.word().to_owned(),
            headline.paper.clone(),
            shown(None),
            paper.beside.as_ref().map_or(String::new(), |name| shown(Some(name))),
            headline.reason.clone(),
        ]);
    }
    Rows { beside: paper.beside.clone(), rows }
}

/// The columns of [`Rows`].
const COLUMNS: [&str; 4] = ["result", "status", "paper", "ours [95 %]"];

impl Rows {
    /// The columns, and for each row its cells: the fifth only if a variant stands beside.
    fn cells(&self) -> (Vec<String>, Vec<Vec<&str>>) {
        let mut columns: Vec<String> = COLUMNS.map(str::to_owned).to_vec();
        columns.extend(self.beside.as_ref().map(|name| format!("beside it: `{name}`")));
        columns.push("reason".to_owned());
        let is_whole = self.beside.is_some();
        let mut rows = vec![];
        for row in &self.rows {
            let shown = row.iter().enumerate().filter(|(number, _)| is_whole || *number != 4);
            rows.push(shown.map(|(_, cell)| cell.as_str()).collect());
        }
        (columns, rows)
    }
}

/// Headlines as a table.
#[must_use]
pub fn table(rows: &Rows) -> Table {
    let (columns, rows) = rows.cells();
    let mut table =
        Table::new("Headline results", columns.iter().map(|name| Column::text(name)).collect::<Vec<_>>());
    for row in rows {
        table.row(row.into_iter().map(Cell::text).collect::<Vec<_>>());
    }
    table
}

/// Headlines for a terminal of some width, without the reasons.
#[must_use]
pub fn terminal_table(rows: &Rows, width: usize) -> Table {
    /// Columns of the word, the paper's number and ours, and the gaps between all.
    const OTHERS: [usize; 4] = [10, 20, 26, 6];
    let first = width.saturating_sub(OTHERS.iter().sum()).clamp(18, 70);
    let mut table = Table::new("Headline results", COLUMNS.map(Column::text));
    for [result, word, paper, ours, ..] in &rows.rows {
        let cells = [(result.as_str(), first), (word, OTHERS[0]), (paper, OTHERS[1]), (ours, OTHERS[2])];
        super::add_folded(&mut table, &cells);
    }
    table
}

/// The number of results with each status.
fn counts(words: &[&str]) -> String {
    let count = |word: &str| words.iter().filter(|it| **it == word).count();
    let parts = Reproduced::ALL.map(|status| format!("{} {}", count(status.word()), status.word()));
    format!("Of {} results: {}.", words.len(), parts.join("; "))
}

/// Headlines as a table of a Markdown page, with the counts of each status before it.
#[must_use]
pub fn markdown(rows: &Rows) -> String {
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let words: Vec<&str> = rows.rows.iter().map(|row| row[1].as_str()).collect();
    let (columns, rows) = rows.cells();
    let mut text = format!("{}\n\n", counts(&words));
    text += &line(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    text += &line(&vec!["---"; columns.len()]);
    for row in rows {
        text += &line(&row);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_paper::library;

    #[test]
    fn the_page_of_papers_has_each_headline_with_the_word_on_record() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/papers.md");
        let page = std::fs::read_to_string(page).expect("the page");
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for files in library::ALL {
            let (paper, experiments) = library::read(files, true, |_| true).expect(&files.name);
            let mut found = vec![];
            for headline in &paper.headlines {
                // The page says of which of the two runs a paper's numbers are.
                let bests = [true, false].map(|is_quick| {
                    recorded(headline, &experiments, is_quick)
                        .unwrap_or_else(|| panic!("{}: {}: no such claim", files.name, headline.result))
                });
                let mut accepted = bests.iter().flat_map(|best| match best {
                    Reproduced::Reproduced => &[Reproduced::Reproduced, Reproduced::Within][..],
                    other => std::slice::from_ref(other),
                });
                let is_there = |word: &Reproduced| {
                    let start = format!("| {} | {} | {} |", headline.result, word.word(), headline.paper);
                    let end = format!("| {} |", headline.reason);
                    page.lines().any(|line| line.starts_with(&start) && line.ends_with(&end))
                };
                let word = accepted.find(|word| is_there(word));
                found.push(
                    word.unwrap_or_else(|| panic!("{}: {}: {bests:?}", files.name, headline.result)).word(),
                );
            }
            assert!(
                found.is_empty() || words.contains(&counts(&found)),
                "{}: {}",
                files.name,
                counts(&found)
            );
            for left_out in &paper.out_of_scope {
                assert!(words.contains(left_out.as_str()), "{}: {left_out}", files.name);
            }
        }
    }
}
