//! The one executor of programs: a state machine without clock, thread or socket.
//!
//! # The call contract
//! 1. [`Engine::submit`] an operation: a [`Plan`] with its buffers.
//! 2. [`Engine::next`] until it returns `None`. Each [`Post`] is offered to its endpoint, and the answer told by
//!    [`Engine::posted`] or [`Engine::refused`]. Local steps run inside `next`.
//! 3. Give every completion of an endpoint to [`Engine::complete`]; then go on with 2.
//! 4. [`Engine::finished`] names operations that are done.
//!
//! [`Engine::drive`] is 2 and 3 over a set of endpoints, until nothing moves by itself. Who has waited long in vain asks
//! [`Engine::unclaimed`] whether a peer does something else.
//!
//! # How operations share a group
//! Operations queue per FIFO (peer, channel, direction): operation n+1 starts on a FIFO when all messages of operation n
//! there have been *posted*, and on FIFOs that n does not use at once. A receive is kept posted on every FIFO that
//! expects a message: straight into its destination when the waits of the step are met, into the plan's staging of one
//! segment otherwise. That is all the buffering a verified program needs, so nothing can wait in a circle.
//!
//! ```text
//!           submit                next / posted            complete
//!   Plan ------------> operation ----------------> FIFO ----------------> counters of lanes
//!                          ^                                                   |
//!                          +---------------------- waits ---------------------+
//! ```
#![forbid(unsafe_code)]

mod apply;
mod cache;
mod compute;
mod engine;
mod fifo;
mod layout;
mod look;
mod moves;
mod operation;
mod pieces;
mod plan;
mod state;
mod unclaimed;
mod world;

pub use cache::Lru;
pub use compute::{Compute, Direct, Work, Workspace};
pub use engine::{Drive, Engine, EngineError, Post, Ticket};
pub use plan::{Plan, PlanError, Request};
pub use world::{World, WorldError};
