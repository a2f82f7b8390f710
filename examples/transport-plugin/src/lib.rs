//! A transport written outside the library: letter boxes between the threads of a process.
//!
//! Every directed pair of ranks has one box per channel. A send puts a copy of its bytes into the box; a receive takes
//! the first letter out. It is as slow as that sounds, and it keeps every rule of the contract: the conformance suite
//! and a group of ranks run over it in `tests/letters.rs`. `docs/a-transport-in-100-lines.md` walks through it.
//!
//! ```
//! use unisono_contract::{Completions, Endpoint, Frame, Token, memory};
//!
//! let mut ends = unisono_example_transport::connect(2);
//! let (mut one, mut zero) = (ends.pop().unwrap(), ends.pop().unwrap());
//! let (out, into) = (zero.port(1, 0).unwrap(), one.port(0, 0).unwrap());
//! let frame = Frame { length: 5, ..Frame::default() };
//!
//! memory::lend_shared(b"hello", |data| zero.post_send(out, &frame, &[data], Token(0))).unwrap();
//! let mut landed = [0; 5];
//! memory::lend(&mut landed, |piece| {
//!     one.post_recv(into, &frame, &[piece], Token(7)).unwrap();
//!     let mut done = Completions::new();
//!     one.poll(&mut done).unwrap();
//!     assert_eq!(done[0].token, Token(7));
//! });
//! assert_eq!(&landed, b"hello");
//! ```
#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_contract::memory::copy_bytes_across;
use unisono_contract::{
    Completion, Completions, Direction, Drain, Endpoint, Event, Frame, Lease, Limits, LinkCause,
    LinkError, Piece, Port, PostError, Ready, Token, WaitSet,
};
use unisono_core::Rank;

/// What all ranks share.
struct Hub {
    state: Mutex<State>,
    events: Vec<Event>,
}

/// What was sent and not taken yet, oldest first.
type Mail = VecDeque<(Frame, Lease<Vec<u8>>)>;

#[derive(Default)]
struct State {
    /// Letters on their way, by sender, receiver and channel.
    boxes: HashMap<(Rank, Rank, u16), Mail>,
    /// Ports that a rank (the first) has closed, and ranks that have left.
    closed: HashSet<(Rank, Rank, u16)>,
    gone: HashSet<Rank>,
}

/// One rank's letter boxes.
pub struct Letters {
    hub: Arc<Hub>,
    rank: Rank,
    limits: Limits,
    lines: Vec<Line>,
}

/// A port: one peer and channel, and what is posted there.
#[derive(Default)]
struct Line {
    peer: Rank,
    channel: u16,
    sent: VecDeque<Token>,
    wanted: VecDeque<(Frame, Vec<Piece>, Token)>,
    broken: Option<LinkError>,
}

const DEPTH: usize = 16;

/// The endpoints of `size` ranks, in rank order.
pub fn connect(size: Rank) -> Vec<Letters> {
    let hub = Arc::new(Hub {
        state: Mutex::default(),
        events: (0..size).map(|_| Event::new()).collect(),
    });
    let letters = |rank| Letters {
        hub: Arc::clone(&hub),
        rank,
        limits: Limits {
            pieces: 8,
            depth: DEPTH,
            registers: false,
            name: "letters",
        },
        lines: Vec::new(),
    };
    (0..size).map(letters).collect()
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Letters {
    /// What wakes this rank.
    pub fn event(&self) -> &Event {
        &self.hub.events[self.rank as usize]
    }
}

impl Line {
    fn room(&self, posts: usize) -> Result<(), PostError> {
        match &self.broken {
            Some(error) => Err(error.clone().into()),
            None if posts == DEPTH => Err(PostError::Full),
            None => Ok(()),
        }
    }

    fn break_by(&mut self, port: Port, cause: impl Into<LinkCause>) -> LinkError {
        let (peer, cause) = (self.peer, cause.into());
        self.broken.insert(LinkError { port, peer, cause }).clone()
    }
}

impl Endpoint for Letters {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        if peer == self.rank || peer as usize >= self.hub.events.len() {
            return None;
        }
        let known = |l: &Line| (l.peer, l.channel) == (peer, channel);
        let at = self.lines.iter().position(known).unwrap_or_else(|| {
            self.lines.push(Line {
                peer,
                channel,
                ..Line::default()
            });
            self.lines.len() - 1
        });
        Some(Port(at as u32))
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let line = &mut self.lines[port.0 as usize];
        line.room(line.sent.len())?;
        let bytes = Lease::new(vec![0; frame.length as usize]);
        if let Err(revoked) = copy_bytes_across(&[bytes.piece()], data) {
            return Err(line.break_by(port, revoked).into());
        }
        let address = (self.rank, line.peer, line.channel);
        let mut state = self.hub.lock();
        let letters = state.boxes.entry(address).or_default();
        letters.push_back((*frame, bytes));
        drop(state);
        line.sent.push_back(token);
        self.hub.events[line.peer as usize].notify();
        Ok(())
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let line = &mut self.lines[port.0 as usize];
        line.room(line.wanted.len())?;
        line.wanted.push_back((*expect, into.to_vec(), token));
        Ok(())
    }

    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        let mut guard = self.hub.lock();
        let state = &mut *guard;
        let open = |(_, line): &(usize, &mut Line)| line.broken.is_none();
        for (at, line) in self.lines.iter_mut().enumerate().filter(open) {
            let (port, me, peer) = (Port(at as u32), self.rank, line.peer);
            let completion = |direction, token| Completion {
                port,
                direction,
                token,
            };
            // A send is done when its letter was taken: so a slow receiver holds the sender back.
            let outbox = state.boxes.entry((me, peer, line.channel)).or_default();
            let taken = line.sent.drain(..line.sent.len() - outbox.len());
            done.extend(taken.map(|token| completion(Direction::Send, token)));
            let inbox = state.boxes.entry((peer, me, line.channel)).or_default();
            while let (Some((expect, into, token)), Some((frame, bytes))) =
                (line.wanted.front(), inbox.front())
            {
                if let Err(mismatch) = expect.compare(frame) {
                    return Err(line.break_by(port, mismatch));
                }
                if let Err(revoked) = copy_bytes_across(into, &[bytes.piece()]) {
                    return Err(line.break_by(port, revoked));
                }
                done.push(completion(Direction::Recv, *token));
                line.wanted.pop_front();
                inbox.pop_front();
                self.hub.events[peer as usize].notify();
            }
            let closed = state.closed.contains(&(peer, me, line.channel));
            let waiting = !line.wanted.is_empty() || !line.sent.is_empty();
            if waiting && (closed || state.gone.contains(&peer)) {
                return Err(line.break_by(port, LinkCause::Closed));
            }
        }
        Ok(())
    }

    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        set.add(self.event());
        Ok(Ready::Wait)
    }

    fn quiesce(&mut self) -> Drain {
        // Letters hold copies, so only receives have memory to give back.
        for (at, line) in self.lines.iter_mut().enumerate() {
            if line.broken.is_none() && !line.wanted.is_empty() {
                line.break_by(Port(at as u32), LinkCause::Closed);
                let port = (self.rank, line.peer, line.channel);
                self.hub.lock().closed.insert(port);
                self.hub.events[line.peer as usize].notify();
            }
            line.wanted.clear();
        }
        Drain::Quiet
    }
}

impl Drop for Letters {
    fn drop(&mut self) {
        self.hub.lock().gone.insert(self.rank);
        self.hub.events.iter().for_each(Event::notify);
    }
}
