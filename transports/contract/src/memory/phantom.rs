//! Pieces without memory: addresses and lengths only.
//!
//! Whoever studies how data moves, and not what it is, has no need of the bytes: a simulation of 1,024 ranks with 8 GiB
//! each fits in a laptop as long as nobody looks inside. A phantom piece is cut, compared and posted like any other, and
//! no access to it ever succeeds ([`Revoked::Phantom`](super::Revoked::Phantom)).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::{Piece, region::OutOfMemory};

/// Phantom allocations start at multiples of this, and are that far apart at least.
const ALIGN: usize = 16 * 1024;
/// The first phantom address, half of what an `isize` can say: with 64 bits, no operating system puts memory there.
const FIRST: usize = 1 << (usize::BITS - 2);
/// No phantom address is beyond.
const LAST: usize = isize::MAX as usize;
/// The longest phantom piece: 2^46 bytes where addresses have 64 bits.
const LONGEST: usize = FIRST >> (usize::BITS / 4);

/// Addresses for phantom pieces; a clone hands out of the same ones.
///
/// Pieces of one space never overlap. Those of two spaces may have the same addresses, so a world should have one space.
/// Nothing is given back: a space is good for 2^62 bytes, and dropping it costs nothing.
///
/// ```
/// use unisono_contract::memory::{PhantomSpace, Revoked};
///
/// let space = PhantomSpace::new();
/// let table = space.alloc(1 << 46).unwrap();
/// let row = table.slice(1 << 33..1 << 34);
/// assert_eq!(row.addr() - table.addr(), 1 << 33);
/// assert!(row.is_phantom());
/// assert_eq!(row.read(|_| ()), Err(Revoked::Phantom));
/// ```
#[derive(Debug, Clone)]
pub struct PhantomSpace {
    next: Arc<AtomicUsize>,
}

impl PhantomSpace {
    /// A space of which nothing is taken.
    pub fn new() -> Self {
        Self {
            next: Arc::new(AtomicUsize::new(FIRST)),
        }
    }

    /// A phantom piece of `bytes`, the same for the same calls in the same order.
    ///
    /// # Errors
    /// [`OutOfMemory`] beyond 2^46 bytes, and when the space is used up.
    pub fn alloc(&self, bytes: usize) -> Result<Piece, OutOfMemory> {
        let none = OutOfMemory { bytes };
        if bytes > LONGEST {
            return Err(none);
        }
        // Empty pieces have addresses of their own, too.
        let step = bytes.max(1).next_multiple_of(ALIGN);
        self.next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                next.checked_add(step).filter(|end| *end <= LAST)
            })
            .map(|start| Piece::phantom(start, bytes))
            .map_err(|_| none)
    }
}

impl Default for PhantomSpace {
    fn default() -> Self {
        Self::new()
    }
}
