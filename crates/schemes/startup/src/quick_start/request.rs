//! A request in transit, its echo, and the sender's check of it.
//!
//! Sources: RFC 4782 §3.3 (routers), §4.1 to §4.4 (hosts); QS §3.1.
//!
//! # Deviations
//!
//! - Rates are exact here; the options carry four bits ([`EncodedRate`]). The paper is older than
//!   the four bits and grants any rate, so both are supported: a router rounds down or not
//!   ([`Granularity`](super::router::Granularity)), and rates in options are always rounded.
//! - The nonce's steps are those of the four bits also for exact rates: a change within one step
//!   does not affect it.
//! - RFC 4782 §3.1 has the sender report the approved rate, zero if there is none (MUST), for
//!   routers that police (§3.3.1, §9.4.1). No router here polices, so no report is sent; its format
//!   is in [`IpOption`].
//! - RFC 4782 §4.3: a receiver should not answer a request that arrives with the rate zero. This
//!   one does, so that the sender can distinguish a denial from a loss.
//! - RFC 4782's Figures 1 and 2 show QS TTL - IP TTL as the difference, its Equation 1 the negative
//!   of that, modulo 256. The equation is followed: the TCP option carries its value (§4.2).
//! - Every router here lowers the IP TTL by one, so the QS TTL is lowered by one too (§3.3: by as
//!   much as the IP TTL).

use headstart_units::Rate;

use super::nonce::Nonce;
use super::option::IpOption;
use super::rate::EncodedRate;
use super::response::Response;

/// A Quick-Start Request in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The rate approved so far.
    pub rate: Rate,
    /// The QS TTL.
    pub ttl: u8,
    /// The nonce.
    pub nonce: Nonce,
}

impl Request {
    /// A router approves `granted`, at most the requested rate: lowers rate and TTL.
    pub fn approve(&mut self, granted: Rate, random: u32) {
        let (from, to) = (EncodedRate::at_most(self.rate), EncodedRate::at_most(granted));
        self.nonce = self.nonce.lowered(from, to.min(from), random);
        self.rate = granted.min(self.rate);
        self.ttl = self.ttl.wrapping_sub(1);
    }

    /// A router denies the request, which stays: rate, TTL and nonce become zero (RFC 4782 §3.3).
    pub fn deny(&mut self) {
        *self = Self { rate: Rate::ZERO, ttl: 0, nonce: Nonce::new(0) };
    }

    /// The option that carries it.
    #[must_use]
    pub const fn option(&self) -> IpOption {
        IpOption::Request { rate: EncodedRate::at_most(self.rate), ttl: self.ttl, nonce: self.nonce }
    }
}

/// The receiver's echo of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The rate in the request on arrival.
    pub rate: Rate,
    /// IP TTL - QS TTL, modulo 256.
    pub ttl_difference: u8,
    /// The nonce on arrival.
    pub nonce: Nonce,
}

impl Echo {
    /// The echo of a request that arrived with this IP TTL.
    #[must_use]
    pub const fn of(request: &Request, ip_ttl: u8) -> Self {
        let ttl_difference = ip_ttl.wrapping_sub(request.ttl);
        Self { rate: request.rate, ttl_difference, nonce: request.nonce }
    }

    /// The option that carries it.
    #[must_use]
    pub const fn response(&self) -> Response {
        let rate = EncodedRate::at_most(self.rate);
        Response { rate, ttl_difference: self.ttl_difference, nonce: self.nonce }
    }
}

impl From<Response> for Echo {
    fn from(response: Response) -> Self {
        let Response { rate, ttl_difference, nonce } = response;
        Self { rate: rate.rate(), ttl_difference, nonce }
    }
}

/// The sender's state of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentRequest {
    rate: Rate,
    ttl_difference: u8,
    nonce: Nonce,
}

/// The reason why no rate was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DenialReason {
    /// No echo arrived: the request was lost, or deleted on the way.
    NoEcho,
    /// A router denied: the rate is zero.
    Zero,
    /// A router did not process the request: the difference of the TTLs has changed.
    NotEveryRouter,
    /// The echo has a higher rate than the request.
    Raised,
    /// The nonce does not confirm the rate: it was raised on the way or by the receiver.
    Nonce,
}

impl DenialReason {
    /// All reasons, in the order of a table of counts.
    pub const ALL: [Self; 5] = [Self::NoEcho, Self::Zero, Self::NotEveryRouter, Self::Raised, Self::Nonce];

    /// The reason in words, for tables.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoEcho => "the request was lost, or a router deleted it",
            Self::Zero => "a router granted nothing",
            Self::NotEveryRouter => "a router on the path did not take part",
            Self::Raised => "the echo claims more than was asked for",
            Self::Nonce => "the nonce shows that the rate was raised",
        }
    }
}

impl SentRequest {
    /// A request for `rate` in a packet that leaves with `ip_ttl`; QS TTL and nonce must be random.
    #[must_use]
    pub const fn new(rate: Rate, ip_ttl: u8, ttl: u8, nonce: Nonce) -> (Self, Request) {
        let ttl_difference = ip_ttl.wrapping_sub(ttl);
        (Self { rate, ttl_difference, nonce }, Request { rate, ttl, nonce })
    }

    /// The rate that every router granted.
    ///
    /// # Errors
    /// If they did not, or if the echo is not valid.
    pub fn check_echo(&self, echo: &Echo) -> Result<Rate, DenialReason> {
        if echo.rate.is_zero() {
            return Err(DenialReason::Zero);
        }
        if echo.ttl_difference != self.ttl_difference {
            return Err(DenialReason::NotEveryRouter);
        }
        if echo.rate > self.rate {
            return Err(DenialReason::Raised);
        }
        if !echo.nonce.confirms(EncodedRate::at_most(echo.rate), self.nonce) {
            return Err(DenialReason::Nonce);
        }
        Ok(echo.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mbit(mbit: u64) -> Rate {
        Rate::from_mbit_per_sec(mbit)
    }

    fn sent(rate: Rate) -> (SentRequest, Request) {
        SentRequest::new(rate, 64, 200, Nonce::new(0x1234_5678))
    }

    #[test]
    fn the_granted_rate_is_the_least_of_all_routers() {
        let (sent, mut request) = sent(mbit(20));
        for (granted, random) in [(20, 7), (8, 0xffff_ffff), (9, 0xffff_ffff), (8, 3)] {
            request.approve(mbit(granted), random);
        }
        assert_eq!(sent.check_echo(&Echo::of(&request, 64 - 4)), Ok(mbit(8)));
    }

    /// RFC 4782 §2.1, Figures 1 and 2: IP TTL 63 and QS TTL 91 leave; three hops lower both, or the
    /// last hop only one of them.
    #[test]
    fn the_two_examples_of_the_standard() {
        for (agreeing, expected) in [(3, Ok(mbit(20))), (2, Err(DenialReason::NotEveryRouter))] {
            let (sent, mut request) = SentRequest::new(mbit(20), 63, 91, Nonce::new(5));
            for _ in 0..agreeing {
                request.approve(mbit(20), 0);
            }
            assert_eq!(request.ttl, 91 - agreeing, "88 if all agree, else 89");
            let echo = Echo::of(&request, 60);
            // Equation 1 takes the QS TTL from the IP TTL, modulo 256; the figures show 28 and 29,
            // the other way round.
            assert_eq!(echo.ttl_difference, 0_u8.wrapping_sub(28 + (3 - agreeing)));
            assert_eq!(sent.check_echo(&echo), expected);
        }
    }

    #[test]
    fn each_invalid_echo_has_its_reason() {
        let (sent, fresh) = sent(mbit(20));
        let mut approved = fresh;
        approved.approve(mbit(5), 0);
        let mut denied = fresh;
        denied.deny();
        let deaf = Echo::of(&approved, 64 - 2);
        let raised = Echo { rate: mbit(20), ..Echo::of(&approved, 63) };
        let absurd = Echo { rate: mbit(21), ..Echo::of(&approved, 63) };
        for (echo, reason) in [
            (Echo::of(&denied, 63), DenialReason::Zero),
            (Echo::of(&fresh, 63), DenialReason::NotEveryRouter),
            (deaf, DenialReason::NotEveryRouter),
            (raised, DenialReason::Nonce),
            (absurd, DenialReason::Raised),
        ] {
            assert_eq!(sent.check_echo(&echo), Err(reason));
        }
        assert!(
            DenialReason::ALL.is_sorted()
                && DenialReason::ALL.iter().all(|denied| !denied.reason().is_empty())
        );
    }

    #[test]
    fn a_rate_rounded_down_by_the_options_is_accepted() {
        let (sent, mut request) = sent(EncodedRate::MAX.rate());
        request.approve(mbit(9), 0x0f0f_0f0f);
        let echo = Echo::from(Echo::of(&request, 63).response());
        assert_eq!(sent.check_echo(&echo), Ok(Rate::from_bits_per_sec(5_120_000)));
    }

    proptest! {
        /// However the routers behave, the granted rate never exceeds that of any router. One
        /// router that only forwards makes a denial; 256 are not detected (RFC 4782 §3.3).
        #[test]
        fn the_granted_rate_never_exceeds_any_router(
            wanted in 1_u64..2_000_000_000, ttl: u8, nonce: u32,
            routers in proptest::collection::vec((proptest::option::of(0_u64..2_000_000_000), any::<u32>()), 0..40),
        ) {
            let (sent, mut request) = SentRequest::new(Rate::from_bytes_per_sec(wanted), 64, ttl, Nonce::new(nonce));
            let mut least = wanted;
            for (grant, random) in &routers {
                if let Some(grant) = grant {
                    request.approve(Rate::from_bytes_per_sec(*grant), *random);
                    least = least.min(*grant);
                }
            }
            let is_deaf = routers.iter().any(|(grant, _)| grant.is_none());
            let verdict = sent.check_echo(&Echo::of(&request, 64_u8.wrapping_sub(routers.len() as u8)));
            let expected = match (least, is_deaf) {
                (0, _) => Err(DenialReason::Zero),
                (_, true) => Err(DenialReason::NotEveryRouter),
                _ => Ok(Rate::from_bytes_per_sec(least)),
            };
            prop_assert_eq!(verdict, expected);
        }
    }
}
