//! State that the client carries: the record of its path, sealed in the address validation tokens
//! that the server gives it (RFC 9000 §8.1.3).
//!
//! Any server of a fleet that has the key reads the record from the client's first packet, before
//! the first flight and without a common store. The stack makes the tokens of a connection when its
//! path is validated, so a token holds what the visits before that connection measured: the third
//! visit starts fast anywhere.
//!
//! # Format
//!
//! The stack seals an address and the time of issue. Behind them the sealed text ends with
//!
//! ```text
//!   client    4: 1 byte and 4 of its IPv4 address, or 6: 1 byte and 8 of its IPv6 /64
//!   saved at  4 bytes: seconds since 1970
//!   rate      8 bytes: bytes per second
//!   RTT       4 bytes: microseconds
//!   credit    8 bytes
//!   excess    4 bytes: the handshake's part of the RTT, microseconds
//!   outcome   1 byte: 0 clean, 1 lossy
//!   length    1 byte: of all that above
//!   version   1 byte: 1; 0 if there is no record, and nothing above
//! ```
//!
//! in network byte order. A version that is not known is skipped by its length. The nonce is the
//! stack's, 16 bytes behind the sealed text. The key of a token is HKDF-SHA-256 (RFC 5869) of the
//! server's secret without salt, with the nonce (little-endian) and `headstart token 1` as its
//! info. The cipher is AES-256-GCM with a nonce of zeros, since no key is used twice.
//!
//! # Trust
//!
//! A token says only what a server with the key has measured. The record counts for the address in
//! it, whoever sends it. It must be newer than that of the server's own store, at most [`LIFETIME`]
//! old, and not of the future. Then the gates judge it as every record ([`gates`](crate::gates)). A
//! client may keep a good record, if it never shows a newer token. Its path had room for that
//! flight within the lifetime, and the next loss lowers the credit.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use headstart_startup::history::{FlightOutcome, Record, RecordUpdate};
use headstart_units::{Bytes, Rate, Span, Time};
use noq_proto::crypto::{CryptoError, HandshakeTokenKey};
use ring::{aead, hkdf};

use crate::epoch::Epoch;
use crate::store::{Store, client_key, peek};

/// Records in older tokens are not used: two weeks, as long as the stack takes the tokens.
pub const LIFETIME: Span = Span::from_secs(14 * 24 * 3600);

/// Bytes of a server's secret.
pub const SECRET: usize = 32;

const VERSION: u8 = 1;
/// Most secrets: each is tried on a token that none opens.
const MOST_SECRETS: usize = 4;
const PURPOSE: &[u8] = b"headstart token 1";
/// Clocks of a fleet differ by less.
const CLOCK_ERROR: Span = Span::from_secs(60);

/// The stack's part of a token, and the client with its record behind that.
type Opened = (Vec<u8>, Option<(IpAddr, Record)>);

/// The secrets of a fleet: the first seals, all open. To rotate, put a new one first, and remove
/// the last when its tokens are [`LIFETIME`] old.
#[derive(Clone)]
pub struct TokenKeys {
    keys: Arc<[hkdf::Prk]>,
    now: fn() -> Time,
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKeys").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

impl TokenKeys {
    /// Keys of these secrets. `None` without any.
    #[must_use]
    pub fn new(secrets: &[[u8; SECRET]]) -> Option<Self> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]);
        let keys: Arc<[hkdf::Prk]> = secrets.iter().map(|secret| salt.extract(secret)).collect();
        (!keys.is_empty()).then_some(Self { keys, now: || Epoch::now().at() })
    }

    /// The keys with another clock, for virtual time.
    #[must_use]
    pub fn with_clock(self, now: fn() -> Time) -> Self {
        Self { now, ..self }
    }

    fn seal(&self, nonce: u128, mut text: Vec<u8>) -> Result<Vec<u8>, CryptoError> {
        let key = aead_key(&self.keys[0], nonce)?;
        let zeros = aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN]);
        key.seal_in_place_append_tag(zeros, aead::Aad::empty(), &mut text).map_err(|_| CryptoError)?;
        Ok(text)
    }

    fn open(&self, nonce: u128, sealed: &[u8]) -> Result<Opened, CryptoError> {
        let opened = self.keys.iter().find_map(|key| {
            let zeros = aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN]);
            let mut text = sealed.to_vec();
            let key = aead_key(key, nonce).ok()?;
            let length = key.open_in_place(zeros, aead::Aad::empty(), &mut text).ok()?.len();
            text.truncate(length);
            Some(text)
        });
        let mut text = opened.ok_or(CryptoError)?;
        let (version, length) = match text[..] {
            [.., 0] => (0, 0),
            [.., length, version] => (version, 1 + usize::from(length)),
            _ => return Err(CryptoError),
        };
        text.pop();
        let kept = text.len().checked_sub(length).ok_or(CryptoError)?;
        let known = if version == VERSION { read(&text[kept..text.len() - 1]) } else { None };
        text.truncate(kept);
        Ok((text, known))
    }
}

/// A secret of 64 hexadecimal digits in each line; `#` begins a comment.
impl FromStr for TokenKeys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut secrets = vec![];
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut secret = [0; SECRET];
            let is_whole = line.len() == 2 * SECRET && line.bytes().all(|byte| byte.is_ascii_hexdigit());
            for (byte, pair) in secret.iter_mut().zip(line.as_bytes().chunks(2)).filter(|_| is_whole) {
                let digits = std::str::from_utf8(pair).unwrap_or_default();
                *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
            }
            // The line may be a secret with an error: it is not repeated.
            if !is_whole {
                let found = line.chars().count();
                return Err(format!(
                    "line {number}: found {found} characters, expected 64 hexadecimal digits"
                ));
            }
            if secrets.len() == MOST_SECRETS {
                return Err(format!(
                    "line {number}: found a further secret, expected {MOST_SECRETS} at most"
                ));
            }
            secrets.push(secret);
        }
        Self::new(&secrets)
            .ok_or_else(|| "found no secret, expected 64 hexadecimal digits in a line".to_owned())
    }
}

fn aead_key(key: &hkdf::Prk, nonce: u128) -> Result<aead::LessSafeKey, CryptoError> {
    let nonce = nonce.to_le_bytes();
    let info = [&nonce[..], PURPOSE];
    let key = key.expand(&info, &aead::AES_256_GCM).map_err(|_| CryptoError)?;
    Ok(aead::LessSafeKey::new(key.into()))
}

/// The part of a token behind the stack's.
fn written(client: IpAddr, record: &Record) -> Vec<u8> {
    let mut text = vec![];
    match client {
        IpAddr::V4(address) => {
            text.push(4);
            text.extend(address.octets());
        }
        IpAddr::V6(address) => {
            text.push(6);
            text.extend(&address.octets()[..8]);
        }
    }
    let clamped = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes();
    text.extend(clamped(record.saved_at.as_nanos() / 1_000_000_000));
    text.extend(record.btl_bw.as_bytes_per_sec().to_be_bytes());
    text.extend(clamped(record.rt_prop.as_nanos() / 1000));
    text.extend(record.credit.get().to_be_bytes());
    text.extend(clamped(record.handshake_excess.as_nanos() / 1000));
    text.push(u8::from(record.outcome == FlightOutcome::Lossy));
    // 38 at most.
    text.push(text.len() as u8);
    text.push(VERSION);
    text
}

/// The client and record of that part without length and version; `None` of another length.
fn read(mut text: &[u8]) -> Option<(IpAddr, Record)> {
    fn take<const N: usize>(text: &mut &[u8]) -> Option<[u8; N]> {
        let (first, rest) = text.split_first_chunk()?;
        *text = rest;
        Some(*first)
    }
    let [family] = take(&mut text)?;
    let client = match family {
        4 => Ipv4Addr::from(take::<4>(&mut text)?).into(),
        6 => Ipv6Addr::from_bits(u128::from(u64::from_be_bytes(take(&mut text)?)) << 64).into(),
        _ => return None,
    };
    let saved_at = u32::from_be_bytes(take(&mut text)?);
    let rate = u64::from_be_bytes(take(&mut text)?);
    let rtt = u32::from_be_bytes(take(&mut text)?);
    let credit = u64::from_be_bytes(take(&mut text)?);
    let excess = u32::from_be_bytes(take(&mut text)?);
    let [outcome] = take(&mut text)?;
    let record = Record {
        saved_at: Time::ZERO + Span::from_secs(saved_at.into()),
        btl_bw: Rate::from_bytes_per_sec(rate),
        rt_prop: Span::from_micros(rtt.into()),
        credit: Bytes::new(credit),
        handshake_excess: Span::from_micros(excess.into()),
        outcome: if outcome == 0 { FlightOutcome::Clean } else { FlightOutcome::Lossy },
        ..Record::default()
    };
    (text.is_empty() && !record.btl_bw.is_zero() && !record.rt_prop.is_zero()).then_some((client, record))
}

/// The tokens of an endpoint, or of one connection of it.
pub(crate) struct Tokens {
    pub keys: TokenKeys,
    pub store: Arc<dyn Store>,
    /// The connection's peer, whose record its tokens get.
    pub peer: Option<IpAddr>,
}

impl Tokens {
    /// The store's record of the peer.
    fn record(&self) -> Option<(IpAddr, Record)> {
        let peer = self.peer?;
        let record = peek(&*self.store, peer)?.record;
        (!record.btl_bw.is_zero() && !record.rt_prop.is_zero()).then_some((peer, record))
    }

    /// Puts a client's record into the store, if it is newer and not too old.
    fn offer(&self, client: IpAddr, record: Record) {
        let now = (self.keys.now)();
        if record.saved_at > now + CLOCK_ERROR || now.since(record.saved_at) > LIFETIME {
            return;
        }
        let (known, lease) = self.store.open(client_key(client));
        let is_newer = known.is_none_or(|known| known.record.saved_at < record.saved_at);
        self.store.close(lease, if is_newer { RecordUpdate::Replace(record) } else { RecordUpdate::Keep });
    }
}

impl HandshakeTokenKey for Tokens {
    fn seal(&self, token_nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        match self.record() {
            Some((client, record)) => data.extend(written(client, &record)),
            None => data.push(0),
        }
        *data = self.keys.seal(token_nonce, std::mem::take(data))?;
        Ok(())
    }

    fn open<'a>(&self, token_nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let (text, known) = self.keys.open(token_nonce, data)?;
        if let Some((client, record)) = known {
            self.offer(client, record);
        }
        let place = data.get_mut(..text.len()).ok_or(CryptoError)?;
        place.copy_from_slice(&text);
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::Sharded;

    const NOW: Time = Time::from_millis(1_800_000_000_000);

    fn keys(secrets: &[u8]) -> TokenKeys {
        let secrets: Vec<[u8; SECRET]> = secrets.iter().map(|byte| [*byte; SECRET]).collect();
        TokenKeys::new(&secrets).expect("one at least").with_clock(|| NOW)
    }

    fn tokens(secrets: &[u8], peer: Option<&str>) -> Tokens {
        let peer = peer.map(|peer| client_key(peer.parse().expect("an address")));
        Tokens { keys: keys(secrets), store: Arc::new(Sharded::new(10)), peer }
    }

    fn record() -> Record {
        Record {
            saved_at: NOW - Span::from_secs(100),
            btl_bw: Rate::from_mbit_per_sec(25),
            rt_prop: Span::from_micros(50_123),
            credit: Bytes::new(123_456),
            handshake_excess: Span::from_micros(1_500),
            outcome: FlightOutcome::Lossy,
            ..Record::default()
        }
    }

    fn known(tokens: &Tokens, peer: &str) -> Option<Record> {
        let (known, lease) = tokens.store.open(client_key(peer.parse().expect("an address")));
        tokens.store.close(lease, RecordUpdate::Keep);
        known.map(|known| known.record)
    }

    fn store(tokens: &Tokens, peer: &str, record: Record) {
        let (_, lease) = tokens.store.open(client_key(peer.parse().expect("an address")));
        tokens.store.close(lease, RecordUpdate::Replace(record));
    }

    /// A token that `from` gave to its peer, opened by `to`.
    fn carry(from: &Tokens, to: &Tokens) -> Option<Vec<u8>> {
        let mut data = b"the stack's".to_vec();
        from.seal(7, &mut data).expect("sealed");
        to.open(7, &mut data).ok().map(<[u8]>::to_vec)
    }

    #[test]
    fn another_server_with_the_key_gets_the_record_of_its_client() {
        for peer in ["192.0.2.7", "2001:db8:1:2:3::4"] {
            let (here, there) = (tokens(&[1], Some(peer)), tokens(&[1], None));
            assert_eq!(carry(&here, &there), Some(b"the stack's".to_vec()), "there is none yet");
            assert_eq!(known(&there, peer), None);
            store(&here, peer, record());
            assert_eq!(carry(&here, &there), Some(b"the stack's".to_vec()));
            assert_eq!(known(&there, peer), Some(record()), "{peer}");
            let [with, without] = [&here, &there].map(|from| {
                let mut data = b"the stack's".to_vec();
                from.seal(7, &mut data).expect("sealed");
                data.len()
            });
            assert!(with - without < 64, "a record takes {} bytes", with - without);
        }
    }

    #[test]
    fn a_newer_record_of_the_store_wins_and_an_old_or_future_one_is_not_used() {
        let peer = "192.0.2.7";
        for (of_token, of_store, wins) in [
            (-100, Some(-50), false),
            (-100, Some(-150), true),
            (-100, Some(-100), false),
            (-100, None, true),
            (-15 * 24 * 3600, None, false),
            (3600, None, false),
        ] {
            let at = |seconds: i64| {
                let span = Span::from_secs(seconds.unsigned_abs());
                if seconds < 0 { NOW - span } else { NOW + span }
            };
            let (here, there) = (tokens(&[1], Some(peer)), tokens(&[1], None));
            store(&here, peer, Record { saved_at: at(of_token), ..record() });
            let rate = Rate::from_mbit_per_sec(3);
            if let Some(of_store) = of_store {
                store(&there, peer, Record { saved_at: at(of_store), btl_bw: rate, ..record() });
            }
            carry(&here, &there).expect("opened");
            let found = known(&there, peer).is_some_and(|it| it.btl_bw == record().btl_bw);
            assert_eq!(found, wins, "{of_token} s in the token, {of_store:?} s in the store");
        }
    }

    #[test]
    fn keys_rotate_and_another_fleets_token_is_not_opened() {
        let peer = "192.0.2.7";
        let old = tokens(&[1], Some(peer));
        store(&old, peer, record());
        for (secrets, opens) in [(&[2, 1][..], true), (&[1, 2], true), (&[2], false)] {
            let new = tokens(secrets, None);
            assert_eq!(carry(&old, &new).is_some(), opens, "{secrets:?}");
            assert_eq!(known(&new, peer).is_some(), opens, "{secrets:?}");
        }
        assert!(TokenKeys::new(&[]).is_none());
    }

    #[test]
    fn secrets_are_read_from_text_and_wrong_lines_are_named() {
        let hex = "01".repeat(SECRET);
        let read = format!("# of May\n{hex}\n\n  {}\r\n", "AB".repeat(SECRET)).parse::<TokenKeys>();
        let (ours, theirs) = (tokens(&[0xab], Some("192.0.2.7")), tokens(&[1], None));
        store(&ours, "192.0.2.7", record());
        let there = Tokens { keys: read.expect("two").with_clock(|| NOW), ..theirs };
        assert!(carry(&ours, &there).is_some());
        let many = format!("{hex}\n").repeat(5);
        for (text, error) in [
            ("", "found no secret"),
            ("# 01", "found no secret"),
            (&hex[1..], "line 1: found 63 characters, expected 64 hexadecimal digits"),
            (&format!("\n{}é", &hex[2..]), "line 2: found 63 characters"),
            (&format!("{}+1", &hex[2..]), "line 1: found 64 characters"),
            (&many, "line 5: found a further secret, expected 4 at most"),
        ] {
            let found = text.parse::<TokenKeys>().expect_err(error);
            assert!(found.starts_with(error), "{found}");
        }
    }

    #[test]
    fn a_later_version_is_skipped_and_the_rest_of_the_token_kept() {
        let there = tokens(&[1], None);
        let text = [b"the stack's", &[9, 9, 9, 3, 2][..]].concat();
        let mut sealed = there.keys.seal(7, text).expect("sealed");
        assert_eq!(there.open(7, &mut sealed).ok(), Some(&b"the stack's"[..]));
        for wrong in [&[][..], &[1], &[200, 1], &[4, 1]] {
            let mut sealed = there.keys.seal(7, wrong.to_vec()).expect("sealed");
            assert!(there.open(7, &mut sealed).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn a_token_that_was_changed_or_cut_is_not_opened(at in any::<prop::sample::Index>(), flip in 1_u8.., cut in 0_usize..40) {
            let peer = "2001:db8::";
            let (here, there) = (tokens(&[1], Some(peer)), tokens(&[1], None));
            store(&here, peer, record());
            let mut sealed = b"the stack's".to_vec();
            here.seal(7, &mut sealed).expect("sealed");
            let mut cut = sealed[..sealed.len() - cut.min(sealed.len())].to_vec();
            prop_assert_eq!(there.open(7, &mut cut).is_ok(), cut.len() == sealed.len());
            prop_assert!(there.open(8, &mut sealed.clone()).is_err());
            let there = tokens(&[1], None);
            let at = at.index(sealed.len());
            sealed[at] ^= flip;
            prop_assert!(there.open(7, &mut sealed).is_err());
            prop_assert!(known(&there, peer).is_none());
        }

        #[test]
        fn whatever_is_sealed_is_read_without_a_panic(text in prop::collection::vec(any::<u8>(), 0..80)) {
            let there = tokens(&[1], None);
            let mut sealed = there.keys.seal(7, text.clone()).expect("sealed");
            if let Ok(opened) = there.open(7, &mut sealed) {
                prop_assert!(text.starts_with(opened));
            }
        }
    }
}
