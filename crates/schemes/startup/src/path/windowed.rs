//! The largest value over a sliding window, in constant memory.
//!
//! Keeps the best, second and third best of the window, as Kathleen Nichols' algorithm does. Each
//! is later than the one before, so that the next replaces the best when that expires. Never more
//! than the true maximum; it may be less, because only three values are kept.

/// A running maximum over the last `length` units of the caller's clock.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMax<T> {
    length: u64,
    best: [(u64, T); 3],
}

impl<T: Copy + PartialOrd + Default> WindowedMax<T> {
    /// Before the first value; the window is `length` units of the caller's clock long.
    #[must_use]
    pub fn new(length: u64) -> Self {
        Self { length, best: [(0, T::default()); 3] }
    }

    /// Takes a value measured at `now`, in the units of `length`.
    pub fn update(&mut self, now: u64, value: T) {
        let sample = (now, value);
        if value >= self.best[0].1 || now.saturating_sub(self.best[2].0) > self.length {
            self.best = [sample; 3];
            return;
        }
        if value >= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value >= self.best[2].1 {
            self.best[2] = sample;
        }
        // When the best expires, the next takes its place.
        if now.saturating_sub(self.best[0].0) > self.length {
            self.best = [self.best[1], self.best[2], sample];
            if now.saturating_sub(self.best[0].0) > self.length {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && now.saturating_sub(self.best[1].0) > self.length / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && now.saturating_sub(self.best[2].0) > self.length / 2 {
            self.best[2] = sample;
        }
    }

    /// The largest value of the window.
    #[must_use]
    pub fn get(&self) -> T {
        self.best[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_expires() {
        let mut max = WindowedMax::new(10);
        for (now, value, expected) in [(0, 5, 5), (3, 4, 5), (8, 3, 5), (11, 2, 4), (14, 1, 2), (30, 1, 1)] {
            max.update(now, value);
            assert_eq!(max.get(), expected, "at {now}");
        }
    }
}
