//! A sweep: any option takes a list, or a range `a..b:step` of numbers, and every combination is a
//! point, raced as by itself.
//!
//! Every run is kept ([`headstart_study::jobs`]): a sweep that was interrupted continues there, and
//! one that was extended runs only the new points. The table of all points is in the order of the
//! options, independent of interruptions.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use headstart_startup::parameters::split_list;

/// Options whose values contain commas, or are lists by themselves: semicolons separate them.
pub const WITH_COMMAS: [&str; 7] =
    ["--schemes", "--burst-loss", "--policer", "--out", "--flows", "--plan", "--save-plan"];
/// More points than this are a mistake, unless they are in blocks.
const MAX_POINTS: u64 = 100_000;
/// Most values of an option.
const MAX_VALUES: i128 = 1_000_000;
/// Points of which a sample has all, and values of an option of which it has each.
const SAMPLE: u64 = 1000;

/// Every combination of the lists among `arguments`, each with the values that were chosen.
///
/// # Errors
/// If there are too many.
pub fn expand(arguments: &[String]) -> Result<Vec<Point>> {
    let grid = Grid::new(arguments)?;
    let count = grid.count();
    ensure!(
        count <= MAX_POINTS,
        "found {count} combinations, expected at most {MAX_POINTS}, or --blocks for more"
    );
    Ok((0..count).map(|number| grid.point(number)).collect())
}

/// The combinations of lists, of which none is in memory.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Each argument with its values; the last varies fastest.
    axes: Vec<(String, Vec<Option<String>>)>,
}

impl Grid {
    /// Reads the lists among `arguments`.
    ///
    /// # Errors
    /// If a value is there twice, or a range is none.
    pub fn new(arguments: &[String]) -> Result<Self> {
        let mut axes = vec![];
        let mut at = 0;
        while at < arguments.len() {
            let argument = &arguments[at];
            at += 1;
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) if argument.starts_with("--") => {
                    (name.to_owned(), Some(value.to_owned()))
                }
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
                Some(value) => {
                    let mut values = vec![];
                    for part in split_list(&value).map(str::trim) {
                        match range(&name, part)? {
                            Some(range) => values.extend(range.into_iter().map(Some)),
                            None => values.push(Some(part.to_owned())),
                        }
                    }
                    values
                }
                None => vec![None],
            };
            let mut met = BTreeSet::new();
            if let Some(twice) = values.iter().find(|value| !met.insert(*value)) {
                let value = twice.as_deref().unwrap_or_default();
                bail!("{name}: found `{value}` twice, expected each value once");
            }
            ensure!(
                values.len() == 1 || name != "--threads",
                "--threads: found a list, expected one number: results are the same with any"
            );
            axes.push((name, values));
        }
        Ok(Self { axes })
    }

    /// Number of points.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.axes.iter().fold(1, |count: u64, (_, values)| count.saturating_mul(values.len() as u64))
    }

    /// The point of that number.
    #[must_use]
    pub fn point(&self, number: u64) -> Point {
        let mut rest = number;
        let mut places: Vec<usize> = vec![];
        for (_, values) in self.axes.iter().rev() {
            places.push((rest % values.len() as u64) as usize);
            rest /= values.len() as u64;
        }
        let mut point = Point::default();
        for ((name, values), at) in self.axes.iter().zip(places.into_iter().rev()) {
            point.add(name, values[at].as_deref(), values.len() > 1);
        }
        point
    }

    /// Numbers of points that stand for all: the values of each option beside the first of the
    /// others, and as many points again from all over. Of a small sweep they are all points.
    #[must_use]
    pub fn sample(&self) -> BTreeSet<u64> {
        let evenly = |count: u64| {
            let some = count.min(SAMPLE);
            (0..some).map(move |number| (u128::from(number) * u128::from(count) / u128::from(some)) as u64)
        };
        let mut sample: BTreeSet<u64> = evenly(self.count()).collect();
        if self.count() > SAMPLE {
            let mut stride = 1;
            for (_, values) in self.axes.iter().rev() {
                sample.extend(evenly(values.len() as u64).map(|at| at * stride));
                stride *= values.len() as u64;
            }
        }
        sample
    }
}

/// The values of `a..b:step`; `None` if it is no range. Units may follow each number or only one.
///
/// # Errors
/// If it resembles a range and is none.
fn range(name: &str, text: &str) -> Result<Option<Vec<String>>> {
    let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
    let (to, step) = rest.split_once(':').map_or((rest, None), |(to, step)| (to, Some(step)));
    let (Some(from), Some(to)) = (number(from), number(to)) else { return Ok(None) };
    let found = || format!("{name}: found `{text}`, expected a range with its step, such as `5%..50%:5%`");
    let step = step.and_then(number).with_context(found)?;
    let parts = [from, to, step];
    let mut units: Vec<&str> = parts.iter().map(|part| part.unit).filter(|unit| !unit.is_empty()).collect();
    units.dedup();
    ensure!(units.len() <= 1, "{}, in one unit", found());
    // In whole multiples of the last decimal that any of them has: no sum of fractions drifts.
    let decimals = parts.iter().map(|part| part.decimals).max().unwrap_or(0);
    let [from, to, step] = parts.map(|part| part.digits * 10_i128.pow(decimals - part.decimals));
    ensure!(step > 0 && from <= to, "{}, from the smaller to the larger number", found());
    let count = (to - from) / step + 1;
    ensure!(count <= MAX_VALUES, "{name}: found {count} values in `{text}`, expected at most {MAX_VALUES}");
    let unit = units.first().copied().unwrap_or_default();
    let one = |at: i128| {
        let value = from + at * step;
        let scale = 10_i128.pow(decimals);
        let mut text = (value / scale).to_string();
        if value % scale != 0 {
            let rest = format!("{:0width$}", value % scale, width = decimals as usize);
            text = format!("{text}.{}", rest.trim_end_matches('0'));
        }
        format!("{text}{unit}")
    };
    Ok(Some((0..count).map(one).collect()))
}

#[derive(Clone, Copy)]
struct Decimal<'a> {
    digits: i128,
    decimals: u32,
    unit: &'a str,
}

fn number(text: &str) -> Option<Decimal<'_>> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || whole.len() + fraction.len() > 12 || fraction.contains('.') {
        return None;
    }
    let is_unit = unit.trim().chars().all(|c| c.is_ascii_alphabetic() || c == '%' || c == '/');
    let digits = format!("{whole}{fraction}").parse().ok()?;
    is_unit.then_some(Decimal { digits, decimals: fraction.len() as u32, unit })
}

/// One combination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// The arguments of this point only.
    pub arguments: Vec<String>,
    /// The options that vary over the sweep, with this point's values.
    pub varied: Vec<(String, String)>,
}

impl Point {
    fn add(&mut self, name: &str, value: Option<&str>, is_varied: bool) {
        self.arguments.push(match value {
            Some(value) => format!("{name}={value}"),
            None => name.to_owned(),
        });
        if let (true, Some(value)) = (is_varied, value) {
            self.varied.push((name.trim_start_matches('-').replace('-', "_"), value.to_owned()));
        }
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
        assert_eq!(lists("--burst-loss 1%,5"), ["--burst-loss=1%,5"]);
        assert_eq!(lists("--burst-loss 1%,5;1%,9"), ["--burst-loss=1%,5", "--burst-loss=1%,9"]);
        assert_eq!(lists("--schemes iw2,iw10;halfback"), ["--schemes=iw2,iw10", "--schemes=halfback"]);
        assert_eq!(lists("--repeats 2,3"), ["--repeats=2", "--repeats=3"]);
        assert_eq!(
            lists("--long-scheme iw10,halfback(additional=25%,threshold=100kB)"),
            ["--long-scheme=iw10", "--long-scheme=halfback(additional=25%,threshold=100kB)"]
        );
    }

    #[test]
    fn a_sample_has_every_value_of_an_option_and_points_of_all_over() {
        let small = Grid::new(&arguments("--load 5%,25% --rtt 20ms,60ms")).expect("lists");
        assert_eq!(small.sample().into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        let line = "--seed 1..100:1 --ecn --load 1%..50%:1% --rtt 1ms..300ms:1ms";
        let grid = Grid::new(&arguments(line)).expect("lists");
        let count = 100 * 50 * 300;
        let sample = grid.sample();
        assert_eq!((grid.count(), grid.sample().len() <= 2000), (count, true));
        let points: Vec<Point> = sample.iter().map(|number| grid.point(*number)).collect();
        for (option, values) in [("seed", 100), ("load", 50), ("rtt", 300)] {
            let place = points[0].varied.iter().position(|(name, _)| name == option).expect(option);
            let met: BTreeSet<&str> = points.iter().map(|point| point.varied[place].1.as_str()).collect();
            assert_eq!(met.len(), values, "{option}");
        }
        let largest_gap = sample.iter().zip(sample.iter().skip(1)).map(|(one, next)| next - one).max();
        assert!(largest_gap <= Some(count / 1000 + 1), "{largest_gap:?}");
        let last = grid.point(count - 1).varied;
        assert_eq!(last.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["100", "50%", "300ms"]);
    }

    #[test]
    fn too_many_points_are_refused() {
        let list = (1..=400).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let error = expand(&[format!("--seed={list}"), format!("--load={list}")]).expect_err("160 000");
        assert!(error.to_string().contains("combinations"), "{error}");
    }

    #[test]
    fn a_value_that_is_listed_twice_is_refused() {
        for (list, expected) in
            [("--load 5%,25%,5%", "`5%` twice"), ("--threads 1,2", "--threads: found a list")]
        {
            let error = expand(&arguments(list)).expect_err(list).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_range_is_the_list_of_its_values() {
        let values = |text: &str| range("--load", text).expect("a range").map(|values| values.join(" "));
        for (text, expected) in [
            ("5%..25%:10%", Some("5% 15% 25%")),
            ("5..25:10%", Some("5% 15% 25%")),
            ("10ms..35ms:10ms", Some("10ms 20ms 30ms")),
            ("0.5%..1.1%:0.2%", Some("0.5% 0.7% 0.9% 1.1%")),
            ("1..3:1", Some("1 2 3")),
            ("../drive.down", None),
            ("a..b", None),
            ("60ms", None),
        ] {
            assert_eq!(values(text).as_deref(), expected, "{text}");
        }
        let points = expand(&arguments("--load 5%..15%:5%,50% --trace ../a.down")).expect("small");
        let loads: Vec<&str> = points.iter().map(|point| point.varied[0].1.as_str()).collect();
        assert_eq!(loads, ["5%", "10%", "15%", "50%"]);
        for text in ["5%..25%", "25%..5%:5%", "5%..25%:0%", "5ms..25%:1%", "1..9999999:1"] {
            let error = range("--load", text).err().unwrap_or_else(|| panic!("{text}"));
            assert!(error.to_string().contains(text) && error.to_string().contains("expected"), "{error}");
        }
    }
}
