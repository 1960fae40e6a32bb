//! The elements that datagrams cross, one after the other, and a list of those that are to be lost on purpose.

use std::collections::{BTreeSet, VecDeque};

use headstart_net::{AnyElement, Element, Fate, Output};
use headstart_units::Time;

use crate::datagram::Datagram;

/// A path in one direction.
#[derive(Debug, Default)]
pub struct Path {
    elements: Vec<AnyElement<Datagram>>,
    /// Data packets of some size, copies not among them, by number as they leave: these are lost.
    forced_losses: BTreeSet<u64>,
    data_packets: u64,
    dropped: u64,
    /// Crossed everything at once, and when.
    through: VecDeque<(Time, Datagram)>,
}

/// Smaller packets are acks and the like.
const DATA: u64 = 300;

impl Path {
    /// A path across these elements.
    #[must_use]
    pub fn new(elements: Vec<AnyElement<Datagram>>) -> Self {
        Self { elements, ..Self::default() }
    }

    /// Loses these packets of 300 bytes and more of application data, counted from zero as they leave, whatever is in them;
    /// copies are not counted, and pass.
    #[must_use]
    pub fn losing(mut self, forced_losses: impl IntoIterator<Item = u64>) -> Self {
        self.forced_losses.extend(forced_losses);
        self
    }

    /// Datagrams lost on the way.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// A datagram enters.
    pub fn push(&mut self, now: Time, datagram: Datagram) {
        if datagram.is_data() && !datagram.is_copy && datagram.payload().get() >= DATA {
            self.data_packets += 1;
            if self.forced_losses.remove(&(self.data_packets - 1)) {
                self.dropped += 1;
                return;
            }
        }
        if let Some(through) = self.enter(now, datagram, 0) {
            self.through.push_back((now, through));
        }
    }

    fn enter(&mut self, now: Time, mut datagram: Datagram, first: usize) -> Option<Datagram> {
        for element in &mut self.elements[first..] {
            match element.push(now, datagram) {
                Fate::Taken => return None,
                Fate::Passed(same) => datagram = same,
                Fate::Dropped(..) => {
                    self.dropped += 1;
                    return None;
                }
            }
        }
        Some(datagram)
    }

    /// A datagram that is through by `now`.
    pub fn pop(&mut self, now: Time) -> Option<Datagram> {
        if let Some((_, datagram)) = self.through.pop_front() {
            return Some(datagram);
        }
        // From the end, so that what moves on in this call is not met again further on.
        for at in (0..self.elements.len()).rev() {
            while let Some(output) = self.elements[at].pop(now) {
                match output {
                    Output::Delivered(datagram) => {
                        if let Some(through) = self.enter(now, datagram, at + 1) {
                            return Some(through);
                        }
                    }
                    Output::Dropped(..) => self.dropped += 1,
                }
            }
        }
        None
    }

    /// When to ask again.
    #[must_use]
    pub fn next_at(&self) -> Time {
        let at_once = self.through.front().map(|(at, _)| *at);
        self.elements.iter().map(Element::<Datagram>::next_at).chain(at_once).min().unwrap_or(Time::NEVER)
    }
}
