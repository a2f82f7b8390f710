//! Every operation of the facade between threads.

use std::thread;
use std::time::Duration;

use unisono::{Collective, Error, Group, Op, bf16, f16, owned};

/// Runs `f` on every rank of a group of threads; gives what each returned.
fn ranks<R: Send>(size: u32, f: impl Fn(Group) -> R + Sync) -> Vec<R> {
    thread::scope(|s| {
        let f = &f;
        let threads: Vec<_> = unisono::inproc(size)
            .into_iter()
            .map(|group| s.spawn(move || f(group)))
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("a rank"))
            .collect()
    })
}

#[test]
fn every_operation_gives_what_mpi_gives() {
    for size in [1, 2, 3, 5] {
        ranks(size, |g| {
            let (me, p) = (g.rank(), g.size());
            let mine: Vec<i64> = (0..4).map(|i| i64::from(me) * 10 + i).collect();
            let sum = |i: i64| (0..i64::from(p)).map(|r| r * 10 + i).sum::<i64>();

            let mut x = mine.clone();
            g.all_reduce(&mut x, Op::Sum).unwrap();
            assert_eq!(x, (0..4).map(sum).collect::<Vec<_>>());
            let mut y = [0; 4];
            g.all_reduce_into(&mine, &mut y, Op::Max).unwrap();
            assert_eq!(y[3], i64::from(p - 1) * 10 + 3);

            let table: Vec<i64> = (0..p).flat_map(|t| [i64::from(me * 100 + t), 1]).collect();
            let mut row = [0; 2];
            g.reduce_scatter(&table, &mut row, Op::Sum).unwrap();
            let expected = (0..p).map(|r| i64::from(r * 100 + me)).sum::<i64>();
            assert_eq!(row, [expected, i64::from(p)]);
            let mut t = table.clone();
            g.reduce_scatter_in_place(&mut t, Op::Sum).unwrap();
            assert_eq!(t[me as usize * 2], expected);

            let mut all = vec![0; 4 * p as usize];
            g.all_gather(&mine, &mut all).unwrap();
            assert_eq!(all[4 * (p as usize - 1) + 2], i64::from(p - 1) * 10 + 2);
            let mut again = vec![0; 4 * p as usize];
            again[4 * me as usize..][..4].copy_from_slice(&mine);
            g.all_gather_in_place(&mut again).unwrap();
            assert_eq!(again, all);

            for root in 0..p {
                let mut x = mine.clone();
                g.broadcast(&mut x, root).unwrap();
                assert_eq!(x[1], i64::from(root) * 10 + 1);

                let mut y = vec![0; if me == root { 4 } else { 0 }];
                let at_root = (me == root).then_some(&mut y[..]);
                g.reduce(&mine, at_root, Op::Sum, root).unwrap();
                assert!(me != root || y[2] == sum(2));
                let mut z = mine.clone();
                g.reduce_in_place(&mut z, Op::Sum, root).unwrap();
                assert_eq!(z[2], if me == root { sum(2) } else { mine[2] });

                let mut y = vec![0; if me == root { 4 * p as usize } else { 0 }];
                let at_root = (me == root).then_some(&mut y[..]);
                g.gather(&mine, at_root, root).unwrap();
                assert!(me != root || y == all);

                let mut mine_again = [0; 4];
                let from_root = (me == root).then_some(&all[..]);
                g.scatter(from_root, &mut mine_again, root).unwrap();
                assert_eq!(mine_again[..], mine[..]);
            }

            let to_all: Vec<u32> = (0..p).map(|t| me * 100 + t).collect();
            let mut from_all = vec![0; p as usize];
            g.all_to_all(&to_all, &mut from_all).unwrap();
            assert_eq!(from_all, (0..p).map(|s| s * 100 + me).collect::<Vec<_>>());
            let mut swapped = to_all.clone();
            g.all_to_all_in_place(&mut swapped).unwrap();
            assert_eq!(swapped, from_all);

            g.barrier().unwrap();
            let (right, left) = ((me + 1) % p, (me + p - 1) % p);
            let mut from_left = [0u32];
            g.send_recv(&[me], right, &mut from_left, left).unwrap();
            assert_eq!(from_left, [left]);
            if p > 1 {
                if me == 0 {
                    g.send(&mine, p - 1).unwrap();
                } else if me == p - 1 {
                    let mut x = [0i64; 4];
                    g.recv(&mut x, 0).unwrap();
                    assert_eq!(x, [0, 1, 2, 3]);
                }
            }
            g.close().unwrap();
        });
    }
}

#[test]
fn large_vectors_are_right_with_every_algorithm() {
    for (size, n) in [(2, 1 << 20), (3, 700_001), (5, 100_003)] {
        ranks(size, |g| {
            let registry = unisono::registry();
            for algorithm in registry.names() {
                let g = g.with_algorithm(algorithm).unwrap();
                if g.choice::<f32>(Collective::AllReduce, n, Some(Op::Sum))
                    .is_err()
                {
                    continue;
                }
                let mut x: Vec<f32> = (0..n)
                    .map(|i| ((i + g.rank() as usize) % 17) as f32)
                    .collect();
                g.all_reduce(&mut x, Op::Sum).unwrap();
                for (i, x) in x.iter().enumerate() {
                    let sum: usize = (0..size as usize).map(|r| (i + r) % 17).sum();
                    assert_eq!(*x, sum as f32, "{algorithm} element {i}");
                }
            }
        });
    }
}

#[test]
fn several_operations_in_flight_finish_in_any_order_of_waiting() {
    ranks(3, |g| {
        let mut handles: Vec<_> = (0..20)
            .map(|k| {
                g.start(owned::all_reduce(
                    vec![k as f32 + g.rank() as f32; 1 + k * 997],
                    Op::Sum,
                ))
            })
            .collect();
        let gather = g.start(owned::all_gather(vec![g.rank(); 5], vec![0; 15]));
        let dropped = g.start(owned::broadcast(vec![7u8; 100_000], 1));
        drop(dropped);
        let order: Vec<usize> = (0..20).map(|i| (i * 7 + g.rank() as usize) % 20).collect();
        let mut taken: Vec<_> = handles.drain(..).map(Some).collect();
        for k in order {
            let x = taken[k].take().unwrap().wait().unwrap();
            assert!(x.iter().all(|v| *v == 3.0 * k as f32 + 3.0), "{k}");
        }
        assert_eq!(gather.wait().unwrap().1[14], 2);
        g.close().unwrap();
    });
}

#[test]
fn threads_may_share_a_rank() {
    ranks(2, |g| {
        // Point-to-point of one thread and collectives of another, on the same rank.
        thread::scope(|s| {
            let collectives = s.spawn(|| {
                for k in 0..200u64 {
                    let mut x = [k + u64::from(g.rank())];
                    g.all_reduce(&mut x, Op::Sum).unwrap();
                    assert_eq!(x, [2 * k + 1]);
                }
            });
            for k in 0..200u32 {
                let mut y = vec![0; 1 + k as usize * 11];
                let x = vec![k + g.rank(); 1 + k as usize * 11];
                let peer = 1 - g.rank();
                g.send_recv(&x, peer, &mut y, peer).unwrap();
                assert!(y.iter().all(|v| *v == k + peer));
            }
            collectives.join().unwrap();
        });
    });
}

#[test]
fn narrow_floats_are_accumulated_wide() {
    ranks(4, |g| {
        let g = g.with_algorithm("mesh-oneshot").unwrap();
        let first = g.rank() == 0;
        let mut x = [f16::from_f32(if first { 2048.0 } else { 1.0 })];
        g.all_reduce(&mut x, Op::Sum).unwrap();
        assert_eq!(x[0].to_f32(), 2052.0);
        let mut x = [bf16::from_f32(if first { 256.0 } else { 1.0 })];
        g.all_reduce(&mut x, Op::Sum).unwrap();
        assert_eq!(x[0].to_f32(), 260.0);
    });
    ranks(2, |g| {
        let g = g.with_algorithm("mesh-oneshot").unwrap();
        let mut x = [f16::MAX];
        g.all_reduce(&mut x, Op::Avg).unwrap();
        assert_eq!(x, [f16::MAX]);
    });
}

#[test]
fn a_user_operator_keeps_rank_order_unless_it_commutes() {
    ranks(5, |g| {
        // Composition of affine maps x -> a x + b (mod 2^32), packed as a << 32 | b: associative, not commutative.
        let compose = |acc: &mut [u64], x: &[u64]| {
            for (f, g) in acc.iter_mut().zip(x) {
                let (a, b) = (*f >> 32, *f & 0xffff_ffff);
                let (c, d) = (*g >> 32, *g & 0xffff_ffff);
                let (e, f2) = ((a * c) & 0xffff_ffff, (a * d + b) & 0xffff_ffff);
                *f = e << 32 | f2;
            }
        };
        let op = g.operator::<u64>(false, compose).unwrap();
        let value = |r: u64| vec![(r + 2) << 32 | (r * r + 1); 3];
        let mut expected = value(0);
        for r in 1..5 {
            compose(&mut expected, &value(r));
        }
        let mut x = value(g.rank().into());
        g.all_reduce(&mut x, op).unwrap();
        assert_eq!(x, expected);
        let error = g.all_reduce(&mut [1.0f32], op).unwrap_err();
        assert!(matches!(error, Error::NotRegistered { .. }), "{error}");
        let ring = g.with_algorithm("ring").unwrap();
        let error = ring.all_reduce(&mut x, op).unwrap_err();
        assert!(error.to_string().contains("does not commute"), "{error}");
    });
}

#[test]
fn bad_calls_are_refused_before_anything_is_sent() {
    ranks(2, |g| {
        let me = g.rank();
        let e = g
            .all_gather(&[1u8, 2], &mut [0; 3])
            .unwrap_err()
            .to_string();
        assert_eq!(
            e,
            format!("rank {me}: all_gather: the output has 3 elements, it must have 4")
        );
        let e = g.broadcast(&mut [1u8], 2).unwrap_err().to_string();
        assert!(e.contains("root 2 does not exist in a group of 2"), "{e}");
        let e = g.send(&[1u8], me).unwrap_err();
        assert!(matches!(e, Error::ToSelf { .. }), "{e}");
        let e = g.all_reduce(&mut [1i32], Op::Avg).unwrap_err().to_string();
        assert!(e.contains("operator avg does not exist for i32"), "{e}");
        let e = g.with_algorithm("rings").unwrap_err().to_string();
        assert!(
            e.contains("unknown algorithm `rings`; known: ") && e.contains("ring-bidir"),
            "{e}"
        );
        let e = g
            .reduce_scatter_in_place(&mut [1i32; 3], Op::Sum)
            .unwrap_err();
        assert!(matches!(e, Error::NotRows { .. }), "{e}");
        // The group is as good as new.
        let mut x = [1];
        g.all_reduce(&mut x, Op::Sum).unwrap();
        assert_eq!(x, [2]);
    });
}

#[test]
fn ranks_that_disagree_all_get_the_same_error() {
    let errors = ranks(3, |g| {
        let mut x = vec![1.0f32; if g.rank() == 2 { 40_000 } else { 50_000 }];
        let first = g.all_reduce(&mut x, Op::Sum).and_then(|()| g.barrier());
        let again = g.barrier();
        (
            first.unwrap_err().to_string(),
            again.unwrap_err().to_string(),
        )
    });
    for (first, again) in &errors {
        assert_eq!((first, again), (&errors[0].0, &errors[0].0));
    }
    assert!(
        errors[0].0.contains("ranks disagree on count: "),
        "{}",
        errors[0].0
    );
    assert!(
        errors[0].0.contains("40000") && errors[0].0.contains("50000"),
        "{}",
        errors[0].0
    );
}

#[test]
fn a_rank_that_is_gone_is_named() {
    let errors = ranks(3, |g| {
        if g.rank() == 1 {
            return String::new();
        }
        let mut x = vec![1.0f32; 50_000];
        g.all_reduce(&mut x, Op::Sum).unwrap_err().to_string()
    });
    assert!(
        errors[0].contains("rank 1 was lost during all_reduce #0"),
        "{}",
        errors[0]
    );
    assert_eq!(errors[0], errors[2]);
}

#[test]
fn a_rank_that_never_comes_runs_into_the_deadline() {
    let errors = ranks(2, |g| {
        if g.rank() == 1 {
            thread::sleep(Duration::from_millis(600));
            return g.barrier().unwrap_err().to_string();
        }
        let g = g.with_timeout(Duration::from_millis(100));
        let mut x = vec![1.0f32; 50_000];
        g.all_reduce(&mut x, Op::Sum).unwrap_err().to_string()
    });
    assert!(
        errors[0].contains("rank 0 gave up after 0.1 s waiting for rank 1"),
        "{}",
        errors[0]
    );
    assert_eq!(errors[0], errors[1]);
}

#[test]
fn nothing_to_move_and_nobody_to_talk_to_need_no_peer() {
    // The other ranks never call.
    let mut groups = unisono::inproc(3);
    let g = groups.remove(0);
    g.all_reduce(&mut [0f32; 0], Op::Sum).unwrap();
    g.all_gather(&[0u8; 0], &mut [0; 0]).unwrap();
    let alone = unisono::inproc(1).remove(0);
    let mut x = [3.0f32];
    alone.all_reduce(&mut x, Op::Avg).unwrap();
    assert_eq!(x, [3.0]);
    let mut y = [0u16; 2];
    alone.all_to_all(&[1, 2], &mut y).unwrap();
    assert_eq!(y, [1, 2]);
    alone.barrier().unwrap();
}
