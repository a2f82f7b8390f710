//! What a slot carries: the frame, and either the bytes or the way to them.

use unisono_contract::memory::copy_bytes_across;
use unisono_contract::{Frame, Piece, Revoked};

/// Payloads up to this many bytes travel inside the slot: one copy more, but the
/// sender is done at once and touches none of the receiver's cache lines again.
pub(crate) const INLINE: usize = 256;

/// Entries of a gather list.
pub(crate) const PIECES: usize = 8;

/// The cargo of one slot. The frame and the first bytes share a pair of cache lines
/// with the slot's state, so a small message costs one such transfer.
#[repr(C)]
pub(crate) struct Parcel {
    pub(crate) frame: Frame,
    length: usize,
    bytes: [u8; INLINE],
    offer: Pieces,
}

impl Parcel {
    pub(crate) fn empty() -> Self {
        Self {
            frame: Frame::default(),
            length: 0,
            bytes: [0; INLINE],
            offer: Pieces::default(),
        }
    }

    /// Packs `data`, at most [`INLINE`] bytes, into the parcel.
    pub(crate) fn pack(&mut self, frame: &Frame, data: &[Piece]) -> Result<(), Revoked> {
        self.frame = *frame;
        self.length = 0;
        for piece in data {
            let end = self.length + piece.len();
            let room = &mut self.bytes[self.length..end];
            piece.read(|bytes| room.copy_from_slice(bytes))?;
            self.length = end;
        }
        Ok(())
    }

    /// Copies the packed bytes to `into`.
    pub(crate) fn unpack(&self, into: &[Piece]) -> Result<(), Revoked> {
        let mut bytes = &self.bytes[..self.length];
        for piece in into {
            if bytes.is_empty() {
                break;
            }
            let (now, later) = bytes.split_at(piece.len().min(bytes.len()));
            piece.write(|room| room[..now.len()].copy_from_slice(now))?;
            bytes = later;
        }
        Ok(())
    }

    /// Says where `data` is.
    pub(crate) fn point_to(&mut self, frame: &Frame, data: &[Piece]) {
        self.frame = *frame;
        self.offer.set(data);
    }

    /// Why the memory that the parcel points to cannot be read, if so.
    pub(crate) fn revoked(&self) -> Option<Revoked> {
        self.offer.revoked()
    }

    /// Copies from the memory that the parcel points to.
    pub(crate) fn fetch(&self, into: &[Piece]) -> Result<(), Revoked> {
        copy_bytes_across(into, self.offer.as_slice()).map(|_| ())
    }
}

/// A gather list of at most [`PIECES`] pieces, without allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pieces {
    list: [Piece; PIECES],
    count: usize,
}

impl Default for Pieces {
    fn default() -> Self {
        Self {
            list: [Piece::EMPTY; PIECES],
            count: 0,
        }
    }
}

impl Pieces {
    pub(crate) fn set(&mut self, pieces: &[Piece]) {
        self.list[..pieces.len()].copy_from_slice(pieces);
        self.count = pieces.len();
    }

    /// Why it cannot be read, if so.
    pub(crate) fn revoked(&self) -> Option<Revoked> {
        let pieces = self.as_slice().iter();
        pieces.map(|piece| piece.read(|_| ())).find_map(Result::err)
    }

    pub(crate) fn as_slice(&self) -> &[Piece] {
        &self.list[..self.count]
    }
}
