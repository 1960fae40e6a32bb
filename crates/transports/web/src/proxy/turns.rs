//! Turns of requests at an upstream that can do few at once, and the pace of clients that hold one.
//!
//! A client that sends its request slowly, or reads the answer slowly, holds a turn as long as it
//! likes. So an address may not have all, and a free turn goes to the address that holds the
//! fewest. While requests wait for long, one whose client is slow gives its turn to them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use headstart_host::locked;
use headstart_quic::store::client_key;
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time for which a request waits before a slow one gives way, and until it asks again.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time by which a client that is slow while others wait is behind [`AMONG_WAITING`].
const SLOW: Duration = Duration::from_secs(2);

/// A least rate. Buffers of the system take bytes ahead of the client, so that these come in lumps.
#[derive(Clone, Copy, Debug)]
struct LeastRate {
    bytes_per_second: u32,
    /// Bytes of a lump that count for the time behind it.
    lump: u32,
}

/// For each client: twice that of Apache's `mod_reqtimeout` for bodies of requests.
const ALWAYS: LeastRate = LeastRate { bytes_per_second: 1_000, lump: 512_000 };
/// While other requests wait for a turn: 64 kbit/s.
const AMONG_WAITING: LeastRate = LeastRate { bytes_per_second: 8_000, lump: 64_000 };

/// The time in which a client was waited for, less that which its bytes may take.
#[derive(Debug, Default)]
struct Meter {
    /// Behind the [`LeastRate`]s, in microseconds; negative if ahead.
    behind: [i64; 2],
    since: Option<Instant>,
}

impl Meter {
    fn behind(&self, rate: usize, now: Instant) -> Duration {
        let more = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let micros = self.behind[rate] + i64::try_from(more.as_micros()).unwrap_or(i64::MAX / 2);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }

    fn wait(&mut self, waits: bool) {
        let now = Instant::now();
        let more = self.since.map_or(0, |since| now.saturating_duration_since(since).as_micros());
        for behind in &mut self.behind {
            *behind = behind.saturating_add(i64::try_from(more).unwrap_or(i64::MAX / 2));
        }
        self.since = waits.then_some(now);
    }

    fn moved(&mut self, bytes: usize) {
        self.wait(self.since.is_some());
        for (behind, rate) in self.behind.iter_mut().zip([ALWAYS, AMONG_WAITING]) {
            let time = |bytes: u64| (bytes * 1_000_000 / u64::from(rate.bytes_per_second)).cast_signed();
            *behind = (*behind - time(bytes as u64)).max(-time(rate.lump.into()));
        }
    }
}

/// Directions of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Up,
    /// Also both ways of a tunnel.
    Down,
}

/// A request in progress: how fast its client is, and a way to end it from outside.
pub(super) struct Pace {
    address: IpAddr,
    meters: [Mutex<Meter>; 2],
    ended: CancellationToken,
    /// The answer's body, which must not outlive the request's turn.
    content: Mutex<Option<Incoming>>,
    resets: Mutex<Option<Resets>>,
}

impl Pace {
    pub fn new(peer: IpAddr) -> Arc<Self> {
        Arc::new(Self {
            address: client_key(peer),
            meters: Default::default(),
            ended: CancellationToken::new(),
            content: Mutex::default(),
            resets: Mutex::default(),
        })
    }

    /// Begins, or ends, to wait for the client.
    pub fn wait(&self, way: Way, waits: bool) {
        locked(&self.meters[way as usize]).wait(waits);
    }

    pub fn moved(&self, way: Way, bytes: usize) {
        locked(&self.meters[way as usize]).moved(bytes);
    }

    /// True if the client is that far behind the rate which each must have.
    pub fn is_too_slow(&self, way: Way, time: Duration) -> bool {
        locked(&self.meters[way as usize]).behind(0, Instant::now()) >= time
    }

    /// The time by which a client is behind, if it is slow while others wait.
    fn slow(&self, now: Instant) -> Option<Duration> {
        let behind = self.meters.iter().map(|meter| locked(meter).behind(1, now)).max();
        behind.filter(|behind| *behind >= SLOW)
    }

    /// Waits until the request is ended from outside.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Ends the request and its work at the upstream, wherever it is.
    pub fn end(&self) {
        self.ended.cancel();
        self.close(false);
    }

    /// The upstream's connection ends by a reset.
    fn give_up(&self) {
        if let Some(resets) = &*locked(&self.resets) {
            resets.set();
        }
    }

    /// Forgets the answer's body, of which something is left unless it `is_whole`.
    pub fn close(&self, is_whole: bool) {
        if !is_whole {
            self.give_up();
        }
        drop(locked(&self.content).take());
    }

    /// Takes the answer's body.
    pub fn keep(&self, content: Incoming, resets: Option<Resets>) {
        *locked(&self.content) = Some(content);
        *locked(&self.resets) = resets;
        if self.ended.is_cancelled() {
            self.end();
        }
    }

    /// Looks at the answer's body; `None` if the request was ended.
    pub fn with_content<T>(&self, look: impl FnOnce(&mut Incoming) -> T) -> Option<T> {
        locked(&self.content).as_mut().map(look)
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Makes the end of a connection to an upstream a reset: it leaves no port in TIME_WAIT, so that
/// clients that give requests up cannot use up all ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Resets(Arc<AtomicBool>);

impl Resets {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The turns at one upstream.
#[derive(Debug)]
pub(super) struct Turns {
    most: usize,
    most_per_address: usize,
    state: Mutex<State>,
}

/// By order of arrival.
#[derive(Debug, Default)]
struct State {
    next: u64,
    held: BTreeMap<u64, Arc<Pace>>,
    waiting: BTreeMap<u64, (Arc<Pace>, oneshot::Sender<()>)>,
    /// Turns held by each address that holds one.
    by_address: BTreeMap<IpAddr, usize>,
}

impl State {
    fn held_by(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or(0)
    }

    fn release(&mut self, id: u64) -> bool {
        let Some(pace) = self.held.remove(&id) else { return false };
        if let Some(count) = self.by_address.get_mut(&pace.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&pace.address);
            }
        }
        true
    }
}

/// A place among those that wait for a turn, then the turn.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    id: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let state = &mut *locked(&self.turns.state);
        if state.waiting.remove(&self.id).is_none() && state.release(self.id) {
            self.turns.grant(state);
        }
    }
}

impl Turns {
    /// `most` turns; a quarter of them, rounded down, is out of reach of a single address.
    pub fn new(most: usize, shares: bool) -> Arc<Self> {
        let most_per_address = if shares { most - most / 4 } else { most };
        Arc::new(Self { most, most_per_address, state: Mutex::default() })
    }

    pub fn are_taken(&self) -> bool {
        self.most != usize::MAX && locked(&self.state).held.len() >= self.most
    }

    /// A turn, for which at most `limit` is waited; `Ok(None)` where turns are not counted.
    pub async fn take(self: &Arc<Self>, pace: &Arc<Pace>, limit: Duration) -> Result<Option<Turn>, Full> {
        if self.most == usize::MAX {
            return Ok(None);
        }
        let (granted, mut grant) = oneshot::channel();
        let turn = {
            let state = &mut *locked(&self.state);
            let id = state.next;
            state.next += 1;
            state.waiting.insert(id, (Arc::clone(pace), granted));
            self.grant(state);
            Turn { turns: Arc::clone(self), id }
        };
        let limit = Instant::now() + limit;
        loop {
            match tokio::time::timeout_at((Instant::now() + PATIENCE).min(limit), &mut grant).await {
                Ok(_) => return Ok(Some(turn)),
                Err(_) if Instant::now() >= limit => return Err(Full),
                Err(_) => self.make_room(pace.address),
            }
        }
    }

    /// Gives free turns to those that wait: first to the address that holds the fewest.
    fn grant(&self, state: &mut State) {
        while state.held.len() < self.most {
            let mut best = None;
            for (id, (pace, _)) in &state.waiting {
                let held = state.held_by(pace.address);
                if held < self.most_per_address && best.is_none_or(|(fewest, _)| held < fewest) {
                    best = Some((held, *id));
                    if held == 0 {
                        break;
                    }
                }
            }
            let Some((_, id)) = best else { return };
            let Some((pace, granted)) = state.waiting.remove(&id) else { return };
            *state.by_address.entry(pace.address).or_default() += 1;
            state.held.insert(id, pace);
            // If nobody waits any more, its place is dropped, and the turn with it.
            let _ = granted.send(());
        }
    }

    /// Ends a request whose client is slow, for one of `address`: of the address that holds most,
    /// the slowest. If turns are free, others of `address` are in the way.
    fn make_room(&self, address: IpAddr) {
        let now = Instant::now();
        let state = &mut *locked(&self.state);
        let is_full = state.held.len() >= self.most;
        let slow = state.held.iter().filter(|(_, pace)| is_full || pace.address == address);
        let slow = slow.filter_map(|(id, pace)| Some((pace.slow(now)?, *id, pace)));
        let slowest = slow.max_by_key(|(behind, _, pace)| (state.held_by(pace.address), *behind));
        if let Some((_, id, pace)) = slowest {
            let pace = Arc::clone(pace);
            pace.end();
            state.release(id);
            self.grant(state);
        }
    }
}

/// No turn was free in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn of(host: u8) -> Arc<Pace> {
        Pace::new(IpAddr::from([192, 0, 2, host]))
    }

    /// As many turns as an address gets at once.
    async fn take(turns: &Arc<Turns>, host: u8, count: usize) -> Vec<(Arc<Pace>, Turn)> {
        let mut taken = vec![];
        for _ in 0..count {
            let pace = of(host);
            let turn = turns.take(&pace, Duration::ZERO).await;
            taken.extend(turn.ok().flatten().map(|turn| (pace, turn)));
        }
        taken
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_all_turns_but_a_quarter() {
        for (most, own) in [(1, 1), (2, 2), (3, 3), (4, 3), (8, 6)] {
            let turns = Turns::new(most, true);
            let held = take(&turns, 1, most + 1).await;
            assert_eq!((held.len(), take(&turns, 2, most).await.len()), (own, most - own), "{most}");
        }
        assert_eq!(take(&Turns::new(8, false), 1, 9).await.len(), 8, "addresses that hide others");
    }

    #[tokio::test(start_paused = true)]
    async fn a_free_turn_goes_to_the_address_that_holds_the_fewest() {
        let turns = Turns::new(4, false);
        let mut held = take(&turns, 1, 4).await;
        let (order, mut told) = tokio::sync::mpsc::unbounded_channel();
        for host in [1, 1, 2] {
            let (turns, order) = (Arc::clone(&turns), order.clone());
            tokio::spawn(async move {
                let turn = turns.take(&of(host), LIMIT).await;
                order.send((host, turn)).expect("a test");
            });
            tokio::task::yield_now().await;
        }
        held.pop();
        assert_eq!(told.recv().await.map(|(host, _)| host), Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_gives_way_to_a_request_that_waits() {
        for (lumps, is_slow) in [(0, true), (5, false)] {
            let turns = Turns::new(2, true);
            let held = take(&turns, 1, 1).await;
            let fast = take(&turns, 2, 1).await;
            let slow = &held[0].0;
            slow.wait(Way::Up, true);
            slow.moved(Way::Up, 2);
            let moves = Arc::clone(slow);
            tokio::spawn(async move {
                for _ in 0..lumps {
                    moves.moved(Way::Up, 40_000);
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
            });
            let begun = Instant::now();
            let turn = turns.take(&of(3), LIMIT).await;
            assert_eq!((turn.is_ok(), slow.ended.is_cancelled()), (is_slow, is_slow));
            assert!(!fast[0].0.ended.is_cancelled(), "nobody waits for its client");
            let expected = if is_slow { SLOW + PATIENCE } else { LIMIT + PATIENCE };
            assert!(begun.elapsed() <= expected, "{:?}", begun.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_of_requests_that_wait_no_more() {
        let turns = Turns::new(1, true);
        let held = take(&turns, 1, 50).await;
        assert_eq!(held.len(), 1);
        assert!(locked(&turns.state).waiting.is_empty());
        drop(held);
        assert!(locked(&turns.state).held.is_empty() && locked(&turns.state).by_address.is_empty());
        assert!(!turns.are_taken());
    }

    #[tokio::test(start_paused = true)]
    async fn only_time_in_which_the_client_is_waited_for_counts() {
        let pace = of(1);
        let minute = Duration::from_secs(60);
        pace.wait(Way::Up, true);
        pace.wait(Way::Up, false);
        tokio::time::advance(2 * minute).await;
        assert!(!pace.is_too_slow(Way::Up, minute), "the upstream was slow");
        pace.wait(Way::Up, true);
        tokio::time::advance(minute).await;
        assert!(pace.is_too_slow(Way::Up, minute));
        pace.moved(Way::Up, 30_000);
        assert!(!pace.is_too_slow(Way::Up, minute), "1000 bytes a second");
        tokio::time::advance(minute / 2).await;
        assert!(pace.is_too_slow(Way::Up, minute));
        // Of a lump of 50 MB, 512 kB count: they may take 512 s.
        pace.moved(Way::Up, 50_000_000);
        tokio::time::advance(Duration::from_secs(512 + 59)).await;
        assert!(!pace.is_too_slow(Way::Up, minute));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(pace.is_too_slow(Way::Up, minute));
    }
}
