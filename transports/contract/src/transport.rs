//! [`Transport`]: how the endpoints of a group come to be connected.
//!
//! A group's control meets all ranks first. Then each rank *listens*, which gives a **card**: a few
//! bytes that tell peers where to connect. Control carries the cards to everybody, and each rank
//! *connects*:
//!
//! ```text
//! control: Local --> transport.listen() --> listening.card() --(all ranks' cards)-->
//!          listening.connect(cards) --> endpoint --> Group
//! ```
//!
//! Both steps are asynchronous and run on the control thread's runtime; the endpoint that comes out
//! knows nothing of it. Dropping a future or a [`Listening`] closes what it had opened.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use unisono_core::Rank;

use crate::endpoint::Endpoint;

/// What control knows about this rank when it makes a transport connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// This rank.
    pub rank: Rank,
    /// Ranks in the group.
    pub size: Rank,
    /// The own address that peers can reach (an IPv6 address with its scope, the port is 0): the
    /// local end of the connection that reached the coordinator. `None`: not known, only this
    /// machine.
    pub address: Option<SocketAddr>,
    /// FIFOs per peer: 0 for collectives, 1 for point-to-point, further ones for algorithms that
    /// ask; at least 2.
    pub channels: u16,
    /// Agreed by control, equal on all ranks of this group and on no other: tells members from
    /// strangers.
    pub nonce: u64,
    /// How long connecting may take.
    pub deadline: Duration,
}

/// A way to move messages, before anything is open.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Its name, as people write it: `tcp`.
    fn name(&self) -> &'static str;

    /// Opens what peers connect to.
    ///
    /// # Errors
    /// [`ConnectError`] when the operating system or the device refuses.
    async fn listen(&self, local: &Local) -> Result<Box<dyn Listening>, ConnectError>;
}

/// A rank that peers can connect to.
#[async_trait]
pub trait Listening: Send + Sync + fmt::Debug {
    /// What peers need to know, for [`connect`](Self::connect): below 1 KiB.
    fn card(&self) -> Vec<u8>;

    /// Connects to all peers, and gives the endpoint once all links stand. `cards` are in rank
    /// order, this rank's own included.
    ///
    /// # Errors
    /// [`ConnectError`], at the latest when [`Local::deadline`] has passed. Strangers at the door
    /// are no error: they are closed and ignored.
    async fn connect(self: Box<Self>, cards: &[Vec<u8>])
    -> Result<Box<dyn Endpoint>, ConnectError>;
}

/// Why the endpoints of a group could not be connected.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The operating system said no.
    #[error("cannot {what}{}: {error}", At(.address))]
    Io {
        /// What was tried: `listen`, `connect to rank 3`.
        what: String,
        /// At which address.
        address: Option<SocketAddr>,
        /// What it said.
        error: Arc<io::Error>,
    },
    /// The deadline passed before this peer's links stood.
    #[error("rank {rank} did not connect within {} s", .after.as_secs_f64())]
    Timeout {
        /// The first missing peer.
        rank: Rank,
        /// The deadline.
        after: Duration,
    },
    /// The card of this rank cannot be read: not this transport's, or of another version.
    #[error("the card of rank {rank} cannot be used: {reason}")]
    Card {
        /// Whose card.
        rank: Rank,
        /// What is wrong with it.
        reason: String,
    },
    /// This transport cannot make such a group.
    #[error("{transport} cannot connect this group: {reason}")]
    Unsupported {
        /// Which transport.
        transport: &'static str,
        /// Why not.
        reason: String,
    },
}

/// " at ADDRESS", or nothing.
struct At<'a>(&'a Option<SocketAddr>);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |address| write!(f, " at {address}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_address_only_if_there_is_one() {
        let error = |address| ConnectError::Io {
            what: "listen".into(),
            address,
            error: Arc::new(io::Error::other("no")),
        };
        assert_eq!(error(None).to_string(), "cannot listen: no");
        let address = "[::1]:5000".parse().ok();
        assert_eq!(
            error(address).to_string(),
            "cannot listen at [::1]:5000: no"
        );
    }
}
