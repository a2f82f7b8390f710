//! One row of a bench: what is called, with how much, and which data belong where.

use anyhow::{Context, Result, bail};
use unisono_core::{Collective, DType, Op, Rank};

use crate::args::names::Operation;

/// One row before it is measured.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) op: Operation,
    pub(crate) ranks: Rank,
    pub(crate) root: Rank,
    /// `None`: chosen by the call.
    pub(crate) algorithm: Option<String>,
    pub(crate) segments: Option<u64>,
    pub(crate) channels: Option<u16>,
    pub(crate) dtype: DType,
    pub(crate) reduce: Op,
    /// Elements of the larger buffer of a rank; a multiple of the ranks where it has a row per rank.
    pub(crate) count: u64,
    pub(crate) iters: u32,
    pub(crate) warmup: u32,
    pub(crate) check: bool,
    pub(crate) corrupt: Option<Rank>,
}

/// Whose data a stretch of a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The contribution of a rank.
    Of(Rank),
    /// The reduction of all contributions.
    Reduced,
}

/// A stretch of a buffer: `len` elements of `whose` data from element `start` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) whose: Whose,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// The elements that `bytes` take, rounded up to whole elements, and to a row per rank where there are rows.
///
/// # Errors
/// So many bytes cannot be counted.
pub(crate) fn whole_count(op: Operation, ranks: Rank, dtype: DType, bytes: u64) -> Result<u64> {
    let unit = dtype.size() as u64 * if op.has_rows() { u64::from(ranks) } else { 1 };
    let rounded = bytes.checked_next_multiple_of(unit);
    let fits = rounded.filter(|&b| isize::try_from(b).is_ok());
    let rounded = fits.with_context(|| format!("{bytes} bytes are more than any buffer holds"))?;
    Ok(rounded / dtype.size() as u64)
}

impl Case {
    /// Bytes of the larger buffer.
    pub(crate) fn bytes(&self) -> u64 {
        self.count * self.dtype.size() as u64
    }

    /// Elements as the library counts them: of the vector, or of one row.
    pub(crate) fn call_count(&self) -> usize {
        match self.op.has_rows() {
            true => (self.count / u64::from(self.ranks)) as usize,
            false => self.count as usize,
        }
    }

    /// Refuses what no rank could do.
    ///
    /// # Errors
    /// A rank that does not exist; an operator that does not exist for the element type.
    pub(crate) fn validate(&self) -> Result<()> {
        let ranks = self.ranks;
        let exists = |what: &str, rank: Rank| {
            if rank < ranks {
                return Ok(());
            }
            bail!(
                "{what} {rank} does not exist in a group of {ranks} (ranks 0 to {})",
                ranks - 1
            )
        };
        if self.op.is_rooted() {
            exists("root", self.root)?;
        }
        if self.op.reduces() && !self.reduce.accepts(self.dtype) {
            bail!(
                "{}: operator {} does not exist for {}",
                self.op,
                self.reduce,
                self.dtype
            );
        }
        match self.corrupt {
            Some(rank) => exists("to be corrupted, rank", rank),
            None => Ok(()),
        }
    }

    /// What the input of `rank` holds. Empty where it has none.
    pub(crate) fn input(&self, rank: Rank) -> Vec<Stretch> {
        use Collective as C;
        let len = match self.op {
            Operation::Collective(C::Broadcast) => 0,
            Operation::Collective(C::Scatter) if rank != self.root => 0,
            Operation::Collective(C::AllGather | C::Gather) => self.call_count(),
            _ => self.count as usize,
        };
        stretches([(Whose::Of(rank), 0, len)])
    }

    /// What the output of `rank` must hold afterwards. Empty where it has none.
    pub(crate) fn output(&self, rank: Rank) -> Vec<Stretch> {
        use Collective as C;
        let (all, row) = (self.count as usize, self.call_count());
        let (at_root, mine) = (rank == self.root, rank as usize * row);
        let left = (rank + self.ranks - 1) % self.ranks;
        let from_all = |start| stretches((0..self.ranks).map(|r| (Whose::Of(r), start, row)));
        match self.op {
            Operation::SendRecv => stretches([(Whose::Of(left), 0, all)]),
            Operation::Collective(c) => match c {
                C::AllReduce => stretches([(Whose::Reduced, 0, all)]),
                C::Reduce if at_root => stretches([(Whose::Reduced, 0, all)]),
                C::ReduceScatter => stretches([(Whose::Reduced, mine, row)]),
                C::AllGather => from_all(0),
                C::Gather if at_root => from_all(0),
                C::AllToAll => from_all(mine),
                C::Broadcast => stretches([(Whose::Of(self.root), 0, all)]),
                C::Scatter => stretches([(Whose::Of(self.root), mine, row)]),
                _ => Vec::new(),
            },
        }
    }
}

fn stretches(parts: impl IntoIterator<Item = (Whose, usize, usize)>) -> Vec<Stretch> {
    parts
        .into_iter()
        .map(|(whose, start, len)| Stretch { whose, start, len })
        .collect()
}

/// Elements of all stretches.
pub(crate) fn total(stretches: &[Stretch]) -> usize {
    stretches.iter().map(|s| s.len).sum()
}

/// The same for messages: `all_reduce, 4 ranks, 1024 bytes of f32`.
impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case {
            op, ranks, dtype, ..
        } = self;
        let s = if *ranks == 1 { "" } else { "s" };
        write!(
            f,
            "{op}, {ranks} rank{s}, {} bytes of {dtype}",
            self.bytes()
        )?;
        match &self.algorithm {
            Some(name) => write!(f, ", {name}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(op: &str, ranks: Rank, bytes: u64) -> u64 {
        whole_count(op.parse().unwrap(), ranks, DType::F32, bytes).unwrap()
    }

    #[test]
    fn bytes_are_rounded_up_to_elements_and_rows() {
        assert_eq!(
            [0, 1, 4, 5].map(|b| count("all_reduce", 3, b)),
            [0, 1, 1, 2]
        );
        for rows in [
            "reduce_scatter",
            "all_gather",
            "gather",
            "scatter",
            "all_to_all",
        ] {
            assert_eq!(
                [0, 1, 12, 13].map(|b| count(rows, 3, b)),
                [0, 3, 3, 6],
                "{rows}"
            );
        }
        assert_eq!(count("broadcast", 3, 13), 4);
        assert!(whole_count("reduce".parse().unwrap(), 2, DType::F32, u64::MAX).is_err());
    }
}
