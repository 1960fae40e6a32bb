//! Requests of a mobile application over time: WS Figures 1 and 4 as a model.
//!
//! WS §2.1 counted a million requests: within 30 s of a connection's establishment 19.38 % of the
//! requests, with 12.67 % of the bytes, occur in the first second. The requests themselves and
//! their sizes are not published. The model:
//!
//! - First second: 4 to 12 requests, equally likely: the first at once; when its response has been
//!   read, the others, after gaps of 15 ms.
//! - The other 29 s: Poisson bursts, 16.64 on average; 1 to 3 requests each, some 100 ms apart.
//! - Sizes: log-normal with a deviation of 1 in the logarithm: 12 kB on average in the first
//!   second, 19.9 kB later.
//!
//! Times are exponentially distributed and count from the moment at which the first response was
//! read, since it refers to the other objects. The ratio of counts (8 to 33.3) and of sizes (0.604)
//! give the paper's two shares. Their scale is that of WS §4.4.2. When the first ack arrives, 11.8
//! kB are in flight in an application-limited start (37.8 kB less than 49.6 kB), about the first
//! response. WS §2.3 also reports an empty send buffer in 14.46 % of the cases (Figure 4), without
//! a definition of a case. Here it is half as many of the data packets.
//!
//! Requests of the first second are those of the first screen (WS §1: "most of which contribute to
//! the First AFT").

use headstart_sim::Seed;
use headstart_sim::workload::replay::Message;
use headstart_units::{Bytes, Ratio, Span};

use headstart_sim::Random;

/// Length of a session.
pub const SESSION: Span = Span::from_secs(30);
/// Requests until then belong to the first screen.
pub const FIRST_SCREEN: Span = Span::from_secs(1);

const FIRST_COUNT: (u64, u64) = (4, 12);
const BURSTS: f64 = 16.64;
const BURST_COUNT: (u64, u64) = (1, 3);
const GAP_MS: f64 = 15.0;
const LATER_GAP_MS: f64 = 100.0;
const FIRST_BYTES: f64 = 12_000.0;
const LATER_BYTES: f64 = 19_883.0;
const SPREAD: f64 = 1.0;
/// Smallest and largest response: a header, and a large picture.
const BYTES: (f64, f64) = (200.0, 400_000.0);

/// Session number `seed`: its requests in the order of time, the first at zero, with responses
/// scaled by `responses`.
#[must_use]
pub fn session(seed: Seed, responses: Ratio) -> Vec<Message> {
    let (mut when, mut size) = (Random::named(seed, "requests"), Random::named(seed, "responses"));
    let mut messages = vec![];
    let mut ask = |at: f64, bytes: f64| {
        let bytes = size.log_normal(bytes, SPREAD).clamp(BYTES.0, BYTES.1) as u64;
        messages.push(Message {
            at: Span::from_micros((at * 1000.0) as u64),
            bytes: (Bytes::new(bytes) * responses).max(Bytes::new(1)),
        });
    };
    let (screen, end) = (FIRST_SCREEN.as_millis_f64(), SESSION.as_millis_f64());
    ask(0.0, FIRST_BYTES);
    let mut at = 0.0;
    for _ in 1..count(&mut when, FIRST_COUNT) {
        at += when.exponential_f64(GAP_MS);
        ask(at.min(screen - 1.0), FIRST_BYTES);
    }
    let mut began_at = screen;
    loop {
        began_at += when.exponential_f64((end - screen) / BURSTS);
        if began_at >= end {
            break;
        }
        let mut at = began_at;
        for _ in 0..count(&mut when, BURST_COUNT) {
            ask(at.min(end - 1.0), LATER_BYTES);
            at += when.exponential_f64(LATER_GAP_MS);
        }
    }
    messages.sort_by_key(|message| message.at);
    messages
}

fn count(random: &mut Random, (least, most): (u64, u64)) -> u64 {
    least + random.below(most - least + 1)
}

/// Number of these messages that belong to the first screen.
#[must_use]
pub fn first_screen(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.at < FIRST_SCREEN).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WS §2.1, Figure 1.
    #[test]
    fn the_first_second_has_its_share_of_requests_and_bytes() {
        let (mut first, mut all) = ((0.0, 0.0), (0.0, 0.0));
        for seed in 0..5000 {
            let messages = session(Seed(seed), Ratio::ONE);
            assert_eq!(messages[0].at, Span::ZERO);
            let screen = first_screen(&messages);
            assert!((4..=12).contains(&screen));
            for (number, message) in messages.iter().enumerate() {
                assert!(message.at < SESSION);
                let bytes = message.bytes.get() as f64;
                all = (all.0 + 1.0, all.1 + bytes);
                if number < screen {
                    first = (first.0 + 1.0, first.1 + bytes);
                }
            }
        }
        let (requests, bytes) = (100.0 * first.0 / all.0, 100.0 * first.1 / all.1);
        assert!((19.0..19.8).contains(&requests), "{requests} % of the requests");
        assert!((12.3..13.1).contains(&bytes), "{bytes} % of the bytes");
    }

    #[test]
    fn the_same_draw_is_the_same_session() {
        assert_eq!(session(Seed(3), Ratio::ONE), session(Seed(3), Ratio::ONE));
        assert_ne!(session(Seed(3), Ratio::ONE), session(Seed(4), Ratio::ONE));
    }
}
