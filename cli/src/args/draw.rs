//! Arguments of `draw`.

use std::path::PathBuf;

use unisono_core::{Collective, Rank};

use super::names::AlgorithmName;
use super::ranks::world;

/// Writes the programs of an algorithm as text on stdout, or draws them into a file.
///
/// The text says for every rank which lanes it has and what each of them sends, receives and waits for; a run of equal
/// steps is one line, so that it is as short for 1,024 ranks as for 4. The picture has ranks from top to bottom and
/// time from left to right; an arrow is a message, its colour the block.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono draw --algorithm ring --op all_reduce --ranks 4
  unisono draw --algorithm tree --op broadcast --ranks 8 --root 3 -o tree.svg
  unisono draw --algorithm butterfly-circulant --op all_gather --ranks 5 -o - > circulant.svg")]
pub(crate) struct Args {
    /// Name of the algorithm: its family first, as in ring-bidir.
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: AlgorithmName,

    /// The collective: all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter, all_to_all, barrier.
    #[arg(long, value_name = "OP")]
    pub(crate) op: Collective,

    /// Number of ranks, all linked to each other.
    #[arg(long, value_name = "N", value_parser = world)]
    pub(crate) ranks: Rank,

    /// The root, where there is one.
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    pub(crate) root: Rank,

    /// Copies of the algorithm over disjoint shares of each block.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) channels: u16,

    /// Draw an SVG picture into this file (`-`: to stdout) instead of writing text.
    #[arg(short, long, value_name = "FILE.svg")]
    pub(crate) output: Option<PathBuf>,
}
