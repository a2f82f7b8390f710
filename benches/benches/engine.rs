//! What the engine costs: nanoseconds per step over the null network, one thread stepping all ranks.
//!
//! `cargo bench -p unisono-benches --bench engine`

use unisono_benches::interleaved;
use unisono_contract::null::Policy;
use unisono_contract::{Lease, Piece};
use unisono_core::{Collective, DType, Op, Rank};
use unisono_engine::{Request, World};
use unisono_program::{Algorithm, Context, build_all};

/// Operations per call of a case: about a millisecond, so that some rounds are not disturbed on a busy machine.
const OPERATIONS: u64 = 20;
const ROUNDS: usize = 150;

/// A case: runs some operations per call and gives the number of steps (or of operations, to time these).
fn case(
    algorithm: &dyn Algorithm,
    size: Rank,
    count: u64,
    per_step: bool,
) -> Box<dyn FnMut() -> u64> {
    let cx = Context::full(Collective::AllReduce, 0, size);
    let programs = build_all(algorithm, &cx).expect("a program");
    let mut world = World::new(size, Policy::instant());
    let request = Request {
        count,
        dtype: DType::F32,
        op: Some(Op::Sum),
        kernels: None,
        segments: 1,
    };
    let plans = world.plans(&programs, &request).expect("plans");
    let buffers: Vec<Lease<Vec<f32>>> = (0..size)
        .map(|r| Lease::new(vec![r as f32; count as usize]))
        .collect();
    Box::new(move || {
        let before = world.engine(0).steps();
        for _ in 0..OPERATIONS {
            for (rank, plan) in plans.iter().enumerate() {
                let piece: Piece = buffers[rank].piece();
                world
                    .submit(rank as Rank, plan, piece, piece)
                    .expect("submitted");
            }
            world.run().expect("done");
        }
        if per_step {
            (world.engine(0).steps() - before) * u64::from(size)
        } else {
            OPERATIONS
        }
    })
}

fn main() {
    let ring = unisono_ring::Ring;
    let mut cases = vec![
        (
            "ring, 4 ranks, 4 B: per operation (all ranks)",
            case(&ring, 4, 1, false),
        ),
        ("ring, 4 ranks, 4 B: per step", case(&ring, 4, 1, true)),
        ("ring, 4 ranks, 16 B: per step", case(&ring, 4, 4, true)),
        ("ring, 16 ranks, 64 B: per step", case(&ring, 16, 16, true)),
        (
            "mesh-oneshot, 4 ranks, 4 B: per step",
            case(&unisono_mesh::MeshOneshot, 4, 1, true),
        ),
        (
            "mesh-twoshot, 8 ranks, 64 B: per step",
            case(&unisono_mesh::MeshTwoshot, 8, 16, true),
        ),
    ];
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    cases.retain(|(name, _)| wanted.iter().all(|w| name.contains(w)));
    println!(
        "{:50} {:>10} {:>10}",
        "all_reduce f32 over the null network", "median ns", "best ns"
    );
    for (name, times) in interleaved(ROUNDS, &mut cases) {
        println!("{name:50} {:10.1} {:10.1}", times.median, times.best);
    }
}
