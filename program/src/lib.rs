//! Collective programs: what one rank does, said once.
//!
//! An [`Algorithm`] writes the loop of its paper into an [`Emit`]; [`build()`] turns it into a [`Program`]: a few lanes of
//! rolled steps with the waits that really are needed. The same program is verified, drawn, priced and executed.
//!
//! ```
//! use unisono_core::Collective;
//! use unisono_program::{block, build, Algorithm, Context, Emit, Unsupported};
//!
//! struct Ring;
//!
//! impl Algorithm for Ring {
//!     fn name(&self) -> &str {
//!         "my-ring"
//!     }
//!     fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
//!         cx.require_collective(&[Collective::AllReduce])?;
//!         cx.require_commutative()?;
//!         cx.require_ring()
//!     }
//!     fn emit(&self, cx: &Context, b: &mut dyn Emit) {
//!         let (ring, p) = (cx.ring(), cx.size() as i64);
//!         let (me, left, right) = (ring.position(), ring.left(), ring.right());
//!         for k in 0..p - 1 { b.send(right, block(me - k));      b.recv_reduce(left, block(me - k - 1)); }
//!         for k in 0..p - 1 { b.send(right, block(me + 1 - k));  b.recv(left, block(me - k)); }
//!     }
//! }
//!
//! let program = build(&Ring, &Context::full(Collective::AllReduce, 0, 4)).unwrap();
//! assert_eq!(program.steps(), 12);
//! ```
#![forbid(unsafe_code)]

pub mod algorithm;
pub mod build;
pub mod context;
pub mod draw;
pub mod emit;
mod hazards;
pub mod ir;
pub mod point_to_point;
pub mod run;
pub mod text;
pub mod verify;

pub use algorithm::{Algorithm, PROVED_BEFORE_USE, Registry, Symmetry, Unsupported};
pub use build::{BuildError, build, build_all};
pub use context::{Context, Params, Ring};
pub use emit::{Blocks, Emit, Stage, block, blocks, scratch};
pub use ir::{Cursor, Kind, Lane, LaneKind, Location, Operand, Program, Run, Slot, Span, Wait};
pub use verify::verify;
