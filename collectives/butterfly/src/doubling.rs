//! `butterfly-doubling`: whole vectors, exchanged at distances 1, 2, 4, ...

use unisono_core::{Collective, Link, Rank};
use unisono_program::{Algorithm, Context, Emit, Unsupported, block};

use crate::{operands_commute, powers_below};

/// Recursive doubling: after round k everyone has the sum of a group of 2^(k+1).
///
/// In a world of 2^k + e ranks the first 2 e work in pairs: the odd rank hands its vector to the even one before, and
/// gets the result after, the 2^k rounds of the others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Doubling;

impl Algorithm for Doubling {
    fn name(&self) -> &str {
        "butterfly-doubling"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&[Collective::AllReduce, Collective::Barrier])?;
        operands_commute(cx)?;
        let fold = Fold::new(cx.size());
        let pairs = (0..fold.extra).map(|i| Link::new(2 * i as Rank, 2 * i as Rank + 1));
        let exchanges = powers_below(fold.core).flat_map(|d| {
            let fold = &fold;
            (0..fold.core).map(move |place| Link::new(fold.rank(place), fold.rank(place ^ d)))
        });
        cx.require_links(pairs.chain(exchanges))
    }

    fn blocks(&self, _: &Context) -> u64 {
        1
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let (me, fold) = (cx.rank(), Fold::new(cx.size()));
        let barrier = cx.collective() == Collective::Barrier;
        let give = |b: &mut dyn Emit, to| match barrier {
            true => b.sync_to(to),
            false => b.send(to, block(0)),
        };
        let take = |b: &mut dyn Emit, from| match barrier {
            true => b.sync_from(from),
            false => b.recv(from, block(0)),
        };
        let add = |b: &mut dyn Emit, from| match barrier {
            true => b.sync_from(from),
            false => b.recv_reduce(from, block(0)),
        };

        let paired = cx.me() < 2 * fold.extra;
        if paired && me % 2 == 1 {
            give(b, me - 1);
            take(b, me - 1);
            return;
        }
        if paired {
            add(b, me + 1);
        }
        for distance in powers_below(fold.core) {
            let peer = fold.rank(fold.place(me) ^ distance);
            give(b, peer);
            add(b, peer);
        }
        if paired {
            give(b, me + 1);
        }
    }
}

/// How a world is folded into a power of two.
struct Fold {
    /// The largest power of two that is not above the world's size.
    core: i64,
    /// Ranks beyond it, each of them the odd one of a pair.
    extra: i64,
}

impl Fold {
    fn new(size: Rank) -> Fold {
        let size = i64::from(size.max(1));
        let core = 1 << size.ilog2();
        Fold {
            core,
            extra: size - core,
        }
    }

    fn rank(&self, place: i64) -> Rank {
        let rank = if place < self.extra {
            2 * place
        } else {
            place + self.extra
        };
        rank as Rank
    }

    fn place(&self, rank: Rank) -> i64 {
        let rank = i64::from(rank);
        if rank < 2 * self.extra {
            rank / 2
        } else {
            rank - self.extra
        }
    }
}
