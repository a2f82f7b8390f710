//! Arguments of `explain`.

use std::path::PathBuf;

use unisono::select::{Require, Tune};
use unisono_core::{Collective, Rank};
use unisono_topology::LinkSpec;

use super::sizes::Sizes;

/// Says what a group on these links would use for a call, what it would not use, and why. Needs no hardware.
///
/// Policy takes RDMA where it joins all ranks, and on a full mesh over RDMA the mesh algorithms; among everything else the
/// links allow, the predicted time decides. Where no way joins all ranks, or what is required cannot be had, the exit status
/// is 1 and the last line on stderr is what every rank would be told.
///
/// With --json one object: chosen {algorithm, transport, variant, predicted_us, bound_share}, rejected [{algorithm,
/// transport, reason}], facts {op, bytes, root, ranks, policy, require, override, bound_us, bound_by, reduce, reduce_from,
/// links, one_way}, ring [ranks from 0, the smaller neighbour first] or null.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono explain --topology cluster.json --op all_reduce --bytes 64M
  unisono explain --topology hosts.json --link roce100g --op all_gather --bytes 1M --json
  unisono explain --topology cluster.json --op broadcast --bytes 4K --require mesh-rdma
  unisono explain --topology cluster.json --op all_reduce --bytes 1M --tune '*=^ring; all_reduce:0-32K=tree'")]
pub(crate) struct Args {
    /// A device matrix, a hostfile, a list of ring addresses, or our own TOML or JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: PathBuf,

    /// What links of that transport cost, except for figures of their own: thunderbolt5-rdma, thunderbolt5-tcp, 10gbe,
    /// roce100g, or alpha=5us,bandwidth=5GB/s[,overhead=0.5us,reduce=20GB/s].
    #[arg(long, value_name = "PRESET")]
    pub(crate) link: Option<LinkSpec>,

    /// The collective: all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter, all_to_all, barrier.
    #[arg(long, value_name = "OP")]
    pub(crate) op: Collective,

    /// Bytes of the larger buffer, rounded up to a whole row for each rank; K, M, G are 1024-based. A barrier takes none.
    #[arg(long, value_name = "N")]
    pub(crate) bytes: Option<Sizes>,

    /// The root, where there is one.
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    pub(crate) root: Rank,

    /// What a fallback may not give up: mesh-rdma, rdma, tcp.
    #[arg(long, value_name = "WHAT")]
    pub(crate) require: Option<Require>,

    /// Overrides, as in UNISONO_TUNE: collective[:lo-hi][@ranks=a-b]=[^][algorithm[(params)]][@transport]; ...
    #[arg(long, value_name = "OVERRIDES")]
    pub(crate) tune: Option<Tune>,

    /// One JSON object on stdout, and nothing else.
    #[arg(long)]
    pub(crate) json: bool,
}
