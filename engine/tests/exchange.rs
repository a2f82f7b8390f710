//! Memory that is still being sent is not overwritten, and what comes on one FIFO lands in its order.

mod support;

use unisono_contract::Lease;
use unisono_contract::null::Policy;
use unisono_core::{Collective, DType, Op, Rank};
use unisono_engine::{Request, World};
use unisono_program::{Algorithm, Context, Emit, Unsupported, block, build_all, scratch};

/// Steps without the meaning of a collective.
struct Steps(fn(&Context, &mut dyn Emit));

/// Blocks of all programs here.
const BLOCKS: u64 = 4;

impl Algorithm for Steps {
    fn name(&self) -> &str {
        "steps"
    }

    fn supports(&self, _: &Context) -> Result<(), Unsupported> {
        Ok(())
    }

    fn blocks(&self, _: &Context) -> u64 {
        BLOCKS
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        self.0(cx, b);
    }
}

/// Runs the steps in place over vectors of which block b at rank r holds `10 * r + b`; gives the first element of each
/// block after every timing, having seen that all its elements agree.
fn run(size: Rank, steps: fn(&Context, &mut dyn Emit)) -> Vec<Vec<i32>> {
    let len = 100;
    let cx = Context::full(Collective::AllReduce, 0, size);
    let programs = build_all(&Steps(steps), &cx).expect("programs");
    let mut results: Vec<Vec<Vec<i32>>> = Vec::new();
    for seed in 0..60 {
        for segments in [1, 2, 4] {
            let policy = if seed == 0 {
                Policy::instant()
            } else {
                Policy::hostile(seed)
            };
            let mut world = World::new(size, policy);
            let request = Request {
                count: BLOCKS * len,
                dtype: DType::I32,
                op: Some(Op::Sum),
                kernels: None,
                segments,
            };
            let plans = world.plans(&programs, &request).expect("plans");
            let buffers: Vec<Lease<Vec<i32>>> = (0..size as i32)
                .map(|r| (0..BLOCKS * len).map(move |i| 10 * r + (i / len) as i32))
                .map(|vector| Lease::new(vector.collect()))
                .collect();
            for (rank, (plan, buffer)) in plans.iter().zip(&buffers).enumerate() {
                let piece = buffer.piece();
                world
                    .submit(rank as Rank, plan, piece, piece)
                    .expect("submitted");
            }
            world.run().expect("done");
            let blocks = |vector: Vec<i32>| {
                let whole = vector.chunks(len as usize);
                whole
                    .map(|b| {
                        assert!(
                            b.iter().all(|x| *x == b[0]),
                            "seed {seed}: torn block {b:?}"
                        );
                        b[0]
                    })
                    .collect()
            };
            results.push(
                buffers
                    .into_iter()
                    .map(|b| blocks(b.into_inner()))
                    .collect(),
            );
        }
    }
    assert!(
        results.iter().all(|r| *r == results[0]),
        "timing changed the result"
    );
    results.swap_remove(0)
}

#[test]
fn two_ranks_swap_a_block_in_place() {
    let swapped = run(2, |cx, b| {
        b.send(1 - cx.rank(), block(0));
        b.recv(1 - cx.rank(), block(0));
    });
    assert_eq!(swapped, [[10, 1, 2, 3], [0, 11, 12, 13]]);
}

#[test]
fn a_ring_rotates_in_place_three_times() {
    let rotated = run(3, |cx, b| {
        for _ in 0..3 {
            b.send(cx.ring().right(), block(1));
            b.recv(cx.ring().left(), block(1));
        }
    });
    assert_eq!(rotated, [[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]]);
}

#[test]
fn what_goes_through_staging_is_not_overtaken_by_the_next_message() {
    // The first receive has to wait for the send; the second one waits for nothing but the first.
    let done = run(2, |cx, b| match cx.rank() {
        0 => {
            b.send(1, block(1));
            b.send(1, block(2));
            b.recv(1, block(3));
        }
        _ => {
            b.send(0, block(0));
            b.recv(0, block(0));
            b.recv(0, block(0));
        }
    });
    assert_eq!(done, [[0, 1, 2, 10], [2, 11, 12, 13]]);
}

#[test]
fn a_local_copy_waits_for_who_reads_and_who_writes() {
    let done = run(2, |cx, b| {
        b.send(1 - cx.rank(), block(0));
        b.copy(block(0), block(1)); // while block 0 may still be under way
        b.recv(1 - cx.rank(), block(1)); // while block 1 may still be copied
        b.copy(scratch(0), block(1));
        b.reduce(block(2), &[block(2), scratch(0)]);
    });
    assert_eq!(done, [[1, 10, 12, 3], [11, 0, 12, 13]]);
}

#[test]
fn a_block_is_reduced_while_its_old_value_leaves() {
    let done = run(2, |cx, b| {
        for _ in 0..2 {
            b.send(1 - cx.rank(), block(3));
            b.recv_reduce(1 - cx.rank(), block(3));
        }
    });
    assert_eq!(done, [[0, 1, 2, 32], [10, 11, 12, 32]]);
}
