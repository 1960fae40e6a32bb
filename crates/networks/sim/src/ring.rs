//! A growing ring addressed by ever-increasing numbers: segment 70 stays segment 70 while 0..69 are
//! forgotten. No allocation once it has reached the size that a flow needs.

/// Consecutive records `base..end`.
#[derive(Debug)]
pub struct Ring<T> {
    slots: Vec<T>,
    base: u32,
    end: u32,
}

impl<T: Copy + Default> Ring<T> {
    const SMALLEST: usize = 16;

    /// Empty, beginning at number zero; allocates with the first record.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new(), base: 0, end: 0 }
    }

    /// Empties it and begins at number zero again; keeps its memory.
    pub fn clear(&mut self) {
        self.base = 0;
        self.end = 0;
    }

    #[inline]
    fn mask(&self) -> u32 {
        (self.slots.len() as u32).wrapping_sub(1)
    }

    /// The lowest number held.
    #[inline]
    pub fn base(&self) -> u32 {
        self.base
    }

    /// One past the highest number held.
    #[inline]
    pub fn end(&self) -> u32 {
        self.end
    }

    /// Adds the record of the next number.
    #[inline]
    pub fn push(&mut self, value: T) {
        if (self.end - self.base) as usize == self.slots.len() {
            self.grow();
        }
        let mask = self.mask();
        self.slots[(self.end & mask) as usize] = value;
        self.end += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let old_mask = self.mask();
        let mut slots = vec![T::default(); (self.slots.len() * 2).max(Self::SMALLEST)];
        let new_mask = slots.len() as u32 - 1;
        for number in self.base..self.end {
            slots[(number & new_mask) as usize] = self.slots[(number & old_mask) as usize];
        }
        self.slots = slots;
    }

    /// Drops every entry below `number`.
    #[inline]
    pub fn forget_below(&mut self, number: u32) {
        debug_assert!(number >= self.base && number <= self.end);
        self.base = number;
    }

    /// The record of `number`, if it is held.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        (number >= self.base && number < self.end)
            .then(|| &self.slots[(number & (self.slots.len() as u32 - 1)) as usize])
    }

    /// The record of `number`, if it is held.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let mask = self.mask();
        (number >= self.base && number < self.end).then(|| &mut self.slots[(number & mask) as usize])
    }
}

impl<T: Copy + Default> Default for Ring<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy + Default> std::ops::Index<u32> for Ring<T> {
    type Output = T;
    #[inline]
    fn index(&self, number: u32) -> &T {
        debug_assert!(number >= self.base && number < self.end);
        &self.slots[(number & (self.slots.len() as u32 - 1)) as usize]
    }
}

impl<T: Copy + Default> std::ops::IndexMut<u32> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        debug_assert!(number >= self.base && number < self.end);
        let mask = self.mask();
        &mut self.slots[(number & mask) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_stay_valid_while_the_ring_grows_and_shrinks() {
        let mut ring = Ring::new();
        for number in 0..100_u32 {
            ring.push(number);
            if number % 3 == 0 {
                ring.forget_below(ring.base() + 1);
            }
        }
        for number in ring.base()..ring.end() {
            assert_eq!(ring[number], number);
        }
        assert_eq!(ring.get(ring.base() - 1), None);
        assert_eq!(ring.get(ring.end()), None);
    }
}
