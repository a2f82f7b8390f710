//! Thousands of different operations in a row, several in flight, ranks early and late.
//!
//! Element `i` of rank `r` in an operation is `base + 2 r + i`, the base drawn per operation. So every input, every sum
//! over all ranks and every row is a slice of one of two tables, and looking at all of it costs a comparison of memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use unisono::{Element, Group, Handle, Op, owned};

use crate::processes::{Job, Start, argument, say};

/// Elements of four bytes: 4 MiB.
const LARGEST: usize = 1 << 20;
const BASES: usize = 4096;
/// Operations in flight at most.
const DEPTH: usize = 8;

/// Looks at the result of one operation.
type Check<'a> = Box<dyn FnOnce(&mut StdRng) + 'a>;

struct Tables<T> {
    /// i at i.
    one: Vec<T>,
    /// p i at i.
    sum: Vec<T>,
}

impl<T: Element + From<u16>> Tables<T> {
    fn new(p: u32, number: impl Fn(usize) -> T) -> Self {
        let length = LARGEST + BASES + 2 * p as usize;
        Self {
            one: (0..length).map(&number).collect(),
            sum: (0..length).map(|i| number(i * p as usize)).collect(),
        }
    }
}

/// One operation's inputs and expected outputs.
#[derive(Clone, Copy)]
struct Data<'a, T> {
    tables: &'a Tables<T>,
    base: usize,
    p: u32,
    me: u32,
    root: u32,
}

impl<'a, T: Element + PartialEq + From<u16>> Data<'a, T> {
    fn of(&self, r: u32, range: Range<usize>) -> &'a [T] {
        &self.tables.one[self.base + 2 * r as usize..][range]
    }

    fn mine(&self, n: usize) -> Vec<T> {
        self.of(self.me, 0..n).to_vec()
    }

    /// Of all ranks: 2 r is p - 1 on average.
    fn summed(&self, range: Range<usize>) -> &'a [T] {
        &self.tables.sum[self.base + self.p as usize - 1..][range]
    }

    fn fresh(&self, n: usize) -> Vec<T> {
        vec![T::from(u16::MAX); n]
    }

    fn row(&self, r: u32, n: usize) -> Range<usize> {
        r as usize * n..(r as usize + 1) * n
    }

    fn is_gathered(&self, y: &[T], n: usize) -> bool {
        (0..self.p).all(|r| &y[self.row(r, n)] == self.of(r, 0..n))
    }

    /// Starts (or does) operation `kind` on up to `total` elements.
    fn start(self, g: &Group, kind: u32, total: usize) -> Check<'a> {
        let d = self;
        let (me, p, root) = (d.me, d.p, d.root);
        let n = (total / p as usize).max(1);
        let all = n * p as usize;
        let at_root = |length| (me == root).then(|| d.fresh(length));
        match kind {
            0 => {
                let handle = g.start(owned::all_reduce(d.mine(total), Op::Sum));
                check(handle, move |x| x == d.summed(0..total))
            }
            1 => {
                let (x, y) = (d.mine(total), d.fresh(total));
                let handle = g.start(owned::all_reduce_into(x, y, Op::Sum));
                check(handle, move |(_, y)| y == d.summed(0..total))
            }
            2 => {
                let handle = g.start(owned::reduce_scatter(d.mine(all), d.fresh(n), Op::Sum));
                check(handle, move |(_, y)| y == d.summed(d.row(me, n)))
            }
            3 => {
                let handle = g.start(owned::all_gather(d.mine(n), d.fresh(all)));
                check(handle, move |(_, y)| d.is_gathered(&y, n))
            }
            4 => {
                let handle = g.start(owned::broadcast(d.mine(total), root));
                check(handle, move |x| x == d.of(root, 0..total))
            }
            5 => {
                let handle = g.start(owned::reduce(d.mine(total), at_root(total), Op::Sum, root));
                check(handle, move |(_, y)| {
                    y.is_none_or(|y| y == d.summed(0..total))
                })
            }
            6 => {
                let handle = g.start(owned::gather(d.mine(n), at_root(all), root));
                check(handle, move |(_, y)| y.is_none_or(|y| d.is_gathered(&y, n)))
            }
            7 => {
                let x = (me == root).then(|| d.mine(all));
                let handle = g.start(owned::scatter(x, d.fresh(n), root));
                check(handle, move |(_, y)| y == d.of(root, d.row(me, n)))
            }
            8 => {
                let handle = g.start(owned::all_to_all(d.mine(all), d.fresh(all)));
                check(handle, move |(_, y)| {
                    (0..p).all(|s| &y[d.row(s, n)] == d.of(s, d.row(me, n)))
                })
            }
            9 => check(g.start(owned::barrier()), |()| true),
            10 => {
                // A message to the right and one from the left.
                let (right, left) = ((me + 1) % p, (me + p - 1) % p);
                let sent = g.start(owned::send(d.mine(total), right));
                let came = g.start(owned::recv(d.fresh(total), left));
                let sent = check(sent, |_| true);
                let came = check(came, move |y| y == d.of(left, 0..total));
                Box::new(|mine| {
                    came(mine);
                    sent(mine);
                })
            }
            11 => {
                let (right, left) = ((me + 1) % p, (me + p - 1) % p);
                let mut y = d.fresh(total);
                g.send_recv(d.of(me, 0..total), left, &mut y, right)
                    .unwrap();
                assert!(y == d.of(right, 0..total));
                Box::new(|_| {})
            }
            12 => {
                let mut x = d.mine(all);
                g.reduce_scatter_in_place(&mut x, Op::Max).unwrap();
                assert!(x[d.row(me, n)] == *d.of(p - 1, d.row(me, n)));
                Box::new(|_| {})
            }
            _ => {
                let mut x = d.mine(total);
                g.all_reduce(&mut x, Op::Sum).unwrap();
                assert!(x == d.summed(0..total));
                Box::new(|_| {})
            }
        }
    }
}

const KINDS: u32 = 14;

/// Waits for the operation, one way or the other, and looks at what it gives back.
fn check<'a, R: 'static>(handle: Handle<R>, right: impl FnOnce(R) -> bool + 'a) -> Check<'a> {
    Box::new(move |mine| {
        let result = if mine.random() {
            handle.wait()
        } else {
            block_on(handle)
        };
        let result = result.unwrap_or_else(|failure| panic!("{}", failure.error));
        assert!(right(result), "a wrong element");
    })
}

/// Log-uniform: as many sizes between 4 B and 8 B as between 2 MiB and 4 MiB.
fn size(common: &mut StdRng) -> usize {
    let most = (LARGEST as f64).log2();
    (common.random_range(0.0..=most).exp2() as usize).min(LARGEST)
}

/// Every fifth time this rank is late: asleep, or busy with something else.
fn be_late(mine: &mut StdRng) {
    match mine.random_range(0..10) {
        0 => std::thread::sleep(Duration::from_micros(mine.random_range(0..1000))),
        1 => {
            let (began, busy) = (Instant::now(), mine.random_range(0..300));
            while began.elapsed() < Duration::from_micros(busy) {
                std::hint::spin_loop();
            }
        }
        _ => {}
    }
}

pub(crate) fn rank() {
    let operations: usize = argument().parse().unwrap();
    let g = Group::from_env().unwrap();
    let (me, p) = (g.rank(), g.size());
    let whole = Tables::new(p, |i| i as i32);
    let float = Tables::new(p, |i| i as f32);
    // The same on all ranks, and not.
    let (mut common, mut mine) = (
        StdRng::seed_from_u64(20),
        StdRng::seed_from_u64(100 + u64::from(me)),
    );
    let mut flying: VecDeque<Check<'_>> = VecDeque::new();
    let mut elements = 0;
    for _ in 0..operations {
        be_late(&mut mine);
        let (kind, total) = (common.random_range(0..KINDS), size(&mut common));
        let (base, root) = (common.random_range(0..BASES), common.random_range(0..p));
        elements += total;
        flying.push_back(if common.random() {
            let tables = &whole;
            let data = Data {
                tables,
                base,
                p,
                me,
                root,
            };
            data.start(&g, kind, total)
        } else {
            let tables = &float;
            let data = Data {
                tables,
                base,
                p,
                me,
                root,
            };
            data.start(&g, kind, total)
        });
        // Each rank lets another number of operations fly, and looks at any of them first.
        let most = mine.random_range(0..=DEPTH);
        while flying.len() > most {
            let which = mine.random_range(0..flying.len());
            flying.swap_remove_back(which).unwrap()(&mut mine);
        }
    }
    for check in flying {
        check(&mut mine);
    }
    g.close().unwrap();
    say(format_args!(
        "{operations} operations, {} MiB",
        elements >> 18
    ));
}

fn mixed(size: u32, operations: &str) {
    let began = Instant::now();
    let mut start = Start::new("mixed", operations);
    start.life = 400;
    let said = Job::start_with(&start, size).done();
    println!("{size} ranks, {}: {:?}", said[0][0], began.elapsed());
    assert!(said[0][0].starts_with(operations), "{said:?}");
}

#[test]
fn ten_thousand_mixed_operations_of_all_sizes_by_skewed_ranks_are_right() {
    mixed(3, "10000");
}

#[test]
fn mixed_operations_are_right_with_as_many_ranks_as_one_likes() {
    mixed(2, "1500");
    mixed(5, "1500");
}
