//! Groups assembled from parts: endpoints, topology and local work of one's own.

mod common;

use std::sync::{Arc, Mutex};
use std::thread;

use common::LIMIT;
use unisono::parts::{
    Compute, Direct, Endpoint, Event, PhantomSpace, Piece, SystemHost, Topology, Work, in_process,
};
use unisono::{Collective, DType, Error, Group, Op, Parts, PieceCall, Rank};
use unisono_contract::{Local, Revoked, Transport};
use unisono_reduce::Kernels;

/// Counts the bytes that are reduced.
struct Counting(Arc<Mutex<u64>>);

impl Compute for Counting {
    fn copy(&mut self, work: Work, target: Piece, source: Piece) -> Result<(), Revoked> {
        Direct.copy(work, target, source)
    }

    fn reduce(
        &mut self,
        kernels: &Kernels,
        target: Piece,
        sources: &[Piece],
        finish: Option<Rank>,
    ) -> Result<(), Revoked> {
        *self.0.lock().expect("no panic") += target.len() as u64;
        Direct.reduce(kernels, target, sources, finish)
    }
}

/// An endpoint, and what control rings at this rank.
type End = (Box<dyn Endpoint>, Event);

fn inproc_ends(size: Rank) -> Vec<End> {
    let ends = unisono_inproc::connect(size as usize).into_iter();
    ends.map(|end| {
        let bell = end.event().clone();
        (Box::new(end) as Box<dyn Endpoint>, bell)
    })
    .collect()
}

fn tcp_ends(size: Rank) -> Vec<End> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut doors = Vec::new();
        for rank in 0..size {
            let local = Local {
                rank,
                size,
                address: None,
                channels: 2,
                nonce: 7,
                deadline: LIMIT,
            };
            doors.push(
                unisono_tcp::Tcp::new()
                    .listen(&local)
                    .await
                    .expect("a port"),
            );
        }
        let cards: Vec<_> = doors.iter().map(|door| door.card()).collect();
        let ends = doors.into_iter().map(|door| door.connect(&cards));
        let ends = futures::future::join_all(ends).await;
        ends.into_iter()
            .map(|end| (end.expect("connected"), Event::new()))
            .collect()
    })
}

/// Runs `f` on every rank, on threads, with all reductions counted.
fn assembled<R: Send>(
    (topology, ends): (Topology, Vec<End>),
    reduced: &Arc<Mutex<u64>>,
    f: impl Fn(Group) -> R + Sync,
) -> Vec<R> {
    let size = topology.size() as usize;
    let (endpoints, bells): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
    let controls = in_process(bells);
    thread::scope(|s| {
        let f = &f;
        let ends = (0..).zip(endpoints.into_iter().zip(controls));
        let threads: Vec<_> = ends
            .map(|(rank, (endpoint, control))| {
                let parts = Parts::new(
                    rank,
                    topology.clone(),
                    vec![endpoint],
                    Box::new(control),
                    Box::new(SystemHost::new(size)),
                    unisono::registry(),
                );
                let parts = parts.compute(Box::new(Counting(Arc::clone(reduced))));
                let group = Group::assemble(parts).expect("a group");
                s.spawn(move || f(group.with_timeout(LIMIT)))
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("a rank"))
            .collect()
    })
}

#[test]
fn an_assembled_group_uses_its_topology_and_its_compute() {
    // A line: no ring, no mesh.
    let line = Topology::from_links(4, [(0, 1), (1, 2), (2, 3)]);
    let reduced = Arc::new(Mutex::new(0));
    assembled((line, inproc_ends(4)), &reduced, |group| {
        let ring = group.with_algorithm("ring").expect("it exists");
        let mut x = [group.rank() as f32; 1000];
        let refused = ring.all_reduce(&mut x, Op::Sum);
        assert!(
            matches!(refused, Err(Error::Select(_))),
            "a line is no ring"
        );
        group.all_reduce(&mut x, Op::Sum).expect("done");
        assert_eq!(x, [6.0; 1000]);
    });
    // On a line three messages of 4,000 bytes are added, wherever that is.
    assert_eq!(*reduced.lock().expect("no panic"), 12_000);
}

#[test]
fn parts_of_a_rank_that_does_not_exist_are_refused() {
    let control = in_process(vec![Event::new()]).remove(0);
    let host = Box::new(SystemHost::new(1));
    let topology = Topology::full(2);
    let parts = Parts::new(
        2,
        topology,
        vec![],
        Box::new(control),
        host,
        unisono::registry(),
    );
    let refused = Group::assemble(parts).map(|_| ());
    assert!(matches!(refused, Err(Error::Parts { rank: 2, size: 2 })));
}

/// A phantom all_reduce of `n` elements on `group`, which cannot do it.
fn try_phantom(group: &Group, space: &PhantomSpace, n: usize) {
    let x = space.alloc(4 * n).expect("room");
    let call = PieceCall::new(Collective::AllReduce, n as u64, DType::F32).op(Op::Sum);
    let error = Error::from(
        group
            .start_pieces(call, x, x)
            .wait()
            .expect_err("nothing can move"),
    );
    assert!(matches!(error, Error::Failed { .. }), "{error}");
}

#[test]
fn endpoints_that_move_bytes_fail_on_a_phantom_by_type_on_every_rank() {
    for connect in [inproc_ends, tcp_ends] {
        for n in [4, 1 << 18] {
            let space = PhantomSpace::new();
            let parts = (Topology::full(2), connect(2));
            assembled(parts, &Arc::default(), |group| {
                try_phantom(&group, &space, n);
            });
        }
    }
}
