//! The best order of service: a bound that no scheme passes.

use headstart_units::{Bytes, Rate, Span, Time};

/// Bytes of a packet on the wire for each 1448 of payload.
const WIRE: f64 = 1500.0 / 1448.0;

/// Mean time in seconds of these flows, by opening and size, if the one with the least left were
/// always served at the link's full rate. No order of service has a shorter mean, so no scheme has.
/// The handshake takes a round trip without queues, and the last byte half of one. A flow that is
/// not over at `end` counts with its age, as in the runs.
#[must_use]
pub fn shortest_first(
    mut flows: Vec<(Time, Bytes)>,
    rate: Rate,
    change: Option<(Time, Rate)>,
    rtt: Span,
    end: Time,
) -> f64 {
    flows.sort_unstable();
    let count = flows.len().max(1) as f64;
    let seconds = |time: Time| time.as_nanos() as f64 * 1e-9;
    let round = rtt.as_nanos() as f64 * 1e-9;
    let change = change.map(|(at, rate)| (seconds(at), rate.as_bytes_per_sec() as f64));
    let rate_at = |now: f64| match change {
        Some((at, rate)) if now >= at => (rate, f64::INFINITY),
        Some((at, _)) => (rate.as_bytes_per_sec() as f64, at),
        None => (rate.as_bytes_per_sec() as f64, f64::INFINITY),
    };
    let mut next =
        flows.into_iter().map(|(at, bytes)| (seconds(at) + round, bytes.get() as f64 * WIRE)).peekable();
    // The bytes left of each flow, and the time of its opening.
    let mut left: Vec<(f64, f64)> = vec![];
    let (mut now, mut sum) = (0.0_f64, 0.0);
    loop {
        while let Some((at, bytes)) = next.next_if(|(at, _)| *at <= now) {
            let place = left.partition_point(|(other, _)| *other > bytes);
            left.insert(place, (bytes, at - round));
        }
        let arrival = next.peek().map_or(f64::INFINITY, |(at, _)| *at);
        let Some((bytes, opened)) = left.last_mut() else {
            if arrival.is_infinite() {
                return sum / count;
            }
            now = arrival;
            continue;
        };
        let (rate, until) = rate_at(now);
        let done = now + *bytes / rate;
        let stop = arrival.min(until);
        if done <= stop {
            sum += (done + round / 2.0).min(seconds(end)) - *opened;
            now = done;
            left.pop();
        } else {
            *bytes -= (stop - now) * rate;
            now = stop;
        }
    }
}
