//! One direction around the ring: who is next, and what the blocks along it are called.

use unisono_core::Rank;
use unisono_program::{Blocks, Context, Ring, block, blocks};

/// One direction around the ring, for one part of each block. Places are counted from this rank, in this direction:
/// place 1 is the next rank, place -1 the one before.
pub(crate) struct Way {
    ring: Ring,
    /// +1 forward, -1 backward.
    step: i64,
    /// Which part of each block flows this way.
    pub(crate) part: u32,
    /// How many of the ranks ahead are served this way by exchanges that may go either way.
    pub(crate) reach: i64,
    /// Ranks.
    pub(crate) p: i64,
    /// How many places this rank is behind the root, as the way goes.
    pub(crate) from_root: i64,
    /// The next rank.
    pub(crate) next: Rank,
    /// The rank before.
    pub(crate) previous: Rank,
}

impl Way {
    /// From each position to the next.
    pub(crate) fn forward(cx: &Context) -> Way {
        Way::new(cx, 1)
    }

    /// From each position to the one before.
    pub(crate) fn backward(cx: &Context) -> Way {
        Way::new(cx, -1)
    }

    fn new(cx: &Context, step: i64) -> Way {
        let (ring, p) = (cx.ring(), i64::from(cx.size()));
        let root = cx.at_rank(cx.root()).ring().position();
        let me = ring.position();
        Way {
            step,
            part: 0,
            reach: p - 1,
            p,
            from_root: ((me - root) * step).rem_euclid(p),
            next: ring.at(me + step),
            previous: ring.at(me - step),
            ring,
        }
    }

    /// The same for this part of each block.
    pub(crate) fn on_part(self, part: u32) -> Way {
        Way { part, ..self }
    }

    /// The same, serving only so many of the ranks ahead.
    pub(crate) fn reaching(self, reach: i64) -> Way {
        Way { reach, ..self }
    }

    fn rank(&self, place: i64) -> Rank {
        self.ring.at(self.ring.position() + self.step * place)
    }

    /// The block of the rank at `place`.
    pub(crate) fn row(&self, place: i64) -> Blocks {
        block(self.rank(place).into())
    }

    /// Of the table of all_to_all: what the rank at `source` has for the `count` ranks from `first` on, in as few
    /// ranges as there can be. Both ends of a link list them alike.
    pub(crate) fn cells(&self, source: i64, first: i64, count: i64) -> Vec<Blocks> {
        let row = i64::from(self.rank(source)) * self.p;
        let mut targets: Vec<Rank> = (first..first + count).map(|t| self.rank(t)).collect();
        targets.sort_unstable();
        targets
            .chunk_by(|a, b| a + 1 == *b)
            .map(|run| blocks(row + i64::from(run[0]), run.len() as u64))
            .collect()
    }
}
