//! What can go wrong, with ranks and values in it.

use std::sync::Arc;

use unisono_contract::{OutOfMemory, Revoked};
use unisono_control::{AddressError, Cause, EnvironmentError, JoinError};
use unisono_core::{Collective, DType, Op, Rank};
use unisono_engine::PlanError;
use unisono_program::BuildError;
use unisono_program::verify::Flaw;
use unisono_select::SelectError;

/// Why a call failed.
///
/// Errors up to [`OutOfMemory`](Error::OutOfMemory) are found before anything is sent; the group stays usable if every rank
/// made the same mistake (otherwise the others wait for this one's part of the operation, up to their deadline). After
/// [`Failed`](Error::Failed) the group is over: every operation of every rank returns the same cause.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A buffer has the wrong length.
    #[error("rank {rank}: {collective}: the {what} has {got} elements, it must have {needed}")]
    WrongLength {
        /// This rank.
        rank: Rank,
        /// The exchange.
        collective: Collective,
        /// Which buffer.
        what: &'static str,
        /// Elements it has.
        got: u64,
        /// Elements it must have.
        needed: u64,
    },
    /// A buffer has a length that the world size does not divide.
    #[error(
        "rank {rank}: {collective}: the {what} has {got} elements, it must have a multiple of {size}: one row per rank"
    )]
    NotRows {
        /// This rank.
        rank: Rank,
        /// The exchange.
        collective: Collective,
        /// Which buffer.
        what: &'static str,
        /// Elements it has.
        got: u64,
        /// Number of ranks.
        size: Rank,
    },
    /// A piece does not hold whole elements.
    #[error(
        "rank {rank}: {collective}: the {what} has {bytes} bytes, which is no whole number of {dtype}"
    )]
    NotElements {
        /// This rank.
        rank: Rank,
        /// The exchange.
        collective: Collective,
        /// Which buffer.
        what: &'static str,
        /// Bytes it has.
        bytes: u64,
        /// The element type.
        dtype: DType,
    },
    /// A piece cannot be used as it was given: it was lent for reading, or no longer is, overlaps the other one, or is
    /// phantom in a group that moves bytes.
    #[error("rank {rank}: {collective}: the {what} cannot be used: {revoked}")]
    Piece {
        /// This rank.
        rank: Rank,
        /// The exchange.
        collective: Collective,
        /// Which buffer.
        what: &'static str,
        /// Why.
        revoked: Revoked,
    },
    /// A buffer that this rank must give is missing.
    #[error("rank {rank}: {collective}: this rank must give the {what}")]
    Missing {
        /// This rank.
        rank: Rank,
        /// The exchange.
        collective: Collective,
        /// Which buffer.
        what: &'static str,
    },
    /// A root or peer that does not exist.
    #[error(
        "rank {rank}: {collective}: {what} {named} does not exist in a group of {size} (ranks 0 to {})",
        .size - 1
    )]
    NoSuchRank {
        /// This rank.
        rank: Rank,
        /// The exchange.
        collective: Collective,
        /// `root` or `peer`.
        what: &'static str,
        /// The rank that was named.
        named: Rank,
        /// Number of ranks.
        size: Rank,
    },
    /// A message to oneself outside of `send_recv`.
    #[error("rank {rank}: {collective} with itself; use send_recv for that")]
    ToSelf {
        /// This rank.
        rank: Rank,
        /// The exchange.
        collective: Collective,
    },
    /// The operator does not exist for the element type.
    #[error("rank {rank}: {collective}: operator {op} does not exist for {dtype}")]
    NoSuchOperator {
        /// This rank.
        rank: Rank,
        /// The exchange.
        collective: Collective,
        /// The operator.
        op: Op,
        /// The element type.
        dtype: DType,
    },
    /// A user operator is not one of this group's, or is of another element type.
    #[error(
        "rank {rank}: {collective}: {op} is not registered with this group for {dtype}; register it with \
         Group::operator, in the same order on every rank"
    )]
    NotRegistered {
        /// This rank.
        rank: Rank,
        /// The exchange.
        collective: Collective,
        /// The operator.
        op: Op,
        /// The element type.
        dtype: DType,
    },
    /// Too many user operators.
    #[error("rank {rank}: a group holds at most 32768 operators")]
    TooManyOperators {
        /// This rank.
        rank: Rank,
    },
    /// No algorithm can do this here, or the one asked for cannot, or it is not known.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// An algorithm emitted something that is no program.
    #[error(transparent)]
    Program(#[from] BuildError),
    /// An algorithm from outside failed its proof: nothing is sent.
    #[error("{algorithm} cannot be used for {collective}, its proof fails: {flaw}")]
    Flaw {
        /// The algorithm.
        algorithm: String,
        /// The exchange.
        collective: Collective,
        /// What is wrong with its programs.
        flaw: Arc<Flaw>,
    },
    /// A program could not be bound to the call.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// No memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The group has failed, here or elsewhere: all ranks get this cause.
    #[error("{cause}")]
    Failed {
        /// The first cause of the failure.
        cause: Arc<Cause>,
    },
    /// The group was closed by this rank.
    #[error("rank {rank}: the group is closed")]
    Closed {
        /// This rank.
        rank: Rank,
    },
    /// The environment names no rank of any group.
    #[error(
        "this process is no rank of a group: UNISONO_RANK, UNISONO_SIZE and UNISONO_COORDINATOR are not set, nor what mlx.launch, \
         torchrun, mpirun or srun set (start it by `unisono launch -n N -- CMD`)"
    )]
    NotLaunched,
    /// A variable of the environment cannot be used.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The place to meet is no address.
    #[error(transparent)]
    Coordinator(#[from] AddressError),
    /// The ranks did not come together; all that came get the same error.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The parts of a group do not fit.
    #[error("rank {rank} does not exist in a group of {size}")]
    Parts {
        /// The rank.
        rank: Rank,
        /// The size.
        size: Rank,
    },
}

/// An asynchronous operation failed; its buffers come back with the error, their contents unspecified.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failure<R> {
    /// Why.
    #[source]
    pub error: Error,
    /// What a success would have returned.
    pub buffers: R,
}

impl<R> From<Failure<R>> for Error {
    fn from(failure: Failure<R>) -> Error {
        failure.error
    }
}
