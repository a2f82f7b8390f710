//! Why an algorithm's steps are no program.

use unisono_core::{Collective, Rank};

use crate::Unsupported;

/// Why the steps of an algorithm are no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The algorithm says that it cannot do this.
    #[error("{algorithm} cannot do {collective} here: {why}")]
    Unsupported {
        /// Name of the algorithm.
        algorithm: String,
        /// The exchange.
        collective: Collective,
        /// What is missing.
        why: Unsupported,
    },
    /// A step reads a block that has no contents at this rank.
    #[error(
        "rank {rank}: {what} reads block {block}, which is neither in the input nor written before"
    )]
    ReadsNothing {
        /// The rank.
        rank: Rank,
        /// The step.
        what: String,
        /// The block.
        block: u64,
    },
    /// A block of the output is never written and has no input.
    #[error("rank {rank}: block {block} of the output is never written")]
    NeverWritten {
        /// The rank.
        rank: Rank,
        /// The block.
        block: u64,
    },
    /// A peer is out of range or the rank itself.
    #[error("rank {rank}: {what} names peer {peer} in a world of {size}")]
    Peer {
        /// The rank.
        rank: Rank,
        /// The step.
        what: String,
        /// The peer.
        peer: Rank,
        /// Number of ranks.
        size: Rank,
    },
    /// A peer has no link to this rank.
    #[error("rank {rank}: {what} uses the link {rank}-{peer}, which does not exist")]
    NoLink {
        /// The rank.
        rank: Rank,
        /// The step.
        what: String,
        /// The peer.
        peer: Rank,
    },
    /// A span is longer than the work vector, or names blocks where there are none.
    #[error("rank {rank}: {what} names {len} blocks of {blocks}")]
    TooLong {
        /// The rank.
        rank: Rank,
        /// The step.
        what: String,
        /// Blocks named.
        len: u64,
        /// Blocks there are.
        blocks: u64,
    },
    /// The part set by `Emit::part` does not exist.
    #[error("rank {rank}: part {part} of {parts}")]
    Part {
        /// The rank.
        rank: Rank,
        /// The part.
        part: u32,
        /// Parts there are.
        parts: u32,
    },
    /// A local reduction without sources.
    #[error("rank {rank}: reduce without a source")]
    NoSources {
        /// The rank.
        rank: Rank,
    },
    /// Sources and target of a local step, or two mentions of a scratch block, are of different numbers of blocks.
    #[error("rank {rank}: {what} joins blocks of different sizes")]
    Sizes {
        /// The rank.
        rank: Rank,
        /// The step.
        what: String,
    },
}
