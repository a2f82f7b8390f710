//! Which actor goes next: by rank, or by time where the model asks for it.
//!
//! Without times it is rank by rank: all actors of one rank until none of them can proceed. That lets messages come in
//! batches (round robin over lanes would advance each by one step per turn) and keeps one rank's state in cache.
//!
//! In time order, of equal times arrivals go first, and then who was added first.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use unisono_core::Rank;

use super::wiring::{Actor, NONE};

/// Numbers of what is no arrival.
const OTHERS: u64 = 1 << 63;

/// Actors that may be able to proceed; each is in it at most once.
pub(super) struct Queue<T> {
    /// Ranks with queued actors, but for the present one.
    ranks: VecDeque<Rank>,
    present: Rank,
    /// Per rank: the first of its queued actors; the others follow in `slots`.
    first: Vec<u32>,
    slots: Vec<Slot>,
    timed: Option<BinaryHeap<Reverse<Entry<T>>>>,
    /// The numbers of the next arrival and of the next other addition: of equal times the smallest goes first.
    next_arrival: u64,
    next_other: u64,
}

#[derive(Clone, Copy)]
struct Slot {
    rank: Rank,
    next: u32,
    queued: bool,
}

impl<T: Copy + PartialOrd> Queue<T> {
    pub(super) fn new(actors: &[Actor], ranks: usize, in_time_order: bool) -> Self {
        let slots = actors.iter().map(|a| Slot {
            rank: a.rank,
            next: NONE,
            queued: false,
        });
        Queue {
            ranks: VecDeque::new(),
            present: NONE,
            first: vec![NONE; ranks],
            slots: slots.collect(),
            timed: in_time_order.then(BinaryHeap::new),
            next_arrival: 0,
            next_other: OTHERS,
        }
    }

    pub(super) fn in_time_order(&self) -> bool {
        self.timed.is_some()
    }

    /// In time order: adds an actor whose message arrives at `time`, where it goes before all that is no arrival.
    pub(super) fn push_arrival(&mut self, actor: u32, time: T) {
        let slot = &mut self.slots[actor as usize];
        if let (Some(heap), false) = (&mut self.timed, slot.queued) {
            slot.queued = true;
            let number = self.next_arrival;
            self.next_arrival += 1;
            heap.push(Reverse(Entry {
                time,
                number,
                actor,
            }));
        }
    }

    /// Adds an actor that can do nothing before `time`.
    pub(super) fn push(&mut self, actor: u32, time: T) {
        let slot = &mut self.slots[actor as usize];
        if std::mem::replace(&mut slot.queued, true) {
            return;
        }
        if let Some(heap) = &mut self.timed {
            let number = self.next_other;
            self.next_other += 1;
            return heap.push(Reverse(Entry {
                time,
                number,
                actor,
            }));
        }
        let first = &mut self.first[slot.rank as usize];
        if *first == NONE && slot.rank != self.present {
            self.ranks.push_back(slot.rank);
        }
        slot.next = std::mem::replace(first, actor);
    }

    /// The next actor, and the time it was added for if that matters.
    pub(super) fn pop(&mut self) -> Option<(u32, Option<T>)> {
        if let Some(heap) = &mut self.timed {
            let Reverse(entry) = heap.pop()?;
            self.slots[entry.actor as usize].queued = false;
            return Some((entry.actor, Some(entry.time)));
        }
        if self.present == NONE || self.first[self.present as usize] == NONE {
            self.present = NONE;
            self.present = self.ranks.pop_front()?;
        }
        let first = &mut self.first[self.present as usize];
        let actor = *first;
        let slot = &mut self.slots[actor as usize];
        *first = slot.next;
        slot.queued = false;
        Some((actor, None))
    }
}

struct Entry<T> {
    time: T,
    number: u64,
    actor: u32,
}

impl<T: PartialOrd> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        let times = self.time.partial_cmp(&other.time);
        times
            .unwrap_or(Ordering::Equal)
            .then(self.number.cmp(&other.number))
    }
}

impl<T: PartialOrd> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: PartialOrd> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T: PartialOrd> Eq for Entry<T> {}
