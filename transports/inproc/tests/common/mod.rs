//! One rank of a test: an endpoint, a host, and a deadline.
#![allow(dead_code)] // Each test file uses its part.

use std::time::{Duration, Instant};

use unisono_contract::{
    Completion, Completions, Direction, Endpoint, Frame, Host, LinkError, Piece, Port, PostError,
    Ready, SystemHost, Token, WaitSet,
};
use unisono_inproc::InprocEndpoint;

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) struct Driver {
    pub(crate) endpoint: InprocEndpoint,
    pub(crate) host: SystemHost,
    done: Completions,
    set: WaitSet,
}

impl Driver {
    pub(crate) fn new(endpoint: InprocEndpoint) -> Self {
        Self {
            host: SystemHost::new(endpoint.size()),
            endpoint,
            done: Completions::new(),
            set: WaitSet::new(),
        }
    }

    /// Polls, spins and parks as a real driver does, until something completes.
    pub(crate) fn completions(&mut self, what: &str) -> Result<Vec<Completion>, LinkError> {
        let began = Instant::now();
        while self.done.is_empty() {
            assert!(began.elapsed() < DEADLINE, "waited for {what}");
            self.endpoint.poll(&mut self.done)?;
            if self.done.is_empty() && began.elapsed() >= self.host.spin_budget() {
                self.set.clear();
                if let Ready::Wait = self.endpoint.wait_on(&mut self.set)? {
                    self.endpoint.poll(&mut self.done)?;
                    if self.done.is_empty() {
                        let until = self.host.now() + DEADLINE;
                        self.host.park(&mut self.set, until);
                    }
                }
            }
        }
        self.host.waited(began.elapsed());
        Ok(std::mem::take(&mut self.done))
    }

    /// Waits for one completion and checks which it is.
    pub(crate) fn expect(&mut self, port: Port, direction: Direction, token: u64) {
        if self.done.is_empty() {
            self.done = self
                .completions(&format!("{direction} {token} on {port:?}"))
                .unwrap();
        }
        let completion = self.done.remove(0);
        let token = Token(token);
        assert_eq!(
            completion,
            Completion {
                port,
                direction,
                token
            }
        );
    }

    pub(crate) fn send(&mut self, port: Port, token: u64, data: &[Piece]) -> Result<(), PostError> {
        let frame = frame(token, data);
        self.endpoint.post_send(port, &frame, data, Token(token))
    }

    pub(crate) fn recv(&mut self, port: Port, token: u64, into: &[Piece]) -> Result<(), PostError> {
        let frame = frame(token, into);
        self.endpoint.post_recv(port, &frame, into, Token(token))
    }
}

/// The frame of the message whose token, at both ends, is its number.
pub(crate) fn frame(number: u64, pieces: &[Piece]) -> Frame {
    Frame {
        length: pieces.iter().map(Piece::len).sum::<usize>() as u64,
        sequence: number,
        ..Frame::default()
    }
}

/// A small generator: the same numbers at both ends from the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31) % bound
    }
}
