//! [`Piece`]: a range of lent bytes.

use std::{
    fmt,
    ops::Range,
    ptr::{self, NonNull},
    slice,
};

use super::{
    cell::{Cell, Inside, PHANTOM, Term},
    region::RegionKey,
};

/// Why a piece could not be accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Revoked {
    /// The lease has ended: the memory belongs to its owner again.
    #[error("the lease of this memory has ended")]
    Ended,
    /// A write to memory that was lent for reading.
    #[error("this memory was lent for reading only")]
    ReadOnly,
    /// The pieces of one access overlap in part, with one of them written.
    #[error("the pieces of one access overlap")]
    Overlap,
    /// An access to a piece that has no memory.
    #[error("this memory is phantom: it has a length and no bytes")]
    Phantom,
}

/// A range of lent bytes: 32 bytes, `Copy`, harmless to keep.
///
/// Made by [`lend`](super::lend), [`lend_shared`](super::lend_shared), [`Lease`](super::Lease) and
/// [`Region`](super::Region), or without memory by [`PhantomSpace`](super::PhantomSpace); cut with [`slice`](Self::slice). See the
/// [module](super) for what protects it.
#[derive(Clone, Copy)]
pub struct Piece {
    /// In a phantom piece an address without provenance.
    start: NonNull<u8>,
    len: usize,
    /// `None` only in [`Piece::EMPTY`]: no bytes, so nothing to protect. [`PHANTOM`], which lets nobody in: no memory.
    cell: Option<&'static Cell>,
    generation: u32,
    /// Region key above, lowest bit: read-only.
    tag: u32,
}

// SAFETY: a piece is an address with the right to ask for access. The cell is atomic, and the bytes
// are plain (`Pod`) and reached only while their lease runs; that accesses do not conflict is the
// module's stated invariant on whichever thread they happen.
unsafe impl Send for Piece {}
// SAFETY: as above; `&Piece` gives nothing that a copy would not.
unsafe impl Sync for Piece {}

impl Piece {
    /// No bytes, from nobody; always accessible.
    pub const EMPTY: Self = Self {
        start: NonNull::dangling(),
        len: 0,
        cell: None,
        generation: 0,
        tag: 0,
    };

    /// The piece of `len` bytes at `start` under `term`.
    ///
    /// # Safety
    /// Until `term` is dropped the bytes are valid for reads, initialized and not moved, and for
    /// writes too unless `read_only`.
    pub(super) unsafe fn new(
        start: NonNull<u8>,
        len: usize,
        term: &Term,
        key: Option<RegionKey>,
        read_only: bool,
    ) -> Self {
        Self {
            start,
            len,
            cell: Some(term.cell),
            generation: term.generation,
            tag: key.map_or(0, |key| key.0) << 1 | u32::from(read_only),
        }
    }

    /// The piece of `len` bytes at `addr` that are not there.
    pub(super) fn phantom(addr: usize, len: usize) -> Self {
        Self {
            start: NonNull::new(ptr::without_provenance_mut(addr)).unwrap_or(NonNull::dangling()),
            len,
            cell: Some(&PHANTOM),
            generation: 0,
            tag: 0,
        }
    }

    /// Bytes in this piece.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes `range` of this piece, under the same lease.
    ///
    /// # Panics
    /// If `range` is not within `0..len()`.
    #[inline]
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "bytes {range:?} of a piece of {}",
            self.len
        );
        // Phantom memory is no allocation to stay inside of, so this must not be `add`.
        let start = self.start.as_ptr().wrapping_add(range.start);
        // SAFETY: the sum is at most `start + len` (asserted above), the end of the bytes this piece names. Neither an
        // allocation nor a phantom range reaches around the end of the address space, so it is not null.
        let start = unsafe { NonNull::new_unchecked(start) };
        Self {
            start,
            len: range.end - range.start,
            ..*self
        }
    }

    /// The address of the first byte: for adjacency and alignment only.
    #[inline]
    pub fn addr(&self) -> usize {
        self.start.as_ptr().addr()
    }

    /// The region that owns these bytes, if one does.
    #[inline]
    pub fn region(&self) -> Option<RegionKey> {
        let key = self.tag >> 1;
        (key != 0).then_some(RegionKey(key))
    }

    /// Whether this memory may only be read.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.tag & 1 != 0
    }

    /// Whether these are only addresses and a length, without memory.
    #[inline]
    pub fn is_phantom(&self) -> bool {
        self.cell.is_some_and(|cell| ptr::eq(cell, &PHANTOM))
    }

    /// Whether the lease still runs. It may end right after: a hint, for telling whose memory it
    /// was that went away. A phantom piece never had any.
    pub fn is_live(&self) -> bool {
        self.cell.is_none_or(|cell| cell.is_open(self.generation))
    }

    /// Runs `f` on the bytes.
    ///
    /// # Errors
    /// [`Revoked::Ended`] when the lease has ended, [`Revoked::Phantom`] when there is no memory.
    #[inline]
    pub fn read<R>(&self, f: impl FnOnce(&[u8]) -> R) -> Result<R, Revoked> {
        let inside = self.enter()?;
        // SAFETY: `inside` is held across `f`.
        let bytes = unsafe { self.bytes() };
        let result = f(bytes);
        drop(inside);
        Ok(result)
    }

    /// Runs `f` on the bytes, which it may change.
    ///
    /// # Errors
    /// [`Revoked::Ended`] when the lease has ended, [`Revoked::ReadOnly`] when the memory was lent
    /// for reading, [`Revoked::Phantom`] when there is none.
    #[inline]
    pub fn write<R>(&self, f: impl FnOnce(&mut [u8]) -> R) -> Result<R, Revoked> {
        let inside = self.enter_to_write()?;
        // SAFETY: `inside` is held across `f`, and writing was allowed.
        let bytes = unsafe { self.bytes_mut() };
        let result = f(bytes);
        drop(inside);
        Ok(result)
    }

    /// Enters the lease; `None` inside means there is nothing to leave.
    #[inline]
    pub(super) fn enter(&self) -> Result<Option<Inside>, Revoked> {
        match self.cell {
            None => Ok(None),
            Some(cell) => match cell.enter(self.generation) {
                Some(inside) => Ok(Some(inside)),
                None => Err(self.refusal()),
            },
        }
    }

    /// Why nobody comes in.
    #[cold]
    fn refusal(&self) -> Revoked {
        if self.is_phantom() {
            Revoked::Phantom
        } else {
            Revoked::Ended
        }
    }

    /// Enters the lease if its memory may be written.
    #[inline]
    pub(super) fn enter_to_write(&self) -> Result<Option<Inside>, Revoked> {
        if self.is_read_only() {
            return Err(Revoked::ReadOnly);
        }
        self.enter()
    }

    /// Whether being inside `other`'s lease is being inside this one's.
    #[inline]
    pub(super) fn same_lease(&self, other: &Self) -> bool {
        match (self.cell, other.cell) {
            (None, _) => true,
            (Some(mine), Some(theirs)) => {
                ptr::eq(mine, theirs) && self.generation == other.generation
            }
            (Some(_), None) => false,
        }
    }

    /// Whether both name exactly the same bytes.
    #[inline]
    pub(super) fn same_bytes(&self, other: &Self) -> bool {
        self.start == other.start && self.len == other.len
    }

    /// Whether the pieces have a byte in common.
    #[inline]
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.len > 0
            && other.len > 0
            && self.addr() < other.addr() + other.len
            && other.addr() < self.addr() + self.len
    }

    /// The first byte.
    #[inline]
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes, for reading.
    ///
    /// # Safety
    /// The caller is inside the lease for as long as the slice is used, and nobody writes
    /// meanwhile.
    #[inline]
    pub(super) unsafe fn bytes<'a>(&self) -> &'a [u8] {
        // SAFETY: inside the lease the bytes are valid and initialized; the rest is the caller's.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, for writing.
    ///
    /// # Safety
    /// The caller is inside the lease for as long as the slice is used, the piece is not read-only,
    /// and nobody else reads or writes meanwhile.
    #[inline]
    #[allow(clippy::mut_from_ref)] // Unsafe, and the module's invariant is about exactly this.
    pub(super) unsafe fn bytes_mut<'a>(&self) -> &'a mut [u8] {
        // SAFETY: inside the lease the bytes are valid and initialized; the rest is the caller's.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Default for Piece {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Piece({:#x}, {} bytes", self.addr(), self.len)?;
        if let Some(key) = self.region() {
            write!(f, ", region {}", key.0)?;
        }
        if self.is_read_only() {
            write!(f, ", read-only")?;
        }
        if self.is_phantom() {
            write!(f, ", phantom")?;
        }
        write!(f, ")")
    }
}
