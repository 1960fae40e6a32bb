//! Mutexes whose contents outlive a panic of the thread that held them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, though the thread that held it may have panicked: for contents always left whole.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_mutex_survives_a_panic() {
        let mutex = Mutex::new(1);
        std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _held = locked(&mutex);
                panic!("while it is held");
            });
            assert!(holder.join().is_err());
        });
        assert!(mutex.is_poisoned());
        assert_eq!(*locked(&mutex), 1);
    }
}
