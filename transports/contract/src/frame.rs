//! What a message says about itself.
//!
//! Every message has a [`Frame`]: how long it is and which message of which operation of which
//! group. The first message of an operation on each FIFO carries an [`Opening`] too: what the
//! operation *is*. The receiver states the frame it expects; the transport compares the two before
//! it touches user memory, so ranks that call different things get an error that names the
//! difference, not a hang or garbage.
//!
//! A frame is a typed argument of a post, not the first bytes of the payload: each transport moves
//! it its own way. [`Frame::encode`] is the form for those that move bytes.
//!
//! ```
//! use unisono_contract::Frame;
//!
//! let mine = Frame { length: 8, ..Frame::default() };
//! let theirs = Frame { length: 16, ..mine };
//! assert_eq!(mine.compare(&theirs).unwrap_err().to_string(), "length: 8 here, 16 there");
//! ```

use std::fmt;

/// What an operation is; equal on all ranks. Rides on message 0 of each FIFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Opening {
    /// Which collective, as a number.
    pub collective: u8,
    /// Which element type, as a number.
    pub dtype: u8,
    /// Which operator, as a number.
    pub op: u16,
    /// The root, or 0 where there is none.
    pub root: u32,
    /// Elements.
    pub count: u64,
    /// Hash of algorithm, parameters, segments, channels and world size.
    pub plan: u64,
}

/// Size of an encoded frame, and of an encoded opening.
pub const WIRE: usize = 32;

impl Opening {
    /// The hash that later frames of the operation carry as [`Frame::check`]. Part of the wire
    /// format: it depends on nothing but the fields.
    pub fn check(&self) -> u32 {
        let small = u64::from(self.collective)
            | u64::from(self.dtype) << 8
            | u64::from(self.op) << 16
            | u64::from(self.root) << 32;
        let mut hash = mix(small);
        hash = mix(hash ^ self.count);
        hash = mix(hash ^ self.plan);
        (hash ^ hash >> 32) as u32
    }

    /// The 32 bytes on the wire, little endian; the last eight are reserved and zero.
    pub fn encode(&self) -> [u8; WIRE] {
        let mut wire = [0; WIRE];
        wire[0] = self.collective;
        wire[1] = self.dtype;
        wire[2..4].copy_from_slice(&self.op.to_le_bytes());
        wire[4..8].copy_from_slice(&self.root.to_le_bytes());
        wire[8..16].copy_from_slice(&self.count.to_le_bytes());
        wire[16..24].copy_from_slice(&self.plan.to_le_bytes());
        wire
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub fn decode(wire: &[u8; WIRE]) -> Self {
        Self {
            collective: wire[0],
            dtype: wire[1],
            op: u16::from_le_bytes([wire[2], wire[3]]),
            root: u32_at(wire, 4),
            count: u64_at(wire, 8),
            plan: u64_at(wire, 16),
        }
    }
}

/// What one message says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Frame {
    /// Payload bytes, below 2^56.
    pub length: u64,
    /// Which operation of the group.
    pub sequence: u64,
    /// Which message of the operation on this FIFO.
    pub message: u32,
    /// Which group; 0 is the world.
    pub group: u32,
    /// Which life of the group.
    pub epoch: u32,
    /// [`Opening::check`] of the operation.
    pub check: u32,
    /// What the operation is, on message 0.
    pub opening: Option<Opening>,
}

impl Frame {
    /// Compares what is expected here (`self`) with what a peer sent.
    ///
    /// Openings first, when both have one: "count differs" explains more than "length differs",
    /// which follows from it.
    ///
    /// # Errors
    /// [`Mismatch`] naming the first field that differs.
    #[inline]
    pub fn compare(&self, theirs: &Self) -> Result<(), Mismatch> {
        if self == theirs {
            return Ok(());
        }
        self.explain(theirs)
    }

    #[cold]
    fn explain(&self, theirs: &Self) -> Result<(), Mismatch> {
        if let (Some(mine), Some(theirs)) = (&self.opening, &theirs.opening) {
            let (m, t) = (mine, theirs);
            same(Field::Collective, m.collective.into(), t.collective.into())?;
            same(Field::Dtype, m.dtype.into(), t.dtype.into())?;
            same(Field::Op, m.op.into(), t.op.into())?;
            same(Field::Root, m.root.into(), t.root.into())?;
            same(Field::Count, m.count, t.count)?;
            same(Field::Plan, m.plan, t.plan)?;
        }
        same(Field::Sequence, self.sequence, theirs.sequence)?;
        same(Field::Message, self.message.into(), theirs.message.into())?;
        same(Field::Length, self.length, theirs.length)?;
        same(Field::Group, self.group.into(), theirs.group.into())?;
        same(Field::Epoch, self.epoch.into(), theirs.epoch.into())?;
        // An opening on one side only: the check stands for it.
        same(Field::Check, self.check.into(), theirs.check.into())
    }

    /// The bytes on the wire, little endian: the frame, and the opening if there is one.
    pub fn encode(&self) -> ([u8; WIRE], Option<[u8; WIRE]>) {
        let mut wire = [0; WIRE];
        wire[0..8].copy_from_slice(&self.length.to_le_bytes());
        wire[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        wire[16..20].copy_from_slice(&self.message.to_le_bytes());
        wire[20..24].copy_from_slice(&self.group.to_le_bytes());
        wire[24..28].copy_from_slice(&self.epoch.to_le_bytes());
        wire[28..32].copy_from_slice(&self.check.to_le_bytes());
        (wire, self.opening.as_ref().map(Opening::encode))
    }

    /// Reads what [`encode`](Self::encode) wrote. Whether an opening follows is for the transport
    /// to tell; by rule it follows exactly message 0.
    pub fn decode(wire: &[u8; WIRE], opening: Option<&[u8; WIRE]>) -> Self {
        Self {
            length: u64_at(wire, 0),
            sequence: u64_at(wire, 8),
            message: u32_at(wire, 16),
            group: u32_at(wire, 20),
            epoch: u32_at(wire, 24),
            check: u32_at(wire, 28),
            opening: opening.map(Opening::decode),
        }
    }
}

/// A field of [`Frame`] or [`Opening`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// [`Opening::collective`].
    Collective,
    /// [`Opening::dtype`].
    Dtype,
    /// [`Opening::op`].
    Op,
    /// [`Opening::root`].
    Root,
    /// [`Opening::count`].
    Count,
    /// [`Opening::plan`].
    Plan,
    /// [`Frame::sequence`].
    Sequence,
    /// [`Frame::message`].
    Message,
    /// [`Frame::length`].
    Length,
    /// [`Frame::group`].
    Group,
    /// [`Frame::epoch`].
    Epoch,
    /// [`Frame::check`].
    Check,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Collective => "collective",
            Self::Dtype => "dtype",
            Self::Op => "op",
            Self::Root => "root",
            Self::Count => "count",
            Self::Plan => "plan",
            Self::Sequence => "sequence",
            Self::Message => "message",
            Self::Length => "length",
            Self::Group => "group",
            Self::Epoch => "epoch",
            Self::Check => "check",
        })
    }
}

/// Two ranks disagree about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{field}: {mine} here, {theirs} there")]
pub struct Mismatch {
    /// The first field that differs.
    pub field: Field,
    /// Its value at the receiver.
    pub mine: u64,
    /// Its value in the frame that came.
    pub theirs: u64,
}

fn same(field: Field, mine: u64, theirs: u64) -> Result<(), Mismatch> {
    if mine == theirs {
        Ok(())
    } else {
        Err(Mismatch {
            field,
            mine,
            theirs,
        })
    }
}

/// One round of a 64-bit finalizer: every input bit reaches every output bit.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn u32_at(wire: &[u8; WIRE], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&wire[at..at + 4]);
    u32::from_le_bytes(bytes)
}

fn u64_at(wire: &[u8; WIRE], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&wire[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Frame {
        let opening = Opening {
            collective: 3,
            dtype: 9,
            op: 2,
            root: 7,
            count: 1 << 40,
            plan: 0x0123_4567_89ab_cdef,
        };
        Frame {
            length: 4096,
            sequence: 17,
            message: 0,
            group: 1,
            epoch: 2,
            check: opening.check(),
            opening: Some(opening),
        }
    }

    #[test]
    fn a_frame_survives_the_wire() {
        let frame = sample();
        let (wire, opening) = frame.encode();
        assert_eq!(Frame::decode(&wire, opening.as_ref()), frame);
        let later = Frame {
            message: 5,
            opening: None,
            ..frame
        };
        let (wire, opening) = later.encode();
        assert_eq!(opening, None);
        assert_eq!(Frame::decode(&wire, None), later);
    }

    #[test]
    fn the_layout_is_little_endian_in_the_stated_order() {
        let (wire, opening) = sample().encode();
        assert_eq!(&wire[..10], [0, 16, 0, 0, 0, 0, 0, 0, 17, 0]);
        assert_eq!(&wire[16..28], [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        let opening = opening.unwrap();
        assert_eq!(&opening[..8], [3, 9, 2, 0, 7, 0, 0, 0]);
        assert_eq!(opening[13], 1);
        assert_eq!(&opening[24..], [0; 8]);
    }

    #[test]
    fn the_check_is_pinned_and_sees_every_field() {
        let opening = Opening::default();
        assert_eq!(opening.check(), 0x1b7e_cb2d);
        let changed = [
            Opening {
                collective: 1,
                ..opening
            },
            Opening {
                dtype: 1,
                ..opening
            },
            Opening { op: 1, ..opening },
            Opening { root: 1, ..opening },
            Opening {
                count: 1,
                ..opening
            },
            Opening { plan: 1, ..opening },
        ];
        for (index, one) in changed.iter().enumerate() {
            assert_ne!(one.check(), opening.check());
            for other in &changed[..index] {
                assert_ne!(one.check(), other.check());
            }
        }
    }

    #[test]
    fn a_different_count_is_blamed_before_the_length_it_causes() {
        let mine = sample();
        let mut theirs = mine;
        theirs.length = 8;
        theirs.sequence = 18;
        theirs.opening.as_mut().unwrap().count = 2;
        let mismatch = mine.compare(&theirs).unwrap_err();
        assert_eq!(mismatch.field, Field::Count);
        assert_eq!(mismatch.to_string(), "count: 1099511627776 here, 2 there");
    }

    #[test]
    fn without_openings_the_operation_is_blamed_before_the_message() {
        let mine = Frame {
            opening: None,
            message: 3,
            ..sample()
        };
        let theirs = Frame {
            sequence: 18,
            message: 4,
            length: 0,
            ..mine
        };
        assert_eq!(mine.compare(&theirs).unwrap_err().field, Field::Sequence);
        assert_eq!(mine.compare(&mine), Ok(()));
    }
}
