//! Prometheus' text format.

use core::fmt::{Display, Write as _};

/// Metrics in Prometheus' text format: families, each followed by its samples.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    family: String,
}

impl Exposition {
    /// Begins the family `headstart_NAME` of a kind (`counter`, `gauge` or `histogram`).
    pub fn family(&mut self, name: &str, kind: &str, help: &str) -> &mut Self {
        self.family = format!("headstart_{name}");
        let family = &self.family;
        // Writing to a string cannot fail.
        let _ = write!(self.text, "# HELP {family} {help}\n# TYPE {family} {kind}\n");
        self
    }

    /// A sample of the present family.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.part("", labels, value)
    }

    /// A sample whose name has an ending: `_bucket`, `_sum` and `_count` of a histogram.
    pub fn part(&mut self, ending: &str, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        let Self { text, family } = self;
        let _ = write!(text, "{family}{ending}");
        for (number, (name, value)) in labels.iter().enumerate() {
            let _ = write!(text, "{}{name}=\"{value}\"", if number == 0 { '{' } else { ',' });
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(text, "{end} {value}");
        self
    }

    /// The text so far, which is taken.
    #[must_use]
    pub fn take(&mut self) -> String {
        core::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_name_of_their_family_and_their_labels() {
        let mut metrics = Exposition::default();
        metrics.family("a_total", "counter", "Of a.").sample(&[], 1);
        metrics.family("b", "histogram", "Of b.").part("_sum", &[("arm", "x"), ("le", "+Inf")], 0.5);
        let expected = "# HELP headstart_a_total Of a.\n# TYPE headstart_a_total counter\nheadstart_a_total 1\n\
                        # HELP headstart_b Of b.\n# TYPE headstart_b histogram\n\
                        headstart_b_sum{arm=\"x\",le=\"+Inf\"} 0.5\n";
        assert_eq!(metrics.take(), expected);
    }
}
