//! Collectives that do not care how bytes move.
//!
//! ```
//! use unisono::Op;
//!
//! // Four ranks as threads of one process; other transports change this line only.
//! let threads: Vec<_> = unisono::inproc(4)
//!     .into_iter()
//!     .map(|group| {
//!         std::thread::spawn(move || {
//!             let mut gradient = vec![group.rank() as f32; 1000];
//!             group.all_reduce(&mut gradient, Op::Avg)?;
//!             assert_eq!(gradient[0], 1.5);
//!             Ok::<(), unisono::Error>(())
//!         })
//!     })
//!     .collect();
//! for thread in threads {
//!     thread.join().unwrap().unwrap();
//! }
//! ```
//!
//! * Blocking calls on borrowed slices are methods of [`Group`].
//! * Asynchronous operations own their memory: [`owned`], [`Group::start`]. They work under any executor.
//! * Algorithms are plug-ins: see [`registry`] and the crate `unisono-program`.
#![forbid(unsafe_code)]

mod agree;
mod assemble;
mod blocking;
mod check;
mod driver;
mod error;
mod explain;
mod group;
mod handover;
mod inproc;
mod join;
mod launch;
mod memory;
pub mod owned;
mod pending;
mod pieces;
mod plans;
mod state;
mod sync;

pub use assemble::Parts;
pub use error::{Error, Failure};
pub use group::{DEFAULT_TIMEOUT, Group};
pub use inproc::{inproc, inproc_with};
pub use join::Builder;
pub use memory::{Owned, OwnedTarget, Source, Target};
pub use owned::Handle;
pub use pieces::PieceCall;

pub use half::{bf16, f16};
pub use unisono_contract::Buffer;
pub use unisono_control::{Cause, Check, Kind, Operation};
pub use unisono_core::{Collective, DType, Element, Op, Rank, UserOp};
pub use unisono_program as program;
pub use unisono_program::Registry;
pub use unisono_select as select;
pub use unisono_select::Choice;

/// The parts that transports and other environments are built from.
pub mod parts {
    pub use unisono_contract::{Endpoint, Event, Host, Lease, PhantomSpace, Piece, SystemHost};
    pub use unisono_control::{Control, InProcess, in_process};
    pub use unisono_core::Topology;
    pub use unisono_engine::{Compute, Direct, Work, Workspace};
}

/// The algorithms that come with this library.
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    unisono_ring::register(&mut registry);
    unisono_mesh::register(&mut registry);
    unisono_tree::register(&mut registry);
    unisono_butterfly::register(&mut registry);
    unisono_dissemination::register(&mut registry);
    registry
}

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeDoctests;
