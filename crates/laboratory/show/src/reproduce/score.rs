//! Counts of claims by outcome, and those that differ from the outcome on record.

use std::collections::BTreeMap;

use super::{JudgedClaim, JudgedFigure};
use headstart_paper::claim::{Outcome, Verdict};
use headstart_paper::plan::Replacement;
use headstart_paper::run::Results;
use headstart_report::table::{Cell, Column, Table};

/// Counts of claims by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ClaimCounts {
    holds: usize,
    differs: usize,
    /// Seeds disagree.
    undecided: usize,
    not_run: usize,
}

impl ClaimCounts {
    fn of<'a, 'b: 'a>(judged: impl IntoIterator<Item = &'a JudgedFigure<'b>>) -> Self {
        let mut counts = Self::default();
        judged.into_iter().flat_map(|figure| &figure.claims).for_each(|one| counts.add(one));
        counts
    }

    fn add(&mut self, one: &JudgedClaim<'_>) {
        match one.outcome {
            Outcome::Holds => self.holds += 1,
            Outcome::Differs => self.differs += 1,
            Outcome::Undecided => self.undecided += 1,
            Outcome::NotRun => self.not_run += 1,
        }
    }

    fn judged(&self) -> usize {
        self.holds + self.differs + self.undecided
    }
}

/// The counts in two sentences: the paper's claims, then our own checks.
#[must_use]
pub fn summary(judged: &[JudgedFigure<'_>]) -> String {
    let sentence = |whose: &str, is_ours: bool| {
        let counts = ClaimCounts::of(judged.iter().filter(|one| one.experiment.plan.is_ours == is_ours));
        (counts != ClaimCounts::default()).then(|| {
            format!(
                "Of {} {whose} {} hold, {} differ, {} depend on the seeds ({} not run).",
                counts.judged(),
                counts.holds,
                counts.differs,
                counts.undecided,
                counts.not_run
            )
        })
    };
    [sentence("claims of the paper", false), sentence("checks of ours", true)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The counts, figure by figure.
#[must_use]
pub fn counts_table(judged: &[JudgedFigure<'_>]) -> Table {
    let mut columns = vec![Column::text("figure")];
    let names = ["claims", "hold", "differ", "undecided", "not run"];
    columns.extend(names.map(|name| Column::number(name, "")));
    let mut table = Table::new("Claims", columns);
    let mut row = |name: &str, counts: &ClaimCounts| {
        let count = |number: usize| Cell::count(number as u64);
        table.row([
            Cell::text(name),
            count(counts.judged() + counts.not_run),
            count(counts.holds),
            count(counts.differs),
            count(counts.undecided),
            count(counts.not_run),
        ]);
    };
    for is_ours in [false, true] {
        let part = || judged.iter().filter(|one| one.experiment.plan.is_ours == is_ours);
        for one in part().filter(|one| !one.claims.is_empty()) {
            row(&one.experiment.name, &ClaimCounts::of([one]));
        }
        if part().next().is_some() {
            row(if is_ours { "our checks" } else { "the paper's" }, &ClaimCounts::of(part()));
        }
    }
    table
}

/// Wrong versions of schemes: each is killed by the paper's claims that hold with the scheme and do
/// not with it. The paper's figures and, for each, its runs with wrong versions.
#[must_use]
pub fn mutants_table(judged: &[JudgedFigure<'_>], mutants: &[Vec<(Replacement, Results)>]) -> Table {
    // By scheme and wrong version: claims that name the scheme and hold, and those that kill it.
    let mut found: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for (figure, runs) in judged.iter().zip(mutants) {
        for (mutant, results) in runs {
            let counts = found.entry((&mutant.subject, &mutant.by)).or_default();
            let holding = figure.claims.iter().filter(|one| one.outcome == Outcome::Holds);
            for one in holding.filter(|one| one.claim.names(&mutant.subject)) {
                let verdict = one.claim.judge(&mutant.plan, results, 0).verdict;
                counts.0 += 1;
                counts.1 += u64::from(!verdict.holds() && verdict != Verdict::NotRun);
            }
        }
    }
    let killed = found.values().filter(|(_, killed)| *killed > 0).count();
    let columns = [
        Column::text("scheme"),
        Column::text("wrong version"),
        Column::number("claims that hold", ""),
        Column::number("fail with it", ""),
    ];
    let mut table = Table::new(&format!("Wrong versions: {killed} of {} killed", found.len()), columns);
    for ((subject, by), (claims, killed)) in found {
        table.row([Cell::text(subject), Cell::text(by), Cell::count(claims), Cell::count(killed)]);
    }
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
