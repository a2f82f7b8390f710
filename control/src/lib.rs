//! The control plane of a group: how ranks meet, who failed first, and how the others hear of it.
//!
//! Data never passes here. A [`Control`] carries one thing between ranks: the first [`Cause`] of a failure, which wins
//! and reaches everybody, so that all ranks return the same error instead of each blaming its neighbour. What a rank waits
//! for in vain is compared here too ([`Stalled`]), because ranks that disagree may all wait. There are two:
//! [`in_process`] between threads, and [`Network`] between processes, which also forms the group: ranks meet at a
//! [`Coordinator`], exchange the cards of their transport, and connect.
//!
//! ```
//! use unisono_control::{Cause, Control, Kind, in_process};
//! use unisono_contract::Event;
//!
//! let mut controls = in_process(vec![Event::new(), Event::new()]);
//! let (one, zero) = (controls.pop().unwrap(), controls.pop().unwrap());
//! zero.abort(Cause::new(0, None, Kind::Left));
//! one.abort(Cause::new(1, None, Kind::Lost { rank: 0 }));
//! assert_eq!(one.aborted().unwrap().kind, Kind::Left); // the first cause wins
//! ```
#![forbid(unsafe_code)]

pub mod address;
mod cause;
pub mod env;
mod in_process;
pub mod network;
mod refusal;
mod timer;
mod wire;

pub use address::{AddressError, AddressFault, Coordinator, Host};
pub use cause::stalled::Stalled;
pub use cause::{Cause, Kind, Operation};
pub use env::{Check, Environment, EnvironmentError, Place};
pub use in_process::{InProcess, in_process};
pub use network::{Network, Settings};
pub use refusal::{JoinError, Refusal};

use std::time::Duration;

use unisono_contract::Event;
use unisono_contract::descriptor::Source;

/// What a group needs besides its endpoints. One per rank.
pub trait Control: Send + Sync {
    /// Tells all ranks that the group has failed. Only the first cause counts; later ones are dropped.
    fn abort(&self, cause: Cause);

    /// The cause of the group's failure, once it is known here. Cheap while there is none.
    fn aborted(&self) -> Option<Cause>;

    /// Tells that this rank has waited long for a collective, its oldest one: once per operation, after about a second.
    /// Whoever has heard of a rank that calls something else under the same number aborts the group with
    /// [`Kind::Mismatch`]. Never waits. Where nobody compares, nothing happens.
    fn stalled(&self, report: Stalled) {
        let _ = report;
    }

    /// Notified when [`aborted`](Control::aborted) changes.
    fn event(&self) -> &Event;

    /// How long to wait for a cause before a closed link is blamed on the peer behind it.
    fn grace(&self) -> Duration;

    /// Notifies `event` after `delay`: how asynchronous calls meet their deadline.
    fn wake_after(&self, delay: Duration, event: &Event);

    /// Notifies `event`, once, when one of `sources` is ready: how asynchronous calls wait for sockets. Replaces what was
    /// watched for this event before. Between threads there is nothing to watch.
    fn watch(&self, sources: &[Source], event: &Event) {
        let _ = (sources, event);
    }
}
