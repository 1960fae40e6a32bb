//! The answer of a race in at most three lines: the scheme to use, its gain, and its cost to
//! others.

use headstart_startup::catalogue::Server;

use super::words::{
    FEW_SEEDS, anywhere, margin, names, of_harm, seeds_to_tell, to_tell, with_interval, with_needs,
};
use headstart_compare::race::{Measured, Race, SchemeResult};
use headstart_compare::verdict::HarmVerdict;
use headstart_study::options::{SERVERS, name_of};

/// The lines, the first of which is the advice. None if there is nothing to choose from, or no
/// chance is known.
#[must_use]
pub fn answer(race: &Race) -> Vec<String> {
    let found = race.verdict();
    let reference = race.reference.name.as_str();
    let base = race.scheme_results.iter().find(|result| result.entry.name == reference);
    let gain = |result: &SchemeResult| base.map(|base| gain(result, base));
    if race.scheme_results.len() < 2 || race.seeds - race.empty_seeds < FEW_SEEDS {
        return vec![];
    }
    let result = |place: usize| &race.scheme_results[place];
    let opening = race.server.map_or_else(String::new, for_server);
    let best = found.harmless.first().map(|place| result(*place));
    let lines = match best.filter(|best| best.entry.name != reference) {
        Some(best) => {
            let mut advice = format!("{opening}use {}.", with_needs(best));
            if let Some(other) = anywhere(race, &found) {
                advice += &format!(" Without these: {}.", other.entry.name);
            }
            [Some(advice), gain(best), Some(cost(race, best))]
        }
        None => match found.not_known.first().map(|place| result(*place)) {
            Some(open) => {
                let others = &found.not_known[1..];
                let more = match others {
                    [] => String::new(),
                    _ => format!(", {}", names(race, others)),
                };
                let advice = format!(
                    "{opening}stay with {reference} for now: no faster scheme is known to be harmless. Open: {}{more}.",
                    with_needs(open)
                );
                [Some(advice), gain(open), Some(cost(race, open))]
            }
            None => {
                let harmful = found.harmful.first().map(|place| result(*place));
                let advice = format!("{opening}stay with {reference}: nothing faster is harmless here.");
                [Some(advice), None, harmful.map(|worst| cost(race, worst))]
            }
        },
    };
    lines.into_iter().flatten().map(capital).collect()
}

fn for_server(server: Server) -> String {
    format!("for {} ", name_of(SERVERS, &server))
}

fn gain(result: &SchemeResult, base: &SchemeResult) -> String {
    let ratio = Measured::ratio(&result.mean().by_seed, &base.mean().by_seed).interval();
    format!("Gain: {} takes {} of {}'s time.", result.entry.name, with_interval(&ratio, 2), base.entry.name)
}

fn cost(race: &Race, result: &SchemeResult) -> String {
    let Some(harm) = race.worst_harm(result) else { return "Cost to others: not measured.".to_owned() };
    let judged = match harm.verdict(race.most_harm) {
        HarmVerdict::Harmless => format!("within {}", margin(race)),
        HarmVerdict::Harmful => format!("more than {}", margin(race)),
        HarmVerdict::NotKnown => {
            let seeds = seeds_to_tell(race, result).map(|seeds| format!("; {}", to_tell(seeds)));
            format!("not known if within {}{}", margin(race), seeds.unwrap_or_default())
        }
    };
    format!("Cost to others by {}: {}, {judged}.", result.entry.name, of_harm(&harm))
}

fn capital(line: String) -> String {
    let mut letters = line.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_compare::samples::{race, scheme_result};

    fn with(name: &str, mean: f64, harm: [f64; 4]) -> SchemeResult {
        scheme_result(name, &[mean, mean + 1.0, mean - 1.0, mean]).harm_of(&harm).0
    }

    #[test]
    fn the_answer_is_advice_gain_and_cost() {
        let iw10 = with("iw10", 240.0, [1.0; 4]);
        let mut of_tcp = race(vec![iw10.clone(), with("headstart", 120.0, [1.0, 1.001, 0.999, 1.0])]);
        of_tcp.server = Some(Server::Tcp);
        let lines = answer(&of_tcp);
        assert_eq!(lines[0], "For tcp use headstart.");
        assert_eq!(lines[1], "Gain: headstart takes 0.50 [0.50, 0.50] of iw10's time.");
        assert!(lines[2].starts_with("Cost to others by headstart: 1.000 [0.999, 1.001]"), "{}", lines[2]);

        let harmful = race(vec![iw10.clone(), with("jump-start", 120.0, [1.2, 1.21, 1.2, 1.19])]);
        let lines = answer(&harmful);
        assert_eq!(lines[0], "Stay with iw10: nothing faster is harmless here.");
        assert!(lines[1].contains("jump-start: 1.200") && lines[1].contains("more than 1 %"), "{}", lines[1]);

        let open = race(vec![iw10, with("headstart", 120.0, [1.0, 1.05, 0.95, 1.0])]);
        let lines = answer(&open);
        assert!(lines[0].starts_with("Stay with iw10 for now") && lines[0].ends_with("Open: headstart."));
        assert!(lines[2].contains("would tell"), "{}", lines[2]);
    }

    #[test]
    fn a_scheme_that_needs_a_record_stands_beside_the_one_that_every_server_can_have() {
        let iw10 = with("iw10", 240.0, [1.0; 4]);
        let known = with("wise-start", 120.0, [1.0, 1.001, 0.999, 1.0]);
        let lines = answer(&race(vec![iw10, known, with("iw32", 200.0, [1.0, 1.001, 0.999, 1.0])]));
        assert_eq!(lines[0], "Use wise-start (needs a record of the client). Without these: iw32.");
    }

    #[test]
    fn without_the_reference_there_is_advice_and_cost_but_no_gain() {
        let harmless = [1.0, 1.001, 0.999, 1.0];
        let lines = answer(&race(vec![with("headstart", 120.0, harmless), with("iw32", 200.0, harmless)]));
        assert_eq!((lines.len(), lines[0].as_str()), (2, "Use headstart."));
        assert!(lines[1].starts_with("Cost to others by headstart: "), "{}", lines[1]);
    }

    #[test]
    fn few_seeds_or_one_scheme_give_no_answer() {
        assert!(answer(&race(vec![with("iw10", 240.0, [1.0; 4])])).is_empty());
        let two = |name: &str, mean: f64| scheme_result(name, &[mean, mean + 1.0]).0;
        assert!(answer(&race(vec![two("iw10", 240.0), two("headstart", 120.0)])).is_empty());
    }
}
