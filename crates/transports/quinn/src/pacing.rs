//! A pace, expressed as a window.
//!
//! quinn's pacer is a token bucket of ten packets, or of 2 ms of a high rate. It fills at 1.25
//! windows in a smoothed round trip, and reads the same window that limits bytes in flight. There
//! is no other control, so while a scheme sets a pace P, the window reported is 0.8 P times the
//! smoothed round trip, from which quinn computes exactly P:
//!
//! - Faster than 1.25 windows W in a round trip. More than W is reported while there is room in W
//!   for all packets that quinn makes at once, and W for the last ones. So bytes in flight never
//!   exceed W.
//! - Slower: less than W is reported, but not less than bytes in flight and four packets, for a
//!   window in use stops quinn without a timer. From four fifths of a round trip on the pace of a
//!   first flight rises so from P to at most 1.25 P.
//! - Without pace: quinn does not pace at windows of 4 GiB and more. That is reported for a burst
//!   of more than ten packets, while there is room in the same sense.
//!
//! Packets leave in bursts of ten in any case. The bucket is full when a flight begins, and is
//! filled once more when it is found empty: up to twenty packets can leave together then.

use headstart_startup::Allowance;
use headstart_units::{Bytes, Ratio, Span};

/// Most packets that quinn makes at once, between two questions for the window.
const LARGEST_BATCH: u64 = 10;
/// The inverse of the pacer's 1.25 windows in a round trip.
const SHARE: Ratio = Ratio::new(4, 5);
/// Packets in addition to the flight for which a window must have room, so that the pacer runs.
/// They are the next one, a probe of the path's MTU, which no controller learns of, and one to
/// spare.
const ROOM: u64 = 4;
/// quinn does not pace above 32 bits.
const UNPACED: Bytes = Bytes::new(1 << 33);

/// The inputs of a window for quinn.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Window and pace of the scheme.
    pub allowance: Allowance,
    /// Bytes in flight in the scheme's account.
    pub in_flight: Bytes,
    /// Bytes of a burst that have not left.
    pub burst_left: Bytes,
    /// quinn's smoothed round trip.
    pub smoothed: Span,
    /// Size of the largest packet.
    pub packet: Bytes,
}

/// The window to be reported, so that quinn sends at the scheme's pace.
#[must_use]
pub fn window(state: &State) -> Bytes {
    let State { allowance, in_flight, burst_left, smoothed, packet } = *state;
    let limit = allowance.window;
    let batch = packet * LARGEST_BATCH;
    let has_room = limit.saturating_sub(in_flight) > batch;
    if burst_left > batch && has_room {
        return UNPACED;
    }
    let Some(pace) = allowance.pace.filter(|_| !smoothed.is_zero()) else { return limit };
    let paced = pace * (smoothed * SHARE);
    if paced < limit {
        paced.max(in_flight + packet * ROOM).min(limit)
    } else if has_room {
        paced.min(UNPACED)
    } else {
        limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1_200);
    const RTT: Span = Span::from_millis(50);

    /// Windows in packets; a pace of 1 is one window of 100 packets in a round trip.
    fn reported(in_flight: u64, pace: Option<Ratio>, burst_left: u64) -> u64 {
        let window = PACKET * 100;
        let pace = pace.map(|times| (window / RTT) * times);
        let allowance = Allowance { window, pace };
        let (in_flight, burst_left) = (PACKET * in_flight, PACKET * burst_left);
        let bytes = super::window(&State { allowance, in_flight, burst_left, smoothed: RTT, packet: PACKET });
        bytes.get() / PACKET.get()
    }

    #[test]
    fn a_pace_becomes_the_window_from_which_quinn_computes_it() {
        let unpaced = UNPACED.get() / PACKET.get();
        let [half, once, twice] = [Ratio::new(1, 2), Ratio::ONE, Ratio::new(2, 1)].map(Some);
        for (in_flight, pace, burst_left, expected, reason) in [
            (0, None, 0, 100, "quinn's own pace"),
            (0, once, 0, 80, "1.25 times 80 are 100"),
            (90, once, 0, 94, "a window in use would stop it"),
            (99, once, 0, 100, "never above the scheme's window"),
            (120, once, 0, 100, "nor after a cut"),
            (20, half, 0, 40, "half as fast"),
            (0, twice, 0, 160, "twice as fast, while a batch has room"),
            (90, twice, 0, 100, "and no more after it"),
            (0, once, 32, unpaced, "a burst"),
            (0, once, 10, 80, "the bucket holds ten packets"),
            (90, None, 32, 100, "no room for a batch"),
        ] {
            assert_eq!(reported(in_flight, pace, burst_left), expected, "{in_flight} {pace:?}: {reason}");
        }
    }
}
