//! Groups connected over loopback, and one rank of a test.
#![allow(dead_code)] // Each test file uses its part.

use std::net::SocketAddr;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use unisono_contract::{
    Completion, Completions, ConnectError, Endpoint, Frame, Host, LinkError, Listening, Local,
    Piece, Ready, SystemHost, Transport, WaitSet,
};
use unisono_tcp::Tcp;

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) fn local(rank: u32, size: u32, address: Option<SocketAddr>) -> Local {
    Local {
        rank,
        size,
        address,
        channels: 2,
        nonce: 0x6e6f_6e63_6521,
        deadline: DEADLINE,
    }
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Connects a group, each rank on a thread and a runtime of its own. `between` sees all listening
/// ranks' cards before anybody connects.
pub(crate) fn try_connect(
    locals: &[Local],
    between: impl FnOnce(&mut Vec<Vec<u8>>) + Send,
) -> Vec<Result<Box<dyn Endpoint>, ConnectError>> {
    let cards = Mutex::new(vec![Vec::new(); locals.len()]);
    let between = Mutex::new(Some(between));
    let barrier = Barrier::new(locals.len());
    thread::scope(|scope| {
        let ranks: Vec<_> = locals
            .iter()
            .enumerate()
            .map(|(place, local)| {
                let (cards, between, barrier) = (&cards, &between, &barrier);
                scope.spawn(move || {
                    let runtime = runtime();
                    let door: Box<dyn Listening> =
                        runtime.block_on(Tcp::new().listen(local)).unwrap();
                    cards.lock().unwrap()[place] = door.card();
                    if barrier.wait().is_leader() {
                        let between = between.lock().unwrap().take().unwrap();
                        between(&mut cards.lock().unwrap());
                    }
                    barrier.wait();
                    let cards = cards.lock().unwrap().clone();
                    runtime.block_on(door.connect(&cards))
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

pub(crate) fn connect_at(size: usize, address: Option<SocketAddr>) -> Vec<Box<dyn Endpoint>> {
    let locals: Vec<_> = (0..size as u32)
        .map(|rank| local(rank, size as u32, address))
        .collect();
    try_connect(&locals, |_| {})
        .into_iter()
        .map(|end| end.unwrap())
        .collect()
}

pub(crate) fn connect(size: usize) -> Vec<Box<dyn Endpoint>> {
    connect_at(size, None)
}

pub(crate) fn pair() -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let mut ends = connect(2);
    let one = ends.pop().unwrap();
    (ends.pop().unwrap(), one)
}

/// An endpoint, a host, and a deadline.
pub(crate) struct Driver {
    pub(crate) endpoint: Box<dyn Endpoint>,
    host: SystemHost,
    set: WaitSet,
}

impl Driver {
    pub(crate) fn new(endpoint: Box<dyn Endpoint>) -> Self {
        Self {
            endpoint,
            host: SystemHost::new(2),
            set: WaitSet::new(),
        }
    }

    /// Polls, spins and parks as a real driver does, until `count` posts have completed.
    pub(crate) fn finish(&mut self, count: usize) -> Result<Vec<Completion>, LinkError> {
        let began = Instant::now();
        let mut done = Completions::new();
        while done.len() < count {
            assert!(
                began.elapsed() < DEADLINE,
                "{} of {count} completed",
                done.len()
            );
            self.endpoint.poll(&mut done)?;
            if done.len() < count && began.elapsed() >= self.host.spin_budget() {
                self.set.clear();
                if let Ready::Wait = self.endpoint.wait_on(&mut self.set)? {
                    let before = done.len();
                    self.endpoint.poll(&mut done)?;
                    if done.len() == before {
                        let until = self.host.now() + DEADLINE;
                        self.host.park(&mut self.set, until);
                    }
                }
            }
        }
        self.host.waited(began.elapsed());
        Ok(done)
    }
}

/// The frame of a message in `pieces`.
pub(crate) fn frame(sequence: u64, pieces: &[Piece]) -> Frame {
    Frame {
        length: pieces.iter().map(Piece::len).sum::<usize>() as u64,
        sequence,
        ..Frame::default()
    }
}
