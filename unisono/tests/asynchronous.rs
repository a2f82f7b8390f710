//! Operations that own their memory, under every kind of executor.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{LIMIT, block_on, contribution, ranks, sum_of};
use futures::future::{Either, join_all, select};
use unisono::{Error, Group, Op, owned};

/// A bit of everything, with results checked.
async fn conversation(g: Group) -> Result<(), Error> {
    let (me, p) = (g.rank(), g.size());
    for k in 0..5 {
        let n = [1, 1000, 70_000][k % 3];
        let x = g
            .start(owned::all_reduce(contribution(me, k, n), Op::Sum))
            .await?;
        assert!(x == sum_of(p, k, n), "all_reduce {k}");
        let (_, all) = g
            .start(owned::all_gather(vec![me; 300], vec![0; 300 * p as usize]))
            .await?;
        assert!((0..p).all(|r| all[300 * r as usize + 299] == r));
        let handles =
            (0..4).map(|j| g.start(owned::all_reduce(contribution(me, j, 5000 * j), Op::Sum)));
        for (j, x) in join_all(handles).await.into_iter().enumerate() {
            assert!(x? == sum_of(p, j, 5000 * j), "joined {j}");
        }
        let (right, left) = ((me + 1) % p, (me + p - 1) % p);
        if p > 1 {
            let sent = g.start(owned::send(vec![me as f32; 40_000], right));
            let came = g.start(owned::recv(vec![0f32; 40_000], left));
            let (sent, came) = futures::join!(sent, came);
            assert_eq!((sent?[0], came?[39_999]), (me as f32, left as f32));
        }
        g.start(owned::barrier()).await?;
    }
    Ok(())
}

#[test]
fn handles_work_on_a_multi_threaded_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = unisono::inproc(4)
            .into_iter()
            .map(|g| tokio::spawn(conversation(g.with_timeout(LIMIT))))
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
    });
}

#[test]
fn all_ranks_may_be_tasks_of_one_thread() {
    // A handle that blocked would block its peers, and so itself.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    for size in [1, 2, 4, 7] {
        runtime.block_on(async {
            let tasks: Vec<_> = unisono::inproc(size)
                .into_iter()
                .map(|g| tokio::spawn(conversation(g.with_timeout(LIMIT))))
                .collect();
            for task in tasks {
                tokio::time::timeout(LIMIT, task)
                    .await
                    .expect("not in time")
                    .unwrap()
                    .unwrap();
            }
        });
    }
}

#[test]
fn ranks_joined_in_one_future_need_no_runtime() {
    let ranks = unisono::inproc(3)
        .into_iter()
        .map(|g| conversation(g.with_timeout(LIMIT)));
    for result in futures::executor::block_on(join_all(ranks)) {
        result.unwrap();
    }
}

#[test]
fn a_plain_executor_per_thread_will_do() {
    ranks(4, |g| block_on(conversation(g)).unwrap());
}

#[test]
fn messages_that_arrive_before_their_receives_are_posted_are_all_fetched() {
    // Several large messages lie in the link before the receiver starts: nothing announces them again.
    for _ in 0..20 {
        ranks(2, |g| {
            let n = 200_000;
            if g.rank() == 0 {
                let sends = (0..6u8).map(|k| g.start(owned::send(vec![k; n], 1)));
                let all: Vec<_> = sends.collect();
                block_on(join_all(all))
                    .into_iter()
                    .for_each(|x| drop(x.unwrap()));
            } else {
                thread::sleep(Duration::from_millis(3));
                let receives = (0..6).map(|_| g.start(owned::recv(vec![9u8; n], 0)));
                let all: Vec<_> = receives.collect();
                for (k, x) in block_on(join_all(all)).into_iter().enumerate() {
                    assert!(x.unwrap().iter().all(|v| *v == k as u8));
                }
            }
        });
    }
}

#[test]
fn a_dropped_handle_leaves_its_operation_to_later_calls() {
    let results = ranks(3, |g| {
        let me = g.rank();
        for n in [10, 100_000] {
            // Polled once and dropped; never polled and dropped.
            let mut polled = g.start(owned::all_reduce(vec![1u32; n], Op::Sum));
            let waker = Waker::noop();
            let _ = std::pin::Pin::new(&mut polled).poll(&mut Context::from_waker(waker));
            drop(polled);
            drop(g.start(owned::broadcast(vec![me; n], 2)));
            // A later call drives them, and comes after them.
            let mut x = vec![1u64; n];
            g.all_reduce(&mut x, Op::Sum).unwrap();
            assert!(x.iter().all(|v| *v == 3));
        }
        drop(g.start(owned::all_reduce(vec![me; 50_000], Op::Max)));
        g.close()
    });
    for result in results {
        result.unwrap();
    }
}

/// Memory that tells when it is given up.
#[derive(Clone)]
struct Watched(Arc<AtomicBool>, Arc<[u8]>);

impl AsRef<[u8]> for Watched {
    fn as_ref(&self) -> &[u8] {
        &self.1
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn the_memory_of_a_dropped_handle_is_kept_until_its_operation_is_done() {
    let mut groups = unisono::inproc(2)
        .into_iter()
        .map(|g| g.with_timeout(LIMIT));
    let (zero, one) = (groups.next().unwrap(), groups.next().unwrap());
    let gone = Arc::new(AtomicBool::new(false));
    let bytes = Bytes::from_owner(Watched(gone.clone(), vec![7; 100_000].into()));
    drop(zero.start(owned::send(bytes, 1)));
    zero.progress().unwrap();
    assert!(!gone.load(Ordering::SeqCst), "it is not sent yet");
    let receiver = thread::spawn(move || {
        let mut y = vec![0u8; 100_000];
        one.recv(&mut y, 0).map(|()| y)
    });
    zero.close().unwrap();
    assert!(gone.load(Ordering::SeqCst), "close waits for it");
    assert!(receiver.join().unwrap().unwrap().iter().all(|v| *v == 7));
}

#[test]
fn memory_that_calls_the_group_when_dropped_does_not_deadlock() {
    struct Caller(Group, Vec<u8>);
    impl AsRef<[u8]> for Caller {
        fn as_ref(&self) -> &[u8] {
            &self.1
        }
    }
    impl Drop for Caller {
        fn drop(&mut self) {
            let _ = self.0.progress();
        }
    }
    ranks(2, |g| {
        let bytes = Bytes::from_owner(Caller(g.clone(), vec![g.rank() as u8; 60_000]));
        drop(g.start(owned::all_gather(bytes, vec![0; 120_000])));
        g.barrier().unwrap();
        let bytes = Bytes::from_owner(Caller(g.clone(), vec![1; 10]));
        drop(g.start(owned::send(bytes, 1 - g.rank())));
        drop(g.start(owned::recv(vec![0u8; 10], 1 - g.rank())));
        g.close().unwrap();
    });
}

#[test]
fn bytes_and_buffers_travel_without_becoming_vectors() {
    ranks(2, |g| {
        let (me, peer) = (g.rank(), 1 - g.rank());
        let mut x = g.alloc::<f64>(30_000).unwrap();
        x.fill(f64::from(me) + 1.0);
        let x = g.start(owned::all_reduce(x, Op::Sum)).wait().unwrap();
        assert!(x.iter().all(|v| *v == 3.0));
        let text = Bytes::from(format!("from {me}").repeat(1000));
        let sent = g.start(owned::send(text.slice(6..), peer));
        let came = g
            .start(owned::recv(vec![0u8; 5994].into_boxed_slice(), peer))
            .wait()
            .unwrap();
        assert_eq!(&came[..12], format!("from {peer}from {peer}").as_bytes());
        assert_eq!(sent.wait().unwrap().len(), 5994);
        let gathered = g.start(owned::all_gather(text, g.alloc::<u8>(12_000).unwrap()));
        let (text, all) = block_on(gathered).unwrap();
        assert_eq!(all[6000 * me as usize..][..6000], text[..]);
    });
}

#[test]
fn a_failure_gives_the_buffers_back() {
    // Found before anything is sent: the contents are as they were.
    let g = unisono::inproc(2).remove(0);
    let failure = block_on(g.start(owned::all_gather(vec![5u16; 3], vec![1; 7]))).unwrap_err();
    assert!(
        matches!(
            failure.error,
            Error::WrongLength {
                needed: 6,
                got: 7,
                ..
            }
        ),
        "{failure}"
    );
    assert_eq!(failure.buffers, (vec![5; 3], vec![1; 7]));
    // In flight, by the loss of the peer (which went with the line above).
    let failure = g
        .start(owned::send(vec![5u16; 3000], 1))
        .wait()
        .unwrap_err();
    assert!(
        failure.to_string().contains("rank 1 was lost during send"),
        "{failure}"
    );
    assert_eq!(failure.buffers, vec![5; 3000]);
    let error: Error = failure.into();
    assert!(matches!(error, Error::Failed { .. }));
}

#[test]
fn polling_any_handle_moves_all_of_them() {
    ranks(2, |g| {
        let peer = 1 - g.rank();
        let first = g.start(owned::all_reduce(vec![1u32; 90_000], Op::Sum));
        let second = g.start(owned::recv(vec![0u8; 50_000], peer));
        let third = g.start(owned::send(vec![1u8; 50_000], peer));
        let last = g.start(owned::barrier());
        // Only the last is polled. The others are done when it is, as far as this rank's part goes.
        block_on(last).unwrap();
        let first = g.start(owned::barrier()).wait().map(|()| first).unwrap();
        assert!(block_on(first).unwrap().iter().all(|v| *v == 2));
        assert_eq!(second.wait().unwrap()[49_999], 1);
        third.wait().unwrap();
    });
}

/// Counts how often it is woken.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_handle_with_nothing_to_do_is_not_woken_again_and_again() {
    let mut groups = unisono::inproc(2);
    let (one, zero) = (groups.pop().unwrap(), groups.pop().unwrap());
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    let mut handle = zero.start(owned::recv(vec![0u32; 1000], 1));
    let mut poll = || std::pin::Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
    // The first polls may settle what was posted.
    for _ in 0..3 {
        assert!(poll().is_pending());
    }
    let woken = || count.0.load(Ordering::SeqCst);
    let before = woken();
    for _ in 0..5 {
        thread::sleep(Duration::from_millis(20));
        assert!(poll().is_pending());
    }
    // Once it has looked whether its peer does something else, it sleeps on.
    assert!(woken() <= before + 3, "woken {} times", woken() - before);
    let before = woken();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(woken(), before);
    let _sent = one.start(owned::send(vec![3u32; 1000], 0));
    let began = Instant::now();
    loop {
        if let Poll::Ready(x) = poll() {
            assert_eq!(x.unwrap()[999], 3);
            break;
        }
        assert!(began.elapsed() < LIMIT);
    }
    assert!(count.0.load(Ordering::SeqCst) > before, "news wake it");
}

#[test]
fn a_blocking_call_and_pending_handles_share_a_rank() {
    ranks(3, |g| {
        let (me, p) = (g.rank(), g.size());
        for k in 0..50 {
            let n = 1 + k * 700;
            let handle = g.start(owned::all_reduce(contribution(me, k, n), Op::Sum));
            let mut x = contribution(me, k + 1, n);
            g.all_reduce(&mut x, Op::Sum).unwrap();
            assert!(x == sum_of(p, k + 1, n));
            assert!(block_on(handle).unwrap() == sum_of(p, k, n));
        }
    });
}

#[test]
fn a_handle_is_polled_from_another_thread_while_a_blocking_call_drives() {
    ranks(2, |g| {
        let (me, peer) = (g.rank(), 1 - g.rank());
        thread::scope(|s| {
            s.spawn(|| {
                for k in 0..300u32 {
                    let n = 1 + (k as usize * 37) % 9000;
                    let sent = g.start(owned::send(vec![k + me; n], peer));
                    let came = g.start(owned::recv(vec![0; n], peer));
                    let (sent, came) = block_on(async { futures::join!(sent, came) });
                    sent.unwrap();
                    assert!(came.unwrap().iter().all(|v| *v == k + peer));
                }
            });
            for k in 0..300 {
                let n = 1 + (k * 91) % 7000;
                let mut x = contribution(me, k, n);
                g.all_reduce(&mut x, Op::Sum).unwrap();
                assert!(x == sum_of(2, k, n));
            }
        });
    });
}

#[test]
fn many_handles_in_many_tasks_finish() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for g in unisono::inproc(3) {
            let g = g.with_timeout(LIMIT);
            for k in 0..100 {
                let handle = g.start(owned::all_reduce(
                    contribution(g.rank(), k, k * 13),
                    Op::Sum,
                ));
                tasks.push(tokio::spawn(async move {
                    assert!(handle.await.unwrap() == sum_of(3, k, k * 13))
                }));
            }
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn a_handle_dropped_by_select_takes_no_wake_up_along() {
    // Of two handles in one task the one that was polled last is dropped; the other goes on.
    ranks(2, |g| {
        let peer = 1 - g.rank();
        for _ in 0..50 {
            let send = g.start(owned::send(vec![1u8; 100_000], peer));
            let recv = g.start(owned::recv(vec![0u8; 100_000], peer));
            block_on(async {
                match select(send, recv).await {
                    Either::Left((_, recv)) => assert_eq!(recv.await.unwrap()[9], 1),
                    Either::Right((x, send)) => {
                        assert_eq!(x.unwrap()[9], 1);
                        drop(send);
                    }
                }
            });
        }
        g.close().unwrap();
    });
}
