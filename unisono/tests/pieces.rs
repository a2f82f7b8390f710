//! Operations over lent pieces.

mod common;

use std::sync::Barrier;

use common::{block_on, ranks};
use unisono::parts::{Lease, PhantomSpace, Piece};
use unisono::{Collective, DType, Error, Op, PieceCall, Rank};
use unisono_contract::Revoked;

fn bytes<T: unisono::Element>(values: &[T]) -> Lease<Vec<T>> {
    Lease::new(values.to_vec())
}

#[test]
fn every_collective_over_pieces_gives_what_the_blocking_call_gives() {
    const P: Rank = 3;
    const N: u64 = 5;
    ranks(P, |group| {
        let me = group.rank();
        let all: Vec<u32> = (0..15).map(|i| i + 100 * me).collect();
        let one = &all[..5];
        let call = |collective| {
            PieceCall::new(collective, N, DType::U32)
                .op(Op::Sum)
                .root(1)
        };
        let run = |collective, input: &[u32], output: usize| {
            let (x, y) = (bytes(input), bytes(&vec![7u32; output]));
            let handle = group.start_pieces(call(collective), x.piece(), y.piece());
            block_on(handle).expect("done");
            assert_eq!(x.into_inner(), input, "the input stays");
            y.into_inner()
        };
        let blocking = |output: usize, f: &dyn Fn(&mut Vec<u32>) -> Result<(), Error>| {
            let mut y = vec![7u32; output];
            f(&mut y).expect("done");
            y
        };
        use Collective as C;
        assert_eq!(
            run(C::AllReduce, one, 5),
            blocking(5, &|y| group.all_reduce_into(one, y, Op::Sum))
        );
        assert_eq!(
            run(C::ReduceScatter, &all, 5),
            blocking(5, &|y| group.reduce_scatter(&all, y, Op::Sum))
        );
        assert_eq!(
            run(C::AllGather, one, 15),
            blocking(15, &|y| group.all_gather(one, y))
        );
        assert_eq!(
            run(C::AllToAll, &all, 15),
            blocking(15, &|y| group.all_to_all(&all, y))
        );
        assert_eq!(
            run(C::Scatter, if me == 1 { &all } else { &[] }, 5),
            blocking(5, &|y| group.scatter(Some(&all), y, 1))
        );
        let root = if me == 1 { 1 } else { 0 };
        assert_eq!(
            run(C::Reduce, one, 5 * root),
            blocking(5 * root, &|y| group.reduce(
                one,
                Some(&mut y[..]).filter(|_| me == 1),
                Op::Sum,
                1
            ))
        );
        assert_eq!(
            run(C::Gather, one, 15 * root),
            blocking(15 * root, &|y| group.gather(
                one,
                Some(&mut y[..]).filter(|_| me == 1),
                1
            ))
        );
        let theirs: Vec<u32> = (100..105).collect();
        assert_eq!(run(C::Broadcast, one, 5), theirs);
        let barrier = group.start_pieces(call(C::Barrier), Piece::EMPTY, Piece::EMPTY);
        barrier.wait().expect("done");
    });
}

#[test]
fn pieces_in_place_are_the_same_piece_or_a_row_of_it() {
    ranks(3, |group| {
        let me = group.rank() as usize;
        let call = |collective, op: bool| {
            let call = PieceCall::new(collective, 2, DType::I64);
            if op { call.op(Op::Sum) } else { call }
        };
        let table = bytes(&[group.rank() as i64; 6]);
        let (all, row) = (table.piece(), table.piece().slice(me * 16..me * 16 + 16));
        let start = |call, input, output| group.start_pieces(call, input, output).wait();
        start(call(Collective::ReduceScatter, true), all, row).expect("done");
        start(call(Collective::AllGather, false), row, all).expect("done");
        start(call(Collective::AllReduce, true), row, row).expect("done");
        let root = call(Collective::Broadcast, false).root(2);
        start(root, Piece::EMPTY, all.slice(0..16)).expect("done");
        let mut expected = [3i64; 6];
        expected[2 * me..2 * me + 2].fill(9);
        // Of the first row the broadcast has made what it was at rank 2.
        expected[..2].fill(3);
        assert_eq!(table.into_inner(), expected);
    });
}

#[test]
fn what_is_wrong_with_pieces_is_said_before_anything_is_sent() {
    ranks(2, |group| {
        let me = group.rank();
        let x = bytes(&[1.0f32; 8]);
        let (whole, four) = (x.piece(), x.piece().slice(0..16));
        let call = |collective| PieceCall::new(collective, 4, DType::F32).op(Op::Sum);
        let start = |call, input, output| {
            let failed = group.start_pieces(call, input, output).wait();
            failed.map_err(Error::from).expect_err("it is wrong")
        };
        use Collective as C;
        let message = start(call(C::AllReduce), four, whole).to_string();
        let expected = "all_reduce: the output has 8 elements, it must have 4";
        assert_eq!(message, format!("rank {me}: {expected}"));
        let message = start(call(C::AllGather), four, four).to_string();
        let expected = "all_gather: the output has 4 elements, it must have 8";
        assert_eq!(message, format!("rank {me}: {expected}"));
        let odd = x.piece().slice(0..15);
        let message = start(call(C::AllReduce), odd, odd).to_string();
        let expected = "all_reduce: the input has 15 bytes, which is no whole number of f32";
        assert_eq!(message, format!("rank {me}: {expected}"));
        let shifted = x.piece().slice(4..20);
        let message = start(call(C::AllReduce), four, shifted).to_string();
        let expected = "all_reduce: the output cannot be used: the pieces of one access overlap";
        assert_eq!(message, format!("rank {me}: {expected}"));
        let other_row = x
            .piece()
            .slice(16 - me as usize * 16..32 - me as usize * 16);
        let overlap = start(call(C::ReduceScatter), whole, other_row);
        assert!(
            matches!(
                overlap,
                Error::Piece {
                    revoked: Revoked::Overlap,
                    ..
                }
            ),
            "{overlap}"
        );
        let swapped = start(PieceCall::new(C::AllToAll, 4, DType::F32), whole, whole);
        assert!(matches!(swapped, Error::Piece { .. }), "{swapped}");
        unisono_contract::memory::lend_shared(&[0.0f32; 4], |read| {
            let error = start(call(C::AllReduce), read, read);
            assert!(error.to_string().contains("for reading only"), "{error}");
        });
        let no_average = PieceCall::new(C::AllReduce, 4, DType::U32).op(Op::Avg);
        assert!(matches!(
            start(call(C::Reduce).root(2), four, four),
            Error::NoSuchRank { named: 2, .. }
        ));
        assert!(matches!(
            start(no_average, four, four),
            Error::NoSuchOperator { .. }
        ));
        let no_op = PieceCall::new(C::AllReduce, 4, DType::F32);
        assert!(matches!(start(no_op, four, four), Error::Plan(_)));
        // The group is as good as new.
        let done = group.start_pieces(call(C::AllReduce), four, four).wait();
        done.expect("right this time");
        assert_eq!(x.into_inner(), [2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0]);
    });
}

#[test]
fn nothing_to_move_moves_nothing_not_even_phantoms() {
    let space = PhantomSpace::new();
    ranks(2, |group| {
        let none = space.alloc(0).expect("room");
        let call = PieceCall::new(Collective::AllReduce, 0, DType::F64).op(Op::Sum);
        group.start_pieces(call, none, none).wait().expect("done");
    });
}

#[test]
fn a_phantom_or_a_lease_that_has_ended_is_refused_before_anything_is_sent() {
    let space = PhantomSpace::new();
    let phantom = space.alloc(16).expect("room");
    let ended = bytes(&[1.0f32; 4]).piece();
    ranks(2, |group| {
        let x = bytes(&[1.0f32; 4]);
        let call = PieceCall::new(Collective::AllReduce, 4, DType::F32).op(Op::Sum);
        for (bad, expected) in [(phantom, Revoked::Phantom), (ended, Revoked::Ended)] {
            for (input, output) in [(bad, bad), (x.piece(), bad), (bad, x.piece())] {
                let failed = group.start_pieces(call, input, output).wait();
                match failed.map_err(Error::from) {
                    Err(Error::Piece { revoked, .. }) => assert_eq!(revoked, expected),
                    other => panic!("{other:?}"),
                }
            }
        }
        // The group is as good as new.
        let done = group.start_pieces(call, x.piece(), x.piece()).wait();
        done.expect("right this time");
        assert_eq!(x.into_inner(), [2.0; 4]);
    });
}

#[test]
fn a_lease_that_ends_too_early_fails_the_group_on_every_rank() {
    let gone = Barrier::new(2);
    ranks(2, |group| {
        let x = bytes(&[1.0f32; 100_000]);
        let call = PieceCall::new(Collective::AllReduce, 100_000, DType::F32).op(Op::Sum);
        let done = if group.rank() == 0 {
            let handle = group.start_pieces(call, x.piece(), x.piece());
            drop(x);
            gone.wait();
            handle.wait()
        } else {
            gone.wait();
            group.start_pieces(call, x.piece(), x.piece()).wait()
        };
        let error = done.map_err(Error::from).expect_err("memory is missing");
        assert!(matches!(error, Error::Failed { .. }), "{error}");
    });
}

#[test]
fn a_dropped_handle_leaves_the_operation_to_later_calls() {
    ranks(2, |group| {
        let x = bytes(&[1u64; 3000]);
        let call = PieceCall::new(Collective::AllReduce, 3000, DType::U64).op(Op::Sum);
        drop(group.start_pieces(call, x.piece(), x.piece()));
        group.barrier().expect("done");
        group.close().expect("done");
        assert_eq!(x.into_inner(), [2u64; 3000]);
    });
}
