//! The hint among a peer's transport parameters (Blitzstart §3).
//!
//! [`headstart_startup::hint`] has its format on the wire and its quantisation; here it is appended
//! to the parameters that the stack has encoded, and found among those of a peer. A peer that does
//! not support the parameter ignores it (RFC 9000 §7.4.2). A malformed hint is ignored, and never
//! an error of the connection.

use bytes::Buf;
use headstart_startup::hint::{self, PARAMETER};
use headstart_startup::prior::Hint;
use noq_proto::VarInt;
use noq_proto::coding::{Decodable, Encodable};

use crate::shared::Shared;

const _: () = assert!(PARAMETER < 1 << 62 && PARAMETER % 31 != 27, "a private id that is not grease");

/// Errors of a hint that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The parameters as a whole are truncated.
    #[error("transport parameters end within an entry")]
    Parameters,
    /// The value is malformed.
    #[error(transparent)]
    Value(#[from] hint::Malformed),
    /// The parameter occurs twice.
    #[error("found two hints, expected one")]
    Twice,
}

/// Appends the parameter to encoded transport parameters. A hint below 1 kbit/s is left out.
pub fn append(hint: Hint, parameters: &mut Vec<u8>) {
    let Some(value) = hint.emit() else { return };
    for number in [PARAMETER, value.len() as u64] {
        VarInt::from_u64(number).unwrap_or(VarInt::MAX).encode(parameters);
    }
    parameters.extend_from_slice(&value);
}

/// Finds the parameter among a peer's.
///
/// # Errors
/// [`Malformed`] if its value cannot be used or the parameters are truncated.
pub fn find(parameters: &[u8]) -> Result<Option<Hint>, Malformed> {
    let mut found = None;
    for entry in entries(parameters) {
        let (id, value) = entry?;
        if id == PARAMETER && found.replace(Hint::parse(value)?).is_some() {
            return Err(Malformed::Twice);
        }
    }
    Ok(found)
}

/// The peer's connection flow control limit, in bytes (RFC 9000 §18.2, `initial_max_data`).
#[must_use]
pub fn flow_control(parameters: &[u8]) -> Option<u64> {
    let entry = entries(parameters).filter_map(Result::ok).find(|(id, _)| *id == INITIAL_MAX_DATA);
    entry.and_then(|(_, mut value)| VarInt::decode(&mut value).ok()).map(VarInt::into_inner)
}

const INITIAL_MAX_DATA: u64 = 0x04;

/// Parameters in order, as id and value. A truncated one is the last.
fn entries(mut rest: &[u8]) -> impl Iterator<Item = Result<(u64, &[u8]), Malformed>> {
    std::iter::from_fn(move || {
        if !rest.has_remaining() {
            return None;
        }
        let mut number = || VarInt::decode(&mut rest).map(VarInt::into_inner).ok();
        let head = number().zip(number().and_then(|length| usize::try_from(length).ok()));
        let entry = head.and_then(|(id, length)| Some((id, rest.split_at_checked(length)?)));
        let Some((id, (value, after))) = entry else {
            rest = &[];
            return Some(Err(Malformed::Parameters));
        };
        rest = after;
        Some(Ok((id, value)))
    })
}

/// Reads hint and flow control limit of a peer's parameters; counts and ignores malformed hints.
pub(crate) fn read_parameters(parameters: &[u8], shared: &Shared) {
    let hint = find(parameters).unwrap_or_else(|malformed| {
        tracing::debug!(target: "headstart", peer = %shared.connection.peer, "hint ignored: {malformed}");
        shared.rules.common.metrics.count_malformed_hint();
        None
    });
    shared.set_peer_parameters(hint, flow_control(parameters));
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_startup::prior::Access;
    use headstart_units::Rate;

    fn hint(mbit: u64) -> Hint {
        Hint { bandwidth: Rate::from_mbit_per_sec(mbit), access: Access::Dsl }
    }

    /// `initial_max_data` of 32, the hint, then grease.
    fn encoded(hint: Hint) -> Vec<u8> {
        let mut parameters = vec![0x04, 0x01, 0x20];
        append(hint, &mut parameters);
        parameters.extend([27, 3, 1, 2, 3]);
        parameters
    }

    #[test]
    fn an_appended_parameter_is_found_among_others() {
        for mbit in [1, 25, 10_000] {
            assert_eq!(find(&encoded(hint(mbit))), Ok(Some(hint(mbit))));
            assert_eq!(flow_control(&encoded(hint(mbit))), Some(32));
        }
        assert_eq!(find(&encoded(hint(0))), Ok(None), "a hint of nothing is not sent");
        assert_eq!((find(&[]), flow_control(&[])), (Ok(None), None));
    }

    #[test]
    fn a_truncated_parameter_is_refused_or_absent() {
        let whole = encoded(hint(25));
        for end in 0..whole.len() {
            let read = find(&whole[..end]);
            assert!(!matches!(read, Ok(Some(found)) if found != hint(25)), "{end}: {read:?}");
        }
    }

    #[test]
    fn invalid_values_are_not_hints() {
        let twice = [encoded(hint(1)), encoded(hint(1))].concat();
        assert_eq!(find(&twice), Err(Malformed::Twice));
        let mut longer = encoded(hint(1));
        // The value's length, after an id of eight bytes.
        longer[3 + 8] += 1;
        assert!(matches!(find(&longer), Err(Malformed::Value(_) | Malformed::Parameters)));
        let mut newer = encoded(hint(1));
        newer[3 + 9] = 200;
        assert!(matches!(find(&newer), Err(Malformed::Value(hint::Malformed::Version { found: 200 }))));
    }

    proptest::proptest! {
        /// The fuzz target of the same name tries this for longer.
        #[test]
        fn any_transport_parameters_are_parsed_or_refused(
            mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60),
            value in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..9),
        ) {
            let _ = (find(&bytes), flow_control(&bytes));
            for number in [PARAMETER, value.len() as u64] {
                VarInt::from_u64(number).expect("small").encode(&mut bytes);
            }
            bytes.extend(&value);
            if let Ok(Some(read)) = find(&bytes) {
                let mut written = vec![];
                append(read, &mut written);
                proptest::prop_assert_eq!(find(&written), Ok(Some(read)));
            }
        }
    }
}
