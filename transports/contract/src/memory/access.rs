//! Access to several pieces at once: copies, operands of a reduction, vectored I/O.
//!
//! Each function enters every lease it needs once (neighbours under one lease share the entry) and
//! holds all of them until it returns. Nothing is allocated for up to 16 pieces.

use std::{
    io::{IoSlice, IoSliceMut},
    ptr,
};

use smallvec::SmallVec;

use super::{
    cell::Inside,
    piece::{Piece, Revoked},
};

/// Pieces handled without allocation.
const INLINE: usize = 16;

/// The leases a call is inside of.
#[derive(Default)]
struct Entered {
    held: SmallVec<[Inside; INLINE]>,
    last: Piece,
}

impl Entered {
    #[inline]
    fn enter(&mut self, piece: &Piece) -> Result<(), Revoked> {
        if !piece.same_lease(&self.last) {
            self.held.extend(piece.enter()?);
            self.last = *piece;
        }
        Ok(())
    }

    #[inline]
    fn enter_to_write(&mut self, piece: &Piece) -> Result<(), Revoked> {
        if piece.is_read_only() {
            return Err(Revoked::ReadOnly);
        }
        self.enter(piece)
    }
}

/// What an operand of [`access`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand<'a> {
    /// Exactly the destination's bytes: read them there.
    Target,
    /// Bytes elsewhere.
    Bytes(&'a [u8]),
}

/// Runs `f` on the bytes of `dst` and, in order, on its operands.
///
/// A source that is exactly the destination becomes [`Operand::Target`], because one memory cannot
/// be two slices.
///
/// # Errors
/// [`Revoked::Ended`], [`Revoked::ReadOnly`] (of `dst`), or [`Revoked::Overlap`] when a source
/// overlaps `dst` without being it; `f` is then not called.
pub fn access<R>(
    dst: Piece,
    sources: &[Piece],
    f: impl FnOnce(&mut [u8], &[Operand<'_>]) -> R,
) -> Result<R, Revoked> {
    let mut entered = Entered::default();
    entered.enter_to_write(&dst)?;
    let mut operands: SmallVec<[Operand<'_>; INLINE]> = SmallVec::new();
    for source in sources {
        if source.same_bytes(&dst) {
            operands.push(Operand::Target);
            continue;
        }
        if source.overlaps(&dst) {
            return Err(Revoked::Overlap);
        }
        entered.enter(source)?;
        // SAFETY: inside the lease until `entered` is dropped, after `f`; disjoint from `dst`.
        operands.push(Operand::Bytes(unsafe { source.bytes() }));
    }
    // SAFETY: inside the lease until `entered` is dropped, after `f`; writing is allowed; no
    // operand holds a slice of these bytes.
    let target = unsafe { dst.bytes_mut() };
    let result = f(target, &operands);
    drop(operands);
    drop(entered);
    Ok(result)
}

/// Copies `src` to `dst`, which may overlap.
///
/// # Errors
/// [`Revoked::Ended`] of either, [`Revoked::ReadOnly`] of `dst`.
///
/// # Panics
/// If the lengths differ.
#[inline]
pub fn copy(dst: Piece, src: Piece) -> Result<(), Revoked> {
    assert_eq!(
        dst.len(),
        src.len(),
        "copy between pieces of unequal length"
    );
    let inside = dst.enter_to_write()?;
    let also = if src.same_lease(&dst) {
        None
    } else {
        src.enter()?
    };
    // SAFETY: both are valid for their length while `inside` and `also` are held; `copy` allows
    // overlap and forms no slices.
    unsafe { ptr::copy(src.start(), dst.start(), src.len()) };
    drop((inside, also));
    Ok(())
}

/// Copies one gather list to another, cut as they may be, up to the shorter total; gives the bytes
/// copied.
///
/// # Errors
/// As [`copy`]; bytes before the offending piece may have been copied.
#[inline]
pub fn copy_bytes_across(dst: &[Piece], src: &[Piece]) -> Result<usize, Revoked> {
    // The usual message is one piece on both sides, of one length.
    if let ([dst], [src]) = (dst, src)
        && dst.len() == src.len()
    {
        copy(*dst, *src)?;
        return Ok(src.len());
    }
    copy_window(dst, src, 0, usize::MAX)
}

/// Copies the bytes `from..from + bytes` of the list `src` to the same positions of the list
/// `dst`, up to the shorter end; gives the bytes copied. A message moved in several steps.
///
/// # Errors
/// As [`copy`]; bytes before the offending piece may have been copied.
pub fn copy_window(
    dst: &[Piece],
    src: &[Piece],
    from: usize,
    bytes: usize,
) -> Result<usize, Revoked> {
    let (mut into, mut out) = (Cursor::at(dst, from), Cursor::at(src, from));
    let mut copied = 0;
    while copied < bytes {
        let (Some(there), Some(here)) = (into.rest(), out.rest()) else {
            break;
        };
        let step = there.len().min(here.len()).min(bytes - copied);
        copy(there.slice(0..step), here.slice(0..step))?;
        into.advance(step);
        out.advance(step);
        copied += step;
    }
    Ok(copied)
}

/// A position in a gather list.
struct Cursor<'a> {
    list: &'a [Piece],
    offset: usize,
}

impl<'a> Cursor<'a> {
    fn at(list: &'a [Piece], offset: usize) -> Self {
        Self { list, offset }
    }

    /// What is left of the piece at the position; `None` at the end of the list.
    fn rest(&mut self) -> Option<Piece> {
        while let [first, rest @ ..] = self.list {
            if self.offset < first.len() {
                return Some(first.slice(self.offset..first.len()));
            }
            self.offset -= first.len();
            self.list = rest;
        }
        None
    }

    fn advance(&mut self, bytes: usize) {
        self.offset += bytes;
    }
}

/// Bytes in a gather list.
#[inline]
pub fn total(pieces: &[Piece]) -> usize {
    pieces.iter().map(Piece::len).sum()
}

/// Runs `f` on all pieces as slices for vectored output.
///
/// # Errors
/// [`Revoked::Ended`] when one of the leases has ended; `f` is then not called.
pub fn read_all<R>(
    pieces: &[Piece],
    f: impl FnOnce(&mut [IoSlice<'_>]) -> R,
) -> Result<R, Revoked> {
    let mut entered = Entered::default();
    let mut slices: SmallVec<[IoSlice<'_>; INLINE]> = SmallVec::new();
    for piece in pieces {
        entered.enter(piece)?;
        // SAFETY: inside the lease until `entered` is dropped, after `f`.
        slices.push(IoSlice::new(unsafe { piece.bytes() }));
    }
    let result = f(&mut slices);
    drop(slices);
    drop(entered);
    Ok(result)
}

/// Runs `f` on all pieces as slices for vectored input.
///
/// # Errors
/// [`Revoked::Ended`], [`Revoked::ReadOnly`], or [`Revoked::Overlap`] when two of the pieces
/// overlap; `f` is then not called.
pub fn write_all<R>(
    pieces: &[Piece],
    f: impl FnOnce(&mut [IoSliceMut<'_>]) -> R,
) -> Result<R, Revoked> {
    let mut entered = Entered::default();
    let mut slices: SmallVec<[IoSliceMut<'_>; INLINE]> = SmallVec::new();
    for (index, piece) in pieces.iter().enumerate() {
        if pieces[..index].iter().any(|before| before.overlaps(piece)) {
            return Err(Revoked::Overlap);
        }
        entered.enter_to_write(piece)?;
        // SAFETY: inside the lease until `entered` is dropped, after `f`; writing is allowed; no
        // earlier slice shares a byte.
        slices.push(IoSliceMut::new(unsafe { piece.bytes_mut() }));
    }
    let result = f(&mut slices);
    drop(slices);
    drop(entered);
    Ok(result)
}
