//! Unisono between threads of one process.
//!
//! Each rank is a thread. Its [`InprocEndpoint`] moves messages to the others through
//! rings of slots, one per directed pair and channel:
//!
//! ```text
//!  rank 0                                                            rank 1
//!  post_send ->  posts  ->  [slot][slot][slot]...  ->  posts  <-  post_recv
//!                            frame, and either
//!                            <= 256 bytes of payload, or
//!                            the pieces where the payload is: rank 1 copies
//!                            from there straight to its own, in its poll
//! ```
//!
//! A slot has one atomic state, and an end of a ring has no other shared state on the
//! hot path. Nothing blocks, locks, allocates when warm, or enters the kernel, but to
//! wake a rank that sleeps.
//!
//! | file | what it holds |
//! |---|---|
//! | `ring` | the slot state machine: the only concurrency here, explored by loom |
//! | `parcel` | what a slot carries |
//! | `outgoing`, `incoming` | the two directions of a port |
//! | `endpoint` | the contract's calls |
//! | `mesh` | where ranks find each other's rings |
//!
//! ```
//! use std::thread;
//! use unisono_contract::{Completions, Endpoint, Frame, Token, memory};
//!
//! let mut ends = unisono_inproc::connect(2);
//! let (mut one, mut zero) = (ends.pop().unwrap(), ends.pop().unwrap());
//! let frame = Frame { length: 5, ..Frame::default() };
//!
//! let sending = thread::spawn(move || {
//!     let port = zero.port(1, 0).unwrap();
//!     memory::lend_shared(b"hello", |data| {
//!         zero.post_send(port, &frame, &[data], Token(0)).unwrap();
//!     });
//! });
//!
//! let (mut landed, mut done) = ([0; 5], Completions::new());
//! let port = one.port(0, 0).unwrap();
//! memory::lend(&mut landed, |into| {
//!     one.post_recv(port, &frame, &[into], Token(0)).unwrap();
//!     while done.is_empty() {
//!         one.poll(&mut done).unwrap();
//!     }
//! });
//! assert_eq!(&landed, b"hello");
//! sending.join().unwrap();
//! ```
//!
//! Loom sees `ring` alone; under `--cfg loom` nothing else here is compiled.
#![cfg_attr(loom, allow(dead_code))]

#[cfg(not(loom))]
mod endpoint;
#[cfg(not(loom))]
mod incoming;
#[cfg(not(loom))]
mod mesh;
#[cfg(not(loom))]
mod outgoing;
#[cfg(not(loom))]
mod parcel;
#[cfg(not(loom))]
mod ring;
mod sync;

#[cfg(not(loom))]
pub use endpoint::InprocEndpoint;
#[cfg(not(loom))]
pub use mesh::{Mesh, connect};
