//! A sample of (operation, algorithm, world, count, element type, in or out of place), every element looked at.

use std::fmt::Debug;
use std::ops::Range;

use unisono::{Collective, Element, Group, Op};

use crate::processes::{Job, argument, say};

/// An element of which sums over a few ranks are exact.
trait Exact: Element + From<i16> + PartialEq + Debug {}

impl<T: Element + From<i16> + PartialEq + Debug> Exact for T {}

/// Inputs repeat after so many elements, so that they are made by copying.
const PERIOD: usize = 101;

/// Element `i` of the input of rank `r`.
fn number(r: u32, i: usize) -> i16 {
    r as i16 * 1000 + (i * 7 % PERIOD) as i16
}

/// Elements `range` of something that repeats.
fn repeated<T: Exact>(range: Range<usize>, of: impl Fn(usize) -> i16) -> Vec<T> {
    let period: Vec<T> = (range.start..range.start + PERIOD)
        .map(|i| T::from(of(i)))
        .collect();
    let mut all = period.repeat(range.len().div_ceil(PERIOD));
    all.truncate(range.len());
    all
}

/// Elements `range` of the input of rank `r`.
fn input<T: Exact>(r: u32, range: Range<usize>) -> Vec<T> {
    repeated(range, |i| number(r, i))
}

/// Elements `range` of the sum over all `p` ranks.
fn sum<T: Exact>(p: u32, range: Range<usize>) -> Vec<T> {
    repeated(range, |i| (0..p).map(|r| number(r, i)).sum())
}

/// One call with `n` elements in a row; checks everything this rank can see.
fn call<T: Exact>(g: &Group, collective: Collective, n: usize, root: u32, in_place: bool) {
    use Collective as C;
    let (me, p) = (g.rank(), g.size());
    let all = n * p as usize;
    let (own, is_root) = (me as usize * n..(me as usize + 1) * n, me == root);
    let fresh = |n| vec![T::from(-1); n];
    let (vector, table) = (input::<T>(me, 0..n), input::<T>(me, 0..all));
    let gathered: Vec<T> = (0..p).flat_map(|r| input(r, 0..n)).collect();
    let summed = sum(p, 0..n);
    let (found, expected) = match (collective, in_place) {
        (C::AllReduce, true) => {
            let mut x = vector;
            g.all_reduce(&mut x, Op::Sum).unwrap();
            (x, summed)
        }
        (C::AllReduce, false) => {
            let mut y = fresh(n);
            g.all_reduce_into(&vector, &mut y, Op::Sum).unwrap();
            (y, summed)
        }
        (C::ReduceScatter, true) => {
            let mut x = table.clone();
            g.reduce_scatter_in_place(&mut x, Op::Sum).unwrap();
            let mut expected = table;
            expected[own.clone()].copy_from_slice(&sum::<T>(p, own));
            (x, expected)
        }
        (C::ReduceScatter, false) => {
            let mut y = fresh(n);
            g.reduce_scatter(&table, &mut y, Op::Sum).unwrap();
            (y, sum(p, own))
        }
        (C::AllGather, true) => {
            let mut y = fresh(all);
            y[own].copy_from_slice(&vector);
            g.all_gather_in_place(&mut y).unwrap();
            (y, gathered)
        }
        (C::AllGather, false) => {
            let mut y = fresh(all);
            g.all_gather(&vector, &mut y).unwrap();
            (y, gathered)
        }
        (C::Broadcast, _) => {
            let mut x = vector;
            g.broadcast(&mut x, root).unwrap();
            (x, input(root, 0..n))
        }
        (C::Reduce, true) => {
            let mut x = vector.clone();
            g.reduce_in_place(&mut x, Op::Sum, root).unwrap();
            (x, if is_root { summed } else { vector })
        }
        (C::Reduce, false) => {
            let mut y = fresh(n);
            let at_root = is_root.then_some(&mut y[..]);
            g.reduce(&vector, at_root, Op::Sum, root).unwrap();
            (y, if is_root { summed } else { fresh(n) })
        }
        (C::Gather, _) => {
            let mut y = fresh(all);
            let at_root = is_root.then_some(&mut y[..]);
            g.gather(&vector, at_root, root).unwrap();
            (y, if is_root { gathered } else { fresh(all) })
        }
        (C::Scatter, _) => {
            let mut y = fresh(n);
            g.scatter(is_root.then_some(&table[..]), &mut y, root)
                .unwrap();
            (y, input(root, own))
        }
        (C::AllToAll, _) => {
            let mut y = table.clone();
            if in_place {
                g.all_to_all_in_place(&mut y).unwrap();
            } else {
                g.all_to_all(&table, &mut y).unwrap();
            }
            (y, (0..p).flat_map(|s| input(s, own.clone())).collect())
        }
        _ => {
            g.barrier().unwrap();
            return;
        }
    };
    assert_eq!(found.len(), expected.len());
    // Not by `assert_eq`, which would print all of both.
    if found != expected {
        let pairs = found.iter().zip(&expected).enumerate();
        let wrong = pairs
            .filter(|(_, (f, e))| f != e)
            .take(1)
            .collect::<Vec<_>>();
        panic!("{collective}, {n} in a row, root {root}: found and expected {wrong:?}");
    }
}

/// Everything that is offered in this group; gives the number of calls.
fn all<T: Exact>(group: &Group) -> usize {
    let mut ran = 0;
    for name in unisono::registry().names() {
        let g = group.with_algorithm(name).unwrap();
        for collective in Collective::ALL {
            if g.choice::<T>(collective, 1, Some(Op::Sum)).is_err() {
                continue;
            }
            let roots = if collective.is_rooted() { g.size() } else { 1 };
            for root in 0..roots {
                for n in [1, g.size() as usize + 1, 1021, 40_000] {
                    for in_place in [false, true] {
                        let cut = g.with_segments(1 + (n as u64 + 1) % 3);
                        call::<T>(&cut, collective, n, root, in_place);
                        ran += 1;
                    }
                }
            }
        }
    }
    ran
}

pub(crate) fn rank() {
    let group = Group::from_env().unwrap();
    let ran = match argument().as_str() {
        "i32" => all::<i32>(&group),
        _ => all::<f32>(&group),
    };
    group.close().unwrap();
    say(ran);
}

fn every_algorithm_is_right(element: &str) {
    for size in [2, 3, 5] {
        let said = Job::start("matrix", element, size).done();
        let ran: usize = said[0][0].parse().unwrap();
        assert!(ran > 250, "{ran} calls by {size} processes");
        assert!(said.iter().all(|s| *s == said[0]), "{said:?}");
    }
}

#[test]
fn every_algorithm_is_right_for_whole_numbers_between_processes() {
    every_algorithm_is_right("i32");
}

#[test]
fn every_algorithm_is_right_for_floats_between_processes() {
    every_algorithm_is_right("f32");
}
