//! Which algorithm a call uses, over which links, in how many segments, and why.
//!
//! ```text
//! cluster file --> Facts --> candidates (algorithm x variant x links) --> price --> Table --> Choice
//!                              ^ policy, Require, Tune                     evaluator          explain
//! ```
//!
//! * **Policy chooses the links**: RDMA where it joins all ranks, else TCP or RDMA with TCP in its gaps; and on a full mesh
//!   over RDMA the mesh family, for four of the collectives. [`Require`] makes any fallback an error.
//! * **Price chooses among everything else the links allow**: the evaluator runs the candidate's own programs on the agreed
//!   figures, so no formula is stated twice. Prices are made on first use into a [`Table`]; a call is one lookup.
//! * **[`Tune`] overrides** both, in one grammar for environment, files and builders.
//! * **[`Selector::explain`]** says what was chosen and rejected, with the sums and the facts behind them.
//!
//! Where nothing is known of the links, [`choose`] takes the first that fits of a fixed order. All of it is a pure function of
//! its arguments, in whole numbers: the same on every rank and every run.
//!
//! ```
//! use unisono_core::Collective;
//! use unisono_program::{Context, Registry};
//! use unisono_select::{Ask, SelectError, choose};
//!
//! let cx = Context::full(Collective::AllReduce, 0, 4);
//! let error = choose(&Registry::new(), &Ask::new(&cx, 1024)).unwrap_err();
//! assert!(matches!(error, SelectError::Nobody { .. }));
//! ```
#![forbid(unsafe_code)]

mod ask;
mod bound;
mod candidates;
mod error;
mod explain;
mod explanation;
mod facts;
mod preferences;
mod price;
mod selector;
mod table;
mod tune;
mod way;

pub use ask::{Ask, Choice};
pub use bound::{Bound, BoundBy};
pub use error::SelectError;
pub use explain::explain;
pub use explanation::{Chosen, Explanation, FactsShown, LinksShown, Rejected};
pub use facts::{Facts, Network};
pub use preferences::choose;
pub use selector::{MOST_PRICED, Selector};
pub use table::{Table, row_bytes};
pub use tune::{Entry, Tune, TuneError, TuneFault};
pub use way::{Require, Way};
