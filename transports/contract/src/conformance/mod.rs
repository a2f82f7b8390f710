//! The suite every transport passes.
//!
//! A transport's own tests give a function that makes the connected endpoints of a small world, and
//! call [`run_all`], or one property at a time so that each has a name in the test report:
//!
//! ```
//! use unisono_contract::{Endpoint, conformance, null};
//!
//! fn make(ranks: usize) -> Vec<Box<dyn Endpoint>> {
//!     null::Net::new(ranks, null::Policy::instant())
//!         .into_iter()
//!         .map(|end| Box::new(end) as Box<dyn Endpoint>)
//!         .collect()
//! }
//!
//! conformance::order(&make);
//! ```
//!
//! Each endpoint is driven from its own thread with a [`SystemHost`](crate::SystemHost). A property
//! that fails panics with its name, the rank, and what was wrong or waited for; nothing waits
//! longer than [`PATIENCE`], as long as posts and polls return. In every property completions must
//! come in the order of the posts.

mod data;
mod flow;
mod life;
mod pilot;
mod trust;

use crate::endpoint::Endpoint;

pub use data::{both_directions, gather_lists, order, sizes};
pub use flow::{
    back_pressure, channels, late_receives, late_sends, oversubscription, send_completion,
    unclaimed,
};
pub use life::{close_in_flight, peer_death, quiesce, quiet_departure, release};
pub use pilot::PATIENCE;
pub use trust::{limits, mismatch};

/// Makes the connected endpoints of a world of that size, in the order of ranks.
pub type Make<'a> = &'a dyn Fn(usize) -> Vec<Box<dyn Endpoint>>;

/// One property.
pub type Property = fn(Make<'_>);

/// All properties, by name.
pub const PROPERTIES: &[(&str, Property)] = &[
    ("limits", limits),
    ("order", order),
    ("sizes", sizes),
    ("gather_lists", gather_lists),
    ("both_directions", both_directions),
    ("back_pressure", back_pressure),
    ("late_receives", late_receives),
    ("late_sends", late_sends),
    ("send_completion", send_completion),
    ("channels", channels),
    ("unclaimed", unclaimed),
    ("oversubscription", oversubscription),
    ("mismatch", mismatch),
    ("close_in_flight", close_in_flight),
    ("quiet_departure", quiet_departure),
    ("peer_death", peer_death),
    ("quiesce", quiesce),
    ("release", release),
];

/// Checks every property in turn.
///
/// # Panics
/// With the first property that does not hold.
pub fn run_all(make: Make<'_>) {
    for (_, property) in PROPERTIES {
        property(make);
    }
}
