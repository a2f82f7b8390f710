//! Arguments of `verify`.

use unisono_core::Collective;

use super::names::{AlgorithmName, Choice};
use super::ranks::Worlds;

/// Proves, for every timing and every number of segments, that the programs of algorithms give the right results.
///
/// Each pair of algorithm and collective is built for each number of ranks (rooted collectives at roots 0, 1 and the
/// last; reductions also as averages, and in rank order where the algorithm takes operators that do not commute). A row
/// says what it costs: rounds if a rank sends and receives one message at a time, rounds if ports are no limit, and
/// what the busiest rank sends and receives in vectors (the larger buffer of a rank), each beside the least that any
/// algorithm could do. `all` skips what an algorithm does not offer; naming such a pair is refused. The last line sums
/// up.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono verify                                      everything, for 2 to 9 ranks
  unisono verify --algorithm ring --op all_reduce --ranks 2..65
  unisono verify --algorithm tree,tree-centre --op broadcast,reduce --ranks 5,8 --json")]
pub(crate) struct Args {
    /// Names of algorithms, comma separated, or `all`.
    #[arg(long, value_name = "NAME|all", default_value = "all")]
    pub(crate) algorithm: Choice<AlgorithmName>,

    /// Collectives, comma separated, or `all`.
    #[arg(long, value_name = "OP|all", default_value = "all")]
    pub(crate) op: Choice<Collective>,

    /// Numbers of ranks: a range with both ends, a number or a list.
    #[arg(long, value_name = "N|A..B", default_value = "2..9")]
    pub(crate) ranks: Worlds,

    /// One JSON object per line on stdout: one for each proof, the last one sums up.
    #[arg(long)]
    pub(crate) json: bool,
}
