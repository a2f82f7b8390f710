//! The exchanges, and where each of their blocks lives.
//!
//! A program moves *blocks*. Which of them are found in the input of a rank and which end in its output is a
//! property of the collective, never of the algorithm:
//!
//! | collective | blocks | input home at rank r | output home at rank r |
//! |---|---|---|---|
//! | all_reduce | any n | all | all |
//! | reduce_scatter | p | all | block r |
//! | all_gather | p | block r | all |
//! | broadcast (root q) | any n | all, at q | all |
//! | reduce (root q) | any n | all | all, at q |
//! | gather (root q) | p | block r | all, at q |
//! | scatter (root q) | p | all, at q | block r |
//! | all_to_all | p x p, `source*p + target` | source = r | target = r |
//! | barrier | 0 | | |
//! | send | 1 | block 0 | |
//! | recv | 1 | | block 0 |

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::{Rank, UnknownName};

/// An exchange between the ranks of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Collective {
    /// Everyone gets the reduction of everyone's vector.
    AllReduce = 1,
    /// Rank r gets row r of the reduction of everyone's table.
    ReduceScatter = 2,
    /// Everyone gets everyone's vector, in rank order.
    AllGather = 3,
    /// Everyone gets the root's vector.
    Broadcast = 4,
    /// The root gets the reduction of everyone's vector.
    Reduce = 5,
    /// The root gets everyone's vector, in rank order.
    Gather = 6,
    /// Rank r gets row r of the root's table.
    Scatter = 7,
    /// Rank r gets row r of everyone's table, in rank order.
    AllToAll = 8,
    /// Nobody leaves before everyone has entered.
    Barrier = 9,
    /// A message to one rank.
    Send = 10,
    /// A message from one rank.
    Recv = 11,
}

impl Collective {
    /// The collectives proper, in the order of their codes (point-to-point is not one of them).
    pub const ALL: [Collective; 9] = [
        Collective::AllReduce,
        Collective::ReduceScatter,
        Collective::AllGather,
        Collective::Broadcast,
        Collective::Reduce,
        Collective::Gather,
        Collective::Scatter,
        Collective::AllToAll,
        Collective::Barrier,
    ];

    /// The code in frames. Both ends of a point-to-point message carry the same one.
    pub const fn code(self) -> u8 {
        match self {
            Collective::Recv => Collective::Send as u8,
            other => other as u8,
        }
    }

    /// The name of what has this code.
    pub fn name_of_code(code: u8) -> Option<&'static str> {
        Self::ALL
            .into_iter()
            .chain([Collective::Send])
            .find(|c| c.code() == code)
            .map(Collective::name)
    }

    /// Whether it is a message between two ranks rather than a collective.
    pub const fn is_point_to_point(self) -> bool {
        matches!(self, Collective::Send | Collective::Recv)
    }

    /// The name: `all_reduce`, `broadcast`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Collective::AllReduce => "all_reduce",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::AllGather => "all_gather",
            Collective::Broadcast => "broadcast",
            Collective::Reduce => "reduce",
            Collective::Gather => "gather",
            Collective::Scatter => "scatter",
            Collective::AllToAll => "all_to_all",
            Collective::Barrier => "barrier",
            Collective::Send => "send",
            Collective::Recv => "recv",
        }
    }

    /// Whether one rank plays a special part.
    pub const fn is_rooted(self) -> bool {
        matches!(
            self,
            Collective::Broadcast | Collective::Reduce | Collective::Gather | Collective::Scatter
        )
    }

    /// Whether elements are combined.
    pub const fn reduces(self) -> bool {
        matches!(
            self,
            Collective::AllReduce | Collective::ReduceScatter | Collective::Reduce
        )
    }

    /// Whether a vector of `count` elements is cut into blocks (otherwise blocks are rows of `count` elements).
    pub const fn cuts_a_vector(self) -> bool {
        matches!(
            self,
            Collective::AllReduce | Collective::Broadcast | Collective::Reduce
        )
    }

    /// Number of blocks, where the collective fixes it: rows of the table it moves.
    pub const fn rows(self, size: Rank) -> Option<u64> {
        match self {
            Collective::AllReduce | Collective::Broadcast | Collective::Reduce => None,
            Collective::AllToAll => Some(size as u64 * size as u64),
            Collective::Barrier => Some(0),
            Collective::Send | Collective::Recv => Some(1),
            _ => Some(size as u64),
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Collective {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|c| c.name() == name)
            .ok_or_else(|| UnknownName::new("collective", name, Self::ALL.iter().map(|c| c.name())))
    }
}

/// Which blocks live in the input and in the output of one rank, and at which row of that buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Homes {
    collective: Collective,
    rank: u64,
    size: u64,
    root: u64,
}

impl Homes {
    /// The homes of `collective` at `rank`; `root` is ignored where there is none.
    pub fn new(collective: Collective, rank: Rank, size: Rank, root: Rank) -> Homes {
        Homes {
            collective,
            rank: rank.into(),
            size: size.into(),
            root: root.into(),
        }
    }

    /// The row of the input buffer that holds `block`, if it has a home there.
    #[inline]
    pub fn input(&self, block: u64) -> Option<u64> {
        use Collective as C;
        match self.collective {
            C::AllReduce | C::ReduceScatter | C::Reduce => Some(block),
            C::Broadcast | C::Scatter => (self.rank == self.root).then_some(block),
            C::AllGather | C::Gather => (block == self.rank).then_some(0),
            C::AllToAll => (block / self.size == self.rank).then_some(block % self.size),
            C::Send => Some(0),
            C::Recv | C::Barrier => None,
        }
    }

    /// The row of the output buffer that `block` ends in, if it has a home there.
    #[inline]
    pub fn output(&self, block: u64) -> Option<u64> {
        use Collective as C;
        match self.collective {
            C::AllReduce | C::AllGather | C::Broadcast => Some(block),
            C::Reduce | C::Gather => (self.rank == self.root).then_some(block),
            C::ReduceScatter | C::Scatter => (block == self.rank).then_some(0),
            C::AllToAll => (block % self.size == self.rank).then_some(block / self.size),
            C::Recv => Some(0),
            C::Send | C::Barrier => None,
        }
    }

    /// The blocks `0..blocks` with an output home, as ranges (all_to_all: one block each).
    pub fn output_blocks(&self, blocks: u64) -> Box<dyn Iterator<Item = Range<u64>>> {
        use Collective as C;
        let (rank, size) = (self.rank, self.size);
        let all = |yes: bool| -> Box<dyn Iterator<Item = Range<u64>>> {
            Box::new((yes && blocks > 0).then_some(0..blocks).into_iter())
        };
        match self.collective {
            C::AllReduce | C::AllGather | C::Broadcast => all(true),
            C::Reduce | C::Gather => all(self.rank == self.root),
            C::ReduceScatter | C::Scatter => Box::new(std::iter::once(rank..rank + 1)),
            C::AllToAll => Box::new((0..size).map(move |s| s * size + rank..s * size + rank + 1)),
            C::Recv => all(true),
            C::Send | C::Barrier => all(false),
        }
    }
}
