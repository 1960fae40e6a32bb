//! Feasible capacity: the highest load at which a scheme still works.
//!
//! Halfback §4.3.1 calls it the highest utilisation before collapse and gives no rule; the verdict
//! depends on the rule, so three are reported (`docs/definitions.md` says why these):
//!
//! 1. the mean completion time is at most four times the scheme's own at the lowest load;
//! 2. it is at most one second;
//! 3. it is at most slow start's, from ten segments at the same load.
//!
//! A paper's claims can ask for two more, which are read off the shape of a curve:
//!
//! 4. it is at most TCP's at the same load, from two segments (§2.2, worse than TCP);
//! 5. it has not doubled since the last step of 5 % (§4.3.1, a spike).

/// Rule 1.
const TIMES_OWN: f64 = 4.0;
/// Rule 2.
const ABSOLUTE_MS: f64 = 1000.0;
/// Rule 5, in percent of load.
const STEP: f64 = 5.0;

/// Rule for a feasible load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Rule 1.
    Own,
    /// Rule 2.
    Absolute,
    /// Rule 3.
    Reference,
    /// Rule 4.
    Tcp,
    /// Rule 5. Over a wider step the mean may double once for each 5 % of it.
    Knee,
}

/// One load of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Offered load in percent.
    pub load: f64,
    /// Mean completion time in milliseconds.
    pub mean: f64,
    /// Mean of slow start from ten segments for rule 3, from two for rule 4.
    pub reference: f64,
}

/// The last load before the first at which the rule is broken, in percent; zero if the first breaks
/// it. A mean that is no number breaks every rule.
#[must_use]
pub fn capacity(rule: Rule, curve: &[Point]) -> f64 {
    let Some(mut before) = curve.first().copied() else { return 0.0 };
    let own = before.mean;
    let mut holds = |point: &&Point| {
        let limit = match rule {
            Rule::Own => TIMES_OWN * own,
            Rule::Absolute => ABSOLUTE_MS,
            Rule::Reference | Rule::Tcp => point.reference,
            Rule::Knee => before.mean * ((point.load - before.load) / STEP).exp2(),
        };
        before = **point;
        point.mean <= limit
    };
    curve.iter().take_while(|point| holds(point)).last().map_or(0.0, |point| point.load)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_ends_at_the_first_load_that_breaks_it() {
        #[rustfmt::skip]
        let curve = [
            //                                                   own 400  1 s    reference  knee
            Point { load: 5.0, mean: 100.0, reference: 300.0 },  // yes   yes    yes        yes
            Point { load: 15.0, mean: 390.0, reference: 400.0 }, // yes   yes    yes        yes, two steps
            Point { load: 20.0, mean: 500.0, reference: 510.0 }, // no    yes    yes        yes
            Point { load: 22.0, mean: 900.0, reference: 520.0 }, // no    yes    no         no, half a step
            Point { load: 25.0, mean: 1200.0, reference: 1300.0 },
            Point { load: 30.0, mean: 200.0, reference: 1400.0 },
        ];
        let rules = [
            (Rule::Own, 15.0),
            (Rule::Absolute, 22.0),
            (Rule::Reference, 20.0),
            (Rule::Tcp, 20.0),
            (Rule::Knee, 20.0),
        ];
        for (rule, expected) in rules {
            assert_eq!(capacity(rule, &curve), expected, "{rule:?}");
        }
    }

    #[test]
    fn without_a_feasible_load_the_capacity_is_zero() {
        let one = |mean| [Point { load: 5.0, mean, reference: 0.0 }];
        assert_eq!(capacity(Rule::Absolute, &one(1000.1)), 0.0);
        assert_eq!(capacity(Rule::Absolute, &one(f64::NAN)), 0.0);
        assert_eq!(capacity(Rule::Own, &[]), 0.0);
    }
}
