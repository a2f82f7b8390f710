//! Lease cells: who may still come in, and who is inside.
//!
//! A cell is one atomic word: the generation of its current lease above, the number of users inside
//! below. Cells are leaked once and recycled, so a piece can hold `&'static Cell` and a lease costs
//! no allocation once the free lists are warm. Recycling is safe because each lease has its own
//! generation; a cell that has used up its generations is retired.
//!
//! ```text
//! enter   generation is mine?  users + 1      else Revoked
//! leave                        users - 1
//! end     generation + 1, then wait for users = 0
//! ```
//!
//! **Why it is enough.** All three are read-modify-writes of one word, so they are totally ordered.
//! An `enter` before the `end` is counted, and `end` waits for its `leave`; an `enter` after the
//! `end` sees the new generation and fails.
//! * `leave` is `Release` and the waiting load of `end` is `Acquire`: everything done inside
//!   happens before `end` returns. Later read-modify-writes continue the release sequence, so the
//!   load that sees zero users synchronizes with every leave, not only the last.
//! * `enter` is `Acquire`, so no access moves above it. That the bytes themselves are up to date
//!   comes from how the piece travelled to this thread.

use std::{
    cell::RefCell,
    hint, mem,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// One more lease generation.
const GENERATION: u64 = 1 << 32;
/// The bits that count users.
const USERS: u64 = GENERATION - 1;
/// A cell that reaches this generation is not used again.
const LAST: u32 = u32::MAX;
/// Free cells a thread keeps to itself.
const KEPT: usize = 32;
/// Busy looks at a cell before `end` starts to yield.
const SPINS: u32 = 128;

/// The state of one lease at a time.
#[repr(align(64))] // Two leases share no cache line.
pub(super) struct Cell {
    state: AtomicU64,
}

impl Cell {
    /// Lets the caller in, unless the lease of `generation` has ended.
    #[inline]
    pub(super) fn enter(&'static self, generation: u32) -> Option<Inside> {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            // A full count would carry into the generation: refuse, however unlikely.
            if (state >> 32) as u32 != generation || state & USERS == USERS {
                return None;
            }
            match self.state.compare_exchange_weak(
                state,
                state + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Inside(self)),
                Err(now) => state = now,
            }
        }
    }

    /// Whether the lease of `generation` still runs; the answer may be old when it arrives.
    pub(super) fn is_open(&self, generation: u32) -> bool {
        (self.state.load(Ordering::Acquire) >> 32) as u32 == generation
    }
}

/// The cell of pieces without memory. Its generation is none that a piece has, so that nobody ever comes in: neither
/// `take` nor `give` knows it.
pub(super) static PHANTOM: Cell = Cell {
    state: AtomicU64::new((LAST as u64) << 32),
};

/// Proof that the caller is inside a lease; leaves on drop, so also on panic.
pub(super) struct Inside(&'static Cell);

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        self.0.state.fetch_sub(1, Ordering::Release);
    }
}

/// A running lease; ends on drop.
pub(super) struct Term {
    pub(super) cell: &'static Cell,
    pub(super) generation: u32,
}

impl Term {
    /// Starts a lease in a free cell.
    pub(super) fn start() -> Self {
        let cell = take();
        // Nobody moves the generation of a free cell, so reading it alone is enough.
        let generation = (cell.state.load(Ordering::Relaxed) >> 32) as u32;
        Self { cell, generation }
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        // From here on nobody comes in; who is in is waited for.
        let mut state = self.cell.state.fetch_add(GENERATION, Ordering::AcqRel);
        let mut looks = 0;
        while state & USERS != 0 {
            if looks < SPINS {
                looks += 1;
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
            state = self.cell.state.load(Ordering::Acquire);
        }
        if self.generation + 1 != LAST {
            give(self.cell);
        }
    }
}

/// Free cells of all threads.
static FREE: Mutex<Vec<&'static Cell>> = Mutex::new(Vec::new());

/// Free cells of one thread; what is left goes to everyone when the thread ends.
struct Kept(Vec<&'static Cell>);

impl Drop for Kept {
    fn drop(&mut self) {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.append(&mut mem::take(&mut self.0));
    }
}

thread_local! {
    static KEPT_HERE: RefCell<Kept> = RefCell::new(Kept(Vec::with_capacity(KEPT)));
}

fn take() -> &'static Cell {
    // `try_with` fails only while the thread is being torn down: then the common list serves.
    KEPT_HERE
        .try_with(|kept| kept.borrow_mut().0.pop())
        .ok()
        .flatten()
        .or_else(|| FREE.lock().unwrap_or_else(PoisonError::into_inner).pop())
        .unwrap_or_else(|| {
            Box::leak(Box::new(Cell {
                state: AtomicU64::new(0),
            }))
        })
}

fn give(cell: &'static Cell) {
    let kept = KEPT_HERE.try_with(|kept| {
        let kept = &mut kept.borrow_mut().0;
        let room = kept.len() < KEPT;
        if room {
            kept.push(cell);
        }
        room
    });
    if !kept.unwrap_or(false) {
        FREE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycled_cell_does_not_admit_the_previous_lease() {
        let first = Term::start();
        let (cell, generation) = (first.cell, first.generation);
        assert!(cell.enter(generation).is_some());
        drop(first);
        let second = Term::start();
        assert!(std::ptr::eq(second.cell, cell), "the free list is a stack");
        assert!(cell.enter(generation).is_none());
        assert!(cell.enter(second.generation).is_some());
    }

    #[test]
    fn a_cell_without_generations_left_is_retired() {
        let cell: &'static Cell = Box::leak(Box::new(Cell {
            state: AtomicU64::new(u64::from(LAST - 1) << 32),
        }));
        drop(Term {
            cell,
            generation: LAST - 1,
        });
        let next = Term::start();
        assert!(!std::ptr::eq(next.cell, cell));
    }
}
