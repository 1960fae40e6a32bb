//! All claims under every variant of the set-up: what explains one claim may break others.

use headstart_paper::claim::Verdict;
use headstart_paper::library::Experiment;
use headstart_paper::plan::Plan;
use headstart_paper::run::Results;

use crate::table::{Cell, Column, Table};

/// One claim under every variant.
#[derive(Clone, Debug)]
struct Row<'a> {
    figure: &'a str,
    says: &'a str,
    paper: String,
    /// The judge of the figure, and its verdict.
    judge: (&'a str, Verdict),
    /// Verdict and number under each of [`SetUps::variants`]; `None`: its study has none such.
    found: Vec<Option<(Verdict, String)>>,
}

/// The table.
#[derive(Clone, Debug)]
pub struct SetUps<'a> {
    variants: Vec<String>,
    rows: Vec<Row<'a>>,
}

/// How a variant does against the judge, over the claims that were run under both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    claims: usize,
    judge: usize,
    variant: usize,
    explained: usize,
    broken: usize,
}

impl<'a> SetUps<'a> {
    /// Judges all claims. The plans are those of
    /// [`Plan::with_all_variants`].
    #[must_use]
    pub fn new(experiments: &'a [Experiment], plans: &'a [Plan], results: &[Results]) -> Self {
        let mut variants: Vec<String> = vec![];
        for variant in plans.iter().flat_map(|plan| &plan.variants) {
            if !variants.contains(&variant.name) {
                variants.push(variant.name.clone());
            }
        }
        let mut rows = vec![];
        for ((experiment, plan), results) in experiments.iter().zip(plans).zip(results) {
            for claim in &experiment.claims {
                let found: Vec<Option<(Verdict, String)>> = variants
                    .iter()
                    .map(|name| {
                        let at = plan.variants.iter().position(|variant| variant.name == *name)?;
                        let finding = claim.judge(plan, results, at);
                        Some((finding.verdict, finding.shown))
                    })
                    .collect();
                let judge = (plan.variants[0].name.as_str(), claim.judge(plan, results, 0).verdict);
                let (figure, says) = (experiment.name.as_str(), claim.says.as_str());
                rows.push(Row { figure, says, paper: claim.paper(), judge, found });
            }
        }
        Self { variants, rows }
    }

    fn count(&self, variant: usize) -> Count {
        let mut count = Count::default();
        for row in &self.rows {
            let Some((verdict, _)) = &row.found[variant] else { continue };
            if *verdict == Verdict::NotRun || row.judge.1 == Verdict::NotRun {
                continue;
            }
            let (judge, other) = (row.judge.1.holds(), verdict.holds());
            count.claims += 1;
            count.judge += usize::from(judge);
            count.variant += usize::from(other);
            count.explained += usize::from(other && !judge);
            count.broken += usize::from(judge && !other);
        }
        count
    }

    /// Variant by variant.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut columns = vec![Column::text("variant")];
        let names = ["claims", "hold with the judge", "hold with it", "only with it", "only with the judge"];
        columns.extend(names.map(|name| Column::number(name, "")));
        let mut table = Table::new("Claims under every set-up", columns);
        for (number, name) in self.variants.iter().enumerate() {
            let count = self.count(number);
            let mut cells = vec![Cell::text(name)];
            let numbers = [count.claims, count.judge, count.variant, count.explained, count.broken];
            cells.extend(numbers.map(|number| Cell::count(number as u64)));
            table.row(cells);
        }
        table
    }

    /// The columns of set-ups.csv and its rows, one for each claim.
    #[must_use]
    pub fn rows(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let mut columns = ["figure", "claim", "paper", "judge"].map(str::to_owned).to_vec();
        columns.extend(self.variants.iter().cloned());
        let rows = self.rows.iter().map(|row| {
            let mut cells =
                vec![row.figure.to_owned(), row.says.to_owned(), row.paper.clone(), row.judge.0.to_owned()];
            let told = |found: &Option<(Verdict, String)>| {
                found.as_ref().map_or(String::new(), |(verdict, shown)| {
                    if *verdict == Verdict::NotRun {
                        "not run".into()
                    } else {
                        format!("{}: {shown}", verdict.word())
                    }
                })
            };
            cells.extend(row.found.iter().map(told));
            cells
        });
        (columns, rows.collect())
    }
}
