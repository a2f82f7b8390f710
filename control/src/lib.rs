//! The control plane of a group: who failed first, and how the others hear of it.
//!
//! Data never passes here. A [`Control`] carries one thing between ranks: the first [`Cause`] of a failure, which wins
//! and reaches everybody, so that all ranks return the same error instead of each blaming its neighbour.
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

mod cause;
mod in_process;
mod timer;

pub use cause::{Cause, Kind, Operation};
pub use in_process::{InProcess, in_process};

use std::time::Duration;

use unisono_contract::Event;

/// What a group needs besides its endpoints. One per rank.
pub trait Control: Send + Sync {
    /// Tells all ranks that the group has failed. Only the first cause counts; later ones are dropped.
    fn abort(&self, cause: Cause);

    /// The cause of the group's failure, once it is known here. Cheap while there is none.
    fn aborted(&self) -> Option<Cause>;

    /// Notified when [`aborted`](Control::aborted) changes.
    fn event(&self) -> &Event;

    /// How long to wait for a cause before a closed link is blamed on the peer behind it.
    fn grace(&self) -> Duration;

    /// Notifies `event` after `delay`: how asynchronous calls meet their deadline.
    fn wake_after(&self, delay: Duration, event: &Event);
}
