//! A concurrent real-time flow: datagrams at a constant rate, as of a call whose codec does not
//! adapt (RFC 8867 measures such flows by rate, delay and loss).

use headstart_units::{Bytes, Rate, Span, Time};

use super::{Order, Workload};

/// A flow of datagrams of one size at a constant rate.
#[derive(Debug)]
pub struct Media {
    next_at: Time,
    until: Time,
    gap: Span,
    size: Bytes,
}

impl Media {
    /// Size of its packets, headers included.
    pub const SIZE: Bytes = Bytes::new(1200);

    /// The flow of `rate` from the beginning to `until`.
    #[must_use]
    pub fn new(rate: Rate, until: Time) -> Self {
        Self { next_at: Time::ZERO, until, gap: Self::SIZE / rate, size: Self::SIZE }
    }
}

impl Workload for Media {
    fn next_at(&self) -> Time {
        self.next_at
    }

    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>) {
        orders.push(Order::Datagram { class: 0, size: self.size });
        self.next_at = now + self.gap.max(Span::from_nanos(1));
        if self.next_at >= self.until {
            self.next_at = Time::NEVER;
        }
    }
}
