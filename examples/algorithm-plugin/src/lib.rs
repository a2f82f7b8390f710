//! An algorithm written outside the library: all_reduce along a line of cables 0 - 1 - 2 - ... .
//!
//! Sums travel from the last rank to rank 0, the result travels back. Each link carries the vector once in each
//! direction, and since a run cuts it into segments, the whole line works at once. `recv_reduce` computes
//! mine (+) incoming, so operands stay in rank order and the operator need not commute.
//!
//! ```
//! use unisono_core::Collective;
//! use unisono_program::{Context, Registry, build};
//!
//! let mut registry = Registry::new();
//! registry.add(unisono_example_algorithm::Line); // from here on `line` is a name like any other
//!
//! let algorithm = registry.find("line").unwrap();
//! let middle = build(algorithm.as_ref(), &Context::full(Collective::AllReduce, 1, 3)).unwrap();
//! assert_eq!(middle.steps(), 4);
//! ```
#![forbid(unsafe_code)]

use unisono_core::{Collective, Link};
use unisono_program::{Algorithm, Context, Emit, Unsupported, block};

/// All_reduce along the line of ranks: 2 (p-1) rounds, each link moves the vector once each way.
pub struct Line;

impl Algorithm for Line {
    fn name(&self) -> &str {
        "line"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&[Collective::AllReduce])?;
        cx.require_links((1..cx.size()).map(|r| Link::new(r - 1, r)))
    }

    fn blocks(&self, _: &Context) -> u64 {
        1
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let (me, last) = (cx.rank(), cx.size() - 1);
        if me < last {
            b.recv_reduce(me + 1, block(0));
        }
        if me > 0 {
            b.send(me - 1, block(0));
            b.recv(me - 1, block(0));
        }
        if me < last {
            b.send(me + 1, block(0));
        }
    }
}
