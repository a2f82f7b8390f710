//! Where the threads of a process find each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_contract::Event;
use unisono_core::Rank;

use crate::InprocEndpoint;
use crate::endpoint::DEPTH;
use crate::parcel::Parcel;
use crate::ring::{Receiver, Sender, ring};

/// A group of `size` ranks in one process, each to be driven by a thread of its own.
///
/// Cloning is cheap and gives the same mesh, so each thread can take its endpoint
/// itself; [`connect`] gives all of them at once.
///
/// ```
/// use unisono_contract::Endpoint;
/// use unisono_inproc::Mesh;
///
/// let mesh = Mesh::new(2);
/// let mut endpoint = mesh.endpoint(0);
/// assert!(endpoint.port(1, 0).is_some());
/// assert!(endpoint.port(2, 0).is_none(), "there is no rank 2");
/// ```
#[derive(Clone)]
pub struct Mesh {
    hub: Arc<Hub>,
}

/// The endpoints of `size` ranks, in rank order.
#[must_use]
pub fn connect(size: usize) -> Vec<InprocEndpoint> {
    let mesh = Mesh::new(size);
    (0..size as Rank).map(|rank| mesh.endpoint(rank)).collect()
}

impl Mesh {
    /// A mesh of `size` ranks. Nothing but their events is allocated yet: each pair
    /// gets its rings when one of them first opens a port to the other.
    ///
    /// # Panics
    /// If `size` does not fit a [`Rank`].
    #[must_use]
    pub fn new(size: usize) -> Self {
        assert!(Rank::try_from(size).is_ok(), "{size} ranks do not fit u32");
        let hub = Hub {
            events: (0..size).map(|_| Event::new()).collect(),
            table: Mutex::new(Table {
                seats: vec![Seat::Free; size],
                halves: HashMap::new(),
            }),
        };
        Self { hub: Arc::new(hub) }
    }

    /// Number of ranks.
    #[must_use]
    pub fn size(&self) -> usize {
        self.hub.events.len()
    }

    /// The endpoint of `rank`. There is one, whoever takes it.
    ///
    /// # Panics
    /// If there is no such rank, or its endpoint was taken before: two threads with
    /// the same rank would be one rank too many in every collective.
    #[must_use]
    pub fn endpoint(&self, rank: Rank) -> InprocEndpoint {
        self.hub.sit(rank);
        InprocEndpoint::new(Arc::clone(&self.hub), rank)
    }

    /// The event by which `rank` is woken.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn event(&self, rank: Rank) -> Event {
        self.hub.event(rank).clone()
    }
}

impl std::fmt::Debug for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mesh")
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

/// What the ranks share besides rings. Used to open ports and to leave, never to
/// move data.
pub(crate) struct Hub {
    events: Box<[Event]>,
    table: Mutex<Table>,
}

struct Table {
    seats: Vec<Seat>,
    /// The ends of rings whose owner has not opened the port yet.
    halves: HashMap<Fifo, Half>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seat {
    Free,
    Taken,
    Left,
}

/// A directed FIFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Fifo {
    source: Rank,
    target: Rank,
    channel: u16,
}

enum Half {
    Sender(Sender<Parcel>),
    Receiver(Receiver<Parcel>),
}

impl Hub {
    pub(crate) fn size(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn event(&self, rank: Rank) -> &Event {
        &self.events[rank as usize]
    }

    /// Both directions between `me` and `peer`, as `me` sees them. Called once per
    /// peer and channel.
    pub(crate) fn open(
        &self,
        me: Rank,
        peer: Rank,
        channel: u16,
    ) -> (Sender<Parcel>, Receiver<Parcel>) {
        let mut table = self.table();
        let out = Fifo {
            source: me,
            target: peer,
            channel,
        };
        let into = Fifo {
            source: peer,
            target: me,
            channel,
        };
        (table.sender(out), table.receiver(into))
    }

    /// The ports that only the other end has opened: to which rank, on which channel.
    pub(crate) fn opened_to(&self, rank: Rank) -> Vec<(Rank, u16)> {
        let table = self.table();
        let mut ports: Vec<_> = table
            .halves
            .iter()
            .filter(|(fifo, half)| fifo.target == rank && matches!(half, Half::Receiver(_)))
            .map(|(fifo, _)| (fifo.source, fifo.channel))
            .collect();
        ports.sort_unstable();
        ports
    }

    /// `rank` leaves; its own ends must have been dropped before. Ends that wait for
    /// it, now or later, are dropped too, so its peers find their rings closed.
    pub(crate) fn leave(&self, rank: Rank) {
        {
            let mut table = self.table();
            table.seats[rank as usize] = Seat::Left;
            table.halves.retain(|fifo, half| match half {
                Half::Sender(_) => fifo.source != rank,
                Half::Receiver(_) => fifo.target != rank,
            });
        }
        self.events.iter().for_each(Event::notify);
    }

    fn sit(&self, rank: Rank) {
        let mut table = self.table();
        let size = table.seats.len();
        let Some(seat) = table.seats.get_mut(rank as usize) else {
            panic!("rank {rank} of a mesh of {size}");
        };
        assert_eq!(*seat, Seat::Free, "the endpoint of rank {rank} was taken");
        *seat = Seat::Taken;
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is whole between any two statements, so a panic elsewhere in a
        // thread that held it has broken nothing.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn sender(&mut self, fifo: Fifo) -> Sender<Parcel> {
        if let Some(Half::Sender(sender)) = self.halves.remove(&fifo) {
            return sender;
        }
        let (sender, receiver) = ring(DEPTH, Parcel::empty);
        if self.seats[fifo.target as usize] != Seat::Left {
            self.halves.insert(fifo, Half::Receiver(receiver));
        }
        sender
    }

    fn receiver(&mut self, fifo: Fifo) -> Receiver<Parcel> {
        if let Some(Half::Receiver(receiver)) = self.halves.remove(&fifo) {
            return receiver;
        }
        let (sender, receiver) = ring(DEPTH, Parcel::empty);
        if self.seats[fifo.source as usize] != Seat::Left {
            self.halves.insert(fifo, Half::Sender(sender));
        }
        receiver
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_contract::{Endpoint, Frame, Token};

    #[test]
    fn nothing_is_left_when_all_are_gone() {
        let mesh = Mesh::new(3);
        let hub = Arc::downgrade(&mesh.hub);
        let mut ends: Vec<_> = (0..3).map(|rank| mesh.endpoint(rank)).collect();
        drop(mesh);
        for (peer, channel) in [(1, 0), (1, 1), (2, 0)] {
            let port = ends[0].port(peer, channel).unwrap();
            let frame = Frame::default();
            ends[0].post_send(port, &frame, &[], Token(0)).unwrap();
        }
        assert!(ends[1].port(0, 0).is_some());
        // Two halves wait for each port of one side only.
        let waiting = |hub: &Hub| hub.table().halves.len();
        assert_eq!(waiting(ends[0].hub()), 4);
        // Rank 2 takes its halves along, rank 0 those that waited for it.
        drop(ends.pop());
        assert_eq!(waiting(ends[0].hub()), 2);
        let left = ends.remove(0);
        drop(ends);
        assert_eq!(waiting(left.hub()), 0);
        drop(left);
        assert!(hub.upgrade().is_none());
    }
}
