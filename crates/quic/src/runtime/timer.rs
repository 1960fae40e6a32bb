//! A timer of the kernel's: late by tens of microseconds rather than a millisecond.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use noq::AsyncTimer;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A timerfd.
#[derive(Debug)]
pub(super) struct Timer {
    file: AsyncFd<OwnedFd>,
    has_expired: bool,
}

impl Timer {
    pub fn new(at: Instant) -> io::Result<Self> {
        let file = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let mut timer = Self { file: Self::watch(file)?, has_expired: false };
        timer.set(at);
        Ok(timer)
    }

    #[expect(deprecated, reason = "unsound for types that do not own their descriptor; an OwnedFd does")]
    fn watch(file: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::with_interest(file, Interest::READABLE)
    }

    #[expect(clippy::disallowed_methods, reason = "the edge: the kernel wants to know how long")]
    fn set(&mut self, at: Instant) {
        let left = at.saturating_duration_since(Instant::now());
        // All zeros would disarm it. What cannot be set is due now: better too early than never.
        let value = timespec(left.max(Duration::from_nanos(1)));
        let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: value };
        self.has_expired = left.is_zero()
            || timerfd_settime(self.file.get_ref(), TimerfdTimerFlags::empty(), &once).is_err();
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

impl AsyncTimer for Timer {
    fn reset(self: Pin<&mut Self>, at: Instant) {
        self.get_mut().set(at);
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        while !this.has_expired {
            // The descriptor can only fail if it is none, which cannot be: then it is due, rather than never.
            let Ok(mut guard) = ready!(this.file.poll_read_ready(cx)) else { break };
            match rustix::io::read(guard.get_inner(), &mut [0; 8]) {
                Err(error) if error == rustix::io::Errno::AGAIN => guard.clear_ready(),
                _ => this.has_expired = true,
            }
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    async fn wait(timer: &mut Timer) {
        poll_fn(|cx| AsyncTimer::poll(Pin::new(timer), cx)).await;
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "it is the clock that is tested")]
    async fn a_timer_is_never_early_and_can_be_set_again() {
        let start = Instant::now();
        let mut timer = Timer::new(start + Duration::from_micros(300)).expect("a descriptor");
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
    async fn a_timer_that_is_put_off_does_not_go_off_at_its_first_time() {
        let start = Instant::now();
        let mut timer = Timer::new(start + Duration::from_micros(100)).expect("a descriptor");
        tokio::time::sleep(Duration::from_millis(2)).await;
        let again = Instant::now();
        Pin::new(&mut timer).reset(again + Duration::from_millis(5));
        wait(&mut timer).await;
        assert!(again.elapsed() >= Duration::from_millis(5));
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "it is the clock that is tested")]
    async fn what_is_past_is_due_at_once() {
        let mut timer = Timer::new(Instant::now()).expect("a descriptor");
        wait(&mut timer).await;
    }
}
