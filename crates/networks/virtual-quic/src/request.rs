//! The request of a simulated or emulated client: a number of bytes.
//!
//! ```text
//! bytes  0        8       12       13
//!        | size   | flow  | flag   |      big-endian
//!        |        +-------+--------+      only where flows of a run share a server
//! ```
//!
//! Over HTTP the same is a path: `/bytes/N` (`headstart-web`).

use headstart_units::Bytes;

/// A client's request for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferRequest {
    /// Size of the answer.
    pub bytes: Bytes,
    /// The flow's tag, where the server cannot identify the flow otherwise.
    pub tag: Option<Tag>,
}

/// Identifies a flow where the flows of a run share a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The flow's number in its run.
    pub flow: u32,
    /// The server announces the answer's size to its scheme.
    pub announces_size: bool,
}

/// Errors of a malformed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The length is neither that of a tagged request nor that of an untagged one.
    #[error(
        "found a request of {found} bytes, expected {} or {}",
        TransferRequest::LENGTH,
        TransferRequest::TAGGED
    )]
    Length {
        /// Length of the request in bytes.
        found: usize,
    },
    /// The last byte is neither 0 nor 1.
    #[error("found {found} in the byte that announces the size, expected 0 or 1")]
    AnnouncesSize {
        /// The byte.
        found: u8,
    },
}

impl TransferRequest {
    /// Length without a tag, in bytes.
    pub const LENGTH: usize = 8;
    /// Length with a tag, in bytes.
    pub const TAGGED: usize = 13;

    /// A request without a tag.
    #[must_use]
    pub const fn new(bytes: Bytes) -> Self {
        Self { bytes, tag: None }
    }

    /// A request with a tag.
    #[must_use]
    pub const fn tagged(bytes: Bytes, flow: u32, announces_size: bool) -> Self {
        Self { bytes, tag: Some(Tag { flow, announces_size }) }
    }

    /// The encoded request.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut written = self.bytes.get().to_be_bytes().to_vec();
        if let Some(Tag { flow, announces_size }) = self.tag {
            written.extend(flow.to_be_bytes());
            written.push(u8::from(announces_size));
        }
        written
    }

    /// Parses a whole request.
    ///
    /// # Errors
    /// It has the wrong length, or the last byte of its tag is neither 0 nor 1.
    pub fn parse(written: &[u8]) -> Result<Self, Malformed> {
        let length = Malformed::Length { found: written.len() };
        let (size, tag) = written.split_first_chunk::<{ Self::LENGTH }>().ok_or(length)?;
        let bytes = Bytes::new(u64::from_be_bytes(*size));
        if tag.is_empty() {
            return Ok(Self::new(bytes));
        }
        let (flow, flag) = tag.split_first_chunk::<4>().ok_or(length)?;
        let announces_size = match *flag {
            [0] => false,
            [1] => true,
            [found] => return Err(Malformed::AnnouncesSize { found }),
            _ => return Err(length),
        };
        Ok(Self::tagged(bytes, u32::from_be_bytes(*flow), announces_size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_request_parses_to_itself() {
        for bytes in [0, 1, 100_000, u64::MAX].map(Bytes::new) {
            let plain = TransferRequest::new(bytes);
            assert_eq!(plain.emit().len(), TransferRequest::LENGTH);
            assert_eq!(TransferRequest::parse(&plain.emit()), Ok(plain));
            for (flow, announces_size) in [(0, true), (u32::MAX, false), (7, true)] {
                let tagged = TransferRequest::tagged(bytes, flow, announces_size);
                assert_eq!(tagged.emit().len(), TransferRequest::TAGGED);
                assert_eq!(TransferRequest::parse(&tagged.emit()), Ok(tagged));
            }
        }
    }

    #[test]
    fn requests_of_other_lengths_or_flags_are_refused() {
        let written = TransferRequest::tagged(Bytes::new(5), 1, true).emit();
        for found in (0..written.len()).filter(|length| *length != TransferRequest::LENGTH) {
            assert_eq!(TransferRequest::parse(&written[..found]), Err(Malformed::Length { found }));
        }
        assert_eq!(TransferRequest::parse(&[0; 14]), Err(Malformed::Length { found: 14 }));
        let mut other = written;
        other[12] = 2;
        assert_eq!(TransferRequest::parse(&other), Err(Malformed::AnnouncesSize { found: 2 }));
    }
}
