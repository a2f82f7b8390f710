//! Many messages of random sizes between skewed threads, and peers that leave while
//! everything is in motion.

mod common;

use common::{Driver, Random};
use std::collections::VecDeque;
use std::thread;
use unisono_contract::{Direction, Endpoint, Lease, LinkCause, LinkError, Port, PostError};
use unisono_inproc::connect;

/// Sizes around the edge between inline and offered, and some far beyond.
fn size(random: &mut Random) -> usize {
    match random.below(8) {
        0 => 0,
        1..4 => random.below(257) as usize,
        4..7 => random.below(2_000) as usize,
        _ => random.below(100_000) as usize,
    }
}

fn pattern(seed: u64, size: usize) -> Vec<u8> {
    (0..size as u64)
        .map(|i| (seed.wrapping_mul(31).wrapping_add(i * 7) % 253) as u8)
        .collect()
}

/// The messages of one FIFO, as both of its ends know them.
struct Flow {
    seed: u64,
    random: Random,
    port: Port,
    next: u64,
    end: u64,
    /// Posted and not complete.
    held: VecDeque<(u64, Lease<Vec<u8>>)>,
}

impl Flow {
    fn new(source: u32, target: u32, port: Port, end: u64) -> Self {
        let seed = u64::from(source) << 32 | u64::from(target);
        Self {
            seed,
            random: Random(seed),
            port,
            next: 0,
            end,
            held: VecDeque::new(),
        }
    }

    fn is_done(&self) -> bool {
        self.next == self.end && self.held.is_empty()
    }

    /// Posts messages until the endpoint is full.
    fn post(&mut self, driver: &mut Driver, direction: Direction) -> Result<(), LinkError> {
        while self.next < self.end {
            let before = self.random.0;
            let size = size(&mut self.random);
            let (port, number) = (self.port, self.next);
            let (lease, posted) = match direction {
                Direction::Send => {
                    let lease = Lease::new(pattern(self.seed + number, size));
                    let posted = driver.send(port, number, &[lease.piece()]);
                    (lease, posted)
                }
                Direction::Recv => {
                    let lease = Lease::new(vec![0; size]);
                    let (piece, cut) = (lease.piece(), size / 3);
                    let cuts = [piece.slice(0..cut), piece.slice(cut..size)];
                    let posted = driver.recv(port, number, &cuts);
                    (lease, posted)
                }
            };
            match posted {
                Ok(()) => self.held.push_back((number, lease)),
                Err(PostError::Full) => {
                    self.random.0 = before;
                    return Ok(());
                }
                Err(PostError::Link(error)) => return Err(error),
            }
            self.next += 1;
        }
        Ok(())
    }

    /// Takes a completion, checks its order and what was received.
    fn complete(&mut self, token: u64, direction: Direction) {
        let (number, lease) = self.held.pop_front().unwrap();
        assert_eq!(number, token);
        let bytes = lease.into_inner();
        if direction == Direction::Recv {
            assert!(bytes == pattern(self.seed + number, bytes.len()));
        }
    }
}

/// Every rank exchanges `messages` with every other, in both directions at once.
/// `leave_after` receives this rank drops everything.
fn exchange(
    driver: &mut Driver,
    messages: u64,
    skew: bool,
    leave_after: u64,
) -> Result<(), LinkError> {
    let (me, size) = (driver.endpoint.rank(), driver.endpoint.size() as u32);
    let mut flows: Vec<[Flow; 2]> = Vec::new();
    for peer in (0..size).filter(|peer| *peer != me) {
        let port = driver.endpoint.port(peer, 0).unwrap();
        assert_eq!(port.0 as usize, flows.len());
        flows.push([
            Flow::new(me, peer, port, messages),
            Flow::new(peer, me, port, messages),
        ]);
    }
    let (mut random, mut received) = (Random(u64::from(me)), 0);
    while !flows.iter().flatten().all(Flow::is_done) {
        for [out, into] in &mut flows {
            into.post(driver, Direction::Recv)?;
            out.post(driver, Direction::Send)?;
        }
        if skew && random.below(16) == 0 {
            (0..random.below(40)).for_each(|_| thread::yield_now());
        }
        for completion in driver.completions("the exchange")? {
            let [out, into] = &mut flows[completion.port.0 as usize];
            match completion.direction {
                Direction::Send => out.complete(completion.token.0, Direction::Send),
                Direction::Recv => {
                    into.complete(completion.token.0, Direction::Recv);
                    received += 1;
                }
            }
        }
        if received >= leave_after {
            break;
        }
    }
    Ok(())
}

#[test]
fn random_sizes_in_both_directions_arrive_whole_and_in_order() {
    let ranks = connect(2).into_iter().map(|endpoint| {
        thread::spawn(|| exchange(&mut Driver::new(endpoint), 3_000, false, u64::MAX))
    });
    let ranks: Vec<_> = ranks.collect();
    ranks
        .into_iter()
        .for_each(|rank| rank.join().unwrap().unwrap());
}

#[test]
fn four_skewed_ranks_on_fewer_cores_exchange_all_to_all() {
    let ranks = connect(4).into_iter().map(|endpoint| {
        thread::spawn(|| exchange(&mut Driver::new(endpoint), 500, true, u64::MAX))
    });
    let ranks: Vec<_> = ranks.collect();
    ranks
        .into_iter()
        .for_each(|rank| rank.join().unwrap().unwrap());
}

#[test]
fn peers_of_a_rank_that_leaves_in_the_middle_are_told_and_not_hung() {
    for round in 0..40 {
        let ranks = connect(3).into_iter().map(|endpoint| {
            let leaves = endpoint.rank() == 1;
            let after = if leaves { 1 + round * 7 } else { u64::MAX };
            thread::spawn(move || exchange(&mut Driver::new(endpoint), 2_000, true, after))
        });
        let ranks: Vec<_> = ranks.collect();
        let results: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        assert!(results[1].is_ok());
        // The first to see it leaves as well, so the other may see either of them go.
        for (rank, result) in results.iter().enumerate().filter(|(rank, _)| *rank != 1) {
            let error = result.as_ref().unwrap_err();
            assert!(matches!(error.cause, LinkCause::Closed), "{error}");
            assert_ne!(error.peer as usize, rank);
        }
    }
}
