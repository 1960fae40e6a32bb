//! A limit on the frames of HTTP/3 that are kept in memory.
//!
//! `h3` keeps a frame other than DATA until it is whole, and its length may have 62 bits (RFC 9114
//! §7.1). So each stream is followed here, in front of `h3`, from frame to frame.

/// Type of DATA frames, which are read piece by piece.
const DATA: u64 = 0x00;
/// Type of control streams (RFC 9114 §6.2.1). Only these and requests have frames.
const CONTROL: u64 = 0x00;

/// Type of the frames of header fields.
pub(crate) const HEADERS: u64 = 0x01;

/// A frame of that type is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong(pub u64);

/// The next part of a stream.
#[derive(Clone, Copy, Debug)]
enum At {
    StreamType,
    Type,
    LengthOf(u64),
    /// The bytes that are missing, and those that came and are kept until the frame is whole.
    Payload {
        left: u64,
        kept: Option<u64>,
    },
    /// In a stream that has no frames.
    Opaque,
}

/// Follows the frames of one stream.
#[derive(Debug)]
pub(crate) struct FrameLimit {
    longest: u64,
    at: At,
    number: PartialVarint,
}

impl FrameLimit {
    /// Of a stream of requests.
    pub fn of_request(longest: u64) -> Self {
        Self { longest, at: At::Type, number: PartialVarint::default() }
    }

    /// Of a unidirectional stream, which begins with its type.
    pub fn of_unidirectional(longest: u64) -> Self {
        Self { at: At::StreamType, ..Self::of_request(longest) }
    }

    /// Bytes of a frame that is kept and not whole yet.
    pub const fn unfinished(&self) -> u64 {
        match self.at {
            At::Payload { kept: Some(kept), .. } => kept,
            _ => 0,
        }
    }

    /// The next bytes of the stream.
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        while !bytes.is_empty() {
            if let At::Payload { left, kept } = self.at {
                let skipped = left.min(bytes.len() as u64);
                bytes = &bytes[skipped as usize..];
                let kept = kept.map(|kept| kept + skipped);
                self.at = if skipped == left { At::Type } else { At::Payload { left: left - skipped, kept } };
                continue;
            }
            if let At::Opaque = self.at {
                return Ok(());
            }
            let Some(number) = self.number.read(&mut bytes) else { return Ok(()) };
            self.at = match self.at {
                At::StreamType if number == CONTROL => At::Type,
                At::StreamType => At::Opaque,
                At::LengthOf(kind) if kind != DATA && number > self.longest => return Err(TooLong(kind)),
                At::LengthOf(_) if number == 0 => At::Type,
                At::LengthOf(kind) => At::Payload { left: number, kept: (kind != DATA).then_some(0) },
                _ => At::LengthOf(number),
            };
        }
        Ok(())
    }
}

/// The bytes of a variable-length integer (RFC 9000 §16) that came so far.
#[derive(Debug, Default)]
struct PartialVarint {
    bytes: [u8; 8],
    count: usize,
}

impl PartialVarint {
    fn read(&mut self, input: &mut &[u8]) -> Option<u64> {
        while let Some((byte, rest)) = input.split_first() {
            *input = rest;
            self.bytes[self.count] = *byte;
            self.count += 1;
            let length = 1 << (self.bytes[0] >> 6);
            if self.count == length {
                let whole = self.bytes[..length].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
                self.count = 0;
                return Some(whole & (u64::MAX >> (64 - 8 * length + 2)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of a type, with a length that has that many bytes, and as many bytes of payload.
    fn frame(kind: u8, length_bytes: usize, length: u64, payload: usize) -> Vec<u8> {
        let mut frame = vec![kind];
        let mut encoded = length.to_be_bytes()[8 - length_bytes..].to_vec();
        encoded[0] |= (length_bytes.trailing_zeros() as u8) << 6;
        frame.extend(encoded);
        frame.extend(vec![0xFF; payload]);
        frame
    }

    /// The same verdict however the stream is cut.
    fn verdict(limit: impl Fn() -> FrameLimit, stream: &[u8]) -> Result<(), TooLong> {
        let whole = limit().read(stream);
        for cut in 1..=9 {
            let mut limit = limit();
            assert_eq!(stream.chunks(cut).try_for_each(|piece| limit.read(piece)), whole, "cut at {cut}");
        }
        whole
    }

    #[test]
    fn a_frame_is_refused_by_its_length_unless_it_is_data() {
        let request = || FrameLimit::of_request(100);
        for length_bytes in [2, 4, 8] {
            let before = [frame(0x01, length_bytes, 100, 100), frame(0x21, 1, 0, 0)].concat();
            assert_eq!(verdict(request, &before), Ok(()));
            for (kind, expected) in [(0x00, Ok(())), (0x01, Err(TooLong(0x01))), (0x21, Err(TooLong(0x21)))] {
                let stream = [before.clone(), frame(kind, length_bytes, 101, 10)].concat();
                assert_eq!(verdict(request, &stream), expected, "{kind} {length_bytes}");
            }
            let behind = [frame(0x00, length_bytes, 3000, 3000), frame(0x01, length_bytes, 101, 0)].concat();
            assert_eq!(verdict(request, &behind), Err(TooLong(0x01)), "behind DATA");
        }
        let longest = frame(0x01, 8, (1 << 62) - 1, 0);
        assert_eq!(verdict(|| FrameLimit::of_request((1 << 62) - 2), &longest), Err(TooLong(0x01)));
    }

    #[test]
    fn of_unidirectional_streams_only_that_of_control_has_frames() {
        let stream = |kind: u8| [vec![kind], frame(0x04, 2, 101, 10)].concat();
        let limit = || FrameLimit::of_unidirectional(100);
        assert_eq!(verdict(limit, &stream(0x00)), Err(TooLong(0x04)));
        for other in [0x02, 0x03, 0x21] {
            assert_eq!(verdict(limit, &stream(other)), Ok(()));
        }
    }

    #[test]
    fn what_is_kept_of_a_frame_is_forgotten_when_it_is_whole() {
        let mut limit = FrameLimit::of_request(100);
        for (bytes, expected) in [
            (frame(0x01, 2, 100, 60), 60),
            (vec![0xFF; 39], 99),
            (vec![0xFF; 1], 0),
            (frame(0x00, 4, 5000, 4000), 0),
            (vec![0xFF; 1000], 0),
            (frame(0x21, 2, 100, 0), 0),
            (vec![0xFF; 7], 7),
        ] {
            assert_eq!(limit.read(&bytes), Ok(()));
            assert_eq!(limit.unfinished(), expected);
        }
    }
}
