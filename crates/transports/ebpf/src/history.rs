//! Records of peers: between the kernel's clock and the QUIC server's record format.
//!
//! The object dates records by the time since boot, which cannot be set; the QUIC server's store by
//! the time since 1970. An exported record that is imported, anywhere, keeps its age.
//!
//! Imported records are untrusted: a file is checked by `headstart-store` as the server's own is,
//! and here every number is brought within the range of the object's arithmetic. A record without a
//! usable rate or RTT is left out. A handshake's excess is left out as well: the kernel answers a
//! SYN, so that no application's processing is in its RTT.

use headstart_startup::history::{FlightOutcome, Record};
use headstart_units::{Bytes, Rate, Span, Time};

use crate::layout::{KernelRecord, MAX_RATE, MAX_WINDOW, NONE};

/// Largest RTT of a path: a record with a longer one is ignored.
pub const MAX_RTT: Span = Span::from_secs(60);

/// The two clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Time since 1970.
    pub unix: Time,
    /// Time since the machine booted.
    pub boot: Time,
}

impl Clocks {
    /// Reads the clocks since 1970 and since boot.
    #[must_use]
    pub fn now() -> Self {
        use rustix::time::{ClockId, clock_gettime};
        let read = |id| {
            let now = clock_gettime(id);
            let (seconds, nanos) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
            Time::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
        };
        Self { unix: read(ClockId::Realtime), boot: read(ClockId::Boottime) }
    }

    /// A record as the object keeps it. `None`: it has no rate or no plausible RTT.
    #[must_use]
    pub fn to_kernel(self, record: &Record) -> Option<KernelRecord> {
        if record.btl_bw.is_zero() || record.rt_prop.is_zero() || record.rt_prop > MAX_RTT {
            return None;
        }
        // A record from the future has no age; one of another century has all of it.
        let age = i64::try_from(self.unix.since(record.saved_at).as_nanos()).unwrap_or(i64::MAX);
        let boot = i64::try_from(self.boot.as_nanos()).unwrap_or(i64::MAX);
        Some(KernelRecord {
            saved_at: boot.saturating_sub(age),
            btl_bw: record.btl_bw.min(MAX_RATE).as_bytes_per_sec(),
            rt_prop: record.rt_prop.as_nanos(),
            window: record.window.min(MAX_WINDOW).get(),
            ssthresh: if record.ssthresh >= MAX_WINDOW { NONE } else { record.ssthresh.get() },
            ended: u32::from(record.outcome == FlightOutcome::Lossy),
            trust: 100,
            credit: record.credit.min(MAX_WINDOW).get(),
        })
    }

    /// A record of the object as the QUIC server keeps it. Its trust is applied to the rate, for
    /// the format has no place for it.
    #[must_use]
    pub fn to_store(self, record: &KernelRecord) -> Record {
        let age = i64::try_from(self.boot.as_nanos()).unwrap_or(i64::MAX).saturating_sub(record.saved_at);
        let trust = u64::from(record.trust.clamp(1, 100));
        Record {
            saved_at: self.unix - Span::from_nanos(u64::try_from(age).unwrap_or(0)),
            btl_bw: Rate::from_bytes_per_sec(record.btl_bw.saturating_mul(trust) / 100),
            rt_prop: Span::from_nanos(record.rt_prop),
            window: Bytes::new(record.window),
            ssthresh: Bytes::new(record.ssthresh),
            outcome: if record.ended == 0 { FlightOutcome::Clean } else { FlightOutcome::Lossy },
            credit: Bytes::new(record.credit),
            handshake_excess: Span::ZERO,
        }
    }

    /// Age of a record.
    #[must_use]
    pub fn age(self, record: &KernelRecord) -> Span {
        let age = i128::from(self.boot.as_nanos()) - i128::from(record.saved_at);
        Span::from_nanos(u64::try_from(age).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLOCKS: Clocks =
        Clocks { unix: Time::from_millis(1_800_000_000_000), boot: Time::from_millis(600_000) };

    fn record(age: u64) -> Record {
        Record {
            saved_at: CLOCKS.unix - Span::from_secs(age),
            btl_bw: Rate::from_mbit_per_sec(25),
            rt_prop: Span::from_millis(50),
            window: Bytes::new(150_000),
            outcome: FlightOutcome::Lossy,
            credit: Bytes::new(72_400),
            ..Record::default()
        }
    }

    #[test]
    fn a_record_older_than_the_boot_survives_conversion_to_the_kernel_and_back() {
        for age in [0, 1, 599, 601, 100_000] {
            let kernel = CLOCKS.to_kernel(&record(age)).expect("a record");
            assert_eq!(CLOCKS.age(&kernel), Span::from_secs(age));
            assert_eq!(CLOCKS.to_store(&kernel), record(age), "{age} s old");
        }
    }

    #[test]
    fn a_record_from_the_future_counts_as_new() {
        let future = Record { saved_at: CLOCKS.unix + Span::from_secs(5), ..record(0) };
        assert_eq!(CLOCKS.to_kernel(&future).map(|it| CLOCKS.age(&it)), Some(Span::ZERO));
    }

    proptest! {
        #[test]
        fn any_imported_record_is_within_the_range_of_the_object(
            saved_at: u64, btl_bw: u64, rt_prop: u64, window: u64, ssthresh: u64, credit: u64,
        ) {
            let record = Record {
                saved_at: Time::from_nanos(saved_at),
                btl_bw: Rate::from_bytes_per_sec(btl_bw),
                rt_prop: Span::from_nanos(rt_prop),
                window: Bytes::new(window),
                ssthresh: Bytes::new(ssthresh),
                credit: Bytes::new(credit),
                ..Record::default()
            };
            let Some(kernel) = CLOCKS.to_kernel(&record) else {
                prop_assert!(btl_bw == 0 || rt_prop == 0 || rt_prop > MAX_RTT.as_nanos());
                return Ok(());
            };
            prop_assert!((1..=MAX_RATE.as_bytes_per_sec()).contains(&kernel.btl_bw));
            prop_assert!((1..=MAX_RTT.as_nanos()).contains(&kernel.rt_prop));
            prop_assert!(kernel.window <= MAX_WINDOW.get() && kernel.credit <= MAX_WINDOW.get());
            prop_assert!(kernel.ssthresh == NONE || kernel.ssthresh < MAX_WINDOW.get());
            prop_assert!(KernelRecord::from_bytes(&kernel.to_bytes()) == Some(kernel));
        }
    }
}
