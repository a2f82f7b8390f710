//! Tree algorithms: from one rank to all and from all to one, in few rounds or over few links.
//!
//! | name | collectives | rounds | bytes, of a vector (or table) of m |
//! |---|---|---|---|
//! | [`tree`](Tree) | broadcast, reduce | ⌈log2 p⌉ | m on each of p-1 links |
//! | | gather, scatter | ⌈log2 p⌉ | each row up to ⌈log2 p⌉ times; m (p-1)/p at the root |
//! | | all_reduce | 2 ⌈log2 p⌉ | m on each of p-1 links, each way |
//! | | barrier | 2 ⌈log2 p⌉ | one sync on each of p-1 links, each way |
//! | [`tree-centre`](TreeCentre) | broadcast, reduce | depth | m on each of p-1 links |
//! | | gather, scatter | pipelined | the rows beyond each link |
//! | | all_reduce, barrier | 2 depth | m (one sync) on each of p-1 links, each way |
//! | | all_gather, reduce_scatter | pipelined | m on each of p-1 links, both ways together |
//! | | all_to_all | pipelined | each row over the links between its two ranks |
//!
//! [`Tree`] is the binomial tree of R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication
//! operations in MPICH", Int. J. High Perf. Comput. Appl. 19 (2005): ranks relative to the root, a subtree is a range of
//! them. Both take operators that do not commute. [`TreeCentre`] needs no more than a connected graph: a breadth-first tree over the links that exist.
//!
//! ```
//! use std::sync::Arc;
//! use unisono_core::{Collective, Topology};
//! use unisono_program::{Context, build};
//!
//! // A line 0 - 2 - 1: rank 2 is its centre, the others are leaves.
//! let line = Arc::new(Topology::from_links(3, [(0, 2), (2, 1)]));
//! let cx = Context::new(Collective::AllReduce, 2, line);
//! assert_eq!(build(&unisono_tree::TreeCentre, &cx).unwrap().lanes.len(), 4);
//! assert!(build(&unisono_tree::Tree, &cx).is_err()); // no link 0-1
//! ```
#![forbid(unsafe_code)]

mod binomial;
mod centre;
mod spanning;

pub use binomial::Tree;
pub use centre::TreeCentre;
use unisono_program::Registry;

/// Adds `tree` and `tree-centre`.
pub fn register(registry: &mut Registry) {
    registry.add_proved(Tree).add_proved(TreeCentre);
}
