//! What a Unisono transport must do, and nothing else.
//!
//! An engine (above) and a transport (below) know each other only through this crate:
//!
//! | module | what it holds |
//! |---|---|
//! | [`memory`] | [`Piece`]: memory that is lent, and that nobody can reach once the loan has ended |
//! | [`frame`] | [`Frame`]: what every message says about itself, compared before user memory is touched |
//! | [`endpoint`] | [`Endpoint`]: post, poll, quiesce |
//! | [`host`] | [`Host`]: the clock and the way to sleep; [`WaitSet`]: what to sleep on |
//! | [`descriptor`] | [`Descriptor`]: an open file to wait on |
//! | [`event`] | [`Event`]: wakes a sleeper, costs next to nothing when nobody sleeps |
//! | [`transport`] | [`Transport`]: how endpoints come to be connected |
//! | [`posts`] | a bounded queue of posts, for transports to use |
//! | [`null`] | a network inside one process that one thread can step; the engine's test bench |
//! | [`middleware`] | endpoints around endpoints: [`middleware::Faulty`], [`middleware::Traced`] |
//! | [`conformance`] | the suite every transport passes |
//!
//! ```
//! use unisono_contract::{memory, null, Completions, Endpoint, Frame, Token};
//!
//! let mut ends = null::Net::new(2, null::Policy::instant());
//! let (mut one, mut zero) = (ends.pop().unwrap(), ends.pop().unwrap());
//! let to_one = zero.port(1, 0).unwrap();
//! let from_zero = one.port(0, 0).unwrap();
//! let frame = Frame { length: 4, ..Frame::default() };
//!
//! let mut landed = [0u8; 4];
//! memory::lend_shared(b"ping", |ping| {
//!     memory::lend(&mut landed, |into| {
//!         one.post_recv(from_zero, &frame, &[into], Token(7)).unwrap();
//!         zero.post_send(to_one, &frame, &[ping], Token(9)).unwrap();
//!         let mut done = Completions::new();
//!         one.poll(&mut done).unwrap();
//!         assert_eq!(done[0].token, Token(7));
//!     })
//! });
//! assert_eq!(&landed, b"ping");
//! ```
#![deny(unsafe_code)]

pub mod conformance;
pub mod descriptor;
pub mod endpoint;
pub mod event;
pub mod frame;
pub mod host;
#[allow(unsafe_code)] // Lent memory is the one thing Rust's borrows cannot express here.
pub mod memory;
pub mod middleware;
pub mod null;
pub mod posts;
pub mod transport;
mod yielding;

pub use descriptor::{Descriptor, Interest, Source};
pub use endpoint::{
    Completion, Completions, Direction, Drain, Endpoint, Limits, LinkCause, LinkError, Port,
    PostError, Token, Unclaimed,
};
pub use event::{Event, Key};
pub use frame::{Field, Frame, Mismatch, Opening};
pub use host::{Host, Ready, SystemHost, Time, WaitSet};
pub use memory::{
    Buffer, Lease, Operand, OutOfMemory, PhantomSpace, Piece, Region, RegionKey, Revoked,
};
pub use transport::{ConnectError, Listening, Local, Transport};
