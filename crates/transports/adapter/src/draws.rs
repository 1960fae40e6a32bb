//! The number of each connection, which decides its arm.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use headstart_startup::history::FixedHash;

/// Draws a number for each connection: a secret keeps clients from choosing their arm, a seed makes
/// runs repeatable.
#[derive(Debug, Default)]
pub struct Draws {
    secret: RandomState,
    seed: Option<u64>,
    accepted: AtomicU64,
}

impl Draws {
    /// Draws from a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        Self { seed: Some(seed), ..Self::default() }
    }

    /// The number of the next connection.
    pub fn next(&self) -> u64 {
        let serial = self.accepted.fetch_add(1, Ordering::Relaxed);
        match self.seed {
            None => self.secret.hash_one(serial),
            Some(seed) => FixedHash::default().hash_one((seed, serial)),
        }
    }

    /// The number of the connection with this identity: the same for the same bytes.
    #[must_use]
    pub fn of(&self, identity: &[u8]) -> u64 {
        match self.seed {
            None => self.secret.hash_one(identity),
            Some(seed) => FixedHash::default().hash_one((seed, identity)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes agree on half of the connections, as by chance: with a standard deviation of
    /// 16. The identities are those that a client may choose.
    #[test]
    fn a_client_that_knows_the_arms_of_one_process_cannot_tell_those_of_another() {
        let is_treated = |number: u64| number % 10_000 < 5_000;
        let by_order = |draws: &Draws| (0..1000).map(|_| is_treated(draws.next())).collect::<Vec<_>>();
        let by_identity = |draws: &Draws| -> Vec<_> {
            (0..1000_u64).map(|id| is_treated(draws.of(&id.to_be_bytes()))).collect()
        };
        let (one, other) = (Draws::default(), Draws::default());
        assert_eq!(by_identity(&one), by_identity(&one), "an identity has one arm");
        for (one, other) in [(by_order(&one), by_order(&other)), (by_identity(&one), by_identity(&other))] {
            let alike = one.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert!((400..=600).contains(&alike), "{alike} of 1000");
            let treated = one.iter().filter(|is_treated| **is_treated).count();
            assert!((400..=600).contains(&treated), "{treated} of 1000");
        }
        let seeded = || Draws::of_seed(1);
        assert_eq!(by_order(&seeded()), by_order(&seeded()), "a run is repeatable");
        assert_eq!(by_identity(&seeded()), by_identity(&seeded()), "a run is repeatable");
    }
}
