//! A start that knows the state of the path: how far any scheme is from knowing it.

use anyhow::Result;
use headstart_net::{ElementPlan, LinkPlan, PathPlan, QueueDiscipline};
use headstart_sim::{Finished, InformedStart, Insight, Recorder, Scenario, Seed, Simulation};
use headstart_startup::history::MemoryStore;
use headstart_startup::{Prior, Scheme, catalogue};
use headstart_units::{Bytes, Rate, Span, Time};

use crate::carrier::Simulator;
use crate::carrier::model::run_with;
use crate::setup::TESTED;

/// Share of the buffer that it fills: the rest is for bursts that it cannot foresee.
const FILLED: f64 = 0.5;
/// Queueing delay to which a queue with AQM is filled: CoDel's target.
const AQM: Span = Span::from_millis(5);
/// Segments that leave at once in any case, as from every other start.
const MIN_BURST: u64 = 10;
/// Bytes of a packet on the wire for each 1448 of payload.
const WIRE: f64 = 1500.0 / 1448.0;

/// The informed start, for a path whose first element is the bottleneck.
///
/// The whole flow is planned. As much leaves at once as half of the buffer has free, less what
/// other first flights will still send. The rest leaves at the pace at which that half is full when
/// the last of it arrives. It is no slower than an equal share of the link, or than slow start from
/// ten segments. Afterwards it is Headstart. A flow of ten segments or less is slow start. It does
/// not know when later flows arrive, nor the average queue of RED.
#[derive(Clone, Debug)]
pub struct Informed {
    /// The rate of the bottleneck, and the one that it changes to.
    rate: Rate,
    change: Option<(Time, Rate)>,
    /// Without queues.
    rtt: Span,
    /// Bytes of queue that it fills at most.
    filled: f64,
}

impl Informed {
    /// The start for a path whose bottleneck has this rate and buffer.
    #[must_use]
    pub fn new(plan: &PathPlan, rate: Rate, buffer: Bytes, change: Option<(Time, Rate)>) -> Self {
        let most = match plan.down.first() {
            Some(ElementPlan::Link(LinkPlan { discipline: QueueDiscipline::DropTail, .. })) => f64::INFINITY,
            _ => (rate * AQM).get() as f64,
        };
        let filled = (buffer.get() as f64 * FILLED).min(most);
        Self { rate, change, rtt: plan.rtt(0), filled }
    }
}

/// The TCP model, in which the flows under test start informed.
impl Simulator for Informed {
    fn simulate<R: Recorder>(
        &self,
        scenario: Scenario,
        _: Seed,
        histories: Vec<(u16, MemoryStore)>,
        recorder: R,
    ) -> Result<Finished<R>> {
        let simulation = Simulation::new(scenario, recorder);
        Ok(run_with(simulation.with_informed_start(TESTED, Box::new(self.clone())), histories))
    }
}

impl InformedStart for Informed {
    fn choose(&mut self, seen: &Insight, prior: &Prior) -> (Scheme, Prior) {
        let rate = self.change.filter(|(at, _)| *at <= seen.now).map_or(self.rate, |(_, rate)| rate);
        let rate = rate.as_bytes_per_sec() as f64;
        let rtt = self.rtt.as_nanos() as f64 * 1e-9;
        let wire = |payload: Bytes| payload.get() as f64 * WIRE;
        let segment = wire(prior.mss);
        let size = wire(prior.sendable());
        if size <= MIN_BURST as f64 * segment {
            return (slow_start(), *prior);
        }
        // Connections past their first flight keep their part of the link, or an equal share.
        let clocked = seen.clocked as f64;
        let share = 1.0 / (clocked + 1.0);
        let free = rate * (1.0 - wire(seen.in_flight) / (rate * rtt)).max(share);
        let ahead = seen.queue.get() as f64 + wire(seen.planned);
        let filled = self.filled;
        let room = (filled - ahead).max(0.0);
        let burst = ((room / segment) as u64).min((size / segment) as u64 + 1).clamp(MIN_BURST, 1000);
        let equal = size * (seen.starting as f64 + clocked + 1.0) / rate;
        let seconds = ((size - burst as f64 * segment).max(0.0) + (ahead - filled).max(0.0)) / free;
        // Slow start from ten segments would take this long.
        let doublings =
            prior.handshake_rtt.as_nanos() as f64 * 1e-9 * (size / segment / MIN_BURST as f64 + 1.0).log2();
        let seconds = seconds.min(equal).min(doublings).max(1e-6);
        let flight = ((size / segment) as u64 + 1).clamp(burst, 100_000);
        let text = format!(
            "headstart(initial-window={burst},initial-credit={flight},min-rtt=0ms,learns-initial-credit=off)"
        );
        let scheme = by_name(&text);
        let paced = Span::from_nanos((seconds * 1e9 * flight as f64 / (flight - burst).max(1) as f64) as u64);
        (scheme, Prior { handshake_rtt: paced, ..*prior })
    }
}

fn slow_start() -> Scheme {
    by_name("iw10")
}

fn by_name(text: &str) -> Scheme {
    catalogue::find(text).expect("its values are in range").scheme()
}
