//! A kernel timer: late by tens of microseconds rather than a millisecond.
//!
//! It costs system calls where tokio's costs none, so it only covers the last [`TIMER_RESOLUTION`]
//! of each wait; tokio's covers the rest. Most timers of a connection are for loss detection and
//! are postponed again and again: they need no descriptor.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use headstart_host::locked;
use noq::AsyncTimer;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Sleep;

/// Resolution of tokio's timers and of its driver's sleep, 1 ms each, both rounded up.
const TIMER_RESOLUTION: Duration = Duration::from_millis(3);

/// Descriptors of finished timers: opening one costs more than setting it.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Descriptor>>);

/// Most descriptors kept.
const MAX_POOLED: usize = 64;

impl Pool {
    fn take(&self) -> io::Result<Descriptor> {
        let left = locked(&self.0).pop();
        left.map_or_else(Descriptor::new, Ok)
    }

    fn leave(&self, descriptor: Descriptor) {
        let mut left = locked(&self.0);
        if left.len() < MAX_POOLED {
            left.push(descriptor);
        }
    }
}

/// A timer whose expiry is as precise as the kernel's.
#[derive(Debug)]
pub(super) struct Timer {
    at: Instant,
    far: Alarm<Pin<Box<Sleep>>>,
    /// Set from its first use on; `None` where no descriptor is left.
    near: Option<Alarm<Descriptor>>,
    pool: Arc<Pool>,
}

/// A wakeup and its time. An early one is left to expire, which costs less than postponing it.
#[derive(Debug)]
struct Alarm<T> {
    inner: T,
    armed: Option<Instant>,
}

impl Timer {
    pub fn new(at: Instant, pool: Arc<Pool>) -> Self {
        let sleep = Box::pin(tokio::time::sleep_until(at.into()));
        Self { at, far: Alarm { inner: sleep, armed: None }, near: None, pool }
    }

    /// A wakeup of tokio's is armed that comes before a descriptor is needed.
    fn is_far_ahead(&self) -> bool {
        self.far.armed.is_some_and(|armed| armed + TIMER_RESOLUTION <= self.at)
    }

    /// Ready if the time may have come.
    fn poll_far(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let Alarm { inner, armed } = &mut self.far;
        if armed.is_none_or(|armed| armed > at) {
            inner.as_mut().reset(at.into());
            *armed = Some(at);
        }
        std::task::ready!(Future::poll(inner.as_mut(), cx));
        *armed = None;
        Poll::Ready(())
    }

    /// As [`Timer::poll_far`]; an error if there is no descriptor.
    fn poll_near(&mut self, left: Duration, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        let Alarm { inner, armed } = match &mut self.near {
            Some(near) => near,
            near => near.insert(Alarm { inner: self.pool.take()?, armed: None }),
        };
        if armed.is_none_or(|armed| armed > self.at) {
            inner.set(left)?;
            *armed = Some(self.at);
        }
        let expired = inner.poll_expired(cx)?;
        if expired.is_ready() {
            *armed = None;
        }
        Ok(expired)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(near) = self.near.take() {
            self.pool.leave(near.inner);
        }
    }
}

impl AsyncTimer for Timer {
    fn reset(self: Pin<&mut Self>, at: Instant) {
        self.get_mut().at = at;
    }

    #[expect(clippy::disallowed_methods, reason = "the edge: how long it is still")]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        // Still asleep for longer than the last stretch: the clock need not be read.
        if this.is_far_ahead() && this.poll_far(this.at - TIMER_RESOLUTION, cx).is_pending() {
            return Poll::Pending;
        }
        loop {
            let left = this.at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Poll::Ready(());
            }
            let woken = if left > TIMER_RESOLUTION {
                this.poll_far(this.at - TIMER_RESOLUTION, cx)
            } else {
                // Without a descriptor the timer is late by tokio's resolution.
                this.poll_near(left, cx).unwrap_or_else(|_| this.poll_far(this.at, cx))
            };
            if woken.is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// A timerfd.
#[derive(Debug)]
struct Descriptor(AsyncFd<OwnedFd>);

impl Descriptor {
    #[expect(deprecated, reason = "unsound for types that do not own their descriptor; an OwnedFd does")]
    fn new() -> io::Result<Self> {
        let file = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self(AsyncFd::with_interest(file, Interest::READABLE)?))
    }

    /// `left` must not be zero, which would disarm it.
    fn set(&self, left: Duration) -> io::Result<()> {
        let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(left) };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// The timer's counter is not read: setting it again clears that, and the caller reads the
    /// clock.
    fn poll_expired(&self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        Ok(match self.0.poll_read_ready(cx) {
            Poll::Ready(guard) => {
                guard?.clear_ready();
                Poll::Ready(())
            }
            Poll::Pending => Poll::Pending,
        })
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    fn timer(at: Instant) -> Timer {
        Timer::new(at, Arc::default())
    }

    async fn wait(timer: &mut Timer) {
        poll_fn(|cx| AsyncTimer::poll(Pin::new(timer), cx)).await;
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "it is the clock that is tested")]
    async fn a_timer_is_never_early_and_can_be_set_again() {
        let start = Instant::now();
        let mut timer = timer(start + Duration::from_micros(300));
        wait(&mut timer).await;
        assert!(start.elapsed() >= Duration::from_micros(300));
        wait(&mut timer).await;
        let again = Instant::now();
        Pin::new(&mut timer).reset(again + Duration::from_micros(200));
        wait(&mut timer).await;
        assert!(again.elapsed() >= Duration::from_micros(200));
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "it is the clock that is tested")]
    async fn a_postponed_timer_does_not_fire_at_its_first_deadline() {
        let start = Instant::now();
        let mut timer = timer(start + Duration::from_micros(100));
        tokio::time::sleep(Duration::from_millis(2)).await;
        let again = Instant::now();
        Pin::new(&mut timer).reset(again + Duration::from_millis(5));
        wait(&mut timer).await;
        assert!(again.elapsed() >= Duration::from_millis(5));
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "it is the clock that is tested")]
    async fn a_deadline_in_the_past_fires_at_once() {
        let mut timer = timer(Instant::now());
        wait(&mut timer).await;
    }

    /// A timer that has acquired its descriptor. If the thread is delayed before the first poll,
    /// the time has come by then, and no descriptor is needed.
    #[expect(clippy::disallowed_methods, reason = "it is the clock that is tested")]
    async fn waiting(pool: &Arc<Pool>) -> Timer {
        for _ in 0..1000 {
            let mut timer = Timer::new(Instant::now() + Duration::from_millis(2), Arc::clone(pool));
            let first = poll_fn(|cx| Poll::Ready(AsyncTimer::poll(Pin::new(&mut timer), cx)));
            if first.await.is_pending() {
                return timer;
            }
        }
        panic!("held up a thousand times for 2 ms");
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "it is the clock that is tested")]
    async fn a_pooled_descriptor_does_not_fire_for_its_next_user() {
        let pool = Arc::<Pool>::default();
        drop(waiting(&pool).await);
        assert_eq!(locked(&pool.0).len(), 1);
        let mut second = waiting(&pool).await;
        assert_eq!(locked(&pool.0).len(), 0);
        wait(&mut second).await;
        assert!(Instant::now() >= second.at);
    }
}
