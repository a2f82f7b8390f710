//! What happened when, for traces and pictures.

use unisono_core::Rank;

/// Something that took time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record {
    /// A message on a link.
    Message {
        /// Its sender.
        from: Rank,
        /// Its receiver.
        to: Rank,
        /// Its channel.
        channel: u16,
        /// When it began to occupy the link, in picoseconds.
        start_ps: u64,
        /// When it had left, in picoseconds.
        end_ps: u64,
        /// When it was there, in picoseconds; `None`: a fault took it off the wire.
        arrival_ps: Option<u64>,
        /// Payload bytes.
        bytes: u64,
        /// Its operation, as frames number it.
        operation: u64,
        /// Its number in the operation.
        message: u32,
    },
    /// A copy or reduction at a rank.
    Compute {
        /// The rank.
        rank: Rank,
        /// When it began, in picoseconds.
        start_ps: u64,
        /// When it was done, in picoseconds.
        end_ps: u64,
        /// Bytes copied, or reduced into others.
        bytes: u64,
    },
}
