//! Variants that are run only to show why a claim differs: few schemes, few points.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{Axis, Paper, Point, Scheme, Variant};

/// As it is written; what is left out means all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DemonstrationText {
    schemes: Option<Vec<String>>,
    #[serde(default)]
    at: BTreeMap<String, Vec<String>>,
}

/// Restriction of a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariantScope {
    schemes: Option<Vec<String>>,
    at: BTreeMap<String, Vec<String>>,
}

/// The variants named, restricted to what is written.
pub(super) fn read(
    texts: BTreeMap<String, DemonstrationText>,
    paper: &Paper,
    axes: &[Axis],
    known_schemes: &[String],
) -> Result<Vec<Variant>> {
    let one = |(name, text): (String, DemonstrationText)| {
        let mut variant = paper.variants(&name, std::slice::from_ref(&name))?.remove(0);
        let at = name.as_str();
        for scheme in text.schemes.iter().flatten() {
            ensure!(
                known_schemes.contains(scheme),
                "{at}.schemes: found `{scheme}`, expected one of {}",
                known_schemes.join(", ")
            );
        }
        for (axis, values) in &text.at {
            let (_, known) = axes
                .iter()
                .find(|(known, _)| known == axis)
                .with_context(|| format!("{at}.at.{axis}: found an option that is not swept"))?;
            for value in values {
                ensure!(
                    known.contains(value),
                    "{at}.at.{axis}: found `{value}`, expected one of {}",
                    known.join(", ")
                );
            }
        }
        variant.only = VariantScope { schemes: text.schemes, at: text.at };
        Ok(variant)
    };
    texts.into_iter().map(one).collect()
}

impl VariantScope {
    /// True if a scheme is run at a point.
    #[must_use]
    pub fn includes(&self, scheme: &Scheme, point: &Point) -> bool {
        let is_at = |(axis, values): (&String, &Vec<String>)| {
            point.value(axis).is_none_or(|value| values.iter().any(|one| one == value))
        };
        self.schemes.as_ref().is_none_or(|names| names.contains(&scheme.name)) && self.at.iter().all(is_at)
    }
}
