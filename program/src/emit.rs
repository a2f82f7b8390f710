//! What an algorithm says: steps over blocks, in the order of the paper.

use unisono_core::Rank;

/// A name for one block, a few consecutive blocks, or a private scratch block.
///
/// Made by [`block`], [`blocks`] and [`scratch`]. Block indices are `i64` and taken modulo the number of blocks, so
/// that loops read as in the paper: `block(me - k)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    pub(crate) named: Named,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Data { first: i64, len: u64 },
    Scratch { slot: u64, like: i64 },
}

/// Block `i` of the work vector, modulo the number of blocks.
pub const fn block(i: i64) -> Blocks {
    blocks(i, 1)
}

/// `len` consecutive blocks from `first`, wrapping at the last block. `len` 0 is an empty message.
pub const fn blocks(first: i64, len: u64) -> Blocks {
    Blocks {
        named: Named::Data { first, len },
    }
}

/// A private block that no buffer of the user holds, as large as block 0 unless [`like`](Blocks::like) says otherwise.
pub const fn scratch(slot: u64) -> Blocks {
    Blocks {
        named: Named::Scratch { slot, like: 0 },
    }
}

impl Blocks {
    /// For scratch: as large as data block `i`. Every mention of one slot must name the same size.
    #[must_use]
    pub const fn like(self, i: i64) -> Blocks {
        match self.named {
            Named::Scratch { slot, .. } => Blocks {
                named: Named::Scratch { slot, like: i },
            },
            Named::Data { .. } => self,
        }
    }
}

/// When a step happens in a schedule of waves: `hops * S + offset` for S segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Stage {
    /// Message times since the start; each grows with the number of segments.
    pub hops: i64,
    /// Slots that do not grow with the number of segments.
    pub offset: i64,
}

impl Stage {
    /// The slot for `segments` segments.
    pub const fn slot(self, segments: u64) -> i64 {
        self.hops * segments as i64 + self.offset
    }
}

/// Where an algorithm puts its steps.
///
/// Steps are written as if they ran one after the other; the builder finds out what really has to wait for what.
/// Six kinds and no more: send, receive, receive-and-reduce, local reduce, copy, sync.
pub trait Emit {
    /// Send `what` to rank `to`.
    fn send(&mut self, to: Rank, what: Blocks);

    /// Receive from rank `from`, overwriting `into`.
    fn recv(&mut self, from: Rank, into: Blocks);

    /// Receive from rank `from` and reduce: `into = into (+) incoming`, in this order of operands.
    fn recv_reduce(&mut self, from: Rank, into: Blocks);

    /// Reduce locally: `into = sources[0] (+) sources[1] (+) ...`, in this order.
    ///
    /// All sources of an element are read before it is written, so `into` may be one of them at any place.
    fn reduce(&mut self, into: Blocks, sources: &[Blocks]);

    /// Copy locally.
    fn copy(&mut self, into: Blocks, from: Blocks);

    /// Tell rank `to` that every sync heard so far has been heard. Carries no data.
    fn sync_to(&mut self, to: Rank);

    /// Hear a sync from rank `from`.
    fn sync_from(&mut self, from: Rank);

    /// The following steps work on part `part` of each block (`0..Algorithm::parts`); starts at 0.
    fn part(&mut self, part: u32);

    /// The following steps belong to this slot of a schedule of waves (see [`Stage`]).
    ///
    /// A program that calls this once must do so before its first step. Stages must rise along every dependency.
    fn stage(&mut self, stage: Stage);
}
