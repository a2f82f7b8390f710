//! Unisono between processes and machines over TCP.
//!
//! One connection per peer and channel, made by [`Tcp`] and then driven by [`TcpEndpoint`] with
//! raw non-blocking system calls:
//!
//! | message | sender | receiver |
//! |---|---|---|
//! | up to 16 KiB | copied with its header, and others that wait, into one `send` | read with what surrounds it by one `recv`, copied to its place |
//! | longer | gathered from where it lies (`sendmsg`) | its header, then straight to its place (`readv`) |
//!
//! The kernel holds a sender back whose receiver has posted nothing. `wire` has the bytes,
//! `transport` how connections are made and strangers turned away.
//!
//! ```
//! use std::time::Duration;
//! use unisono_contract::{Endpoint, Local, Transport};
//! use unisono_tcp::Tcp;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let local = |rank| Local {
//!     rank,
//!     size: 2,
//!     address: None, // Only this machine.
//!     channels: 2,
//!     nonce: 42, // Control agrees on one.
//!     deadline: Duration::from_secs(5),
//! };
//! let (mut zero, mut one) = runtime.block_on(async {
//!     let (zero, one) = (Tcp::new().listen(&local(0)).await?, Tcp::new().listen(&local(1)).await?);
//!     let cards = [zero.card(), one.card()]; // Control carries them.
//!     let there = cards.clone();
//!     let one = tokio::spawn(async move { one.connect(&there).await });
//!     Ok::<_, Box<dyn std::error::Error>>((zero.connect(&cards).await?, one.await??))
//! })?;
//! assert!(zero.port(1, 0).is_some() && one.port(0, 1).is_some());
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod buffer;
mod card;
mod endpoint;
mod hello;
mod incoming;
mod outgoing;
mod socket;
mod transport;
mod wire;

pub use endpoint::TcpEndpoint;
pub use transport::Tcp;
