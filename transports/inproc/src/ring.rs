//! One FIFO between two threads: a ring of slots, each with **one** atomic state.
//!
//! The state says whose the slot is, so there are no shared indices: each end
//! counts for itself, and a small message costs the transfer of the slot's own
//! cache lines and nothing else. A slot carries either a *message* (its bytes are
//! in the slot, the sender is done with it at once) or an *offer* (the slot tells
//! where the sender's memory is; the receiver copies from there).
//!
//! ```text
//!            sender: put                    receiver: take
//!   EMPTY ------------------> MESSAGE ----------------------------> EMPTY
//!     |      sender: put                receiver: claim
//!     +---------------------> OFFERED ------------------> COPYING --> DONE --> EMPTY
//!                                |                           |     finish  sender
//!               sender: withdraw |                           | dropped unfinished
//!                                v                           v
//!                            WITHDRAWN                    REFUSED
//!                       (the FIFO ends here)        (the FIFO ends here)
//! ```
//!
//! - The sender writes a slot's cargo only in `EMPTY`. The receiver reads it only in
//!   `MESSAGE`, `OFFERED` and `COPYING`, none of which the sender alone can lead back
//!   to `EMPTY`. So an offer's frame can be read, and disagreed with, before the offer
//!   is claimed, even while the sender withdraws it.
//! - `OFFERED` is left by a compare-and-swap on both sides: a copy and a withdrawal
//!   cannot both win. Who loses to a copy waits until it has ended.
//! - `AWAITED` is a flag beside `MESSAGE`: the sender has something to put into this
//!   slot and may go to sleep; the receiver who frees the slot is told to wake it.
//!
//! Waking is not done here: the caller notifies the peer's event after [`Sender::put`],
//! [`Claim::finish`], a freed slot that was awaited, a withdrawal, and an end's closing.
//!
//! This file knows nothing of frames and pieces (`C` is whatever a slot carries), so
//! that loom can explore it alone: see `ring/tests.rs`.

#[cfg(test)]
mod tests;

use crate::sync::{Arc, AtomicBool, AtomicU32, Backoff, Cell, Ordering};

const EMPTY: u32 = 0;
const MESSAGE: u32 = 1;
const OFFERED: u32 = 2;
const COPYING: u32 = 3;
const DONE: u32 = 4;
const REFUSED: u32 = 5;
const WITHDRAWN: u32 = 6;
/// Beside `MESSAGE`: the sender waits for this slot.
const AWAITED: u32 = 1 << 8;

/// Makes a FIFO of `depth` slots (a power of two) and gives its two ends.
pub(crate) fn ring<C>(depth: usize, mut cargo: impl FnMut() -> C) -> (Sender<C>, Receiver<C>) {
    assert!(depth.is_power_of_two(), "depth {depth} is no power of two");
    let slots = (0..depth)
        .map(|_| Slot {
            state: AtomicU32::new(EMPTY),
            cargo: Cell::new(cargo()),
        })
        .collect();
    let ring = Arc::new(Ring {
        slots,
        sender_gone: AtomicBool::new(false),
        receiver_gone: AtomicBool::new(false),
    });
    let sender = Sender {
        ring: Arc::clone(&ring),
        next: 0,
    };
    (sender, Receiver { ring, next: 0 })
}

struct Ring<C> {
    slots: Box<[Slot<C>]>,
    sender_gone: AtomicBool,
    receiver_gone: AtomicBool,
}

/// Two cache lines of alignment: adjacent lines are fetched in pairs, and the
/// neighbour slot belongs to another thread.
#[repr(align(128))]
struct Slot<C> {
    state: AtomicU32,
    cargo: Cell<C>,
}

// SAFETY: `Sender` and `Receiver` are the only ways to a ring, one of each, and the
// state machine above lets only one of them at a time write a slot's cargo, and
// none read it meanwhile. The cargo itself moves from one thread to the other.
unsafe impl<C: Send> Sync for Ring<C> {}
// SAFETY: as above; a ring owns its cargo.
unsafe impl<C: Send> Send for Ring<C> {}

impl<C> Ring<C> {
    #[inline]
    fn slot(&self, position: u64) -> &Slot<C> {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }
}

/// What a slot is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The cargo holds everything; the sender's memory is free at once.
    Message,
    /// The cargo says where the sender's memory is; it is free when the offer's
    /// [`Outcome`] says so.
    Offer,
}

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing yet: the receiver may read the memory at any time.
    Open,
    /// The receiver has copied it.
    Copied,
    /// The receiver began to copy and could not finish; it no longer reads.
    Refused,
    /// The sender took it back before the receiver claimed it.
    Withdrawn,
}

/// The filling end.
pub(crate) struct Sender<C> {
    ring: Arc<Ring<C>>,
    next: u64,
}

impl<C> Sender<C> {
    /// Fills the next slot and publishes it: `Ok(true)`. `Ok(false)`: the ring is
    /// full, nothing was filled. An error of `fill` leaves the slot empty.
    ///
    /// The k-th success is position k (from 0) for [`Self::outcome`].
    #[inline]
    pub(crate) fn put<E>(
        &mut self,
        kind: Kind,
        fill: impl FnOnce(&mut C) -> Result<(), E>,
    ) -> Result<bool, E> {
        let slot = self.ring.slot(self.next);
        if slot.state.load(Ordering::Acquire) != EMPTY {
            return Ok(false);
        }
        // SAFETY: an empty slot is the sender's alone, and `&mut self` is the sender.
        slot.cargo.with_mut(|cargo| fill(unsafe { &mut *cargo }))?;
        let state = match kind {
            Kind::Message => MESSAGE,
            Kind::Offer => OFFERED,
        };
        slot.state.store(state, Ordering::Release);
        self.next += 1;
        Ok(true)
    }

    /// Asks to be woken when the next slot is freed. `true`: it is free already.
    ///
    /// A slot that still holds an offer of ours is not marked: its outcome comes
    /// with a wake-up of its own.
    pub(crate) fn await_room(&self) -> bool {
        let state = &self.ring.slot(self.next).state;
        let marked = state.compare_exchange(
            MESSAGE,
            MESSAGE | AWAITED,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        marked == Err(EMPTY)
    }

    /// What became of the offer at `position`. A copied one frees its slot, so it
    /// is asked only until then.
    #[inline]
    pub(crate) fn outcome(&mut self, position: u64) -> Outcome {
        let state = &self.ring.slot(position).state;
        match state.load(Ordering::Acquire) {
            DONE => {
                state.store(EMPTY, Ordering::Release);
                Outcome::Copied
            }
            REFUSED => Outcome::Refused,
            _ => Outcome::Open,
        }
    }

    /// [`Self::outcome`] would not be [`Outcome::Open`].
    pub(crate) fn is_settled(&self, position: u64) -> bool {
        let state = self.ring.slot(position).state.load(Ordering::Acquire);
        matches!(state, DONE | REFUSED)
    }

    /// [`Self::outcome`] would be [`Outcome::Refused`].
    pub(crate) fn is_refused(&self, position: u64) -> bool {
        self.ring.slot(position).state.load(Ordering::Acquire) == REFUSED
    }

    /// Takes the offer at `position` back, or waits for the copy in progress: after
    /// this the receiver does not read the offered memory any more.
    pub(crate) fn withdraw(&mut self, position: u64) -> Outcome {
        let state = &self.ring.slot(position).state;
        if state
            .compare_exchange(OFFERED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            return Outcome::Withdrawn;
        }
        self.await_copy(position)
    }

    /// The receiver has closed: nothing that is not copied yet will be.
    #[inline]
    pub(crate) fn is_receiver_gone(&self) -> bool {
        self.ring.receiver_gone.load(Ordering::Acquire)
    }

    /// Withdraws all offers and says that nothing more will come. Nothing may be put
    /// afterwards.
    pub(crate) fn close(&mut self) {
        let depth = self.ring.slots.len() as u64;
        for position in self.next.saturating_sub(depth)..self.next {
            self.withdraw(position);
        }
        self.ring.sender_gone.store(true, Ordering::Release);
    }

    fn await_copy(&mut self, position: u64) -> Outcome {
        let mut backoff = Backoff::default();
        while self.ring.slot(position).state.load(Ordering::Acquire) == COPYING {
            backoff.pause();
        }
        self.outcome(position)
    }
}

impl<C> Drop for Sender<C> {
    fn drop(&mut self) {
        self.close();
    }
}

/// The emptying end.
pub(crate) struct Receiver<C> {
    ring: Arc<Ring<C>>,
    next: u64,
}

/// What is first in the FIFO.
pub(crate) enum Head<'a, C> {
    /// Nothing yet.
    Empty,
    /// Nothing, and nothing will come: the sender is gone, or has withdrawn what
    /// would be next.
    Closed,
    /// A whole message.
    Message(Message<'a, C>),
    /// The address of one.
    Offer(Offer<'a, C>),
}

impl<C> Receiver<C> {
    /// What is first in the FIFO.
    #[inline]
    pub(crate) fn head(&mut self) -> Head<'_, C> {
        let slot = self.ring.slot(self.next);
        let mut state = slot.state.load(Ordering::Acquire);
        if state == EMPTY {
            if !self.ring.sender_gone.load(Ordering::Acquire) {
                return Head::Empty;
            }
            // The sender may have filled the slot between the two loads; what it
            // sent before it went is still received.
            state = slot.state.load(Ordering::Acquire);
        }
        match state & !AWAITED {
            MESSAGE => Head::Message(Message(self)),
            OFFERED => Head::Offer(Offer(self)),
            EMPTY | WITHDRAWN | REFUSED => Head::Closed,
            // DONE: the ring is full of copies that the sender has yet to collect.
            _ => Head::Empty,
        }
    }

    /// Says that nothing more will be taken.
    pub(crate) fn close(&mut self) {
        self.ring.receiver_gone.store(true, Ordering::Release);
    }

    /// # Safety
    /// The slot at `next` must be in one of the states in which the receiver may
    /// read it, until `f` returns.
    #[inline]
    unsafe fn cargo<R>(&self, f: impl FnOnce(&C) -> R) -> R {
        let slot = self.ring.slot(self.next);
        // SAFETY: by the caller's promise the sender does not write the cargo now.
        slot.cargo.with(|cargo| f(unsafe { &*cargo }))
    }

    /// Frees the slot at `next`; `true`: the sender waits for that.
    #[inline]
    fn free(&mut self) -> bool {
        let slot = self.ring.slot(self.next);
        let awaited = slot.state.swap(EMPTY, Ordering::AcqRel) & AWAITED != 0;
        self.next += 1;
        awaited
    }
}

impl<C> Drop for Receiver<C> {
    fn drop(&mut self) {
        self.close();
    }
}

/// A message at the head of its FIFO.
pub(crate) struct Message<'a, C>(&'a mut Receiver<C>);

impl<C> Message<'_, C> {
    /// Reads the slot.
    #[inline]
    pub(crate) fn cargo<R>(&self, f: impl FnOnce(&C) -> R) -> R {
        // SAFETY: only the receiver leads a slot out of MESSAGE, and it is borrowed.
        unsafe { self.0.cargo(f) }
    }

    /// Frees the slot; `true`: wake the sender, it waits for room.
    #[inline]
    #[must_use = "the sender may sleep until it is told"]
    pub(crate) fn take(self) -> bool {
        self.0.free()
    }
}

/// An offer at the head of its FIFO.
pub(crate) struct Offer<'a, C>(&'a mut Receiver<C>);

impl<'a, C> Offer<'a, C> {
    /// Reads the slot, but not the memory that it tells of.
    #[inline]
    pub(crate) fn cargo<R>(&self, f: impl FnOnce(&C) -> R) -> R {
        // SAFETY: the sender can only lead the slot to WITHDRAWN, for good.
        unsafe { self.0.cargo(f) }
    }

    /// Claims the offered memory for a copy. `None`: it has just been withdrawn.
    #[inline]
    pub(crate) fn claim(self) -> Option<Claim<'a, C>> {
        let state = &self.0.ring.slot(self.0.next).state;
        let claimed = state.compare_exchange(OFFERED, COPYING, Ordering::AcqRel, Ordering::Acquire);
        // Only who won may hold a claim, even for a moment: its drop writes the state.
        match claimed {
            Ok(_) => Some(Claim {
                receiver: self.0,
                copied: false,
            }),
            Err(_) => None,
        }
    }
}

/// The right to read offered memory. Dropped without [`Claim::finish`] (an error, a
/// panic) it refuses the offer, and the FIFO stays broken at this place.
pub(crate) struct Claim<'a, C> {
    receiver: &'a mut Receiver<C>,
    copied: bool,
}

impl<C> Claim<'_, C> {
    /// Reads the slot, and in `f` the memory that it tells of.
    #[inline]
    pub(crate) fn cargo<R>(&self, f: impl FnOnce(&C) -> R) -> R {
        // SAFETY: only this claim leads the slot out of COPYING, when it is dropped.
        unsafe { self.receiver.cargo(f) }
    }

    /// The copy is complete; wake the sender.
    #[inline]
    pub(crate) fn finish(mut self) {
        self.copied = true;
    }
}

impl<C> Drop for Claim<'_, C> {
    fn drop(&mut self) {
        let state = &self.receiver.ring.slot(self.receiver.next).state;
        if self.copied {
            state.store(DONE, Ordering::Release);
            self.receiver.next += 1;
        } else {
            state.store(REFUSED, Ordering::Release);
        }
    }
}
