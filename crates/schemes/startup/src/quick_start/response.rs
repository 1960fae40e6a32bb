//! The TCP option that returns the echo of the request to the sender.
//!
//! Source: RFC 4782 §4.2 (its Figure 5) and §12.2: kind 27, eight bytes: rate on arrival, IP TTL -
//! QS TTL modulo 256, nonce on arrival.

use super::nonce::Nonce;
use super::option::{Malformed, SIZE, checked, read_nonce, written};
use super::rate::EncodedRate;

/// The Quick-Start Response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The rate in the request on arrival.
    pub rate: EncodedRate,
    /// IP TTL - QS TTL, modulo 256, as the request arrived.
    pub ttl_difference: u8,
    /// The nonce on arrival.
    pub nonce: Nonce,
}

const KIND: u8 = 27;
const LENGTH: u8 = 8;

impl Response {
    /// Reads the option, kind and length bytes included.
    ///
    /// # Errors
    /// If it is not exactly one well-formed Quick-Start Response.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let all = checked(bytes, KIND, LENGTH)?;
        let rate = EncodedRate::from_code(all[2]);
        Ok(Self { rate, ttl_difference: all[3], nonce: read_nonce(&all) })
    }

    /// The option.
    #[must_use]
    pub const fn emit(self) -> [u8; SIZE] {
        written(KIND, LENGTH, 0, self.rate.code(), self.ttl_difference, self.nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::super::option::tests::{nonces, rates};
    use super::*;
    use proptest::prelude::*;

    /// RFC 4782 §4.2, Figure 5, with the bits set by hand.
    #[test]
    fn the_figure_of_the_standard() {
        let response = Response {
            rate: EncodedRate::from_code(15),
            ttl_difference: 0x7f,
            nonce: Nonce::new(0x1555_5555),
        };
        assert_eq!(response.emit(), [27, 8, 0x0f, 0x7f, 0x55, 0x55, 0x55, 0x54]);
        assert_eq!(
            Response::parse(&[27, 8, 0xff, 0x7f, 0x55, 0x55, 0x55, 0x57]),
            Ok(response),
            "reserved bits"
        );
    }

    #[test]
    fn another_option_is_refused() {
        let kind = Malformed::Kind { found: 25, expected: 27 };
        assert_eq!(Response::parse(&[25, 8, 0, 0, 0, 0, 0, 0]), Err(kind));
        assert_eq!(Response::parse(&[27, 8]), Err(Malformed::Size { found: 2 }));
    }

    proptest! {
        #[test]
        fn encoding_and_decoding_are_inverse(rate in rates(), ttl_difference: u8, nonce in nonces()) {
            let response = Response { rate, ttl_difference, nonce };
            prop_assert_eq!(Response::parse(&response.emit()), Ok(response));
        }

        #[test]
        fn every_byte_string_decodes_or_is_refused(body: [u8; 6], size in 0_usize..10) {
            let mut bytes = [27, 8, 0, 0, 0, 0, 0, 0, 0, 0];
            bytes[2..8].copy_from_slice(&body);
            match Response::parse(&bytes[..size]) {
                Ok(response) => prop_assert_eq!(Response::parse(&response.emit()), Ok(response)),
                Err(error) => prop_assert_eq!(error, Malformed::Size { found: size }),
            }
        }
    }
}
