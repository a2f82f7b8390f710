//! A sample of (operation, algorithm, world, count, in or out of place) between threads, through the facade.

use std::thread;

use unisono::{Collective, Group, Op};

/// Element `i` of the input of rank `r`.
fn input(r: u32, i: usize) -> i32 {
    r as i32 * 1000 + i as i32 * 7 % 101
}

fn sum(p: u32, i: usize) -> i32 {
    (0..p).map(|r| input(r, i)).sum()
}

/// One call; checks everything this rank can see.
fn call(g: &Group, collective: Collective, n: usize, root: u32, in_place: bool) {
    use Collective as C;
    let (me, p) = (g.rank(), g.size());
    let rows = p as usize;
    let vector: Vec<i32> = (0..n).map(|i| input(me, i)).collect();
    let table: Vec<i32> = (0..n * rows).map(|i| input(me, i)).collect();
    let gathered: Vec<i32> = (0..n * rows)
        .map(|i| input((i / n.max(1)) as u32, i % n.max(1)))
        .collect();
    let summed: Vec<i32> = (0..n).map(|i| sum(p, i)).collect();
    let own_row = me as usize * n..(me as usize + 1) * n;
    let is_root = me == root;
    match (collective, in_place) {
        (C::AllReduce, true) => {
            let mut x = vector;
            g.all_reduce(&mut x, Op::Sum).unwrap();
            assert_eq!(x, summed);
        }
        (C::AllReduce, false) => {
            let mut y = vec![-1; n];
            g.all_reduce_into(&vector, &mut y, Op::Sum).unwrap();
            assert_eq!(y, summed);
        }
        (C::ReduceScatter, true) => {
            let mut x = table.clone();
            g.reduce_scatter_in_place(&mut x, Op::Sum).unwrap();
            let mut expected = table;
            own_row.for_each(|i| expected[i] = sum(p, i));
            assert_eq!(x, expected);
        }
        (C::ReduceScatter, false) => {
            let mut y = vec![-1; n];
            g.reduce_scatter(&table, &mut y, Op::Sum).unwrap();
            assert_eq!(y, own_row.map(|i| sum(p, i)).collect::<Vec<_>>());
        }
        (C::AllGather, true) => {
            let mut y = vec![-1; n * rows];
            y[own_row].copy_from_slice(&vector);
            g.all_gather_in_place(&mut y).unwrap();
            assert_eq!(y, gathered);
        }
        (C::AllGather, false) => {
            let mut y = vec![-1; n * rows];
            g.all_gather(&vector, &mut y).unwrap();
            assert_eq!(y, gathered);
        }
        (C::Broadcast, _) => {
            let mut x = vector;
            g.broadcast(&mut x, root).unwrap();
            assert_eq!(x, (0..n).map(|i| input(root, i)).collect::<Vec<_>>());
        }
        (C::Reduce, true) => {
            let mut x = vector.clone();
            g.reduce_in_place(&mut x, Op::Sum, root).unwrap();
            assert_eq!(x, if is_root { summed } else { vector });
        }
        (C::Reduce, false) => {
            let mut y = vec![-1; n];
            let at_root = is_root.then_some(&mut y[..]);
            g.reduce(&vector, at_root, Op::Sum, root).unwrap();
            assert_eq!(y, if is_root { summed } else { vec![-1; n] });
        }
        (C::Gather, _) => {
            let mut y = vec![-1; n * rows];
            let at_root = is_root.then_some(&mut y[..]);
            g.gather(&vector, at_root, root).unwrap();
            assert!(!is_root || y == gathered);
        }
        (C::Scatter, _) => {
            let mut y = vec![-1; n];
            g.scatter(is_root.then_some(&table[..]), &mut y, root)
                .unwrap();
            assert_eq!(y, own_row.map(|i| input(root, i)).collect::<Vec<_>>());
        }
        (C::AllToAll, _) => {
            let expected: Vec<i32> = (0..p)
                .flat_map(|s| own_row.clone().map(move |i| input(s, i)))
                .collect();
            let mut y = vec![-1; n * rows];
            if in_place {
                y = table;
                g.all_to_all_in_place(&mut y).unwrap();
            } else {
                g.all_to_all(&table, &mut y).unwrap();
            }
            assert_eq!(y, expected);
        }
        _ => g.barrier().unwrap(),
    }
}

#[test]
fn every_algorithm_is_right_between_threads() {
    let registry = unisono::registry();
    for size in [2, 3, 5] {
        thread::scope(|s| {
            for group in unisono::inproc(size) {
                let registry = &registry;
                s.spawn(move || {
                    let mut ran = 0;
                    for name in registry.names() {
                        let g = group.with_algorithm(name).unwrap();
                        for collective in Collective::ALL {
                            if g.choice::<i32>(collective, 1, Some(Op::Sum)).is_err() {
                                continue;
                            }
                            let roots = if collective.is_rooted() {
                                0..size
                            } else {
                                0..1
                            };
                            for root in roots {
                                for n in [1, size as usize + 1, 40_000] {
                                    for in_place in [false, true] {
                                        let cut = g.with_segments(1 + (n as u64 + 1) % 3);
                                        call(&cut, collective, n, root, in_place);
                                        ran += 1;
                                    }
                                }
                            }
                        }
                    }
                    assert!(ran > 200, "{ran}");
                });
            }
        });
    }
}

#[test]
fn an_algorithm_from_outside_is_used_by_its_name() {
    let mut registry = unisono::registry();
    registry.add(unisono_example_algorithm::Line);
    thread::scope(|s| {
        for group in unisono::inproc_with(4, registry) {
            s.spawn(move || {
                let g = group.with_algorithm("line").unwrap();
                for n in [1, 1000, 300_000] {
                    call(&g, Collective::AllReduce, n, 0, true);
                    call(&g, Collective::AllReduce, n, 0, false);
                }
                let error = g.barrier().unwrap_err().to_string();
                assert!(
                    error.contains("line cannot do barrier here: offers all_reduce"),
                    "{error}"
                );
            });
        }
    });
}

#[test]
#[ignore = "needs 9 GiB of memory: run in release before a release"]
fn an_all_gather_beyond_two_gibibytes_is_right() {
    let n = (1usize << 30) + 2048; // two rows: 2 GiB + 4 KiB
    thread::scope(|s| {
        for group in unisono::inproc(2) {
            s.spawn(move || {
                let byte =
                    |r: u32, i: usize| (i as u32).wrapping_mul(2654435761).wrapping_add(r) as u8;
                let x: Vec<u8> = (0..n).map(|i| byte(group.rank(), i)).collect();
                let mut y = vec![0; 2 * n];
                group.all_gather(&x, &mut y).unwrap();
                for r in 0..2 {
                    let row = &y[r * n..(r + 1) * n];
                    assert!(
                        row.iter().enumerate().all(|(i, b)| *b == byte(r as u32, i)),
                        "row {r}"
                    );
                }
            });
        }
    });
}
