//! Groups in virtual time: the same programs, engine and [`Group`] API as on wires, without hardware, with faults.
//!
//! ```
//! use unisono_sim::{Cluster, Fault, Op, SimError};
//!
//! // Code that blocks runs on a thread per rank, one at a time.
//! let cluster = Cluster::mesh(3).seed(7);
//! let outcome = cluster.run_blocking(|group| {
//!     let mut x = [group.rank() + 1; 8];
//!     group.all_reduce(&mut x, Op::Sum).map(|()| x[0])
//! });
//! let (sums, report) = outcome.into_result()?;
//! assert!(sums.iter().all(|sum| matches!(sum, Ok(6))));
//! assert!(report.total_ps > 0, "virtual time has passed");
//!
//! // The same program with a fault: every rank gets the same error, at once.
//! let fault: Fault = "crash rank=2 at=1us".parse().unwrap();
//! let outcome = cluster.fault(fault).run_blocking(|group| {
//!     group.all_reduce(&mut [1.0f32; 1000], Op::Sum)
//! });
//! assert_eq!(outcome.results[0].as_ref().unwrap().as_ref().unwrap_err().to_string(),
//!     "rank 2 was lost during all_reduce #0");
//! # Ok::<(), SimError>(())
//! ```
//!
//! * [`Cluster::run`] runs `async` code on one thread, [`Cluster::run_blocking`] code that blocks on a thread per rank,
//!   of which one runs at a time. Both are deterministic: [`Report::trace_hash`] is a function of the program, the
//!   cluster and the seed.
//! * [`Network`] says what links and cores cost, by the rules of the evaluator (crate `unisono-evaluator`), with which
//!   it agrees.
//! * [`fault`]: what can go wrong, how it is written, and how each ends.
//! * A world in which nothing can happen any more is not waited for: [`SimError::Deadlock`] says who waits for whom.
//! * Messages of any size: [`Cluster::collective`] and [`Cluster::run_phantom`] move lengths and fingerprints instead of bytes.
#![forbid(unsafe_code)]

mod baton;
mod cluster;
mod clusters;
mod collective;
mod compute;
mod control;
mod endpoint;
mod error;
mod executor;
pub mod fault;
mod network;
mod payload;
mod phantom;
mod picture;
mod random;
mod record;
mod report;
mod trace;
mod world;

pub use cluster::Cluster;
pub use collective::Ask;
pub use error::{Deadlock, End, SetupError, SimError, Wait, WaitKind};
pub use fault::{Cable, Fault, FaultError, Mishap, Part};
pub use network::Network;
pub use phantom::{Phantoms, Value};
pub use record::Record;
pub use report::{Outcome, RankReport, Report};
pub use world::Unposted;

pub use unisono::{Collective, DType, Error, Group, Op, PieceCall, Rank, owned};
pub use unisono_core::Topology;
pub use unisono_evaluator::{LinkCost, LinkLoad, Links};

#[cfg(doctest)]
#[doc = include_str!("../../docs/test-without-hardware.md")]
struct TestWithoutHardware;

#[cfg(doctest)]
#[doc = include_str!("../../docs/study-an-algorithm.md")]
struct StudyAnAlgorithm;
