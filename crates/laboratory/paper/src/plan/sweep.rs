//! Swept options: their values, their combinations, and what they are as numbers.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use headstart_units::{Bytes, Rate, Ratio, Span};
use toml::{Table, Value};

use headstart_study::settings::Settings;
use headstart_study::study::StudyEntry;

/// A swept option and its values.
pub type Axis = (String, Vec<String>);

/// One combination of the swept options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point(pub Vec<(String, String)>);

impl Point {
    /// The value of a swept option here.
    #[must_use]
    pub fn value(&self, axis: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
    }
}

/// A swept value as a plan's tables have it: numbers bare, everything else quoted.
pub(super) fn typed(value: &str) -> Value {
    value.parse().map_or_else(|_| Value::String(value.to_owned()), Value::Integer)
}

/// Every swept option with its values, each checked.
pub(super) fn axes(table: &Table, study: &StudyEntry) -> Result<Vec<Axis>> {
    table
        .iter()
        .map(|(option, value)| {
            let Value::Array(values) = value else { bail!("{option}: found `{value}`, expected a list") };
            ensure!(!values.is_empty(), "{option}: found an empty list, expected values");
            let mut texts: Vec<String> = vec![];
            for value in values {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Integer(number) => number.to_string(),
                    other => bail!("{option}: found `{other}`, expected texts with units, or whole numbers"),
                };
                ensure!(!texts.contains(&text), "{option}: found `{text}` twice");
                let mut settings = Settings::default();
                settings.set(option, &typed(&text), Some(study)).with_context(|| option.clone())?;
                texts.push(text);
            }
            Ok((option.clone(), texts))
        })
        .collect()
}

/// Most combinations that a plan may have.
pub const MAX_POINTS: usize = 10_000;

/// All combinations.
///
/// # Errors
/// If there are too many.
pub(super) fn points(axes: &[Axis]) -> Result<Vec<Point>> {
    let count = axes.iter().try_fold(1_usize, |count, (_, values)| count.checked_mul(values.len()));
    ensure!(
        count.is_some_and(|count| count <= MAX_POINTS),
        "found {} combinations, expected at most {MAX_POINTS}",
        count.map_or("too many".into(), |count| count.to_string())
    );
    Ok(axes.iter().fold(vec![Point::default()], |points, (axis, values)| {
        let longer = |point: &Point, value: &String| {
            let mut longer = point.clone();
            longer.0.push((axis.clone(), value.clone()));
            longer
        };
        points.iter().flat_map(|point| values.iter().map(|value| longer(point, value))).collect()
    }))
}

/// A swept value as a number on an axis, and the axis' unit.
#[must_use]
pub fn number_of(value: &str) -> Option<(f64, &'static str)> {
    if let Ok(share) = value.parse::<Ratio>() {
        return Some((share.of(1_000_000) as f64 / 10_000.0, "%"));
    }
    if let Ok(bytes) = value.parse::<Bytes>() {
        return Some((bytes.get() as f64 / 1000.0, "kB"));
    }
    if let Ok(time) = value.parse::<Span>() {
        return Some((time.as_millis_f64(), "ms"));
    }
    if let Ok(rate) = value.parse::<Rate>() {
        return Some((rate.as_bits_per_sec() as f64 / 1e6, "Mbit/s"));
    }
    value.parse().ok().map(|number| (number, ""))
}

/// Values of options by name, as a claim or a figure fixes them.
pub type Fixed = BTreeMap<String, String>;
