//! Counts of claims by outcome, and those that differ from the outcome on record.

use super::{JudgedClaim, JudgedFigure, verdict};
use crate::table::{Cell, Column, Table};
use headstart_paper::claim::Verdict;
use headstart_paper::claim::demonstration::Outcome;
use headstart_paper::claim::standing::Standing;

/// Counts of claims by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimCounts {
    /// They hold.
    pub holds: usize,
    /// They differ, and hold after the change of the suspected cause.
    pub comes_out: usize,
    /// They differ, and hold when something is changed that is no admissible reason.
    pub suffices: usize,
    /// They differ, and no experiment shows why.
    pub unexplained: usize,
    /// Not run.
    pub not_run: usize,
    /// They hold with the whole interval, and do not with their scheme replaced.
    pub evidence: usize,
    /// They would be evidence, but for an interval that reaches beyond the bounds.
    pub wide: usize,
    /// They hold with their scheme replaced as well.
    pub no_evidence: usize,
    /// They hold, and none of their schemes was replaced.
    pub not_replaced: usize,
    /// A parameter was chosen by them, and they hold.
    pub fitted: usize,
    /// They test this project's code against its specification, and hold.
    pub specification: usize,
    /// Claims of the last two kinds, whatever came out.
    pub apart: usize,
    /// They repeat another claim, and are counted nowhere else.
    pub restated: usize,
    /// Of those that were run, the number about a direction or an order.
    pub comparing: usize,
    /// Of these, the number whose direction or order is the paper's.
    pub directed: usize,
}

impl ClaimCounts {
    fn add(&mut self, one: &JudgedClaim<'_>, is_specification: bool) {
        if one.claim.restates.is_some() {
            self.restated += 1;
            return;
        }
        match one.outcome {
            Outcome::Holds => self.holds += 1,
            Outcome::ComesOut => self.comes_out += 1,
            Outcome::Suffices => self.suffices += 1,
            Outcome::Unexplained => self.unexplained += 1,
            Outcome::NotRun => self.not_run += 1,
        }
        match one.standing {
            Some(Standing::Evidence) => self.evidence += 1,
            Some(Standing::Wide) => self.wide += 1,
            Some(Standing::NoEvidence) => self.no_evidence += 1,
            Some(Standing::NotReplaced) => self.not_replaced += 1,
            Some(Standing::Fitted) => self.fitted += 1,
            Some(Standing::Specification) => self.specification += 1,
            None => {}
        }
        if one.outcome != Outcome::NotRun {
            self.apart += usize::from(is_specification || one.claim.fitted.is_some());
        }
        if one.claim.compares() && one.outcome != Outcome::NotRun {
            self.comparing += 1;
            self.directed += usize::from(matches!(
                verdict(&one.findings),
                Verdict::Holds | Verdict::Wide | Verdict::Direction
            ));
        }
    }

    fn judged(&self) -> usize {
        self.holds + self.comes_out + self.suffices + self.unexplained
    }
}

/// The score of all claims of these figures.
pub fn score<'a, 'b: 'a>(judged: impl IntoIterator<Item = &'a JudgedFigure<'b>>) -> ClaimCounts {
    let mut score = ClaimCounts::default();
    for figure in judged {
        let is_specification = figure.experiment.plan.is_specification;
        figure.claims.iter().for_each(|one| score.add(one, is_specification));
    }
    score
}

/// The score in two sentences: the paper's claims, then our own checks.
#[must_use]
pub fn summary(judged: &[JudgedFigure<'_>]) -> String {
    let sentence = |whose: &str, is_ours: bool| {
        let score = score(judged.iter().filter(|one| one.experiment.plan.is_ours == is_ours));
        (score != ClaimCounts::default()).then(|| {
            format!(
                "Of {} claims {whose} {} hold{}, {} differ and come out with the change that they name, {} differ and come out with another change, {} differ unexplained ({} \
                 not run); of the {} that compare, {} come out in the same direction or order.",
                score.judged(), score.holds, score.evidenced(), score.comes_out, score.suffices, score.unexplained, score.not_run, score.comparing,
                score.directed
            )
        })
    };
    let sentences: Vec<String> =
        [sentence("of the paper", false), sentence("of ours", true)].into_iter().flatten().collect();
    sentences.join(" ")
}

/// The score, figure by figure.
#[must_use]
pub fn counts_table(judged: &[JudgedFigure<'_>]) -> Table {
    let mut columns = vec![Column::text("figure")];
    let names = [
        "claims",
        "hold",
        "come out",
        "suffice",
        "unexplained",
        "not run",
        "compare",
        "same direction",
        "said twice",
    ];
    columns.extend(names.map(|name| Column::number(name, "")));
    let mut table = Table::new("Claims", columns);
    let mut row = |name: &str, score: &ClaimCounts| {
        let mut cells = vec![Cell::text(name)];
        let numbers = [
            score.judged() + score.not_run,
            score.holds,
            score.comes_out,
            score.suffices,
            score.unexplained,
            score.not_run,
            score.comparing,
            score.directed,
            score.restated,
        ];
        cells.extend(numbers.map(|number| Cell::count(number as u64)));
        table.row(cells);
    };
    let papers = || judged.iter().filter(|one| !one.experiment.plan.is_ours);
    for one in papers().filter(|one| !one.claims.is_empty()) {
        row(&one.experiment.name, &score([one]));
    }
    row("the paper's", &score(papers()));
    let ours = || judged.iter().filter(|one| one.experiment.plan.is_ours);
    for one in ours().filter(|one| !one.claims.is_empty()) {
        row(&format!("{} (ours)", one.experiment.name), &score([one]));
    }
    row("all", &score(judged));
    table
}

impl ClaimCounts {
    fn is_replaced(&self) -> bool {
        self.evidence + self.wide + self.no_evidence > 0
    }

    /// Claims of the paper's results that were run: none that were fitted or are on our own code.
    fn counted(&self) -> usize {
        self.judged() - self.apart
    }

    fn evidenced(&self) -> String {
        if self.is_replaced() {
            let (counted, share) = (self.counted(), percent(self.evidence, self.counted()));
            format!(
                " ({} %), {} of {counted} ({share} %) with evidence",
                percent(self.holds, self.judged()),
                self.evidence
            )
        } else {
            String::new()
        }
    }
}

fn percent(part: usize, all: usize) -> String {
    if all == 0 { "-".into() } else { format!("{:.0}", 100.0 * part as f64 / all as f64) }
}

/// The worth of the claims that hold, figure by figure; only the paper's.
#[must_use]
pub fn evidence_table(judged: &[JudgedFigure<'_>]) -> Table {
    let mut columns = vec![Column::text("figure"), Column::number("claims", "")];
    columns.extend(["hold", "hold, %", "evidence", "evidence, %"].map(|name| Column::number(name, "")));
    let names = ["wide", "none", "not replaced", "fitted", "own code"];
    columns.extend(names.map(|name| Column::number(name, "")));
    let mut table = Table::new("Worth of the claims that hold", columns);
    let mut row = |name: &str, score: &ClaimCounts| {
        let count = |number: usize| Cell::count(number as u64);
        let is_replaced = score.is_replaced();
        table.row([
            Cell::text(name),
            count(score.judged()),
            count(score.holds),
            Cell::text(&percent(score.holds, score.judged())),
            if is_replaced { count(score.evidence) } else { Cell::text("-") },
            Cell::text(&if is_replaced { percent(score.evidence, score.counted()) } else { "-".into() }),
            count(score.wide),
            count(score.no_evidence),
            count(score.not_replaced),
            count(score.fitted),
            count(score.specification),
        ]);
    };
    let papers = || judged.iter().filter(|one| !one.experiment.plan.is_ours);
    for one in papers().filter(|one| !one.claims.is_empty()) {
        row(&one.experiment.name, &score([one]));
    }
    row("the paper's", &score(papers()));
    table
}

/// Claims whose outcome is not the one on record, each in one line.
#[must_use]
pub fn surprises(judged: &[JudgedFigure<'_>], is_quick: bool) -> Vec<String> {
    let mut lines = vec![];
    for figure in judged {
        for (number, one) in figure.claims.iter().enumerate() {
            let recorded = one.claim.recorded(is_quick);
            if recorded != one.outcome {
                lines.push(format!(
                    "{}, claim {} ({}): found {}, recorded {}",
                    figure.experiment.name,
                    number + 1,
                    one.claim.says,
                    one.outcome.word(),
                    recorded.word()
                ));
            }
        }
    }
    lines
}
