//! A call is over when its time is, whatever else goes on at its rank.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use common::{LIMIT, block_on, ranks};
use unisono::{Error, Group, Kind, Op, owned};

const SHORT: Duration = Duration::from_millis(150);
/// What a busy machine may add.
const SLACK: Duration = Duration::from_millis(700);

/// Two ranks of which only the first will ever call.
fn alone() -> (Group, Group) {
    let mut groups = unisono::inproc(2);
    let peer = groups.remove(1);
    (groups.remove(0).with_timeout(LIMIT), peer)
}

/// Runs `f`, which must take its time: `SHORT`, and not much more.
fn in_time<R>(f: impl FnOnce() -> R) -> R {
    let began = Instant::now();
    let result = f();
    let took = began.elapsed();
    assert!(took >= SHORT && took < SHORT + SLACK, "took {took:?}");
    result
}

/// The name of the operation that the deadline is blamed on.
fn blamed(error: &Error) -> &'static str {
    let Error::Failed { cause } = error else {
        panic!("{error}");
    };
    assert!(
        matches!(&cause.kind, Kind::Deadline { millis: 150, .. }),
        "{error}"
    );
    cause.operation.expect("an operation").name
}

#[test]
fn a_polled_operation_is_over_in_time_without_any_other_activity() {
    let (g, _peer) = alone();
    let handle = g.with_timeout(SHORT).start(owned::recv(vec![0u8; 100], 1));
    let failure = in_time(|| block_on(handle)).unwrap_err();
    assert_eq!(blamed(&failure.error), "recv");
    assert!(
        failure
            .to_string()
            .contains("gave up after 0.15 s waiting for rank 1"),
        "{failure}"
    );
    assert_eq!(failure.buffers.len(), 100);
}

#[test]
fn the_shorter_of_two_polled_deadlines_counts() {
    let (g, _peer) = alone();
    let long = g.start(owned::barrier());
    let short = g.with_timeout(SHORT).start(owned::recv(vec![0u8; 100], 1));
    let (long, short) = in_time(|| block_on(async { futures::join!(long, short) }));
    let long = long.unwrap_err();
    assert_eq!(
        blamed(&long.error),
        "recv",
        "not the older one, which has time"
    );
    assert_eq!(long.to_string(), short.unwrap_err().to_string());
}

#[test]
fn a_new_deadline_before_an_old_alarm_is_met() {
    let (g, _peer) = alone();
    let mut long = g.start(owned::barrier());
    let waker = Waker::noop();
    assert!(
        std::pin::Pin::new(&mut long)
            .poll(&mut Context::from_waker(waker))
            .is_pending()
    );
    let short = g.with_timeout(SHORT).start(owned::recv(vec![0u8; 100], 1));
    in_time(|| block_on(short)).unwrap_err();
}

#[test]
fn a_driver_minds_the_deadlines_of_polled_operations() {
    let (g, _peer) = alone();
    thread::scope(|s| {
        let driver = s.spawn(|| g.barrier());
        thread::sleep(Duration::from_millis(30));
        let handle = g.with_timeout(SHORT).start(owned::recv(vec![0u8; 100], 1));
        let failure = in_time(|| block_on(handle)).unwrap_err();
        assert_eq!(blamed(&failure.error), "recv");
        let error = driver.join().unwrap().unwrap_err();
        assert_eq!(error.to_string(), failure.to_string());
    });
}

#[test]
fn a_polled_deadline_outlives_the_driver_that_minded_it() {
    let (g, peer) = alone();
    thread::scope(|s| {
        let driver = s.spawn(|| g.barrier());
        thread::sleep(Duration::from_millis(20));
        s.spawn(|| {
            thread::sleep(Duration::from_millis(60));
            peer.barrier()
        });
        let handle = g.with_timeout(SHORT).start(owned::recv(vec![0u8; 100], 1));
        in_time(|| block_on(handle)).unwrap_err();
        driver.join().unwrap().unwrap();
    });
}

#[test]
fn a_waiting_thread_is_on_time_though_the_driver_has_more() {
    let (g, _peer) = alone();
    thread::scope(|s| {
        let driver = s.spawn(|| g.barrier());
        thread::sleep(Duration::from_millis(30));
        let error = in_time(|| g.with_timeout(SHORT).recv(&mut [0u8; 100], 1)).unwrap_err();
        assert_eq!(blamed(&error), "recv");
        assert_eq!(
            driver.join().unwrap().unwrap_err().to_string(),
            error.to_string()
        );
    });
}

#[test]
fn a_waiting_thread_that_is_woken_again_and_again_is_on_time() {
    let over = AtomicBool::new(false);
    ranks(2, |g| {
        thread::scope(|s| {
            // Operations of this thread are done all the time, and wake everybody.
            let busy = s.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if g.all_reduce(&mut [1u32], Op::Sum).is_err() {
                        return;
                    }
                }
            });
            if g.rank() == 0 {
                thread::sleep(Duration::from_millis(30));
                let error = in_time(|| g.with_timeout(SHORT).recv(&mut [0u8; 100], 1)).unwrap_err();
                over.store(true, Ordering::Relaxed);
                assert_eq!(blamed(&error), "recv");
            }
            busy.join().unwrap();
        });
    });
}

#[test]
fn a_thread_that_inherits_the_role_keeps_its_deadline() {
    let (g, peer) = alone();
    thread::scope(|s| {
        let driver = s.spawn(|| g.barrier());
        thread::sleep(Duration::from_millis(20));
        s.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            peer.barrier()
        });
        in_time(|| g.with_timeout(SHORT).recv(&mut [0u8; 100], 1)).unwrap_err();
        driver.join().unwrap().unwrap();
    });
}

#[test]
fn send_recv_has_its_time_once() {
    let (g, _peer) = alone();
    let (x, mut y) = ([0u8; 1000], [0u8; 1000]);
    in_time(|| g.with_timeout(SHORT).send_recv(&x, 1, &mut y, 1)).unwrap_err();
}

#[test]
fn close_gives_up_in_time_too() {
    let (g, _peer) = alone();
    drop(g.start(owned::recv(vec![0u8; 100], 1)));
    in_time(|| g.with_timeout(SHORT).close()).unwrap_err();
}

#[test]
fn endless_patience_is_allowed() {
    ranks(2, |g| {
        let g = g.with_timeout(Duration::MAX);
        thread::sleep(Duration::from_millis(u64::from(g.rank()) * 20));
        g.barrier().unwrap();
        block_on(g.start(owned::barrier())).unwrap();
        thread::scope(|s| {
            s.spawn(|| g.barrier().unwrap());
            g.send_recv(&[1u8], 1 - g.rank(), &mut [0u8], 1 - g.rank())
                .unwrap();
        });
    });
}

#[test]
fn a_rank_that_is_three_seconds_late_is_waited_for() {
    let sums = ranks(3, |g| {
        let late = || {
            if g.rank() == 1 {
                thread::sleep(Duration::from_secs(3));
            }
        };
        let mut x = [g.rank() + 1; 100];
        late();
        g.all_reduce(&mut x, Op::Sum).unwrap();
        // Two ranks tell of each of these, the third one never does.
        late();
        let started = g.start(owned::all_reduce(x.to_vec(), Op::Sum));
        g.broadcast(&mut x, 1).unwrap();
        (x, block_on(started).unwrap())
    });
    for (blocking, polled) in sums {
        assert_eq!((blocking, polled), ([6; 100], vec![18; 100]));
    }
}

#[test]
fn an_operation_that_is_done_succeeds_whatever_failed_since() {
    let (g, peer) = alone();
    let mut first = g.start(owned::recv(vec![0u8; 10], 1));
    let second = g.with_timeout(SHORT).start(owned::barrier());
    peer.send(&[5u8; 10], 0).unwrap();
    block_on(second).unwrap_err();
    let waker = Waker::noop();
    let poll = std::pin::Pin::new(&mut first).poll(&mut Context::from_waker(waker));
    let std::task::Poll::Ready(first) = poll else {
        panic!("it is done");
    };
    assert_eq!(first.unwrap(), vec![5; 10]);
}
