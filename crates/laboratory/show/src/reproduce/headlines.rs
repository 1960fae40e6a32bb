//! The results that a reader of a paper looks for first, in three words.

use headstart_paper::claim::{Claim, Outcome, Verdict};
use headstart_paper::library::Experiment;
use headstart_paper::plan::{Headline, NamedClaim, Paper};

use super::JudgedFigure;
use headstart_report::table::{Cell, Column, Table};

/// The word for a headline, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reproduced {
    /// All of its claims hold with their whole intervals, and none was used to choose the set-up.
    Reproduced,
    /// Some hold, or not with their whole intervals, or the set-up was chosen by one of them.
    Partly,
    /// None does.
    Not,
}

impl Reproduced {
    /// As the page has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Partly => "partly",
            Self::Not => "not",
        }
    }

    /// From the claims of a headline and the verdict on each; `None` without claims.
    fn of(claims: &[(&Claim, Verdict)]) -> Option<Self> {
        let is_sure =
            |(claim, verdict): &(&Claim, Verdict)| *verdict == Verdict::Holds && claim.fitted.is_none();
        Some(match claims {
            [] => return None,
            all if all.iter().all(is_sure) => Self::Reproduced,
            all if all.iter().any(|(_, verdict)| verdict.holds()) => Self::Partly,
            _ => Self::Not,
        })
    }
}

/// The best word that a headline can have by the outcomes on record for the cut-down run. These do
/// not say how wide intervals are. `None` if it names a claim that is not there.
#[must_use]
pub fn recorded(headline: &Headline, experiments: &[Experiment]) -> Option<Reproduced> {
    let find = |named: &NamedClaim| {
        let figure = experiments.iter().find(|one| one.name == named.figure)?;
        let claim = figure.claims.iter().find(|one| one.says == named.says)?;
        let verdict = match claim.recorded(true) {
            Outcome::Holds => Verdict::Holds,
            Outcome::Undecided => Verdict::Wide,
            _ => Verdict::Differs,
        };
        Some((claim, verdict))
    };
    Reproduced::of(&headline.claims.iter().map(find).collect::<Option<Vec<_>>>()?)
}

/// Headlines as rows: result, word, the paper's number, ours, reason. Those of figures that were
/// not run are left out.
#[must_use]
pub fn rows(paper: &Paper, judged: &[JudgedFigure<'_>]) -> Vec<[String; 5]> {
    let mut rows = vec![];
    for headline in &paper.headlines {
        let found: Vec<_> = headline
            .claims
            .iter()
            .filter_map(|named| {
                let figure = judged.iter().find(|one| one.experiment.name == named.figure)?;
                figure.claims.iter().find(|one| one.claim.says == named.says)
            })
            .filter(|one| one.outcome != Outcome::NotRun)
            .collect();
        let verdicts: Vec<(&Claim, Verdict)> = found.iter().map(|one| (one.claim, one.verdict())).collect();
        let (Some(word), true) = (Reproduced::of(&verdicts), found.len() == headline.claims.len()) else {
            continue;
        };
        let ours: Vec<&str> = found
            .iter()
            .filter_map(|one| one.findings.first())
            .map(|finding| finding.shown.as_str())
            .collect();
        rows.push([
            headline.result.clone(),
            word.word().to_owned(),
            headline.paper.clone(),
            ours.join("; "),
            headline.reason.clone(),
        ]);
    }
    rows
}

/// The columns of [`rows`].
pub const COLUMNS: [&str; 5] = ["result", "reproduced", "paper", "ours [95 %]", "reason"];

/// Headlines as a table.
#[must_use]
pub fn table(rows: &[[String; 5]]) -> Table {
    let mut table = Table::new("Headline results", COLUMNS.map(Column::text));
    for row in rows {
        table.row(row.each_ref().map(|text| Cell::text(text)));
    }
    table
}

/// Headlines for a terminal of some width, without the reasons.
#[must_use]
pub fn terminal_table(rows: &[[String; 5]], width: usize) -> Table {
    /// Columns of the word, the paper's number and ours, and the gaps between all.
    const OTHERS: [usize; 4] = [10, 20, 26, 6];
    let first = width.saturating_sub(OTHERS.iter().sum()).clamp(18, 70);
    let mut table =
        Table::new("Headline results", [COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3]].map(Column::text));
    for [result, word, paper, ours, _] in rows {
        let cells = [(result.as_str(), first), (word, OTHERS[0]), (paper, OTHERS[1]), (ours, OTHERS[2])];
        super::add_folded(&mut table, &cells);
    }
    table
}

/// Headlines as a table of a Markdown page.
#[must_use]
pub fn markdown(rows: &[[String; 5]]) -> String {
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&COLUMNS);
    text += &line(&["---"; 5]);
    for row in rows {
        text += &line(&row.each_ref().map(|cell| cell.as_str()));
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
            for headline in &paper.headlines {
                let best = recorded(headline, &experiments)
                    .unwrap_or_else(|| panic!("{}: {}: no such claim", files.name, headline.result));
                let accepted = match best {
                    Reproduced::Reproduced => &[Reproduced::Reproduced, Reproduced::Partly][..],
                    other => &[other],
                };
                let is_there = |word: &Reproduced| {
                    let start = format!("| {} | {} | {} |", headline.result, word.word(), headline.paper);
                    let end = format!("| {} |", headline.reason);
                    page.lines().any(|line| line.starts_with(&start) && line.ends_with(&end))
                };
                assert!(accepted.iter().any(is_there), "{}: {}: {best:?}", files.name, headline.result);
            }
            for left_out in &paper.out_of_scope {
                assert!(words.contains(left_out.as_str()), "{}: {left_out}", files.name);
            }
        }
    }
}
