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
        /// Its rate.
        rate: Rate,
        /// Its propagation delay.
        delay: Span,
        /// Its buffer.
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
            free_at: Time::ZERO,
        };
        Self { inner, elements: models.iter().map(watch).collect(), faults: vec![] }
    }

    /// The faults found, the path's own account included; and the inner recorder.
    pub fn finish(mut self, path: &Path) -> (Vec<String>, R) {
        for (watched, (name, account)) in self.elements.iter().zip(path.packet_counts()) {
            let told = (watched.offered, watched.delivered, watched.dropped);
            let counted = (account.offered, account.delivered, account.total_dropped());
            if told != counted {
                self.faults.push(format!(
                    "{name}: told of {told:?} offered, delivered, dropped; counted {counted:?}"
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
            ElementEvent::Delivered => match watched.inside.pop_front() {
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
    /// Packets whose serialisation has not begun, counted from the back.
    fn waiting(&self, now: Time) -> (u64, Bytes) {
        let waiting = self.inside.iter().rev().take_while(|(begins, ..)| *begins > now);
        waiting.fold((0, Bytes::ZERO), |(count, bytes), (_, _, packet)| {
            (count + 1, bytes + Bytes::new(u64::from(packet.size)))
        })
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
