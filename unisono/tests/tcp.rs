//! Groups over TCP, their ranks threads of this process: the same calls, the same results, the same errors.

use std::thread;
use std::time::Duration;

use unisono::{Check, Error, Group, Op, owned};

/// Forms a group of `size` over TCP, met by a file, and runs `f` on every rank.
fn ranks<R: Send>(name: &str, size: u32, check: Check, f: impl Fn(Group) -> R + Sync) -> Vec<R> {
    let place = std::env::temp_dir().join(format!("unisono-{}-{name}-{size}", std::process::id()));
    let coordinator = format!("file:{}", place.display());
    let results = thread::scope(|s| {
        let (f, coordinator) = (&f, &coordinator);
        let threads: Vec<_> = (0..size)
            .map(|rank| {
                s.spawn(move || {
                    let builder = Group::builder().rank(rank).size(size).check(check);
                    let builder = builder.timeout(Duration::from_secs(30));
                    f(builder.coordinator(coordinator).join().expect("joined"))
                })
            })
            .collect();
        let joined = threads.into_iter().map(|t| t.join().expect("a rank"));
        joined.collect()
    });
    let _ = std::fs::remove_file(place);
    results
}

#[test]
fn collectives_and_messages_are_right() {
    for size in [2, 3, 5] {
        ranks("right", size, Check::Default, |g| {
            let (me, p) = (g.rank(), g.size());
            for name in unisono::registry().names() {
                let g = g.with_algorithm(name).unwrap();
                for n in [1usize, 1000, 100_003] {
                    let mut x: Vec<i64> = (0..n).map(|i| i64::from(me) + i as i64).collect();
                    match g.all_reduce(&mut x, Op::Sum) {
                        Err(Error::Select(_)) => break,
                        result => result.unwrap(),
                    }
                    let ranks = i64::from(p) * i64::from(p - 1) / 2;
                    let right = |i: usize| ranks + i as i64 * i64::from(p);
                    assert!(
                        x.iter().enumerate().all(|(i, x)| *x == right(i)),
                        "{name} {n}"
                    );
                }
            }
            for n in [1usize, 4096, 4097, 7, 0, 1 << 18] {
                let (right, left) = ((me + 1) % p, (me + p - 1) % p);
                let mut y = vec![0; n];
                g.send_recv(&vec![me; n], right, &mut y, left).unwrap();
                assert!(y.iter().all(|v| *v == left));
            }
            g.barrier().unwrap();
            g.close().unwrap();
        });
    }
}

#[test]
fn both_directions_of_every_link_may_be_full() {
    ranks("full", 2, Check::Default, |g| {
        let n = 3 << 20;
        let peer = 1 - g.rank();
        let mut y = vec![0u64; n];
        g.send_recv(&vec![u64::from(g.rank()) + 5; n], peer, &mut y, peer)
            .unwrap();
        assert!(y.iter().all(|v| *v == u64::from(peer) + 5));
    });
}

#[test]
fn handles_are_woken_by_their_sockets() {
    ranks("handles", 3, Check::Default, |g| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            for k in 0..30u32 {
                // Skewed, so that somebody sleeps.
                if k % 3 == g.rank() {
                    thread::sleep(Duration::from_millis(3));
                }
                let a = g.start(owned::all_reduce(vec![k + g.rank(); 5000], Op::Sum));
                let b = g.start(owned::all_gather(vec![g.rank()], vec![9; 3]));
                assert_eq!(a.await.unwrap()[4999], 3 * k + 3);
                assert_eq!(b.await.unwrap().1, [0, 1, 2]);
            }
        });
    });
}

#[test]
fn ranks_that_disagree_get_the_same_error_in_both_modes() {
    for check in [Check::Default, Check::Full] {
        let errors = ranks("disagree", 3, check, |g| {
            let n = if g.rank() == 1 { 5000 } else { 6000 };
            let mut x = vec![1.0f32; n];
            let first = g.all_reduce(&mut x, Op::Sum).and_then(|()| g.barrier());
            let untouched = x.iter().all(|v| *v == 1.0);
            (first.unwrap_err().to_string(), untouched)
        });
        for (error, untouched) in &errors {
            assert!(error.contains("ranks disagree on count: "), "{error}");
            assert!(error.contains("5000") && error.contains("6000"), "{error}");
            assert_eq!(error, &errors[0].0);
            assert!(*untouched || check == Check::Default);
        }
    }
}

#[test]
fn a_rank_that_goes_is_named_by_all_others() {
    let errors = ranks("gone", 3, Check::Default, |g| {
        if g.rank() == 2 {
            return String::new();
        }
        let mut x = vec![1.0f32; 500_000];
        g.all_reduce(&mut x, Op::Sum).unwrap_err().to_string()
    });
    assert!(errors[0].contains("rank 2"), "{}", errors[0]);
    assert!(errors[1].contains("rank 2"), "{}", errors[1]);
}

#[test]
fn an_address_is_refused_by_its_text_alone() {
    for (text, says) in [
        ("node", "port"),
        ("node:0", "port"),
        ("node:70000", "port"),
        ("::1:5000", "brackets"),
    ] {
        let error = Group::builder()
            .size(2)
            .coordinator(text)
            .join()
            .unwrap_err();
        assert!(matches!(error, Error::Coordinator(_)), "{error}");
        assert!(error.to_string().contains(says), "{text}: {error}");
    }
}
