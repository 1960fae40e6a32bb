//! The hint on the wire: a QUIC transport parameter of our own (Blitzstart §3).
//!
//! ```text
//!  parameter id (62 bits, private)  |  length  |  access technology (1 byte)  |  bandwidth in kbit/s (varint)
//! ```
//!
//! A peer that does not know the id ignores it (RFC 9000 §7.4.2). What does not parse is no hint, and never an error of
//! the connection. By default the client rounds the bandwidth down to one of two steps for each power of two, so that
//! it tells what it must and not who it is (Blitzstart §7 names the concern).
//!
//! # Deviations
//!
//! - Blitzstart adds fields to Google QUIC's handshake and gives no format: this one is ours.
//! - RFC 9000 §18.1 reserves the ids 31 n + 27 for greasing; ours is none of them.

use bytes::Buf;
use headstart_startup::prior::{Access, Hint};
use headstart_units::Rate;
use noq_proto::VarInt;
use noq_proto::coding::{Decodable, Encodable};

use crate::shared::Shared;

/// The parameter's id.
pub const PARAMETER: u64 = 0x2a5e_68ea_d57a_2707;

const _: () = assert!(PARAMETER < 1 << 62 && PARAMETER % 31 != 27, "a private id that is not grease");

/// A parameter that is there but says nothing that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The parameters as a whole are cut short.
    #[error("transport parameters end within an entry")]
    Parameters,
    /// The value is not an access technology and a bandwidth.
    #[error("the hint is not one byte and one varint")]
    Value,
    /// A bandwidth of nothing is no hint.
    #[error("the hint claims no bandwidth at all")]
    Zero,
    /// The parameter is there twice.
    #[error("the hint is given twice")]
    Twice,
}

/// Rounds a hint's bandwidth down to 2^n or 1.5 x 2^n kbit/s.
#[must_use]
pub fn quantised(hint: Hint) -> Hint {
    let kilobits = hint.bandwidth.as_bits_per_sec() / 1000;
    let Some(power) = kilobits.checked_ilog2() else { return Hint { bandwidth: Rate::ZERO, ..hint } };
    let step = 1_u64 << power;
    let rounded = if kilobits >= step + step / 2 { step + step / 2 } else { step };
    Hint { bandwidth: kilobits_per_sec(rounded), ..hint }
}

fn kilobits_per_sec(kilobits: u64) -> Rate {
    Rate::from_bits_per_sec(kilobits.saturating_mul(1000))
}

/// Appends the parameter to encoded transport parameters. A hint below 1 kbit/s is left out.
pub fn append(hint: Hint, parameters: &mut Vec<u8>) {
    let kilobits = (hint.bandwidth.as_bits_per_sec() / 1000).min(LARGEST_VARINT);
    if kilobits == 0 {
        return;
    }
    let mut value = vec![code(hint.access)];
    varint(kilobits).encode(&mut value);
    varint(PARAMETER).encode(parameters);
    varint(value.len() as u64).encode(parameters);
    parameters.extend_from_slice(&value);
}

const LARGEST_VARINT: u64 = (1 << 62) - 1;

fn varint(value: u64) -> VarInt {
    VarInt::from_u64(value.min(LARGEST_VARINT)).unwrap_or(VarInt::MAX)
}

/// Looks for the parameter among a peer's.
///
/// # Errors
/// It is there but says nothing that can be used, or the parameters are cut short.
pub fn find(mut parameters: &[u8]) -> Result<Option<Hint>, Malformed> {
    let mut found = None;
    while parameters.has_remaining() {
        let mut number = || VarInt::decode(&mut parameters).map(VarInt::into_inner);
        let (Ok(id), Ok(length)) = (number(), number()) else { return Err(Malformed::Parameters) };
        let length = usize::try_from(length).map_err(|_| Malformed::Parameters)?;
        let (value, rest) = parameters.split_at_checked(length).ok_or(Malformed::Parameters)?;
        parameters = rest;
        if id == PARAMETER && found.replace(parse(value)?).is_some() {
            return Err(Malformed::Twice);
        }
    }
    Ok(found)
}

/// The peer's limit for the connection as a whole (RFC 9000 §18.2, `initial_max_data`).
#[must_use]
pub fn flow_control(mut parameters: &[u8]) -> Option<u64> {
    while parameters.has_remaining() {
        let mut number = || VarInt::decode(&mut parameters).map(VarInt::into_inner).ok();
        let (id, length) = (number()?, usize::try_from(number()?).ok()?);
        let (mut value, rest) = parameters.split_at_checked(length)?;
        parameters = rest;
        if id == INITIAL_MAX_DATA {
            return VarInt::decode(&mut value).ok().map(VarInt::into_inner);
        }
    }
    None
}

const INITIAL_MAX_DATA: u64 = 0x04;

/// Takes from a peer's parameters what concerns us. What is malformed is counted, and otherwise ignored.
pub(crate) fn hear(parameters: &[u8], shared: &Shared) {
    let hint = find(parameters).unwrap_or_else(|malformed| {
        tracing::debug!(target: "headstart", peer = %shared.peer, "hint ignored: {malformed}");
        shared.rules.metrics.count_malformed_hint();
        None
    });
    shared.heard(hint, flow_control(parameters));
}

fn parse(value: &[u8]) -> Result<Hint, Malformed> {
    let (&access, mut rest) = value.split_first().ok_or(Malformed::Value)?;
    let kilobits = VarInt::decode(&mut rest).map_err(|_| Malformed::Value)?.into_inner();
    match kilobits {
        _ if rest.has_remaining() => Err(Malformed::Value),
        0 => Err(Malformed::Zero),
        _ => Ok(Hint { bandwidth: kilobits_per_sec(kilobits), access: access_of(access) }),
    }
}

const fn code(access: Access) -> u8 {
    match access {
        Access::Unknown => 0,
        Access::Ethernet => 1,
        Access::Dsl => 2,
        Access::Cable => 3,
        Access::Wifi => 4,
        Access::ThreeG => 5,
        Access::Lte => 6,
    }
}

/// A technology that is not known yet is an unknown one: a newer client must not lose its bandwidth over it.
const fn access_of(code: u8) -> Access {
    match code {
        1 => Access::Ethernet,
        2 => Access::Dsl,
        3 => Access::Cable,
        4 => Access::Wifi,
        5 => Access::ThreeG,
        6 => Access::Lte,
        _ => Access::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Access; 7] = [
        Access::Unknown,
        Access::Ethernet,
        Access::Dsl,
        Access::Cable,
        Access::Wifi,
        Access::ThreeG,
        Access::Lte,
    ];

    fn hint(kilobits: u64) -> Hint {
        Hint { bandwidth: kilobits_per_sec(kilobits), access: Access::Dsl }
    }

    fn encoded(hint: Hint) -> Vec<u8> {
        let mut parameters = vec![0x04, 0x01, 0x20];
        append(hint, &mut parameters);
        // Grease behind it, id 27.
        parameters.extend([27, 3, 1, 2, 3]);
        parameters
    }

    #[test]
    fn what_is_appended_is_found_among_others() {
        for access in ALL {
            for kilobits in [1, 63, 64, 25_000, 16_384, 1 << 40] {
                let hint = Hint { access, ..hint(kilobits) };
                assert_eq!(find(&encoded(hint)), Ok(Some(hint)));
            }
        }
        assert_eq!(find(&[0x04, 0x01, 0x20]), Ok(None));
        assert_eq!(find(&[]), Ok(None));
    }

    #[test]
    fn a_hint_of_nothing_is_not_sent_and_one_of_everything_is_bounded() {
        assert_eq!(find(&encoded(hint(0))), Ok(None));
        let most = find(&encoded(Hint { bandwidth: Rate::MAX, ..hint(1) })).expect("well formed");
        assert!(most.is_some_and(|it| it.bandwidth > Rate::from_mbit_per_sec(1_000_000)));
    }

    #[test]
    fn a_parameter_cut_short_anywhere_is_refused_or_not_there() {
        let whole = encoded(hint(25_000));
        for end in 0..whole.len() {
            let read = find(&whole[..end]);
            assert!(!matches!(read, Ok(Some(found)) if found != hint(25_000)), "{end}: {read:?}");
        }
    }

    #[test]
    fn hostile_values_are_no_hints() {
        let with = |value: &[u8]| {
            let mut parameters = vec![];
            varint(PARAMETER).encode(&mut parameters);
            varint(value.len() as u64).encode(&mut parameters);
            parameters.extend_from_slice(value);
            parameters
        };
        #[rustfmt::skip]
        let rows: [(&[u8], _, &str); 6] = [
            (&[],              Err(Malformed::Value), "nothing"),
            (&[2],             Err(Malformed::Value), "no bandwidth"),
            (&[2, 0x40],       Err(Malformed::Value), "half a varint"),
            (&[2, 0],          Err(Malformed::Zero),  "zero"),
            (&[2, 9, 9],       Err(Malformed::Value), "more than there should be"),
            (&[200, 9],        Ok(Some(Hint { bandwidth: kilobits_per_sec(9), access: Access::Unknown })), "a new technology"),
        ];
        for (value, expected, why) in rows {
            assert_eq!(find(&with(value)), expected, "{why}");
        }
        let twice = [with(&[2, 9]), with(&[2, 9])].concat();
        assert_eq!(find(&twice), Err(Malformed::Twice));
    }

    #[test]
    fn quantised_hints_are_never_above_the_truth_and_at_most_a_third_below() {
        let mut steps = std::collections::BTreeSet::new();
        for kilobits in 1..100_000 {
            let rounded = quantised(hint(kilobits)).bandwidth.as_bits_per_sec() / 1000;
            assert!(rounded <= kilobits && rounded * 3 >= kilobits * 2 - 2, "{kilobits} became {rounded}");
            steps.insert(rounded);
        }
        assert_eq!(steps.len(), 33, "17 powers of two and the steps between");
        assert_eq!(quantised(hint(25_000)), hint(24_576));
        assert_eq!(quantised(hint(0)).bandwidth, Rate::ZERO);
    }
}
