//! How fast the bare network is: `cargo test --release -p unisono-sim --lib bare -- --ignored --nocapture`.

use std::time::Instant;

use unisono_contract::{Completion, Direction, Frame, Port, Token};
use unisono_core::Rank;

use super::{FifoKey, Shared};
use crate::cluster::Cluster;

const RANKS: Rank = 256;
const EVENTS: u64 = 4_000_000;

/// A ring in which every rank passes on what it gets: without engines, groups and payload.
#[test]
#[ignore = "a measurement: for a release build"]
fn bare_network_processes_two_million_events_a_second() {
    let cluster = Cluster::mesh(RANKS);
    let shared = Shared::new(RANKS, 1, cluster.settings().clone());
    let mut world = shared.lock();
    let fifos: Vec<u32> = (0..RANKS)
        .map(|from| {
            let to = (from + 1) % RANKS;
            let key = FifoKey {
                group: 0,
                from,
                to,
                channel: 0,
            };
            world.open(key, from, Port(0));
            world.open(key, to, Port(1))
        })
        .collect();
    let frame = Frame::default();
    let post = |world: &mut super::World, rank: Rank, direction| {
        let into = fifos[(rank + RANKS - 1) as usize % RANKS as usize];
        let posted = match direction {
            Direction::Send => world.post_send(fifos[rank as usize], &frame, &[], Token(0)),
            Direction::Recv => world.post_recv(into, &frame, &[], Token(0)),
        };
        assert!(posted.is_ok());
    };
    for rank in 0..RANKS {
        post(&mut world, rank, Direction::Recv);
        post(&mut world, rank, Direction::Send);
    }
    let (mut fired, mut rung) = (Vec::new(), Vec::new());
    let mut done: Vec<Completion> = Vec::new();
    let began = Instant::now();
    while world.events < EVENTS && world.step() {
        world.take_fired(&mut fired, &mut rung);
        for rank in fired.drain(..) {
            std::mem::swap(&mut world.seats[rank as usize].done, &mut done);
            for completion in done.drain(..) {
                if completion.direction == Direction::Recv {
                    post(&mut world, rank, Direction::Recv);
                    post(&mut world, rank, Direction::Send);
                }
            }
        }
    }
    let rate = world.events as f64 / began.elapsed().as_secs_f64();
    println!(
        "{} events: {:.2} million a second",
        world.events,
        rate / 1e6
    );
    assert!(world.events >= EVENTS);
    assert!(rate > 2e6, "{rate}");
}
