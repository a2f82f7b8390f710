//! Ranks that call different things: one error for all, with both values in it.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{LIMIT, block_on, ranks};
use unisono::{Error, Group, Kind, Op, owned};

/// What all ranks say when they do `f`, which differs, and go on.
fn disagreement(size: u32, f: impl Fn(&Group) -> Result<(), Error> + Sync) -> (String, Kind) {
    let errors = ranks(size, |g| {
        // Who has returned already hears of it in his next call.
        let error = f(&g).and_then(|()| g.barrier()).and_then(|()| g.barrier());
        error.unwrap_err()
    });
    let text = errors[0].to_string();
    for error in &errors {
        assert_eq!(error.to_string(), text);
    }
    let Error::Failed { cause } = &errors[0] else {
        panic!("{text}");
    };
    (text, cause.kind.clone())
}

/// The same of ranks that all wait: only that nothing moves tells, and long before the deadline.
fn stalled(size: u32, f: impl Fn(&Group) -> Result<(), Error> + Sync) -> (String, Kind) {
    let began = Instant::now();
    let found = disagreement(size, f);
    let took = began.elapsed();
    assert!(took < LIMIT / 4, "{} took {took:?}", found.0);
    found
}

/// That they disagree on `field`, with these values at two of the ranks.
fn expect(field: &str, values: [&str; 2], (text, kind): (String, Kind)) {
    let Kind::Mismatch {
        field: found,
        mine,
        theirs,
        ..
    } = kind
    else {
        panic!("{text}");
    };
    let mut found_values = [mine.as_str(), theirs.as_str()];
    found_values.sort_unstable();
    let mut values = values;
    values.sort_unstable();
    assert_eq!((found.as_str(), found_values), (field, values), "{text}");
    for value in values {
        assert!(text.contains(&format!("{value} at rank ")), "{text}");
    }
}

#[test]
fn another_collective() {
    for n in [1, 50_000] {
        let text = disagreement(2, |g| {
            let mut x = vec![1f32; n];
            if g.rank() == 0 {
                g.all_reduce(&mut x, Op::Sum)
            } else {
                g.all_gather(&x, &mut vec![0f32; 2 * n])
            }
        });
        expect("collective", ["all_reduce", "all_gather"], text);
    }
}

#[test]
fn another_element_type() {
    for size in [2, 4] {
        let text = disagreement(size, |g| {
            if g.rank() == 0 {
                g.all_reduce(&mut [1f32; 1000], Op::Sum)
            } else {
                g.all_reduce(&mut [1i32; 1000], Op::Sum)
            }
        });
        expect("dtype", ["f32", "i32"], text);
    }
}

#[test]
fn another_operator() {
    for size in [2, 3] {
        let text = disagreement(size, |g| {
            let op = if g.rank() == 1 { Op::Max } else { Op::Sum };
            g.all_reduce(&mut [1f32; 1000], op)
        });
        expect("op", ["max", "sum"], text);
    }
    let text = disagreement(2, |g| {
        let user = g.operator::<u64>(true, |acc, x| acc[0] += x[0]).unwrap();
        let op = if g.rank() == 1 { user } else { Op::Sum };
        g.all_reduce(&mut [1u64], op)
    });
    expect("op", ["sum", "user0"], text);
}

#[test]
fn another_count() {
    for size in [2, 3, 5] {
        let text = disagreement(size, |g| {
            let n = if g.rank() == 1 { 40_000 } else { 50_000 };
            g.all_reduce(&mut vec![1f32; n], Op::Sum)
        });
        expect("count", ["40000", "50000"], text);
    }
}

#[test]
fn another_root() {
    for (algorithm, n) in [("ring", 1000), ("tree", 1), ("tree", 50_000)] {
        let text = disagreement(3, |g| {
            let root = if g.rank() == 1 { 2 } else { 0 };
            g.with_algorithm(algorithm)?
                .broadcast(&mut vec![1f32; n], root)
        });
        expect("root", ["0", "2"], text);
    }
}

#[test]
fn another_root_of_started_operations_whose_messages_go_where_nobody_expects_them() {
    let text = disagreement(3, |g| {
        let root = if g.rank() == 1 { 2 } else { 0 };
        let g = g.with_algorithm("tree")?;
        let broadcast = g.start(owned::broadcast(vec![1f32; 1000], root));
        block_on(broadcast).map(drop).map_err(Error::from)
    });
    expect("root", ["0", "2"], text);
}

#[test]
fn two_ranks_that_each_take_the_other_for_the_root() {
    for n in [1, 50_000] {
        let text = stalled(2, |g| g.broadcast(&mut vec![1f32; n], 1 - g.rank()));
        expect("root", ["0", "1"], text);
    }
}

#[test]
fn two_ranks_that_each_take_the_other_for_the_root_of_a_started_operation() {
    let text = stalled(2, |g| {
        let broadcast = g.start(owned::broadcast(vec![1f32; 10], 1 - g.rank()));
        block_on(broadcast).map(drop).map_err(Error::from)
    });
    expect("root", ["0", "1"], text);
}

#[test]
fn messages_that_go_on_do_not_hide_ranks_that_wait_for_each_other() {
    let text = stalled(2, |g| {
        let peer = 1 - g.rank();
        let _broadcast = g.start(owned::broadcast(vec![1f32; 10], peer));
        loop {
            g.send_recv(&[1u8], peer, &mut [0u8], peer)?;
        }
    });
    expect("root", ["0", "1"], text);
}

#[test]
fn a_rank_that_waits_for_the_root_and_ranks_that_wait_for_its_share() {
    let text = stalled(3, |g| {
        let g = g.with_algorithm("butterfly-doubling")?;
        if g.rank() == 1 {
            g.with_algorithm("tree")?.broadcast(&mut [1f32; 3], 0)
        } else {
            g.all_reduce(&mut [1f32; 3], Op::Sum)
        }
    });
    expect("collective", ["all_reduce", "broadcast"], text);
}

#[test]
fn peers_that_are_ahead_are_waited_for() {
    // Longer than patience lasts: the others have sent what belongs to the next operations.
    let done = ranks(3, |g| {
        let mut x = [g.rank(); 16];
        for root in [0, 2, 0, 1] {
            if g.rank() == 1 {
                thread::sleep(Duration::from_millis(30));
            }
            g.broadcast(&mut x, root).unwrap();
        }
        g.send_recv(
            &[g.rank()],
            (g.rank() + 1) % 3,
            &mut [0],
            (g.rank() + 2) % 3,
        )
        .unwrap();
        g.barrier().unwrap();
        x[0]
    });
    assert!(done.iter().all(|x| *x == 0), "{done:?}");
}

#[test]
fn a_message_whose_receive_comes_late_is_no_mismatch() {
    ranks(2, |g| {
        let mut y = [0u8; 100];
        if g.rank() == 0 {
            g.send(&[7u8; 100], 1).unwrap();
            thread::sleep(Duration::from_millis(60));
            g.barrier().unwrap();
        } else {
            // Waits here while the message lies there.
            g.barrier().unwrap();
            g.recv(&mut y, 0).unwrap();
            assert_eq!(y, [7; 100]);
        }
    });
}

#[test]
fn another_algorithm_and_other_parameters() {
    let (text, kind) = disagreement(2, |g| {
        let name = if g.rank() == 1 {
            "ring"
        } else {
            "mesh-twoshot"
        };
        g.with_algorithm(name)?
            .all_reduce(&mut vec![1f32; 50_000], Op::Sum)
    });
    assert!(
        matches!(&kind, Kind::Mismatch { field, .. } if field == "plan"),
        "{text}"
    );
    let (text, kind) = disagreement(2, |g| {
        let segments = u64::from(g.rank()) + 1;
        g.with_algorithm("ring")?
            .with_segments(segments)
            .all_reduce(&mut vec![1f32; 50_000], Op::Sum)
    });
    assert!(
        matches!(&kind, Kind::Mismatch { field, .. } if field == "plan"),
        "{text}"
    );
}

#[test]
fn messages_of_another_length_or_type_are_the_same_error_on_both_sides() {
    for n in [1, 10_000] {
        let text = disagreement(2, |g| {
            if g.rank() == 0 {
                g.send(&vec![1f32; n], 1)
            } else {
                g.recv(&mut vec![1f32; n + 1], 0)
            }
        });
        expect("count", [&n.to_string(), &(n + 1).to_string()], text);
        let text = disagreement(2, |g| {
            if g.rank() == 0 {
                g.send(&vec![1u16; n], 1)
            } else {
                g.recv(&mut vec![half::f16::ONE; n], 0)
            }
        });
        expect("dtype", ["u16", "f16"], text);
    }
}

#[test]
fn memory_is_not_touched_by_what_does_not_belong_there() {
    ranks(2, |g| {
        if g.rank() == 0 {
            let _ = g.send(&vec![1f32; 1000], 1);
        } else {
            let mut y = vec![5i32; 1000];
            g.recv(&mut y, 0).unwrap_err();
            assert!(y.iter().all(|v| *v == 5));
        }
    });
}
