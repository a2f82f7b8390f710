//! [`Way`], the links that a candidate uses, and [`Require`], the links that somebody insists on.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use unisono_core::UnknownName;
use unisono_topology::Transport;

/// Over which links the bytes of a call go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Way {
    /// Those of RDMA alone.
    Rdma,
    /// Those of TCP alone.
    Tcp,
    /// RDMA where two ranks have it, TCP between the others: only considered where RDMA alone does not join all ranks.
    Mixed,
}

impl Way {
    /// `rdma`, `tcp` or `rdma+tcp`.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Rdma => "rdma",
            Way::Tcp => "tcp",
            Way::Mixed => "rdma+tcp",
        }
    }
}

impl From<Transport> for Way {
    fn from(transport: Transport) -> Way {
        match transport {
            Transport::Tcp => Way::Tcp,
            _ => Way::Rdma,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Way {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

/// What a fallback may not give up: any becomes the same error on all ranks.
///
/// ```
/// use unisono_select::Require;
///
/// assert_eq!("mesh-rdma".parse(), Ok(Require::MeshRdma));
/// assert!("infiniband".parse::<Require>().unwrap_err().to_string().contains("mesh-rdma, rdma, tcp"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Require {
    /// RDMA between every two ranks.
    MeshRdma,
    /// RDMA, over other ranks if need be.
    Rdma,
    /// TCP, even where there is RDMA.
    Tcp,
}

impl Require {
    /// All of them.
    pub const ALL: [Require; 3] = [Require::MeshRdma, Require::Rdma, Require::Tcp];

    /// `mesh-rdma`, `rdma` or `tcp`.
    pub const fn name(self) -> &'static str {
        match self {
            Require::MeshRdma => "mesh-rdma",
            Require::Rdma => "rdma",
            Require::Tcp => "tcp",
        }
    }

    /// The links it is about.
    pub const fn way(self) -> Way {
        match self {
            Require::MeshRdma | Require::Rdma => Way::Rdma,
            Require::Tcp => Way::Tcp,
        }
    }
}

impl fmt::Display for Require {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Require {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Require, UnknownName> {
        let mut all = Require::ALL.into_iter();
        all.find(|r| r.name() == name)
            .ok_or_else(|| UnknownName::new("requirement", name, Require::ALL.map(Require::name)))
    }
}
