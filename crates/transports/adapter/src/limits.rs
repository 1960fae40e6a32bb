//! Caps on hints: per connection, per address, and in total.
//!
//! A hint is granted up to a cap, scaled by its address's credit. A first flight that loses more
//! than a tenth of its bytes halves the credit, any other restores a tenth of the maximum. Below a
//! half the hint is ignored: a start from a small part of a true hint is slower than slow start. So
//! a client that always overstates soon starts with slow start. A grant is reserved from the
//! beginning of the first flight until that is over. Many connections at once cannot claim the same
//! capacity (Blitzstart §7), and one that asks for nothing has none.
//!
//! A record is capped per connection as well: a peer that acknowledges data before it has received
//! them makes its path appear as fast as the server can send.
//!
//! # Limits
//!
//! Credit is kept for a bounded number of addresses (of IPv6, networks of 64 bits), the most
//! recently used; a new one begins with full credit.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use headstart_host::locked;
use headstart_startup::history::SharedRecord;
use headstart_units::{Rate, Ratio};
use lru::LruCache;

use crate::store::client_key;

/// Caps on hints and records; values given are the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Cap on one connection's hint or record. 1 Gbit/s.
    pub per_connection: Rate,
    /// Cap on the concurrent grants of one address. 1 Gbit/s.
    pub per_address: Rate,
    /// Cap on all concurrent grants: a share of the server's own uplink. 10 Gbit/s.
    pub total: Rate,
    /// Number of addresses whose credit is kept. 65 536.
    pub addresses: NonZeroUsize,
    /// Losses lower no credit: for experiments that measure the effect of a false hint. Off.
    pub keeps_credit: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            per_connection: Rate::from_mbit_per_sec(1_000),
            per_address: Rate::from_mbit_per_sec(1_000),
            total: Rate::from_mbit_per_sec(10_000),
            addresses: const { NonZeroUsize::new(1 << 16).expect("not zero") },
            keeps_credit: false,
        }
    }
}

/// Grants the bandwidth of hints.
#[derive(Debug)]
pub struct Limits {
    policy: Policy,
    accounts: Mutex<Accounts>,
}

#[derive(Debug)]
struct Accounts {
    in_use: Rate,
    by_address: LruCache<IpAddr, Account>,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    in_use: Rate,
    credit: u32,
}

impl Account {
    const FRESH: Self = Self { in_use: Rate::ZERO, credit: FULL_CREDIT };
}

/// Full credit, in percent of the hint.
const FULL_CREDIT: u32 = 100;
/// Credit restored by a first flight without excess loss.
const CREDIT_STEP: u32 = 10;
/// Credit below which a hint is ignored, and part of a hint less than which is not granted.
const MIN_CREDIT: u32 = 50;
/// Share of a first flight whose loss marks the hint as false, if exceeded.
pub const TOLERATED_LOSS: Ratio = Ratio::new(1, 10);

/// A rate granted and reserved; released when dropped.
#[derive(Debug)]
pub struct Grant {
    limits: Arc<Limits>,
    address: IpAddr,
    rate: Rate,
    was_clean: Option<bool>,
}

impl Grant {
    /// The rate granted.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Releases the reservation at the end of the first flight, and settles the credit.
    pub fn settle(mut self, was_clean: bool) {
        self.was_clean = Some(was_clean);
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let mut accounts = locked(&self.limits.accounts);
        accounts.in_use = minus(accounts.in_use, self.rate);
        if let Some(account) = accounts.by_address.peek_mut(&self.address) {
            account.in_use = minus(account.in_use, self.rate);
            match self.was_clean {
                Some(true) => account.credit = (account.credit + CREDIT_STEP).min(FULL_CREDIT),
                Some(false) if !self.limits.policy.keeps_credit => account.credit /= 2,
                Some(false) | None => {}
            }
        }
    }
}

impl Limits {
    /// Caps of `policy`, with nothing granted.
    #[must_use]
    pub fn new(policy: Policy) -> Arc<Self> {
        let by_address = LruCache::new(policy.addresses);
        Arc::new(Self { policy, accounts: Mutex::new(Accounts { in_use: Rate::ZERO, by_address }) })
    }

    /// The rate that [`Self::grant`] would grant now.
    #[must_use]
    pub fn offer(&self, peer: IpAddr, claimed: Rate) -> Option<Rate> {
        let accounts = locked(&self.accounts);
        let known = accounts.by_address.peek(&client_key(peer)).copied();
        self.part(accounts.in_use, &known.unwrap_or(Account::FRESH), claimed)
    }

    fn part(&self, in_use: Rate, account: &Account, claimed: Rate) -> Option<Rate> {
        let capped = claimed.min(self.policy.per_connection);
        let left = minus(self.policy.total, in_use).min(minus(self.policy.per_address, account.in_use));
        let rate = (capped * Ratio::percent(account.credit)).min(left);
        (!rate.is_zero() && rate >= capped * Ratio::percent(MIN_CREDIT)).then_some(rate)
    }

    /// The part of `claimed` within the caps and the address's credit; `None` if that is less than
    /// half of it. The cap of one connection is another limit.
    #[must_use]
    pub fn grant(self: &Arc<Self>, peer: IpAddr, claimed: Rate) -> Option<Grant> {
        let address = client_key(peer);
        let mut accounts = locked(&self.accounts);
        let in_use = accounts.in_use;
        let account = accounts.by_address.get_or_insert_mut(address, || Account::FRESH);
        if account.credit < MIN_CREDIT {
            // Connections without a grant restore a little credit: no address is excluded for good.
            account.credit += 1;
            return None;
        }
        let rate = self.part(in_use, account, claimed)?;
        account.in_use = plus(account.in_use, rate);
        accounts.in_use = plus(accounts.in_use, rate);
        Some(Grant { limits: Arc::clone(self), address, rate, was_clean: None })
    }

    /// Cap on the pace of one connection's first flight.
    #[must_use]
    pub const fn fastest(&self) -> Rate {
        self.policy.per_connection
    }

    /// The record, with its bottleneck bandwidth capped per connection.
    #[must_use]
    pub fn cap_record(&self, mut known: SharedRecord) -> SharedRecord {
        known.record.btl_bw = known.record.btl_bw.min(self.policy.per_connection);
        known
    }

    /// Sum of the rates granted now.
    #[must_use]
    pub fn in_use(&self) -> Rate {
        locked(&self.accounts).in_use
    }
}

fn plus(one: Rate, other: Rate) -> Rate {
    Rate::from_bytes_per_sec(one.as_bytes_per_sec().saturating_add(other.as_bytes_per_sec()))
}

fn minus(one: Rate, other: Rate) -> Rate {
    Rate::from_bytes_per_sec(one.as_bytes_per_sec().saturating_sub(other.as_bytes_per_sec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_startup::history::Record;
    use std::net::Ipv4Addr;

    const MBIT: fn(u64) -> Rate = Rate::from_mbit_per_sec;

    fn peer(number: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, number))
    }

    fn limits() -> Arc<Limits> {
        Limits::new(Policy {
            per_connection: MBIT(50),
            per_address: MBIT(80),
            total: MBIT(120),
            addresses: NonZeroUsize::MIN.saturating_add(9),
            keeps_credit: false,
        })
    }

    #[test]
    fn a_record_is_capped_as_a_hint_is() {
        for (rate, expected) in [(20, 20), (50, 50), (51, 50), (20_000, 50)] {
            let record = Record { btl_bw: MBIT(rate), ..Record::default() };
            let capped = limits().cap_record(SharedRecord { record, live: 1 });
            assert_eq!(capped.record, Record { btl_bw: MBIT(expected), ..record });
        }
    }

    #[test]
    fn a_grant_is_limited_by_the_caps_and_returned_at_the_end() {
        let limits = limits();
        let claim = |number, mbit| limits.grant(peer(number), MBIT(mbit));
        let held: Vec<_> =
            [(1, 20, Some(20)), (1, 500, Some(50)), (1, 50, None), (1, 20, Some(10)), (2, 50, Some(40))]
                .into_iter()
                .map(|(number, mbit, expected)| {
                    let expected = expected.map(MBIT);
                    assert_eq!(limits.offer(peer(number), MBIT(mbit)), expected, "{number} asks for {mbit}");
                    let grant = claim(number, mbit);
                    assert_eq!(grant.as_ref().map(Grant::rate), expected, "{number} asks for {mbit}");
                    grant
                })
                .collect();
        assert!(claim(1, 1).is_none(), "the address has all it may have");
        assert!(claim(3, 1).is_none(), "everything is given away");
        drop(held);
        assert_eq!(limits.in_use(), Rate::ZERO);
        assert!(claim(3, 1).is_some());
    }

    #[test]
    fn a_client_that_always_overstates_soon_gets_no_more_than_others() {
        let limits = limits();
        let mut granted = vec![];
        while let Some(grant) = limits.grant(peer(1), Rate::MAX) {
            granted.push(grant.rate().as_bits_per_sec() / 1_000_000);
            grant.settle(false);
        }
        assert_eq!(granted, [50, 25], "half, then nothing");
        assert_eq!(limits.offer(peer(1), MBIT(20)), None, "nor is a true hint used");
        assert!(limits.grant(peer(2), Rate::MAX).is_some(), "others are not concerned");
    }

    #[test]
    fn an_experiment_may_keep_the_credit_that_a_server_withdraws() {
        let limits = Limits::new(Policy { keeps_credit: true, ..Policy::default() });
        for _ in 0..20 {
            let grant = limits.grant(peer(1), Rate::MAX).expect("no credit is lost");
            assert_eq!(grant.rate(), Policy::default().per_connection);
            grant.settle(false);
        }
    }

    #[test]
    fn credit_recovers_slowly() {
        let limits = limits();
        limits.grant(peer(1), MBIT(50)).expect("full credit").settle(false);
        for expected in [25, 30, 35, 40, 45, 50, 50] {
            let grant = limits.grant(peer(1), MBIT(50)).expect("some credit");
            assert_eq!(grant.rate(), MBIT(expected));
            grant.settle(true);
        }
    }

    #[test]
    fn an_address_without_credit_is_heard_again_after_some_connections() {
        let limits = limits();
        while let Some(grant) = limits.grant(peer(1), MBIT(20)) {
            grant.settle(false);
        }
        // The last refusal of the loop restored a hundredth.
        let refused = (1..).take_while(|_| limits.grant(peer(1), MBIT(20)).is_none()).count();
        assert_eq!(refused + 1, (MIN_CREDIT - FULL_CREDIT / 4) as usize);
    }

    #[test]
    fn by_default_an_address_has_1_gbit_per_second_and_all_have_10() {
        let limits = Limits::new(Policy::default());
        let network = |number: u16, host| IpAddr::from([0x2001, 0xdb8, 0, number, 0, 0, 0, host]);
        let all: Vec<Grant> =
            (0..10).map(|number| limits.grant(network(number, 1), Rate::MAX).expect("room")).collect();
        assert!(all.iter().all(|grant| grant.rate() == MBIT(1_000)));
        assert!(limits.grant(network(11, 1), MBIT(1)).is_none(), "of all");
        drop(all);
        let _first = limits.grant(network(1, 1), Rate::MAX).expect("room");
        assert!(limits.grant(network(1, 2), MBIT(1)).is_none(), "of IPv6, a network is an address");
    }

    #[test]
    fn the_number_of_accounts_is_bounded() {
        let limits = limits();
        for number in 0..=255 {
            drop(limits.grant(peer(number), MBIT(1)));
        }
        assert_eq!(locked(&limits.accounts).by_address.len(), 10);
    }
}
