//! Counts of claims by outcome, and those that differ from the outcome on record.

use super::{Judged, JudgedClaim, verdict};
use crate::table::{Cell, Column, Table};
use headstart_paper::claim::Verdict;
use headstart_paper::claim::demonstration::Outcome;

/// Counts of claims by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// They hold.
    pub holds: usize,
    /// They differ, and hold after the change of the suspected cause.
    pub comes_out: usize,
    /// They differ, and no experiment shows why.
    pub unexplained: usize,
    /// Not run.
    pub not_run: usize,
    /// They repeat another claim, and are counted nowhere else.
    pub restated: usize,
    /// Of those that were run, the number about a direction or an order.
    pub comparing: usize,
    /// Of these, the number whose direction or order is the paper's.
    pub directed: usize,
}

impl Score {
    fn add(&mut self, one: &JudgedClaim<'_>) {
        if one.claim.restates.is_some() {
            self.restated += 1;
            return;
        }
        match one.outcome {
            Outcome::Holds => self.holds += 1,
            Outcome::ComesOut => self.comes_out += 1,
            Outcome::Unexplained => self.unexplained += 1,
            Outcome::NotRun => self.not_run += 1,
        }
        if one.claim.compares() && one.outcome != Outcome::NotRun {
            self.comparing += 1;
            self.directed +=
                usize::from(matches!(verdict(&one.findings), Verdict::Holds | Verdict::Direction));
        }
    }

    fn judged(&self) -> usize {
        self.holds + self.comes_out + self.unexplained
    }
}

/// The score of all claims of these figures.
pub fn score<'a, 'b: 'a>(judged: impl IntoIterator<Item = &'a Judged<'b>>) -> Score {
    let mut score = Score::default();
    judged.into_iter().flat_map(|one| &one.claims).for_each(|one| score.add(one));
    score
}

/// The score in two sentences: the paper's claims, then our own checks.
#[must_use]
pub fn summary(judged: &[Judged<'_>]) -> String {
    let told = |whose: &str, is_ours: bool| {
        let score = score(judged.iter().filter(|one| one.experiment.plan.is_ours == is_ours));
        (score != Score::default()).then(|| {
            format!(
                "Of {} claims {whose} {} hold, {} differ and come out when what is blamed is changed, {} differ unexplained ({} \
                 not run); of the {} that compare, {} come out in the same direction or order.",
                score.judged(), score.holds, score.comes_out, score.unexplained, score.not_run, score.comparing,
                score.directed
            )
        })
    };
    let sentences: Vec<String> =
        [told("of the paper", false), told("of ours", true)].into_iter().flatten().collect();
    sentences.join(" ")
}

/// The score, figure by figure.
#[must_use]
pub fn counts_table(judged: &[Judged<'_>]) -> Table {
    let mut columns = vec![Column::text("figure")];
    let names =
        ["claims", "hold", "come out", "unexplained", "not run", "compare", "same direction", "said twice"];
    columns.extend(names.map(|name| Column::number(name, "")));
    let mut table = Table::new("Claims", columns);
    let mut row = |name: &str, score: &Score| {
        let mut cells = vec![Cell::text(name)];
        let numbers = [
            score.judged() + score.not_run,
            score.holds,
            score.comes_out,
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

/// Claims whose outcome is not the one on record, each in one line.
#[must_use]
pub fn surprises(judged: &[Judged<'_>], is_quick: bool) -> Vec<String> {
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
