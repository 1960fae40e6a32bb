//! A sweep: any option takes a list, and every combination is a point, raced as by itself.
//!
//! Every run is kept ([`crate::jobs`]): a sweep that was interrupted goes on where it stopped, and one that was extended runs
//! only what is new. The table of all points is in the order of the options, so that it is the same however the sweep was
//! cut up.

use anyhow::{Result, ensure};
use headstart_startup::parameters::split_list;

/// Options whose own values contain commas, or that are lists by themselves: semicolons separate theirs.
pub const WITH_COMMAS: [&str; 8] =
    ["--schemes", "--burst-loss", "--rcp-gains", "--policer", "--out", "--flows", "--plan", "--save-plan"];
/// More points than this are a mistake.
const MOST_POINTS: usize = 100_000;

/// Every combination of the lists among `arguments`, each with the values that were chosen.
///
/// # Errors
/// If there are too many.
pub fn expand(arguments: &[String]) -> Result<Vec<Point>> {
    let mut points = vec![Point::default()];
    let mut at = 0;
    while at < arguments.len() {
        let argument = &arguments[at];
        at += 1;
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if argument.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ if argument.starts_with("--")
                && arguments.get(at).is_some_and(|next| !next.starts_with("--")) =>
            {
                at += 1;
                (argument.clone(), Some(arguments[at - 1].clone()))
            }
            _ => (argument.clone(), None),
        };
        let values: Vec<Option<String>> = match value {
            Some(value) if WITH_COMMAS.contains(&name.as_str()) => {
                value.split(';').map(|part| Some(part.trim().to_owned())).collect()
            }
            // Commas within parentheses are a scheme's.
            Some(value) => split_list(&value).map(|part| Some(part.trim().to_owned())).collect(),
            None => vec![None],
        };
        let is_varied = values.len() > 1;
        ensure!(
            points.len().saturating_mul(values.len()) <= MOST_POINTS,
            "found more than {MOST_POINTS} combinations, expected fewer"
        );
        let mut next = Vec::with_capacity(points.len() * values.len());
        for point in &points {
            next.extend(values.iter().map(|value| point.with(&name, value.as_deref(), is_varied)));
        }
        points = next;
    }
    Ok(points)
}

/// One combination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// The arguments of this point alone.
    pub arguments: Vec<String>,
    /// The options that vary over the sweep, with this point's values.
    pub varied: Vec<(String, String)>,
}

impl Point {
    fn with(&self, name: &str, value: Option<&str>, is_varied: bool) -> Self {
        let mut next = self.clone();
        next.arguments.push(match value {
            Some(value) => format!("{name}={value}"),
            None => name.to_owned(),
        });
        if let (true, Some(value)) = (is_varied, value) {
            next.varied.push((name.trim_start_matches('-').replace('-', "_"), value.to_owned()));
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn every_combination_is_a_point() {
        let points =
            expand(&arguments("--load 5%,25% --ecn --rtt=20ms,60ms --schemes iw2,iw10")).expect("small");
        let lists: Vec<String> = points.iter().map(|point| point.arguments.join(" ")).collect();
        assert_eq!(
            lists,
            [
                "--load=5% --ecn --rtt=20ms --schemes=iw2,iw10",
                "--load=5% --ecn --rtt=60ms --schemes=iw2,iw10",
                "--load=25% --ecn --rtt=20ms --schemes=iw2,iw10",
                "--load=25% --ecn --rtt=60ms --schemes=iw2,iw10",
            ]
        );
        assert_eq!(points[1].varied, [("load".into(), "5%".into()), ("rtt".into(), "60ms".into())]);
    }

    #[test]
    fn values_that_contain_commas_are_whole_and_listed_with_semicolons() {
        let lists = |text: &str| -> Vec<String> {
            let points = expand(&arguments(text)).expect("small");
            points.iter().map(|point| point.arguments.join(" ")).collect()
        };
        assert_eq!(lists("--rcp-gains 40%,22%"), ["--rcp-gains=40%,22%"]);
        assert_eq!(lists("--rcp-gains 40%,22%;30%,20%"), ["--rcp-gains=40%,22%", "--rcp-gains=30%,20%"]);
        assert_eq!(lists("--burst-loss 1%,5;1%,9"), ["--burst-loss=1%,5", "--burst-loss=1%,9"]);
        assert_eq!(lists("--schemes iw2,iw10;halfback"), ["--schemes=iw2,iw10", "--schemes=halfback"]);
        assert_eq!(lists("--repeats 2,3"), ["--repeats=2", "--repeats=3"]);
        assert_eq!(
            lists("--long-scheme iw10,halfback(additional=25%,threshold=100kB)"),
            ["--long-scheme=iw10", "--long-scheme=halfback(additional=25%,threshold=100kB)"]
        );
    }

    #[test]
    fn too_many_points_are_refused() {
        let list = (1..=400).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let error = expand(&[format!("--seed={list}"), format!("--load={list}")]).expect_err("160 000");
        assert!(error.to_string().contains("combinations"), "{error}");
    }
}
