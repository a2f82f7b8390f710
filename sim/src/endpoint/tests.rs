//! The endpoint keeps the contract that every transport keeps, and is fast enough.

use std::time::Instant;

use unisono_contract::conformance;

use super::*;
use crate::cluster::Cluster;

/// An endpoint for threads that do not know of virtual time: whoever polls moves the world on as far as it goes.
struct Eager(SimEndpoint);

impl Eager {
    fn advance(&self) {
        let shared = &self.0.shared;
        let (mut fired, mut rung) = (Vec::new(), Vec::new());
        let mut world = shared.lock();
        loop {
            world.take_fired(&mut fired, &mut rung);
            fired.drain(..).for_each(|rank| shared.notify(rank));
            if !world.step() {
                return;
            }
        }
    }
}

impl Endpoint for Eager {
    fn limits(&self) -> &Limits {
        self.0.limits()
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        self.0.port(peer, channel)
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        self.0.post_send(port, frame, data, token)
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        self.0.post_recv(port, expect, into, token)
    }

    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        self.advance();
        self.0.poll(done)
    }

    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        self.advance();
        self.0.wait_on(set)
    }

    fn quiesce(&mut self) -> Drain {
        let drain = self.0.quiesce();
        self.advance();
        drain
    }
}

impl Drop for Eager {
    fn drop(&mut self) {
        for local in &self.0.ports {
            self.0.shared.lock().depart(local.fifos[0], local.fifos[1]);
        }
        self.advance();
    }
}

fn endpoints(cluster: &Cluster) -> Vec<SimEndpoint> {
    let topology = Arc::new(cluster.topology().clone());
    let shared = Shared::new(topology.size(), 1, cluster.settings().clone());
    (0..topology.size())
        .map(|rank| SimEndpoint::new(Arc::clone(&shared), Arc::clone(&topology), 0, rank))
        .collect()
}

#[test]
fn the_contract_is_kept() {
    conformance::run_all(&|ranks| {
        endpoints(&Cluster::mesh(ranks as Rank))
            .into_iter()
            .map(|endpoint| Box::new(Eager(endpoint)) as Box<dyn Endpoint>)
            .collect()
    });
}

/// The bare network: 64 ranks shift messages of 64 bytes round a ring.
#[test]
#[ignore = "a measurement, for a release build"]
fn events_a_second() {
    const RANKS: u32 = 64;
    const ROUNDS: u64 = 20_000;
    let mut ends = endpoints(&Cluster::mesh(RANKS));
    let shared = Arc::clone(&ends[0].shared);
    let data = unisono_contract::Lease::new(vec![7u8; 64]);
    let into = unisono_contract::Lease::new(vec![0u8; 64]);
    let ports: Vec<[Port; 2]> = ends
        .iter_mut()
        .map(|end| {
            let next = end.port((end.rank + 1) % RANKS, 0);
            let last = end.port((end.rank + RANKS - 1) % RANKS, 0);
            [next.unwrap(), last.unwrap()]
        })
        .collect();
    let (mut done, mut fired, mut rung) = (Vec::new(), Vec::new(), Vec::new());
    let began = Instant::now();
    for round in 0..ROUNDS {
        let frame = Frame {
            length: 64,
            sequence: round,
            ..Frame::default()
        };
        for (end, [next, last]) in ends.iter_mut().zip(&ports) {
            end.post_recv(*last, &frame, &[into.piece()], Token(0))
                .unwrap();
            end.post_send(*next, &frame, &[data.piece()], Token(1))
                .unwrap();
        }
        while shared.lock().step() {
            shared.lock().take_fired(&mut fired, &mut rung);
            for rank in fired.drain(..) {
                ends[rank as usize].poll(&mut done).unwrap();
            }
        }
        assert_eq!(done.len(), 2 * RANKS as usize);
        done.clear();
    }
    let (seconds, events) = (began.elapsed().as_secs_f64(), shared.lock().events);
    println!(
        "{events} events in {seconds:.3} s: {:.2} million a second",
        events as f64 / seconds / 1e6
    );
}
