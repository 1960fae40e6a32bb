//! The driver: reads packets from two ends, passes them to a path in each direction, sends those
//! that are due, and measures its own lateness.
//!
//! One thread does everything, without locks and in a deterministic order. It sleeps until the next
//! deadline or the next packet, with absolute deadlines in nanoseconds and no timer slack. With the
//! privilege it runs at real-time priority, and it can spin before a deadline.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use headstart_net::{Direction, Packet as _, PacketCounts};
use headstart_units::{Span, Time};
use rustix::event::{EventfdFlags, eventfd};

use crate::clock::Clock;
use crate::error::RelayError;
use crate::lateness::{self, Lateness, Tolerance};
use crate::log::{Line, Log, LogEvent};
use crate::packet::Packet;
use crate::path::{PacketOutcome, Path};

/// The two ends of a path.
pub trait Ends: Send {
    /// Waits until a packet can be read or [`Stop`] was used, or for `timeout`, if there is one.
    ///
    /// # Errors
    /// If the system cannot wait; the relay ends.
    fn wait(&mut self, timeout: Option<Span>) -> io::Result<()>;

    /// Reads a batch; true if there may be more.
    ///
    /// # Errors
    /// If an end has failed; the relay ends.
    fn receive(&mut self, clock: &Clock, into: &mut Inbox) -> io::Result<bool>;

    /// Sends a packet that has crossed the path.
    ///
    /// # Errors
    /// The reason why it was not sent; it is counted, and the relay continues.
    fn send(&mut self, direction: Direction, packet: &Packet) -> Result<(), RelayError>;

    /// Called about once per second.
    fn on_second(&mut self, now: Time) {
        let _ = now;
    }
}

/// A batch of packets and errors.
#[derive(Debug, Default)]
pub struct Inbox {
    packets: Vec<(Direction, Packet)>,
    pub(crate) errors: Vec<(Direction, RelayError)>,
}

impl Inbox {
    /// Adds a packet; the relay numbers it.
    pub fn packet(&mut self, direction: Direction, packet: Packet) {
        self.packets.push((direction, packet));
    }

    /// Adds an error: input that cannot be forwarded.
    pub fn error(&mut self, direction: Direction, error: RelayError) {
        self.errors.push((direction, error));
    }
}

/// Settings of a relay.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time before a deadline in which it spins instead of sleeping.
    pub spin: Span,
    /// Requests real-time priority.
    pub real_time: bool,
    /// Lateness above which a run is invalid.
    pub tolerance: Tolerance,
}

impl Default for Settings {
    fn default() -> Self {
        Self { spin: Span::ZERO, real_time: true, tolerance: Tolerance::default() }
    }
}

/// Counters of one direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionSummary {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets forwarded.
    pub sent: u64,
    /// Bytes forwarded.
    pub sent_bytes: u64,
    /// Packets not received or sent, though no element dropped them.
    pub errors: BTreeMap<RelayError, u64>,
    /// Longest queue of the first link, in packets.
    pub peak_queue: u64,
    /// Packets still inside at the end.
    pub inside: u64,
    /// Name and counters of each element.
    pub elements: Vec<(String, PacketCounts)>,
    /// Lateness of departures.
    pub lateness: lateness::Report,
}

/// Summary of a run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Duration.
    pub lasted: Span,
    /// From the program outwards.
    pub up: DirectionSummary,
    /// Towards the program.
    pub down: DirectionSummary,
    /// True if it ran at real-time priority.
    pub real_time: bool,
    /// True if lateness was within the tolerance.
    pub is_valid: bool,
    /// Log lines dropped because the disk was too slow.
    pub log_left_out: u64,
    /// Reason why the log could not be written: the packets were carried all the same.
    pub log_error: Option<String>,
}

struct DirectionState {
    path: Path<Packet>,
    summary: DirectionSummary,
    lateness: Lateness,
    dropped: u64,
}

/// A relay that has not been started.
pub struct Relay<E> {
    ends: E,
    up: DirectionState,
    down: DirectionState,
    clock: Clock,
    log: Option<Log>,
    settings: Settings,
    outcomes: Vec<PacketOutcome<Packet>>,
}

/// Stops a relay. The ends wait for its descriptor too.
#[derive(Clone, Debug)]
pub struct Stop {
    event: Arc<OwnedFd>,
    is_requested: Arc<std::sync::atomic::AtomicBool>,
}

impl Stop {
    /// A new one.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event: Arc::new(event), is_requested: Arc::default() })
    }

    /// Becomes readable when the relay is to stop.
    #[must_use]
    pub fn descriptor(&self) -> &OwnedFd {
        &self.event
    }

    /// Requests the relay to stop.
    pub fn stop(&self) {
        self.is_requested.store(true, std::sync::atomic::Ordering::Release);
        // It fails only after 2^64 requests.
        let _ = rustix::io::write(&*self.event, &1_u64.to_ne_bytes());
    }

    fn is_requested(&self) -> bool {
        self.is_requested.load(std::sync::atomic::Ordering::Acquire)
    }
}

/// A relay running on its own thread. Stops on drop.
#[derive(Debug)]
pub struct Handle {
    stop: Stop,
    thread: Option<JoinHandle<io::Result<Summary>>>,
}

impl Handle {
    /// Stops it and returns the run's summary.
    ///
    /// # Errors
    /// If the relay failed, or the log could not be written.
    pub fn stop(mut self) -> io::Result<Summary> {
        self.stop.stop();
        self.join()
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// As [`Self::stop`].
    pub fn join(&mut self) -> io::Result<Summary> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the relay's thread has failed")),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl<E: Ends> Relay<E> {
    /// A relay between `ends` over `up` and `down`.
    #[must_use]
    pub fn new(ends: E, up: Path<Packet>, down: Path<Packet>, clock: Clock, settings: Settings) -> Self {
        let state = |path| DirectionState {
            path,
            summary: DirectionSummary::default(),
            lateness: Lateness::default(),
            dropped: 0,
        };
        Self { ends, up: state(up), down: state(down), clock, log: None, settings, outcomes: vec![] }
    }

    /// Logs every event.
    #[must_use]
    pub fn with_log(mut self, log: Option<Log>) -> Self {
        self.log = log;
        self
    }

    /// Starts it on its own thread.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(self, stop: Stop) -> io::Result<Handle>
    where
        E: 'static,
    {
        let stop_flag = stop.clone();
        let relay = std::thread::Builder::new().name("headstart-relay".into());
        Ok(Handle { stop, thread: Some(relay.spawn(move || self.run(&stop_flag))?) })
    }

    /// Runs on this thread until stopped.
    ///
    /// # Errors
    /// If an end has failed.
    pub fn run(mut self, stop: &Stop) -> io::Result<Summary> {
        let real_time = prepare_thread(if self.settings.real_time { Urgency::Relay } else { Urgency::None });
        let mut inbox = Inbox::default();
        let mut next_second = Time::ZERO + Span::from_secs(1);
        let mut is_more = false;
        while !stop.is_requested() {
            self.send_due();
            let now = self.clock.now();
            if now >= next_second {
                next_second = now + Span::from_secs(1);
                self.ends.on_second(now);
            }
            let next_at = self.up.path.next_at().min(self.down.path.next_at()).min(next_second);
            let pause = next_at.since(self.clock.now());
            // A burst is read in batches, with due packets sent in between.
            if pause > self.settings.spin && !is_more {
                self.ends.wait(Some(pause.saturating_sub(self.settings.spin)))?;
            }
            is_more = self.ends.receive(&self.clock, &mut inbox)?;
            self.take(&mut inbox);
        }
        let mut summary = self.summary(real_time);
        if let Some(log) = self.log.take() {
            summary.log_left_out = log.left_out();
            summary.log_error = log.finish().err().map(|error| error.to_string());
        }
        Ok(summary)
    }

    /// Passes a batch to the paths.
    fn take(&mut self, inbox: &mut Inbox) {
        for (direction, error) in inbox.errors.drain(..) {
            *self.state(direction).summary.errors.entry(error).or_default() += 1;
        }
        for (direction, mut packet) in inbox.packets.drain(..) {
            let state = match direction {
                Direction::Up => &mut self.up,
                Direction::Down => &mut self.down,
            };
            let (now, number) = (packet.arrived, state.summary.arrived);
            packet.number = number;
            state.summary.arrived += 1;
            let (bytes, header) = (packet.size().get() as u32, packet.header);
            state.path.arrive(now, packet, &mut self.outcomes);
            let (queue_packets, queue_bytes) = state.path.queue(now);
            state.summary.peak_queue = state.summary.peak_queue.max(queue_packets);
            if let Some(log) = &mut self.log {
                let queue_packets = u32::try_from(queue_packets).unwrap_or(u32::MAX);
                let event = LogEvent::Arrival { queue_packets, queue_bytes: queue_bytes.get(), header };
                log.add(Line { at: now, direction, number, bytes, event });
            }
            self.settle(direction);
        }
    }

    fn send_due(&mut self) {
        for direction in Direction::BOTH {
            let now = self.clock.now();
            let state = self.state(direction);
            if state.path.next_at() <= now {
                let mut outcomes = core::mem::take(&mut self.outcomes);
                self.state(direction).path.advance(now, &mut outcomes);
                self.outcomes = outcomes;
                self.settle(direction);
            }
        }
    }

    /// Carries out the path's outcomes.
    fn settle(&mut self, direction: Direction) {
        let state = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        for outcome in self.outcomes.drain(..) {
            let (packet, at, event) = match outcome {
                PacketOutcome::Dropped { at, packet, reason } => {
                    state.dropped += 1;
                    (packet, at, LogEvent::Drop(reason))
                }
                PacketOutcome::Out { due, packet } => {
                    let result = self.ends.send(direction, &packet);
                    let at = self.clock.now();
                    match result {
                        Ok(()) => {
                            state.lateness.record(due, at);
                            state.summary.sent += 1;
                            state.summary.sent_bytes += packet.size().get();
                            (packet, at, LogEvent::Departure { due })
                        }
                        Err(error) => {
                            *state.summary.errors.entry(error).or_default() += 1;
                            state.dropped += 1;
                            (packet, at, LogEvent::Unsent(error))
                        }
                    }
                }
            };
            if let Some(log) = &mut self.log {
                let (number, bytes) = (packet.number, packet.size().get() as u32);
                log.add(Line { at, direction, number, bytes, event });
            }
        }
    }

    fn state(&mut self, direction: Direction) -> &mut DirectionState {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    fn summary(&self, real_time: bool) -> Summary {
        let of = |state: &DirectionState| {
            let mut summary = state.summary.clone();
            summary.lateness = state.lateness.report();
            summary.elements =
                state.path.packet_counts().map(|(name, account)| (name.to_owned(), *account)).collect();
            // Duplicates depart without having arrived.
            summary.inside = summary.arrived.saturating_sub(summary.sent + state.dropped);
            summary
        };
        let (up, down) = (of(&self.up), of(&self.down));
        let tolerance = self.settings.tolerance;
        let is_valid = up.lateness.is_within(tolerance) && down.lateness.is_within(tolerance);
        let log_left_out = self.log.as_ref().map_or(0, Log::left_out);
        let lasted = self.clock.now().since(Time::ZERO);
        Summary { lasted, up, down, real_time, is_valid, log_left_out, log_error: None }
    }
}

/// Priority class of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Ordinary priority.
    None,
    /// A program's at the end of a path: above ordinary priority, below the relay's.
    End,
    /// The relay's.
    Relay,
}

/// Removes this thread's timer slack and sets its priority; true if real-time priority was granted.
pub fn prepare_thread(urgency: Urgency) -> bool {
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id,
    };
    // Either may be forbidden; the effect shows in the lateness.
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
    let level: u8 = match urgency {
        Urgency::None => return false,
        Urgency::End => 1,
        Urgency::Relay => 2,
    };
    let Ok(level) = level.try_into() else { return false };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(level), policy).is_ok()
}
