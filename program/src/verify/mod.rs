//! Proves that a program set is right: for every timing, every number of segments, in place and out of place.
//!
//! [`verify`] takes the programs of all ranks and finds the first thing wrong, or says what they cost:
//!
//! | what | how |
//! |---|---|
//! | well formed | spans in bounds, waits in range, programs that belong together (`checks`) |
//! | matching | both ends of every FIFO agree on number, order and block sizes of its messages (`graph`) |
//! | no circle | an order exists in which each step follows all it needs (`graph`) |
//! | waves | stages rise along every dependency (`checks`) |
//! | completion | with room for one segment on each FIFO, at 1 to 4 segments (`completion`) |
//! | no races | whatever waits do not order uses different blocks, or only reads (`races`) |
//! | result | every output holds the right contributions, each once, in rank order where that matters (`values`) |
//!
//! It relies on nothing that the builder says: programs made by hand or read from a file are proved all the same.
//!
//! ```
//! use unisono_core::Collective;
//! use unisono_program::{block, build_all, verify, Algorithm, Context, Emit, Unsupported};
//!
//! struct Exchange;
//! impl Algorithm for Exchange {
//!     fn name(&self) -> &str { "exchange" }
//!     fn supports(&self, _: &Context) -> Result<(), Unsupported> { Ok(()) }
//!     fn blocks(&self, _: &Context) -> u64 { 1 }
//!     fn emit(&self, cx: &Context, b: &mut dyn Emit) {
//!         let peer = 1 - cx.rank();
//!         b.send(peer, block(0));
//!         b.recv_reduce(peer, block(0));
//!     }
//! }
//!
//! let mut programs = build_all(&Exchange, &Context::full(Collective::AllReduce, 0, 2)).unwrap();
//! let proof = verify::verify(&programs).unwrap();
//! assert_eq!((proof.rounds, proof.sent.to_string().as_str()), (1, "1"));
//!
//! // Without its wait, the receive may overwrite what is still being sent.
//! let program = std::sync::Arc::make_mut(&mut programs[1]);
//! program.lanes[1].runs[0].waits.clear();
//! let flaw = verify::verify(&programs).unwrap_err();
//! assert_eq!(
//!     flaw.to_string(),
//!     "nothing orders rank 1 lane 1 (from 0) step 0: recv_reduce [0] after rank 1 lane 0 (to 0) step 0: send [0], and both use block 0"
//! );
//! ```

mod bounds;
mod checks;
mod completion;
mod flaw;
mod graph;
pub mod mutate;
mod place;
mod races;
mod rounds;
mod sets;
mod values;

use std::sync::Arc;

pub use bounds::{Proof, Share, Traffic};
pub use flaw::{Flaw, Spoil};
pub use place::Place;

use crate::Program;

/// Proves the programs of all ranks, in rank order, or names the first flaw.
///
/// Takes time in proportion to steps times lanes of a rank, and to blocks moved: milliseconds for some tens of ranks.
pub fn verify(programs: &[Arc<Program>]) -> Result<Proof, Flaw> {
    checks::check(programs)?;
    let graph = graph::Graph::new(programs)?;
    checks::stages(&graph)?;
    completion::check(programs)?;
    races::check(&graph)?;
    values::check(&graph)?;
    values::barrier(&graph)?;
    Ok(bounds::proof(&graph))
}
