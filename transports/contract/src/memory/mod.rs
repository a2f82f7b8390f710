//! Memory that is lent to a transport and can be taken back.
//!
//! An engine hands [`Piece`]s to endpoints: small `Copy` values that name a range of bytes. A piece
//! may outlive the memory it names, but it can never reach it: every access first *enters* the
//! lease the piece was made under, and a lease that has ended lets nobody in ([`Revoked`]). Ending
//! a lease waits until everyone who is inside has left.
//!
//! | who owns the bytes | how to get a piece | the lease ends |
//! |---|---|---|
//! | the caller, borrowed | [`lend`], [`lend_shared`] | when the closure returns or panics |
//! | a [`Lease`] | [`Lease::piece`] | with [`Lease::into_inner`] or its drop |
//! | a [`Region`] | [`Region::piece`] | with the last clone of the region |
//! | nobody, there are none | [`PhantomSpace::alloc`] | it never began: [`Revoked::Phantom`] |
//!
//! **The invariant.** The lease protects *lifetime*, dynamically. That no two accesses overlap in
//! time and place with one of them writing is not checked here: it is what a verified program
//! guarantees by its waits, and what an endpoint keeps by touching only memory that is posted to
//! it. Under that invariant the accessors may form slices. ([`access`] and [`write_all`] do check
//! that the pieces of one call do not overlap each other: it costs a compare.)
//!
//! Do not end a lease from inside an access to it: the end waits for the access.
//!
//! ```
//! use unisono_contract::memory::{self, Revoked};
//!
//! let mut numbers = [1u32, 2, 3];
//! let kept = memory::lend(&mut numbers, |piece| {
//!     piece.slice(0..4).write(|bytes| bytes.fill(0)).unwrap();
//!     piece // Leaves the scope, but without its memory.
//! });
//! assert_eq!(numbers, [0, 2, 3]);
//! assert_eq!(kept.read(|_| ()), Err(Revoked::Ended));
//! ```

mod access;
mod cell;
mod lease;
mod phantom;
mod piece;
mod region;

pub use access::{
    Operand, access, copy, copy_bytes_across, copy_window, read_all, total, write_all,
};
pub use lease::{Lease, Stable, lend, lend_shared};
pub use phantom::PhantomSpace;
pub use piece::{Piece, Revoked};
pub use region::{Buffer, OutOfMemory, Region, RegionKey};
