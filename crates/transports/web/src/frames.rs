//! A limit on the frames of HTTP/3 that are kept in memory, and a look at the fields of requests.
//!
//! `h3` keeps a frame other than DATA until it is whole, and its length may have 62 bits (RFC 9114
//! §7.1). Of pseudo-header fields that come twice it gives the last one (RFC 9114 §4.3: malformed).
//! So each stream is followed here, in front of `h3`, from frame to frame.

use bytes::{Buf, Bytes};

/// Type of DATA frames, which are read piece by piece.
const DATA: u64 = 0x00;
/// Type of control streams (RFC 9114 §6.2.1). Only these and requests have frames.
const CONTROL: u64 = 0x00;

/// Type of the frames of header fields.
pub(crate) const HEADERS: u64 = 0x01;

/// A frame that `h3` does not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A frame of that type is longer than the limit.
    TooLong(u64),
    /// A pseudo-header field of a request came twice, or behind other fields.
    Malformed,
}

/// The next part of a stream.
#[derive(Clone, Copy, Debug)]
enum At {
    StreamType,
    Type,
    LengthOf(u64),
    /// The bytes that are missing, and those that came and are kept until the frame is whole.
    Payload {
        kind: u64,
        left: u64,
        kept: u64,
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
    /// The first frame of header fields, of [`Self::longest`] bytes at most.
    fields: Option<Vec<u8>>,
}

impl FrameLimit {
    /// Of a stream with a request, or with the answer to one.
    pub fn of_message(longest: u64) -> Self {
        Self { longest, at: At::Type, number: PartialVarint::default(), fields: None }
    }

    /// Of a stream with a request, whose fields are looked at.
    pub fn of_request(longest: u64) -> Self {
        Self { fields: Some(vec![]), ..Self::of_message(longest) }
    }

    /// Of a unidirectional stream, which begins with its type.
    pub fn of_unidirectional(longest: u64) -> Self {
        Self { at: At::StreamType, ..Self::of_message(longest) }
    }

    /// Bytes of a frame that is kept and not whole yet.
    pub const fn unfinished(&self) -> u64 {
        match self.at {
            At::Payload { kind, kept, .. } if kind != DATA => kept,
            _ => 0,
        }
    }

    /// The next bytes of the stream.
    pub fn read(&mut self, bytes: &Bytes) -> Result<(), Refusal> {
        let mut bytes = bytes.clone();
        while bytes.has_remaining() {
            if let At::Payload { kind, left, kept } = self.at {
                let skipped = left.min(bytes.len() as u64);
                let piece = bytes.split_to(skipped as usize);
                let kept = kept + skipped;
                self.at =
                    if skipped == left { At::Type } else { At::Payload { kind, left: left - skipped, kept } };
                if kind == HEADERS
                    && let Some(fields) = &mut self.fields
                {
                    fields.extend_from_slice(&piece);
                    if skipped == left && pseudo_fields_are_wrong(&self.fields.take().unwrap_or_default()) {
                        return Err(Refusal::Malformed);
                    }
                }
                continue;
            }
            if let At::Opaque = self.at {
                return Ok(());
            }
            let Some(number) = self.number.read(&mut bytes) else { return Ok(()) };
            self.at = match self.at {
                At::StreamType if number == CONTROL => At::Type,
                At::StreamType => At::Opaque,
                At::LengthOf(kind) if kind != DATA && number > self.longest => {
                    return Err(Refusal::TooLong(kind));
                }
                At::LengthOf(_) if number == 0 => At::Type,
                At::LengthOf(kind) => At::Payload { kind, left: number, kept: 0 },
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
    fn read(&mut self, input: &mut Bytes) -> Option<u64> {
        while input.has_remaining() {
            self.bytes[self.count] = input.get_u8();
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

/// Pseudo-header fields of requests (RFC 9114 §4.3.1), plain and in Huffman's code.
const PSEUDO_FIELDS: [(&[u8], &[u8]); 4] = [
    (b":authority", b"\xb8\x3b\x53\x39\xec\x32\x7d\x7f"),
    (b":path", b"\xb9\x58\xd3\x3f"),
    (b":method", b"\xb9\x49\x53\x39\xe4"),
    (b":scheme", b"\xb8\x82\x4e\x5a\x4b"),
];
/// Place of pseudo-header fields that no request has.
const OTHER: usize = PSEUDO_FIELDS.len();

/// True if a pseudo-header field of a request comes twice, or behind other fields.
fn pseudo_fields_are_wrong(section: &[u8]) -> bool {
    /// `None` if the section breaks the rules of QPACK (RFC 9204 §4.5), which `h3` tells the peer.
    fn check(mut rest: &[u8]) -> Option<bool> {
        let section = &mut rest;
        let _ = (integer(section, 8)?, integer(section, 7)?);
        let mut had = [false; OTHER + 1];
        had[OTHER] = true;
        let mut others = false;
        while let Some(first) = section.first() {
            // The other forms refer to a dynamic table, which servers of this crate do not have.
            let name = match first {
                0xc0.. => in_static_table(integer(section, 6)?),
                0x50..=0x5f | 0x70..=0x7f => {
                    let name = in_static_table(integer(section, 4)?);
                    string(section, 7)?;
                    name
                }
                0x20..=0x3f => {
                    let is_huffman = first & 0x08 != 0;
                    let name = literal(string(section, 3)?, is_huffman);
                    string(section, 7)?;
                    name
                }
                _ => return None,
            };
            match name {
                None => others = true,
                Some(name) if others || std::mem::replace(&mut had[name], true) => return Some(true),
                Some(_) => {}
            }
        }
        Some(false)
    }
    check(section) == Some(true)
}

/// Pseudo-header fields of the static table (RFC 9204, appendix A).
fn in_static_table(index: u64) -> Option<usize> {
    match index {
        0 | 1 => Some(index as usize),
        15..=21 => Some(2),
        22 | 23 => Some(3),
        24..=28 | 63..=71 => Some(OTHER),
        _ => None,
    }
}

fn literal(name: &[u8], is_huffman: bool) -> Option<usize> {
    // A colon has seven bits in Huffman's code.
    let is_pseudo =
        name.first().is_some_and(|first| if is_huffman { first >> 1 == 0x5c } else { *first == b':' });
    let known = |(plain, huffman): &(&[u8], &[u8])| name == if is_huffman { *huffman } else { *plain };
    is_pseudo.then(|| PSEUDO_FIELDS.iter().position(known).unwrap_or(OTHER))
}

/// RFC 7541 §5.1, in as many bytes as `h3` reads.
fn integer(section: &mut &[u8], prefix_bits: u32) -> Option<u64> {
    let most = (1 << prefix_bits) - 1;
    let mut value = u64::from(*section.split_off_first()?) & most;
    if value < most {
        return Some(value);
    }
    for shift in (0..63).step_by(7) {
        let byte = u64::from(*section.split_off_first()?);
        value += (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn string<'a>(section: &mut &'a [u8], prefix_bits: u32) -> Option<&'a [u8]> {
    let length = usize::try_from(integer(section, prefix_bits)?).ok()?;
    section.split_off(..length)
}

#[cfg(test)]
mod tests {
    use super::Refusal::{Malformed, TooLong};
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

    /// The verdict, equal however the stream is cut.
    fn verdict(limit: impl Fn() -> FrameLimit, stream: &[u8]) -> Result<(), Refusal> {
        let stream = Bytes::copy_from_slice(stream);
        let whole = limit().read(&stream);
        for cut in 1..=9 {
            let mut limit = limit();
            assert_eq!(
                stream.chunks(cut).try_for_each(|piece| limit.read(&stream.slice_ref(piece))),
                whole,
                "cut at {cut}"
            );
        }
        whole
    }

    #[test]
    fn a_frame_is_refused_by_its_length_unless_it_is_data() {
        let request = || FrameLimit::of_message(100);
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
        assert_eq!(verdict(|| FrameLimit::of_message((1 << 62) - 2), &longest), Err(TooLong(0x01)));
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
        let mut limit = FrameLimit::of_message(100);
        for (bytes, expected) in [
            (frame(0x01, 2, 100, 60), 60),
            (vec![0xFF; 39], 99),
            (vec![0xFF; 1], 0),
            (frame(0x00, 4, 5000, 4000), 0),
            (vec![0xFF; 1000], 0),
            (frame(0x21, 2, 100, 0), 0),
            (vec![0xFF; 7], 7),
        ] {
            assert_eq!(limit.read(&bytes.into()), Ok(()));
            assert_eq!(limit.unfinished(), expected);
        }
    }

    /// Field lines behind the prefix of their section (RFC 9204 §4.5), in a frame of HEADERS.
    #[test]
    fn a_pseudo_header_field_twice_or_behind_others_makes_a_request_malformed() {
        let get = [0xd1, 0xd7, 0x50, 1, b'h', 0xc1];
        let agent = [0x5f, 0x50, 1, b'a'];
        let literal = |name: &[u8], huffman: u8| {
            let length = name.len() as u8;
            let head =
                if length < 7 { vec![0x20 | huffman | length] } else { vec![0x27 | huffman, length - 7] };
            [&head[..], name, &[1, b'x']].concat()
        };
        let mut cases = vec![
            (get.to_vec(), Ok(())),
            ([&get[..], &agent, &agent].concat(), Ok(())),
            ([&agent[..], &get].concat(), Err(Malformed)),
            ([&get[..], &[0xd9]].concat(), Err(Malformed)),
            ([&get[..], &literal(b":protocol", 0)].concat(), Err(Malformed)),
            // An index with superfluous bytes.
            ([&get[..], &[0x51, 0x81, 0x00, b'/']].concat(), Err(Malformed)),
            // A dynamic table, and a section that ends too early: `h3` says it.
            ([&get[..], &[0x80]].concat(), Ok(())),
            ([&get[..], &[0x51, 9]].concat(), Ok(())),
        ];
        for (plain, huffman) in PSEUDO_FIELDS {
            for line in [literal(plain, 0), literal(huffman, 8)] {
                cases.push((line.clone(), Ok(())));
                cases.push(([&get[..], &line].concat(), Err(Malformed)));
            }
        }
        for (lines, expected) in cases {
            let section = [&[0, 0], &lines[..]].concat();
            let message = [vec![0x21, 1, 0xff, 0x01, section.len() as u8], section].concat();
            assert_eq!(verdict(|| FrameLimit::of_request(100), &message), expected, "{lines:x?}");
            assert_eq!(verdict(|| FrameLimit::of_message(100), &message), Ok(()), "{lines:x?}");
        }
    }
}
