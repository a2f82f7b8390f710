//! The nouns every Unisono crate shares.
//!
//! | module | noun |
//! |---|---|
//! | [`dtype`] | what one element is |
//! | [`op`] | how two elements become one |
//! | [`collective`] | which exchange is asked for, and which blocks live in the input or the output of a rank |
//! | [`blocks`] | how a count of elements is cut, in 64 bits and without overflow |
//! | [`topology`] | ranks and the links between them |
//!
//! Nothing here knows a clock, a thread, a socket or an algorithm.
//!
//! ```
//! use unisono_core::{Cut, DType};
//!
//! // Ten elements in four balanced blocks: 2, 3, 2, 3.
//! let cut = Cut::new(10, 4);
//! assert_eq!(cut.range(1), 2..5);
//! assert_eq!(DType::BF16.size(), 2);
//! ```
#![forbid(unsafe_code)]

pub mod blocks;
pub mod collective;
pub mod dtype;
pub mod element;
pub mod op;
pub mod topology;

pub use blocks::{Cut, Shape};
pub use collective::{Collective, Homes};
pub use dtype::DType;
pub use element::Element;
pub use op::{Op, UserOp};
pub use topology::{Link, NoRing, RingOrder, RingSearch, Topology};

/// One participant of a group, `0..size`.
///
/// A plain number: programs, frames and error messages all print it as is.
pub type Rank = u32;

/// A name that is not known, with the names that are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`; known: {known}")]
pub struct UnknownName {
    /// What was looked up: `dtype`, `operator`, `collective`, `algorithm`.
    pub what: &'static str,
    /// The name as it was given.
    pub name: String,
    /// The known names, comma separated.
    pub known: String,
}

impl UnknownName {
    /// The error for `name`, listing `known`.
    pub fn new<'a>(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self {
            what,
            name: name.to_owned(),
            known: known.into_iter().collect::<Vec<_>>().join(", "),
        }
    }
}
