//! Figures with their provenance, and the transports they are about.
//!
//! No figure stands without saying where it came from: a choice that rests on a preset is another choice than one that rests
//! on a measurement.

use std::fmt;
use std::str::FromStr;

use crate::{LinkSpecError, Preset};

/// A way for two ranks to exchange bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Transport {
    /// Queue pairs of an RDMA device at each end of a cable or switch.
    Rdma,
    /// Sockets.
    Tcp,
}

impl Transport {
    /// All of them, the preferred one first.
    pub const ALL: [Transport; 2] = [Transport::Rdma, Transport::Tcp];

    /// `rdma` or `tcp`.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Rdma => "rdma",
            Transport::Tcp => "tcp",
        }
    }

    /// What is assumed of links that nothing is said about.
    pub const fn default_preset(self) -> Preset {
        match self {
            Transport::Rdma => Preset::Thunderbolt5Rdma,
            Transport::Tcp => Preset::TenGbe,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Transport {
    type Err = LinkSpecError;

    fn from_str(text: &str) -> Result<Transport, LinkSpecError> {
        let found = Transport::ALL.into_iter().find(|t| t.name() == text);
        found.ok_or_else(|| LinkSpecError::UnknownTransport {
            name: crate::text::shown(text),
        })
    }
}

/// Where a figure came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provenance {
    /// Measured on these links.
    Measured,
    /// Written by somebody.
    Given,
    /// Assumed, for links of this sort.
    Preset(Preset),
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Provenance::Measured => f.write_str("measured"),
            Provenance::Given => f.write_str("given"),
            Provenance::Preset(preset) => write!(f, "preset {preset}"),
        }
    }
}

/// A number and where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure<T> {
    /// The number.
    pub value: T,
    /// Where it came from.
    pub from: Provenance,
}

impl<T> Figure<T> {
    /// Measured on these links.
    pub const fn measured(value: T) -> Figure<T> {
        let from = Provenance::Measured;
        Figure { value, from }
    }

    /// Written by somebody.
    pub const fn given(value: T) -> Figure<T> {
        let from = Provenance::Given;
        Figure { value, from }
    }
}
