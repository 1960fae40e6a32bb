//! An independent check of a run: the elements' behaviour is recomputed from the recorded events.
//!
//! The checker is a recorder and has no access to the elements' state. For every element given to
//! it, it checks that packets are neither made nor lost silently (offered = delivered + dropped +
//! still inside). On a constant-rate first-in-first-out link packets must leave in order and
//! unchanged. They leave no sooner than serialisation and propagation allow, and never faster than
//! the rate. The buffer must never be above its limit, nor refuse a packet that would have fitted.

use std::collections::VecDeque;

use headstart_net::{ElementPlan, Limit, PathPlan, Seed};
use headstart_units::{Bytes, Rate, Span, Time};

use crate::packet::Packet;
use crate::path::Path;
use crate::record::{ElementEvent, FlowReport, MessageReport, Recorder, SenderTrace};
use crate::workload::PageReport;

/// The type of an element, as far as the checker can verify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementModel {
    /// A constant-rate link with a drop-tail queue.
    Link {
        /// Rate of the link.
        rate: Rate,
        /// Propagation delay of the link.
        delay: Span,
        /// Buffer of the link.
        limit: Limit,
    },
    /// Anything else: only counted.
    Counted,
}

impl ElementModel {
    /// The models of the elements of `plan`, in the order of [`Path::new`].
    #[must_use]
    pub fn of(plan: &PathPlan) -> Vec<Self> {
        let access = plan.access.iter().filter(|delay| !delay.is_zero()).flat_map(|_| [Self::Counted; 2]);
        let elements = plan.elements(Seed(0));
        elements.iter().map(|placed| Self::element(placed.plan)).chain(access).collect()
    }

    fn element(plan: &ElementPlan) -> Self {
        let ElementPlan::Link(link) = plan else { return Self::Counted };
        let (delay, limit) = (link.delay, link.limit);
        link.plain_rate().map_or(Self::Counted, |rate| Self::Link { rate, delay, limit })
    }
}

/// Checks a run as its recorder, and passes every event on.
#[derive(Debug)]
pub struct Checker<R> {
    inner: R,
    elements: Vec<Watched>,
    faults: Vec<String>,
}

#[derive(Debug)]
struct Watched {
    model: ElementModel,
    offered: u64,
    delivered: u64,
    dropped: u64,
    /// Packets inside, with the begin of their serialisation and the time at which they must leave.
    inside: VecDeque<(Time, Time, Packet)>,
    /// How many of them have begun by the latest `waiting`: the front ones, since order is kept.
    begun: usize,
    /// Bytes of the others.
    waiting: Bytes,
    free_at: Time,
}

/// Faults kept at most.
const MAX_FAULTS: usize = 20;

impl<R> Checker<R> {
    /// A checker for a path whose elements are `models`, in their order; `inner` gets every event.
    pub fn new(models: &[ElementModel], inner: R) -> Self {
        let watch = |model: &ElementModel| Watched {
            model: *model,
            offered: 0,
            delivered: 0,
            dropped: 0,
            inside: VecDeque::new(),
            begun: 0,
            waiting: Bytes::ZERO,
            free_at: Time::ZERO,
        };
        Self { inner, elements: models.iter().map(watch).collect(), faults: vec![] }
    }

    /// The faults found, the path's own account included; and the inner recorder.
    pub fn finish(mut self, path: &Path) -> (Vec<String>, R) {
        for (watched, (name, account)) in self.elements.iter().zip(path.packet_counts()) {
            let reported = (watched.offered, watched.delivered, watched.dropped);
            let counted = (account.offered, account.delivered, account.total_dropped());
            if reported != counted {
                self.faults.push(format!(
                    "{name}: reported {reported:?} offered, delivered, dropped; counted {counted:?}"
                ));
            }
            let inside = watched.offered as i64 - watched.delivered as i64 - watched.dropped as i64;
            if matches!(watched.model, ElementModel::Link { .. }) && inside != watched.inside.len() as i64 {
                self.faults.push(format!("{name}: {inside} packets should be inside"));
            }
        }
        (self.faults, self.inner)
    }

    fn fault(&mut self, now: Time, element: usize, what: impl FnOnce() -> String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(format!("{} ns, element {element}: {}", now.as_nanos(), what()));
        }
    }

    fn watch_link(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        let watched = &mut self.elements[element];
        let ElementModel::Link { rate, delay, limit } = watched.model else { return };
        let size = Bytes::new(u64::from(packet.size));
        match event {
            ElementEvent::Accepted => {
                let begins = watched.free_at.max(now);
                watched.free_at = begins + size / rate;
                watched.inside.push_back((begins, watched.free_at + delay, *packet));
                watched.waiting += size;
                let (packets, bytes) = watched.waiting(now);
                if packets > limit.packets || bytes > limit.bytes {
                    self.fault(now, element, || format!("{packets} packets, {} bytes wait", bytes.get()));
                }
            }
            ElementEvent::Refused(_) => {
                let (packets, bytes) = watched.waiting(now);
                if watched.free_at <= now || limit.admits(packets, bytes, size) {
                    self.fault(now, element, || "refused a packet that fitted".into());
                }
            }
            ElementEvent::Delivered => match watched.take_first() {
                None => self.fault(now, element, || "delivered a packet that it never had".into()),
                Some((_, due, expected)) => {
                    if expected.without_notes() != packet.without_notes() {
                        self.fault(now, element, || format!("delivered {packet:?} before {expected:?}"));
                    } else if due != now {
                        self.fault(now, element, || format!("delivered when {} ns was due", due.as_nanos()));
                    }
                }
            },
            ElementEvent::Passed | ElementEvent::Dropped(_) => {
                self.fault(now, element, || {
                    "a link neither passes packets through nor drops them inside".into()
                });
            }
        }
    }
}

impl Watched {
    /// Packets whose serialisation has not begun, and their bytes.
    fn waiting(&mut self, now: Time) -> (u64, Bytes) {
        while let Some((begins, _, packet)) = self.inside.get(self.begun)
            && *begins <= now
        {
            self.begun += 1;
            self.waiting -= Bytes::new(u64::from(packet.size));
        }
        ((self.inside.len() - self.begun) as u64, self.waiting)
    }

    fn take_first(&mut self) -> Option<(Time, Time, Packet)> {
        let first = self.inside.pop_front()?;
        match self.begun.checked_sub(1) {
            Some(begun) => self.begun = begun,
            None => self.waiting -= Bytes::new(u64::from(first.2.size)),
        }
        Some(first)
    }
}

impl<R: Recorder> Recorder for Checker<R> {
    fn flow(&mut self, report: &FlowReport) {
        self.inner.flow(report);
    }

    fn message(&mut self, report: &MessageReport) {
        self.inner.message(report);
    }

    fn page(&mut self, report: &PageReport) {
        self.inner.page(report);
    }

    fn datagram(&mut self, sent_at: Time, arrived_at: Option<Time>) {
        self.inner.datagram(sent_at, arrived_at);
    }

    fn focus(&mut self, serial: u64) {
        self.inner.focus(serial);
    }

    fn sender(&mut self, now: Time, trace: impl FnOnce() -> SenderTrace) {
        self.inner.sender(now, trace);
    }

    fn queue(&mut self, now: Time, element: usize, length: impl FnOnce() -> (u64, Bytes)) {
        self.inner.queue(now, element, length);
    }

    fn element(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        let watched = &mut self.elements[element];
        match event {
            ElementEvent::Accepted => watched.offered += 1,
            ElementEvent::Refused(_) => {
                watched.offered += 1;
                watched.dropped += 1;
            }
            ElementEvent::Passed => {
                watched.offered += 1;
                watched.delivered += 1;
            }
            ElementEvent::Delivered => watched.delivered += 1,
            ElementEvent::Dropped(_) => watched.dropped += 1,
        }
        self.watch_link(now, element, event, packet);
        self.inner.element(now, element, event, packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Body, Ecn};
    use crate::record::NullRecorder;
    use headstart_net::DropReason;

    /// Time in milliseconds, event, number of the packet.
    type Seen = (u64, ElementEvent, u32);

    /// Packets of 1500 bytes take 1 ms on the link, which holds two more; one travels 5 ms.
    fn faults(events: &[Seen]) -> Vec<String> {
        let limit = Limit { packets: 2, bytes: Bytes::MAX };
        let model =
            ElementModel::Link { rate: Rate::from_mbit_per_sec(12), delay: Span::from_millis(5), limit };
        let mut checker = Checker::new(&[model], NullRecorder);
        for &(at_ms, event, number) in events {
            let body = Body::Datagram { number };
            let packet =
                Packet { slot: 0, generation: 0, size: 1500, route: 0, hop: 0, ecn: Ecn::NotCapable, body };
            checker.element(Time::from_millis(at_ms), 0, event, &packet);
        }
        checker.faults
    }

    const FULL: ElementEvent = ElementEvent::Refused(DropReason::QueueFull);
    use ElementEvent::{Accepted, Delivered};

    #[test]
    fn a_link_that_keeps_every_rule_has_no_fault() {
        let events = [
            (0, Accepted, 0),
            (0, Accepted, 1),
            (0, Accepted, 2),
            (0, FULL, 3),
            (1, Accepted, 4),
            (6, Delivered, 0),
            (6, Accepted, 5),
            (6, Accepted, 6),
            (6, Accepted, 7),
            (6, FULL, 8),
            (7, Delivered, 1),
            (8, Delivered, 2),
            (9, Delivered, 4),
            (12, Delivered, 5),
            (13, Delivered, 6),
            (14, Delivered, 7),
        ];
        assert_eq!(faults(&events), Vec::<String>::new());
    }

    #[test]
    fn each_broken_rule_is_a_fault() {
        let broken: [(&str, &[Seen]); 6] = [
            ("3 packets", &[(0, Accepted, 0), (0, Accepted, 1), (0, Accepted, 2), (0, Accepted, 3)]),
            ("fitted", &[(0, Accepted, 0), (0, Accepted, 1), (0, Accepted, 2), (1, FULL, 3)]),
            ("before", &[(0, Accepted, 0), (0, Accepted, 1), (6, Delivered, 1)]),
            ("was due", &[(0, Accepted, 0), (5, Delivered, 0)]),
            ("was due", &[(0, Accepted, 0), (0, Accepted, 1), (6, Delivered, 0), (6, Delivered, 1)]),
            ("never had", &[(0, Accepted, 0), (6, Delivered, 0), (6, Delivered, 0)]),
        ];
        for (expected, events) in broken {
            let found = faults(events);
            assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
        }
    }
}
