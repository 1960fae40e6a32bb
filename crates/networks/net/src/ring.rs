//! A first-in-first-out queue of items with departure times.

use std::collections::VecDeque;

use headstart_units::Time;

/// Items with their departure times; a later one never overtakes an earlier one.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    inside: VecDeque<(Time, T)>,
}

impl<T> Ring<T> {
    pub(crate) const fn new() -> Self {
        Self { inside: VecDeque::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.inside.len()
    }

    /// Appends `thing`, due at `at`.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, thing: T) {
        self.inside.push_back((at, thing));
    }

    /// Takes the first, if it is due at or before `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<T> {
        if self.inside.front()?.0 > now {
            return None;
        }
        self.inside.pop_front().map(|(_, thing)| thing)
    }

    /// Time at which the first is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> Time {
        self.inside.front().map_or(Time::NEVER, |(at, _)| *at)
    }
}
