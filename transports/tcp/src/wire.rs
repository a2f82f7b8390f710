//! What a message looks like on the stream.
//!
//! ```text
//! position = 0 mod 64                                              = 0 mod 64
//! | header 32 | opening 32, if bit 62 | lead 0..63 | payload | zeros to 64 |
//! ```
//!
//! The header is [`Frame::encode`], whose length field has 56 bits for the length; the byte above
//! tells the lead (six bits) and whether an opening follows (bit 6). **Why a lead:** the kernel
//! copies twice as fast when the payload's address and its position in the stream agree mod 64.
//! The sender pads so that they do for *its* memory; the receiver's usually lies alike, because
//! large allocations begin at the same offset of a page everywhere.
//!
//! What arrives is not believed: a length is compared with what is expected and never used to
//! allocate, and the bits that have no meaning must be zero.

use std::io;

use unisono_contract::{
    Frame, LinkCause,
    frame::{Opening, WIRE},
};

/// Messages begin at multiples of this in the stream, and memory agrees with positions mod this.
pub(crate) const ALIGN: usize = 64;
/// The longest header with its opening and lead.
pub(crate) const LONGEST: usize = 2 * WIRE + ALIGN - 1;

const LENGTH: u64 = (1 << 56) - 1;
const OPENING: u8 = 1 << 6;
const LEAD: u8 = ALIGN as u8 - 1;
/// The byte above the length, in little endian.
const FLAGS: usize = 7;

/// Bytes of the header of `frame`, without lead.
#[inline]
pub(crate) fn header_bytes(frame: &Frame) -> usize {
    if frame.opening.is_some() {
        2 * WIRE
    } else {
        WIRE
    }
}

/// Bytes to the next multiple of [`ALIGN`].
#[inline]
pub(crate) fn pad(bytes: u64) -> usize {
    (bytes.wrapping_neg() % ALIGN as u64) as usize
}

/// Lead bytes that make a payload at `address`, whose header ends at `position`, agree.
#[inline]
pub(crate) fn lead(address: usize, position: u64) -> usize {
    ((address as u64).wrapping_sub(position) % ALIGN as u64) as usize
}

/// Writes the header into the front of `room` and zeros the lead behind it; gives the bytes.
pub(crate) fn encode(frame: &Frame, lead: usize, room: &mut [u8]) -> usize {
    debug_assert!(frame.length <= LENGTH && lead < ALIGN);
    let (mut header, opening) = frame.encode();
    header[FLAGS] = lead as u8 | if opening.is_some() { OPENING } else { 0 };
    room[..WIRE].copy_from_slice(&header);
    let mut end = WIRE;
    if let Some(opening) = opening {
        room[end..end + WIRE].copy_from_slice(&opening);
        end += WIRE;
    }
    room[end..end + lead].fill(0);
    end + lead
}

/// A header that came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) frame: Frame,
    /// Bytes of the header, opening included.
    pub(crate) bytes: usize,
    /// Bytes between header and payload.
    pub(crate) lead: usize,
}

impl Header {
    /// Zeros that follow the payload.
    pub(crate) fn tail(&self) -> usize {
        pad(self.frame.length + (self.bytes + self.lead) as u64)
    }
}

/// Reads a header from the front of `bytes`; `None`: more bytes are needed.
pub(crate) fn decode(bytes: &[u8]) -> Result<Option<Header>, LinkCause> {
    let Some((header, rest)) = bytes.split_first_chunk::<WIRE>() else {
        return Ok(None);
    };
    let mut header = *header;
    let flags = std::mem::take(&mut header[FLAGS]);
    if flags & !(OPENING | LEAD) != 0 {
        return Err(corrupt("a header with unknown bits"));
    }
    let lead = usize::from(flags & LEAD);
    if flags & OPENING == 0 {
        return Ok(Some(Header {
            frame: Frame::decode(&header, None),
            bytes: WIRE,
            lead,
        }));
    }
    let Some((opening, _)) = rest.split_first_chunk::<WIRE>() else {
        return Ok(None);
    };
    let frame = Frame::decode(&header, Some(opening));
    if frame.opening.as_ref().map(Opening::encode) != Some(*opening) {
        return Err(corrupt("an opening with unknown bits"));
    }
    Ok(Some(Header {
        frame,
        bytes: 2 * WIRE,
        lead,
    }))
}

#[cold]
fn corrupt(what: &'static str) -> LinkCause {
    io::Error::new(io::ErrorKind::InvalidData, what).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> [Frame; 2] {
        let plain = Frame {
            length: LENGTH,
            sequence: 3,
            message: 4,
            group: 5,
            epoch: 6,
            check: 7,
            opening: None,
        };
        let opened = Frame {
            opening: Some(Opening {
                collective: 1,
                dtype: 2,
                op: 3,
                root: 4,
                count: 5,
                plan: u64::MAX,
            }),
            ..plain
        };
        [plain, opened]
    }

    #[test]
    fn a_header_survives_the_wire_with_any_lead() {
        for frame in frames() {
            for lead in 0..ALIGN {
                let mut room = [0xee; LONGEST];
                let end = encode(&frame, lead, &mut room);
                let header = decode(&room).unwrap().unwrap();
                assert_eq!((header.frame, header.lead), (frame, lead));
                assert_eq!(header.bytes + header.lead, end);
                assert_eq!(header.bytes, header_bytes(&frame));
                assert!(room[header.bytes..end].iter().all(|byte| *byte == 0));
                for short in 0..header.bytes {
                    assert_eq!(decode(&room[..short]).unwrap(), None, "{short} bytes");
                }
            }
        }
    }

    #[test]
    fn the_payload_agrees_with_its_position_and_the_message_ends_aligned() {
        for address in 1000..1064 {
            let lead = lead(address, 64 + 32);
            assert_eq!((64 + 32 + lead) % ALIGN, address % ALIGN);
        }
        assert_eq!((pad(0), pad(1), pad(63), pad(64)), (0, 63, 1, 0));
    }

    #[test]
    fn bits_without_meaning_are_refused() {
        let mut room = [0; LONGEST];
        encode(&frames()[1], 9, &mut room);
        let mut flags = room;
        flags[FLAGS] |= 0x80;
        assert!(decode(&flags).is_err());
        let mut reserved = room;
        reserved[2 * WIRE - 1] = 1;
        assert!(decode(&reserved).is_err());
    }
}
