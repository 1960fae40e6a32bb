//! Limits of a set-up other than the start: receive window, acknowledgements, the queue's buffer.

use headstart_units::{Bytes, Rate, Span};

use super::Setup;
use crate::options::{Buffer, SizeName, usual_buffer};

impl Setup {
    /// Notes on what may limit flows in place of their start.
    pub(super) fn limits(&self) -> Vec<String> {
        let limits = [
            self.limit_of_load(),
            self.limit_of_receive_window(),
            self.limit_of_acks(),
            self.limit_of_queue(),
            self.small_tail(),
        ];
        limits.into_iter().flatten().collect()
    }

    /// The receive window keeps flows below the rate of the path, or from filling its queue: a note
    /// on it, if it does.
    fn limit_of_receive_window(&self) -> Option<String> {
        let (window, rtt) = (self.transport.receive_window, self.rtt());
        let has_larger = if let Some(file) = &self.workload.arrivals {
            file.arrivals.iter().any(|(_, bytes)| *bytes > window)
        } else {
            self.pages.is_empty() && self.sizes.share_of_flows(window) < 1.0 - 1e-9
        };
        let bdp = self.bottleneck() * rtt;
        // An active queue is not filled.
        let buffer = match usual_buffer(self.path.queue) {
            Some(_) => Bytes::ZERO,
            None => Bytes::new(self.buffer_bytes() as u64),
        };
        let limit = if bdp > window {
            format!("limits larger flows to {} of {}", window / rtt, self.bottleneck())
        } else {
            "keeps larger flows from filling path and buffer".to_owned()
        };
        (has_larger && bdp + buffer > window).then(|| {
            format!(
                "--receive-window: {window} {limit}: losses and harm are those of such receivers; {} removes the limit",
                (bdp + buffer) * 2
            )
        })
    }

    /// A note on flows whose last segment is less than a tenth of a full one, where the buffer
    /// counts bytes: then tails are lost less often than all else.
    fn small_tail(&self) -> Option<String> {
        let SizeName::Fixed(size) = self.workload.size else { return None };
        let config = self.tcp();
        let rest = Bytes::new(size.get() % config.mss.get().max(1));
        let tail = rest + config.header;
        let is_small = !rest.is_zero() && tail * 10 < self.transport.mtu;
        let counts_bytes = !matches!(self.path.buffer, Buffer::Packets(_));
        (is_small && counts_bytes && self.is_tcp_model() && self.pages.is_empty()).then(|| {
            format!(
                "the last segment of a flow has {tail} on the link: a buffer that is counted in bytes drops it less \
                 often than a full one; --buffer 77packets counts both alike"
            )
        })
    }

    /// The bottleneck's buffer, in bytes of full packets if it counts packets.
    fn buffer_bytes(&self) -> f64 {
        let limit = self.path.buffer.limit(self.bottleneck(), self.rtt());
        if limit.packets == u64::MAX {
            limit.bytes.get() as f64
        } else {
            limit.packets as f64 * self.transport.mtu.get() as f64
        }
    }

    /// More is offered than the bottleneck carries: a note on it.
    fn limit_of_load(&self) -> Option<String> {
        let load = self.workload.load;
        (load.as_f64() > 1.0).then(|| {
            format!(
                "--load: {load} is more than the link carries: the queue grows as long as flows arrive, and times are \
                 those of a run of {}",
                self.run.duration
            )
        })
    }

    /// The rate that the acknowledgements of a flow at the bottleneck's rate need on the way back.
    fn rate_of_acks(&self) -> Rate {
        let tcp = self.tcp();
        let segments =
            u128::from(self.bottleneck().as_bits_per_sec()) / u128::from(self.transport.mtu.get() * 8);
        let acks = segments / u128::from(tcp.delayed_ack.every.max(1));
        Rate::from_bits_per_sec((acks * u128::from(tcp.header.get()) * 8) as u64)
    }

    fn rate_back(&self) -> Rate {
        self.path.up_trace.as_ref().map_or(self.path.way_back(), |file| file.trace.mean_rate())
    }

    /// The way back cannot carry the acknowledgements of a flow at the path's rate: a note on it.
    fn limit_of_acks(&self) -> Option<String> {
        let (needed, back) = (self.rate_of_acks(), self.rate_back());
        (needed > back).then(|| {
            format!(
                "--up-rate: acks of a flow at {} need {needed} of the {back} on the way back: they are its limit, and not \
                 the start",
                self.bottleneck()
            )
        })
    }

    /// An active queue has a smaller buffer than it is used with: a note on it.
    fn limit_of_queue(&self) -> Option<String> {
        let queue = self.path.queue;
        let usual = usual_buffer(queue)?;
        let of = |buffer: Buffer| {
            let limit = buffer.limit(self.bottleneck(), self.rtt());
            limit.packets.min(limit.bytes.get().div_ceil(self.transport.mtu.get()))
        };
        let (found, most) = (of(self.path.buffer), of(usual.parse().ok()?));
        (found < most).then(|| {
            format!(
                "--buffer: {} has room for {found} packets, where {usual} are usual: it drops what it would mark or let \
                 wait",
                queue.name()
            )
        })
    }

    /// Bandwidth-delay product, buffer, acknowledgements and receive window in one line: what this
    /// set-up can measure.
    #[must_use]
    pub fn describe_path(&self) -> String {
        let (rate, rtt) = (self.bottleneck(), self.rtt());
        let bdp = rate * rtt;
        let bytes = self.buffer_bytes();
        let of_bdp = match bdp.get() {
            0 => String::new(),
            bdp => format!("{:.2} BDP, ", bytes / bdp as f64),
        };
        let window = self.transport.receive_window / rtt.max(Span::from_micros(1));
        format!(
            "BDP {bdp}; buffer {of_bdp}{:.0} ms; acks need up to {} of {} on the way back; the receive window allows a \
             flow {}",
            bytes / rate.as_bytes_per_sec().max(1) as f64 * 1000.0,
            self.rate_of_acks(),
            self.rate_back(),
            if window >= rate { "all of the rate".to_owned() } else { window.to_string() }
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::carrier::Carriers;
    use crate::settings::Settings;

    #[test]
    fn a_receive_window_that_limits_flows_is_told_of() {
        let limit = |options: &str| {
            let setup = Settings::parse(Carriers::MODEL, options.split_whitespace()).expect("fine");
            setup.notes.into_iter().find(|note| note.starts_with("--receive-window"))
        };
        let long = "--rate 1gbit --rtt 200ms --size";
        assert_eq!(
            limit(&format!("{long} 20MB --receive-window 141kB")).as_deref(),
            Some(
                "--receive-window: 141 kB limits larger flows to 5.64 Mbit/s of 1 Gbit/s: losses and harm are those of \
                 such receivers; 50.23 MB removes the limit"
            )
        );
        assert!(limit(&format!("{long} internet --receive-window 141kB")).is_some(), "some of its flows");
        // 187.5 kB are on the path, and 115 kB in the queue.
        let short = "--rate 50mbit --rtt 30ms --size 300kB --receive-window";
        let found = limit(&format!("{short} 250kB")).expect("a note");
        assert!(
            found.contains("250 kB keeps larger flows from filling path and buffer: losses and harm"),
            "{found}"
        );
        for fine in [
            "",
            "--size internet",
            &format!("{long} 100kB"),
            &format!("{long} 20MB --receive-window 52MB"),
            &format!("{short} 303kB"),
            &format!("{short} 250kB --queue codel --buffer 1000p"),
        ] {
            assert_eq!(limit(fine), None, "{fine}");
        }
    }

    #[test]
    fn a_small_last_segment_before_a_buffer_of_bytes_is_told_of() {
        let notes =
            |options: &str| Settings::parse(Carriers::MODEL, options.split_whitespace()).expect("fine").notes;
        let tells = |options: &str| notes(options).iter().any(|note| note.starts_with("the last segment"));
        assert!(tells("--size 100kB"), "140 B on the link");
        for alike in ["--size 100kB --buffer 77packets", "--size 101360B", "--size 100kB --header 44B"] {
            assert!(!tells(alike), "{alike}");
        }
    }

    #[test]
    fn a_load_above_the_rate_is_told_of() {
        let notes =
            |options: &str| Settings::parse(Carriers::MODEL, options.split_whitespace()).expect("fine").notes;
        let found = notes("--load 140%");
        assert!(found[0].starts_with("--load: 140 % is more than the link carries"), "{found:?}");
        assert!(notes("--load 100%").iter().all(|note| !note.starts_with("--load")));
    }

    #[test]
    fn a_way_back_without_room_for_acks_and_a_short_active_queue_are_told_of() {
        let notes = |options: &str| -> Vec<String> {
            let setup = Settings::parse(Carriers::MODEL, options.split_whitespace()).expect("fine");
            let is_limit = |note: &String| note.starts_with("--up-rate") || note.starts_with("--buffer");
            setup.notes.into_iter().filter(is_limit).collect()
        };
        let found = notes("--rate 100mbit --up-rate 1mbit");
        assert!(
            found.len() == 1 && found[0].contains("need 3.466") && found[0].contains("of the 1 Mbit/s"),
            "{found:?}"
        );
        let found = notes("--queue fq-codel");
        assert!(found.len() == 1 && found[0].contains("room for 77 packets, where 10240"), "{found:?}");
        for fine in [
            "",
            "--rate 100mbit --up-rate 20mbit",
            "--queue fq-codel --buffer 10240p",
            "--queue codel --buffer 2000p",
        ] {
            assert!(notes(fine).is_empty(), "{fine}");
        }
    }

    #[test]
    fn the_line_on_a_set_up_has_its_products() {
        let options = ["--rate", "20mbit", "--rtt", "50ms", "--buffer", "1BDP"];
        let line = Settings::parse(Carriers::MODEL, options.into_iter()).expect("fine").describe_path();
        assert!(line.starts_with("BDP 125 kB; buffer 1.00 BDP, 50 ms; acks need up to 693"), "{line}");
        let options = ["--rtt", "0s", "--buffer", "125kB", "--rate", "20mbit"];
        let line = Settings::parse(Carriers::MODEL, options.into_iter()).expect("fine").describe_path();
        assert!(
            line.starts_with("BDP 0 B; buffer 50 ms; acks"),
            "a buffer is no multiple of nothing: {line}"
        );
    }
}
