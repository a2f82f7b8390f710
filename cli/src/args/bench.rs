//! Arguments of `bench`.

use std::str::FromStr;

use unisono_core::{DType, Op, Rank};

use super::names::{AlgorithmName, Choice, Operation, Transport};
use super::ranks::Worlds;
use super::sizes::Sizes;

/// Sizes of a bench that names none.
pub(crate) const SIZES: &str = "4..64M";

/// Numbers of ranks of a bench that names none.
pub(crate) const RANKS: &str = "4";

/// Runs collectives on real data, times them, and checks every element of every result.
///
/// One row per size. `bytes` is the larger buffer of a rank, rounded up to whole elements (to one element per rank
/// where that buffer holds a row per rank), `count` its elements. A call takes as long as its slowest rank; all ranks
/// leave a barrier before each. algbw = bytes / mean time, in GB/s (1e9). busbw = algbw times what the busiest link
/// must carry, as in nccl-tests: 2(p-1)/p for all_reduce; (p-1)/p for reduce_scatter, all_gather, gather, scatter and
/// all_to_all; 1 for the others. `wrong` counts the elements of all ranks that differ from the exact result, and those
/// of inputs that changed.
///
/// Without any option the results are checked, as with --check.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono bench
  unisono bench --transport inproc --ranks 2,8
  unisono bench --op all_reduce,all_gather --bytes 1K..16M --ranks 2,4 --check
  unisono bench --algorithm ring,mesh-twoshot --bytes 64K --dtype bf16 --reduce avg --json
  unisono bench --op barrier --ranks 2..8 --iters 1000
  unisono bench --bytes 4K --corrupt 1      the check finds the damage: exit status 1

With UNISONO_RANK, UNISONO_SIZE and UNISONO_COORDINATOR set, this process is one rank of that group; rank 0 prints.
On two machines:
  UNISONO_RANK=0 UNISONO_SIZE=2 UNISONO_COORDINATOR=first:5000 unisono bench
  UNISONO_RANK=1 UNISONO_SIZE=2 UNISONO_COORDINATOR=first:5000 unisono bench")]
pub(crate) struct Args {
    /// How bytes move: tcp, inproc, rdma, sim, shm. `tcp` starts the ranks as processes of this machine, `inproc` as
    /// threads of this process.
    #[arg(long, value_name = "NAME", default_value = "tcp")]
    pub(crate) transport: Transport,

    /// Operations, comma separated, or `all`: all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather,
    /// scatter, all_to_all, barrier; also send_recv, messages around a ring.
    #[arg(long, value_name = "OP", default_value = "all_reduce")]
    pub(crate) op: Choice<Operation>,

    /// Numbers of ranks: a number, a range with both ends, or a list [default: 4]
    #[arg(long, value_name = "N|A..B")]
    pub(crate) ranks: Option<Worlds>,

    /// Names of algorithms, comma separated; `all` tries each that offers the operation, `auto` lets each call choose.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) algorithm: Algorithms,

    /// Sizes: K, M, G are 1024-based; a..b doubles from a and includes both ends; lists. A barrier takes none.
    /// [default: 4..64M]
    #[arg(long, value_name = "SIZE|A..B")]
    pub(crate) bytes: Option<Sizes>,

    /// Element types, comma separated, or `all`: i8 to i64, u8 to u64, f16, bf16, f32, f64.
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: Choice<DType>,

    /// The operator of reductions: sum, prod, min, max, avg (floats only).
    #[arg(long, value_name = "OPERATOR", default_value = "sum")]
    pub(crate) reduce: Op,

    /// The root, where there is one.
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    pub(crate) root: Rank,

    /// Timed calls per row [default: 4 to 500, fewer for larger sizes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_CALLS))]
    pub(crate) iters: Option<u32>,

    /// Calls before the timed ones [default: a tenth of them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MOST_CALLS))]
    pub(crate) warmup: Option<u32>,

    /// Segments that every step is cut into [default: chosen by size]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) segments: Option<u64>,

    /// Copies of the algorithm over disjoint shares of each block.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) channels: Option<u16>,

    /// After the timed calls, make one more and compare every element with the exact result.
    #[arg(long)]
    pub(crate) check: bool,

    /// Flip one byte of this rank's result before the check, which must find it (implies --check).
    #[arg(long, value_name = "RANK")]
    pub(crate) corrupt: Option<Rank>,

    /// One JSON object per row on stdout, and nothing else.
    #[arg(long)]
    pub(crate) json: bool,
}

const MOST_CALLS: i64 = 10_000_000;

/// The algorithms to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Algorithms {
    /// The one that each call chooses.
    Auto,
    /// All, or these.
    These(Choice<AlgorithmName>),
}

impl FromStr for Algorithms {
    type Err = unisono_core::UnknownName;

    fn from_str(text: &str) -> Result<Algorithms, Self::Err> {
        match text {
            "auto" => Ok(Algorithms::Auto),
            names => names.parse().map(Algorithms::These),
        }
    }
}
