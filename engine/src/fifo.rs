//! One direction of one channel to one peer: which operations use it, in which order, and what is posted.

use std::collections::VecDeque;

use unisono_contract::{Direction, Port};
use unisono_core::Rank;

use crate::moves::Place;

#[derive(Debug)]
pub(crate) struct Fifo {
    pub(crate) direction: Direction,
    pub(crate) peer: Rank,
    pub(crate) channel: u16,
    /// Index of the endpoint.
    pub(crate) endpoint: usize,
    pub(crate) port: Port,
    pub(crate) depth: usize,
    /// Most pieces in a gather list.
    pub(crate) pieces: usize,
    /// Operations (slot, unit) that still have messages to post, in ticket order.
    pub(crate) queue: VecDeque<(u32, u32)>,
    /// Posted (or skipped) and not done, oldest first.
    pub(crate) outstanding: VecDeque<Entry>,
    /// Of these, how many the endpoint has.
    pub(crate) posted: usize,
    /// Of these, how many go through staging or are skipped: while there are any, no receive may go straight to its
    /// destination, because its data could overtake theirs.
    pub(crate) detours: usize,
    /// The endpoint was full: wait for a completion.
    pub(crate) stalled: bool,
    /// Operations that have used it so far.
    pub(crate) operations: u64,
}

/// A segment in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) operation: u32,
    pub(crate) unit: u32,
    pub(crate) via: Via,
    pub(crate) place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// Between the endpoint and the memory of the step.
    Direct,
    /// Through staging; not here yet.
    Staged,
    /// In staging, to be applied when its waits are met.
    Landed,
    /// An empty message that both ends skip.
    Skipped,
}

impl Via {
    /// Whether the endpoint has it.
    #[inline]
    pub(crate) fn is_posted(self) -> bool {
        matches!(self, Via::Direct | Via::Staged)
    }
}

impl Fifo {
    pub(crate) fn is(&self, direction: Direction, peer: Rank, channel: u16) -> bool {
        self.direction == direction && self.peer == peer && self.channel == channel
    }

    /// Whether this unit of this operation may post now.
    #[inline]
    pub(crate) fn admits(&self, operation: u32, unit: u32) -> bool {
        self.queue.front() == Some(&(operation, unit)) && self.has_room()
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.stalled && self.posted < self.depth
    }

    /// The oldest entry that the endpoint has.
    #[inline]
    pub(crate) fn oldest_posted(&self) -> Option<usize> {
        match self.outstanding.front() {
            Some(entry) if entry.via.is_posted() => Some(0),
            _ => self.outstanding.iter().position(|e| e.via.is_posted()),
        }
    }
}
