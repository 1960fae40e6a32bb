//! The two directions of a path.

/// A direction of a path: down from the data sender to the receiver, up in reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the receiver (the program behind an emulated path) to the data sender.
    Up,
    /// From the data sender to the receiver.
    Down,
}

impl Direction {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// Name of the direction in options and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}
