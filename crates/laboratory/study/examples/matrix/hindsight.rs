//! First flights chosen flow by flow, with knowledge of everything that follows.

use std::sync::{Arc, Mutex, PoisonError};

use headstart_sim::{InformedStart, Insight};
use headstart_startup::{Prior, Scheme, catalogue};
use headstart_study::drawn_paths::path::{DrawnPath, Outcome};

use crate::packets;

/// The first flights to choose from: of slow start, and paced over one round trip.
const FLIGHTS: [&str; 4] = [
    "iw10",
    "headstart(initial-credit=50,min-rtt=0ms)",
    "headstart(initial-credit=200,min-rtt=0ms)",
    "headstart(initial-credit=100000,min-rtt=0ms)",
];
/// Flows of a run times its packets at most: the path is run anew for each flow and flight.
const WORK: f64 = 2e7;

/// The best of [`FLIGHTS`] for each flow of a path, found one flow after the other. One is kept if
/// it lowers the mean of all flows on the very arrivals and losses of the run. It begins with the
/// best flight for all. `None` on paths with more than [`WORK`].
pub fn best(path: &DrawnPath) -> Option<Outcome> {
    let mut best = (0..FLIGHTS.len())
        .map(|flight| run(path, &[], flight))
        .min_by(|one, other| one.0.mean_ms.total_cmp(&other.0.mean_ms))?;
    if best.1.len() as f64 * packets(path) > WORK {
        return None;
    }
    let mut flow = 0;
    while flow < best.1.len() {
        let before = best.1.clone();
        for flight in (0..FLIGHTS.len()).filter(|flight| *flight != before[flow]) {
            let mut choices = before.clone();
            choices[flow] = flight;
            let tried = run(path, &choices, before[flow]);
            if tried.0.mean_ms < best.0.mean_ms && tried.0.unfinished <= best.0.unfinished {
                best = tried;
            }
        }
        flow += 1;
    }
    Some(best.0)
}

/// A run with these choices, in the order of establishment, and `rest` for further flows. Returns
/// all choices that were made.
fn run(path: &DrawnPath, choices: &[usize], rest: usize) -> (Outcome, Vec<usize>) {
    let made = Arc::new(Mutex::new(vec![]));
    let start = Chosen { choices: choices.to_vec(), rest, made: Arc::clone(&made) };
    let outcome = path.run_informed(Box::new(start));
    let made = made.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (outcome, made)
}

#[derive(Debug)]
struct Chosen {
    choices: Vec<usize>,
    rest: usize,
    made: Arc<Mutex<Vec<usize>>>,
}

impl InformedStart for Chosen {
    fn choose(&mut self, _: &Insight, prior: &Prior) -> (Scheme, Prior) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let flight = self.choices.get(made.len()).copied().unwrap_or(self.rest);
        made.push(flight);
        let scheme = catalogue::find(FLIGHTS[flight]).expect("its values are in range").scheme();
        (scheme, Prior { history: None, shared_credit: None, ..*prior })
    }
}
