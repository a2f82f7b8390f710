//! What cannot go on is said at once, and by whom.

use std::sync::Mutex;
use std::time::Duration;

use unisono_sim::{Cluster, End, Error, Op, SimError, Unposted, WaitKind, owned};

#[test]
fn two_ranks_that_receive_first_wait_in_a_circle() {
    let outcome = Cluster::mesh(2).run_blocking(|group| {
        let peer = 1 - group.rank();
        group.recv(&mut [0u8; 4], peer)?;
        group.send(&[0u8; 4], peer)
    });
    let error = outcome.report.error.unwrap();
    assert_eq!(
        error.to_string(),
        "deadlock at 0.000 us: rank 0 waits recv from rank 1 (op 0, step 0) -> \
         rank 1 waits recv from rank 0 (op 0, step 0) -> rank 0"
    );
    for result in outcome.results {
        let text = result.unwrap().unwrap_err().to_string();
        assert!(text.contains("deadlock: rank 0 waits recv"), "{text}");
    }
}

#[test]
fn tasks_are_told_the_same() {
    let outcome = Cluster::mesh(3).run(|group| async move {
        let from = (group.rank() + 1) % 3;
        group.start(owned::recv(vec![0u8; 4], from)).await
    });
    let Some(SimError::Deadlock { deadlock, .. }) = outcome.report.error else {
        panic!("{:?}", outcome.report.error);
    };
    assert_eq!(deadlock.end, End::Cycle(0));
    let ranks: Vec<_> = deadlock.chain.iter().map(|w| (w.rank, w.peer)).collect();
    assert_eq!(ranks, [(0, 1), (1, 2), (2, 0)]);
}

#[test]
fn a_rank_that_left_out_a_call_is_named() {
    let outcome = Cluster::mesh(4).run(|group| async move {
        let x = group
            .start(owned::all_reduce(vec![1u32; 100], Op::Sum))
            .await;
        let mut result = x.map(drop).map_err(Error::from);
        if group.rank() != 2 && result.is_ok() {
            let again = group.start(owned::all_reduce(vec![1u32; 100], Op::Sum));
            result = again.await.map(drop).map_err(Error::from);
        }
        result
    });
    // Its end closes the links, as on wires: the others learn that it was lost.
    let error = outcome.results[0].as_ref().unwrap().as_ref().unwrap_err();
    assert!(error.to_string().contains("rank 2 was lost"), "{error}");
}

#[test]
fn unposted_receives_may_block_the_sender() {
    // Both send first: fine with buffers, a circle without.
    let cluster = Cluster::mesh(2);
    let both_send = |cluster: &Cluster| {
        cluster.run_blocking(|group| {
            let peer = 1 - group.rank();
            group.send(&[1u8; 4], peer)?;
            group.recv(&mut [0u8; 4], peer)
        })
    };
    both_send(&cluster).into_result().unwrap();
    let outcome = both_send(&cluster.clone().unposted(Unposted::Block));
    let Some(SimError::Deadlock { deadlock, .. }) = outcome.report.error else {
        panic!("{:?}", outcome.report.error);
    };
    assert!(deadlock.chain.iter().all(|w| w.kind == WaitKind::Send));
    assert_eq!(deadlock.end, End::Cycle(0));
}

#[test]
fn an_unposted_receive_may_lose_the_message() {
    let cluster = Cluster::mesh(3).unposted(Unposted::Drop);
    let outcome = cluster.run_blocking(|group| {
        match group.rank() {
            0 => group.send(&[1u8; 4], 1),
            1 => {
                group.recv(&mut [0u8; 4], 2)?; // meanwhile the message of rank 0 has come and gone
                group.recv(&mut [0u8; 4], 0)
            }
            _ => group
                .send(&vec![1u8; 1 << 20], 1)
                .and(group.send(&[1u8; 4], 1)),
        }
    });
    assert!(outcome.report.error.is_some());
    assert_eq!(outcome.report.lost, 1);
}

#[test]
fn collectives_never_need_more_than_their_posted_receives() {
    for unposted in [Unposted::Block, Unposted::Buffer] {
        for name in unisono::registry().names() {
            let outcome = Cluster::mesh(5).unposted(unposted).run(|group| async move {
                let group = group.with_algorithm(name)?.with_segments(3);
                let x = group.start(owned::all_reduce(vec![2u64; 500], Op::Sum));
                Ok::<_, Error>(x.await?)
            });
            for result in outcome.into_result().unwrap().0 {
                match result {
                    Ok(x) => assert_eq!(x, [10; 500], "{name}"),
                    Err(error) => assert!(matches!(error, Error::Select(_)), "{name}: {error}"),
                }
            }
        }
    }
}

#[test]
fn deadlines_can_be_waited_for() {
    let outcome = Cluster::mesh(2)
        .wait_for_deadlines()
        .run(|group| async move {
            let group = group.with_timeout(Duration::from_millis(3));
            if group.rank() == 0 {
                group.start(owned::recv(vec![0u8; 4], 1)).await?;
            } else {
                group.start(owned::recv(vec![0u8; 4], 0)).await?;
            }
            Ok::<_, Error>(())
        });
    for result in outcome.results {
        let error = result.unwrap().unwrap_err().to_string();
        assert!(error.contains("gave up after 0.003 s"), "{error}");
    }
    assert!(outcome.report.total_ps >= 3_000_000_000);
}

#[test]
fn a_blocking_call_among_tasks_fails_and_says_so() {
    let outcome = Cluster::mesh(2).run(|group| async move { group.barrier() });
    assert_eq!(outcome.report.error, Some(SimError::Blocking { rank: 0 }));
    let error = outcome.results[0].as_ref().unwrap().as_ref().unwrap_err();
    assert!(
        error.to_string().contains("Cluster::run_blocking"),
        "{error}"
    );
}

#[test]
fn a_foreign_future_is_found_out() {
    let outcome = Cluster::mesh(2).run(|group| async move {
        if group.rank() == 1 {
            std::future::pending::<()>().await;
        }
        group.start(owned::barrier()).await.map_err(Error::from)
    });
    assert_eq!(outcome.report.error, Some(SimError::Foreign { rank: 1 }));
    assert!(outcome.results[0].as_ref().unwrap().is_err());
    assert!(outcome.results[1].is_none());
}

#[test]
fn a_panic_reaches_the_other_ranks_as_an_error() {
    let check = |results: Vec<Option<Result<(), Error>>>, error: Option<SimError>| {
        let Some(SimError::Panicked { rank: 1, message }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(message, "no more");
        assert!(results[1].is_none());
        let error = results[0].as_ref().unwrap().as_ref().unwrap_err();
        assert!(error.to_string().contains("rank 1 panicked"), "{error}");
    };
    let outcome = Cluster::mesh(3).run_blocking(|group| {
        assert!(group.rank() != 1, "no more");
        group.barrier()
    });
    check(outcome.results, outcome.report.error);
    let outcome = Cluster::mesh(3).run(|group| async move {
        assert!(group.rank() != 1, "no more");
        group.start(owned::barrier()).await.map_err(Error::from)
    });
    check(outcome.results, outcome.report.error);
}

#[test]
fn a_deadline_in_virtual_time_comes_before_a_message_that_is_too_slow() {
    let network = unisono_sim::Network::uniform(10_000_000, 0); // 10 ms of latency
    let cluster = Cluster::mesh(2).network(network);
    let check = |results: Vec<Option<Result<(), Error>>>, total_ps: u64| {
        let error = results[0].as_ref().unwrap().as_ref().unwrap_err();
        assert!(
            error.to_string().contains("gave up after 0.002 s"),
            "{error}"
        );
        assert!(
            (2_000_000_000..10_000_000_000).contains(&total_ps),
            "{total_ps}"
        );
    };
    let timeout = Duration::from_millis(2);
    let tasks = cluster.run(|group| async move {
        let group = group.with_timeout(timeout);
        group.start(owned::barrier()).await.map_err(Error::from)
    });
    check(tasks.results, tasks.report.total_ps);
    let threads = cluster.run_blocking(|group| group.with_timeout(timeout).barrier());
    check(threads.results, threads.report.total_ps);
}

#[test]
fn a_thread_that_waits_outside_of_its_group_is_named() {
    let cluster = Cluster::mesh(3).turn_limit(Duration::from_millis(100));
    let outcome = cluster.run_blocking(|group| {
        if group.rank() == 1 {
            std::thread::park(); // nobody in this world can end that
        }
        group.all_reduce(&mut [1.0f32; 10], Op::Sum)
    });
    assert!(matches!(
        outcome.report.error,
        Some(SimError::Held { rank: 1, .. })
    ));
    for result in &outcome.results {
        let error = result.as_ref().unwrap().as_ref().unwrap_err().to_string();
        assert!(
            error.contains("the thread of rank 1 has not come back"),
            "{error}"
        );
    }
    // It waits for the thread of another rank, which cannot run meanwhile.
    let (sender, receiver) = std::sync::mpsc::channel::<u32>();
    let ends = Mutex::new((Some(sender), Some(receiver)));
    let outcome = cluster.run_blocking(|group| {
        if group.rank() == 0 {
            let receiver = ends.lock().unwrap().1.take().unwrap();
            let _ = receiver.recv();
        } else if group.rank() == 2 {
            let sender = ends.lock().unwrap().0.take().unwrap();
            group.barrier()?;
            sender.send(1).unwrap();
        }
        group.barrier()
    });
    assert!(matches!(
        outcome.report.error,
        Some(SimError::Held { rank: 0, .. })
    ));
    assert!(outcome.results.iter().all(|r| matches!(r, Some(Err(_)))));
}
