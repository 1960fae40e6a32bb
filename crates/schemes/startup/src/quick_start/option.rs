//! The IP option: a request on its way to the receiver, or a report of the approved rate.
//!
//! Source: RFC 4782 §3.1 (IPv4, its Figures 3 and 4), §3.2 (IPv6 hop-by-hop) and §12.1 (the
//! numbers); both are eight bytes.
//!
//! ```text
//!   0                   1                   2                   3
//!   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!  +---------------+---------------+-------+-------+---------------+
//!  |  type 25 / 38 |  length 8 / 6 | func. | rate  | QS TTL, or 0  |
//!  +---------------+---------------+-------+-------+-----------+---+
//!  |                       nonce                               | 0 |
//!  +-----------------------------------------------------------+---+
//! ```
//!
//! # Deviations
//!
//! - Reserved and unused fields are written as zero and ignored when read, for later uses.
//! - RFC 4782 §3.2 specifies no alignment for the IPv6 option, so there is none (RFC 8200 §4.2).
//!   Directly after the two bytes of the hop-by-hop header it lies at 2 and the header has ten
//!   bytes; six of padding complete them.

use core::fmt;

use super::nonce::Nonce;
use super::rate::EncodedRate;

/// Content of the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpOption {
    /// Function 0: a Rate Request.
    Request {
        /// The rate approved so far.
        rate: EncodedRate,
        /// The QS TTL: random at first, decremented by each router that approves.
        ttl: u8,
        /// The nonce.
        nonce: Nonce,
    },
    /// Function 8: a report of the approved rate (zero: none), with the nonce of the request.
    Report {
        /// The approved rate.
        rate: EncodedRate,
        /// The request's nonce.
        nonce: Nonce,
    },
}

/// The reason why bytes are no Quick-Start option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The option has another length.
    Size {
        /// Number of bytes found.
        found: usize,
    },
    /// Another option's number.
    Kind {
        /// The number found.
        found: u8,
        /// The number of this option.
        expected: u8,
    },
    /// The length byte contradicts the format.
    Length {
        /// The length found.
        found: u8,
        /// The only valid length.
        expected: u8,
    },
    /// A function that RFC 4782 does not define.
    Function {
        /// The four bits found.
        found: u8,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Size { found } => write!(f, "found {found} bytes, expected {SIZE}"),
            Self::Kind { found, expected } => write!(f, "found option {found}, expected {expected}"),
            Self::Length { found, expected } => write!(f, "found length {found}, expected {expected}"),
            Self::Function { found } => write!(f, "found function {found}, expected 0 or 8"),
        }
    }
}

impl core::error::Error for Malformed {}

/// Bytes of each of the three options.
pub(super) const SIZE: usize = 8;

/// RFC 4782 §12.1: not copied on fragmentation, class 0, number 25.
const IPV4_TYPE: u8 = 25;
const IPV4_LENGTH: u8 = 8;
/// RFC 4782 §12.1: skipped if unrecognised (00), may change on the way (1), number 6.
const IPV6_TYPE: u8 = 0b0010_0110;
/// RFC 4782 §3.2: type and length bytes do not count.
const IPV6_LENGTH: u8 = 6;
const REQUEST: u8 = 0;
const REPORT: u8 = 8;

/// The eight bytes, if kind and length are right.
pub(super) fn checked(bytes: &[u8], kind: u8, length: u8) -> Result<[u8; SIZE], Malformed> {
    let all: [u8; SIZE] = bytes.try_into().map_err(|_| Malformed::Size { found: bytes.len() })?;
    if all[0] != kind {
        return Err(Malformed::Kind { found: all[0], expected: kind });
    }
    if all[1] != length {
        return Err(Malformed::Length { found: all[1], expected: length });
    }
    Ok(all)
}

pub(super) const fn read_nonce(bytes: &[u8; SIZE]) -> Nonce {
    Nonce::new(u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) >> 2)
}

pub(super) const fn written(kind: u8, length: u8, high: u8, low: u8, byte: u8, nonce: Nonce) -> [u8; SIZE] {
    let [n0, n1, n2, n3] = (nonce.bits() << 2).to_be_bytes();
    [kind, length, high << 4 | low, byte, n0, n1, n2, n3]
}

impl IpOption {
    /// Reads the IPv4 option, type and length bytes included.
    ///
    /// # Errors
    /// If it is not exactly one well-formed Quick-Start option.
    pub fn parse_ipv4(bytes: &[u8]) -> Result<Self, Malformed> {
        checked(bytes, IPV4_TYPE, IPV4_LENGTH).and_then(|all| Self::read(&all))
    }

    /// Reads the IPv6 hop-by-hop option, type and length bytes included.
    ///
    /// # Errors
    /// As [`Self::parse_ipv4`].
    pub fn parse_ipv6(bytes: &[u8]) -> Result<Self, Malformed> {
        checked(bytes, IPV6_TYPE, IPV6_LENGTH).and_then(|all| Self::read(&all))
    }

    fn read(bytes: &[u8; SIZE]) -> Result<Self, Malformed> {
        let (function, rate) = (bytes[2] >> 4, EncodedRate::from_code(bytes[2]));
        let nonce = read_nonce(bytes);
        match function {
            REQUEST => Ok(Self::Request { rate, ttl: bytes[3], nonce }),
            REPORT => Ok(Self::Report { rate, nonce }),
            found => Err(Malformed::Function { found }),
        }
    }

    /// The IPv4 option.
    #[must_use]
    pub const fn emit_ipv4(self) -> [u8; SIZE] {
        self.write(IPV4_TYPE, IPV4_LENGTH)
    }

    /// The IPv6 hop-by-hop option; it needs no padding before it.
    #[must_use]
    pub const fn emit_ipv6(self) -> [u8; SIZE] {
        self.write(IPV6_TYPE, IPV6_LENGTH)
    }

    const fn write(self, kind: u8, length: u8) -> [u8; SIZE] {
        match self {
            Self::Request { rate, ttl, nonce } => written(kind, length, REQUEST, rate.code(), ttl, nonce),
            Self::Report { rate, nonce } => written(kind, length, REPORT, rate.code(), 0, nonce),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    pub fn rates() -> impl Strategy<Value = EncodedRate> {
        (0_u8..16).prop_map(EncodedRate::from_code)
    }

    pub fn nonces() -> impl Strategy<Value = Nonce> {
        any::<u32>().prop_map(Nonce::new)
    }

    fn options() -> impl Strategy<Value = IpOption> {
        let request = (rates(), any::<u8>(), nonces()).prop_map(|(rate, ttl, nonce)| IpOption::Request {
            rate,
            ttl,
            nonce,
        });
        let report = (rates(), nonces()).prop_map(|(rate, nonce)| IpOption::Report { rate, nonce });
        prop_oneof![request, report]
    }

    /// RFC 4782, Figures 3 and 4, with the bits set by hand: rate 10 (40.96 Mbit/s), TTL 0xc5, and
    /// a nonce whose first and last fields are 10 and 01.
    #[test]
    fn the_figures_of_the_standard() {
        let (rate, nonce) = (EncodedRate::from_code(10), Nonce::new(0x2000_0001));
        let request = IpOption::Request { rate, ttl: 0xc5, nonce };
        let report = IpOption::Report { rate, nonce };
        assert_eq!(request.emit_ipv4(), [0x19, 8, 0x0a, 0xc5, 0x80, 0, 0, 0x04]);
        assert_eq!(report.emit_ipv4(), [0x19, 8, 0x8a, 0, 0x80, 0, 0, 0x04]);
        assert_eq!(request.emit_ipv6(), [0x26, 6, 0x0a, 0xc5, 0x80, 0, 0, 0x04]);
        assert_eq!(report.emit_ipv6(), [0x26, 6, 0x8a, 0, 0x80, 0, 0, 0x04]);
    }

    #[test]
    fn reserved_and_unused_fields_are_ignored() {
        let (rate, nonce) = (EncodedRate::from_code(1), Nonce::new(1));
        let report = [0x19, 8, 0x81, 0xff, 0, 0, 0, 0x07];
        assert_eq!(IpOption::parse_ipv4(&report), Ok(IpOption::Report { rate, nonce }));
        let request = [0x26, 6, 0x01, 7, 0, 0, 0, 0x06];
        assert_eq!(IpOption::parse_ipv6(&request), Ok(IpOption::Request { rate, ttl: 7, nonce }));
    }

    #[test]
    fn a_malformed_option_is_refused_with_a_reason() {
        #[rustfmt::skip]
        let rows: [(&[u8], &str); 7] = [
            (&[],                              "found 0 bytes, expected 8"),
            (&[25, 8, 0, 0, 0, 0, 0],          "found 7 bytes, expected 8"),
            (&[25, 8, 0, 0, 0, 0, 0, 0, 1],    "found 9 bytes, expected 8"),
            (&[26, 8, 0, 0, 0, 0, 0, 0],       "found option 26, expected 25"),
            (&[0x99, 8, 0, 0, 0, 0, 0, 0],     "found option 153, expected 25"),
            (&[25, 6, 0, 0, 0, 0, 0, 0],       "found length 6, expected 8"),
            (&[25, 8, 0x30, 0, 0, 0, 0, 0],    "found function 3, expected 0 or 8"),
        ];
        for (bytes, reason) in rows {
            let error = IpOption::parse_ipv4(bytes).expect_err(reason);
            assert_eq!(error.to_string(), reason);
        }
        assert!(
            IpOption::parse_ipv6(&[0x26, 8, 0, 0, 0, 0, 0, 0]).is_err(),
            "IPv6 does not count the first two"
        );
    }

    proptest! {
        #[test]
        fn encoding_and_decoding_are_inverse(option in options()) {
            prop_assert_eq!(IpOption::parse_ipv4(&option.emit_ipv4()), Ok(option));
            prop_assert_eq!(IpOption::parse_ipv6(&option.emit_ipv6()), Ok(option));
        }

        /// Any bytes are refused, or are an option that round-trips.
        #[test]
        fn every_byte_string_decodes_or_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Ok(option) = IpOption::parse_ipv4(&bytes) {
                prop_assert_eq!(IpOption::parse_ipv4(&option.emit_ipv4()), Ok(option));
            }
        }

        /// Bytes whose first ones are right, so that most are options, decode or are refused.
        #[test]
        fn every_option_body_decodes_or_is_refused(body: [u8; 6]) {
            let mut bytes = [0x26, 6, 0, 0, 0, 0, 0, 0];
            bytes[2..].copy_from_slice(&body);
            match IpOption::parse_ipv6(&bytes) {
                Ok(option) => prop_assert_eq!(IpOption::parse_ipv6(&option.emit_ipv6()), Ok(option)),
                Err(error) => prop_assert_eq!(error, Malformed::Function { found: body[0] >> 4 }),
            }
        }
    }
}
