//! Each fault ends as its documentation says.

mod common;

use unisono_sim::{Cluster, Collective, Error, Fault, Group, Op, Topology, owned};

fn fault(text: &str) -> Fault {
    text.parse().unwrap()
}

/// Three rounds of a ring all_reduce over four ranks; every result is checked.
fn rounds(cluster: &Cluster) -> (Vec<Option<Result<(), Error>>>, unisono_sim::Report) {
    let outcome = cluster.run(|group| async move {
        let group = group.with_algorithm("ring")?;
        for _ in 0..3 {
            let right = common::checked(&group, Collective::AllReduce, 4_000, 0).await?;
            assert!(right, "a wrong sum at rank {}", group.rank());
        }
        Ok(())
    });
    (outcome.results, outcome.report)
}

fn with(text: &str) -> (Vec<Option<Result<(), Error>>>, unisono_sim::Report) {
    rounds(&Cluster::mesh(4).seed(1).fault(fault(text)))
}

/// Time without any fault.
fn healthy() -> u64 {
    let (results, report) = rounds(&Cluster::mesh(4).seed(1));
    assert!(results.iter().all(|r| matches!(r, Some(Ok(())))));
    assert_eq!(report.error, None);
    report.total_ps
}

fn ends_right_but_later(text: &str) {
    let (results, report) = with(text);
    assert_eq!(report.error, None, "{text}");
    assert!(results.iter().all(|r| matches!(r, Some(Ok(())))), "{text}");
    assert!(report.total_ps > healthy(), "{text}: {}", report.total_ps);
}

fn all_ranks_hear(text: &str, expected: &str) {
    let (results, report) = with(text);
    assert!(report.error.is_some(), "{text}");
    let first = results.iter().flatten().next().unwrap();
    let first = first.as_ref().unwrap_err().to_string();
    assert!(first.contains(expected), "{text}: {first}");
    for result in results.iter().flatten() {
        // Everybody names the same cause, during an operation of its own.
        let error = result.as_ref().unwrap_err().to_string();
        let cause = |text: &str| text.split(" during ").next().unwrap().to_owned();
        assert_eq!(cause(&error), cause(&first), "{text}");
    }
}

#[test]
fn what_only_takes_time_only_takes_time() {
    ends_right_but_later("stall rank=3 at=0us for=20ms");
    ends_right_but_later("stall rank=1 at=30us for=1ms");
    ends_right_but_later("down link=0-1 at=20us up=2ms");
    ends_right_but_later("slow link=2-3 factor=0.1");
    ends_right_but_later("slow link=2>3 factor=0.1 at=50us");
    ends_right_but_later("delay link=0-1 nth=3 by=1ms");
}

#[test]
fn a_crashed_rank_is_lost_to_all_others() {
    all_ranks_hear("crash rank=2 at=0us", "rank 2 was lost");
    all_ranks_hear("crash rank=2 at=100us", "rank 2 was lost");
    let (results, report) = with("crash rank=2 at=100us");
    assert!(results[2].is_none());
    assert_eq!(report.ranks[2].crashed_ps, Some(100_000_000));
    // Nobody knows before the control plane has missed it.
    assert_eq!(report.total_ps, 100_000_000 + 1_000_000_000);
    let (_, report) = with("crash rank=2 at=10s");
    assert_eq!(report.error, None, "it had ended before");
}

#[test]
fn a_link_that_stays_down_breaks() {
    all_ranks_hear("down link=0-1 at=20us", "the link is down");
    let (_, report) = with("down link=0-2 at=20us");
    assert_eq!(report.error, None, "the ring does not use it");
}

#[test]
fn a_message_that_is_not_there_is_missed() {
    all_ranks_hear("drop link=0-1 nth=3", "disagree on");
    all_ranks_hear("oneway link=0>1 at=50us", "deadlock: ");
    all_ranks_hear("loss link=0-1 rate=1", "deadlock: ");
    // The last one: none follows that would show it, but its sender has ended, which closes the link.
    let (results, report) = with("drop link=0-1 nth=18");
    assert!(matches!(results[0], Some(Ok(()))) && report.lost == 1);
    let error = results[1]
        .as_ref()
        .unwrap()
        .as_ref()
        .unwrap_err()
        .to_string();
    assert_eq!(error, "rank 0 was lost during all_reduce #2");
    // Where the sender goes on waiting, nobody is lost, and nothing moves.
    let cluster = Cluster::mesh(2).fault(fault("drop link=0-1 nth=1"));
    let outcome = cluster.run(|group| async move {
        let mut x = vec![group.rank(); 10];
        if group.rank() == 0 {
            group.start(owned::send(x.clone(), 1)).await?;
        } else {
            x = group.start(owned::recv(x, 0)).await?;
        }
        group
            .start(owned::all_reduce(x, Op::Sum))
            .await
            .map_err(Error::from)
    });
    let text = outcome.report.error.unwrap().to_string();
    let expected = "rank 0 waits recv from rank 1 (op 0, step 0) -> rank 1 waits recv from rank 0 (op 0, step 0) -> \
                    rank 0; 1 message was lost";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn a_message_that_comes_twice_is_seen() {
    all_ranks_hear("duplicate link=0-1 nth=3", "disagree on");
    let (_, report) = with("duplicate link=0-1 nth=18");
    assert_eq!(
        report.error, None,
        "nobody receives the second copy of the last message"
    );
}

#[test]
fn a_message_that_has_changed_is_seen() {
    all_ranks_hear("corrupt link=0-1 nth=3", "checksum");
    for seed in 0..50 {
        let fault = fault("corrupt link=0-1 nth=3 part=frame");
        let (results, report) = rounds(&Cluster::mesh(4).seed(seed).fault(fault));
        assert!(report.error.is_some());
        for result in results {
            let error = result.unwrap().unwrap_err().to_string();
            assert!(error.contains("disagree on"), "{error}");
        }
    }
}

#[test]
fn a_fault_where_nothing_is_gets_refused() {
    let line = Topology::from_links(3, [(0, 1), (1, 2)]);
    for (text, expected) in [
        (
            "crash rank=3 at=0us",
            "fault `crash rank=3 at=0us`: rank 3 does not exist in a group of 3 (ranks 0 to 2)",
        ),
        (
            "drop link=0-9 nth=1",
            "fault `drop link=0-9 nth=1`: rank 9 does not exist in a group of 3 (ranks 0 to 2)",
        ),
        (
            "oneway link=0>2 at=1ms",
            "fault `oneway link=0>2 at=1ms`: ranks 0 and 2 have no link",
        ),
    ] {
        let cluster = Cluster::from_topology(line.clone()).fault(fault(text));
        let outcome = cluster.run(|_| async {});
        assert_eq!(outcome.report.error.unwrap().to_string(), expected);
    }
}

/// Kills each rank at each message of a run, and looks at what the others get.
#[test]
fn a_rank_may_be_killed_at_any_message() {
    for p in 2..=5 {
        let program = |group: Group| async move {
            for collective in [Collective::AllReduce, Collective::AllGather] {
                let right = common::checked(&group, collective, 300, 0).await?;
                assert!(right, "a wrong result at rank {}", group.rank());
            }
            Ok::<_, Error>(())
        };
        let healthy = Cluster::mesh(p).record().run(program).report;
        let mut times: Vec<u64> = healthy
            .records
            .iter()
            .filter_map(|record| match record {
                unisono_sim::Record::Message { end_ps, .. } => Some(*end_ps),
                _ => None,
            })
            .collect();
        times.sort_unstable();
        times.dedup();
        assert!(times.len() > 1);
        for rank in 0..p {
            for at_ps in times.iter().flat_map(|t| [*t - 1, *t, *t + 1]) {
                let fault = Fault::Crash { rank, at_ps };
                let outcome = Cluster::mesh(p).fault(fault).run(program);
                for (other, result) in (0..).zip(&outcome.results) {
                    match result {
                        None => assert_eq!(other, rank),
                        Some(Ok(())) => {}
                        Some(Err(error)) => {
                            let text = error.to_string();
                            let lost = format!("rank {rank} was lost");
                            assert!(text.starts_with(&lost), "rank {rank} at {at_ps}: {text}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn threads_hear_of_a_crash_as_tasks_do() {
    let cluster = Cluster::mesh(3).fault(fault("crash rank=1 at=5us"));
    let outcome = cluster.run_blocking(|group| {
        let mut x = vec![1u64; 10_000];
        (0..3).try_for_each(|_| group.all_reduce(&mut x, Op::Sum))
    });
    assert!(outcome.results[1].is_none());
    for rank in [0, 2] {
        let error = outcome.results[rank]
            .as_ref()
            .unwrap()
            .as_ref()
            .unwrap_err();
        assert_eq!(error.to_string(), "rank 1 was lost during all_reduce #0");
    }
    let tasks = cluster.run(|group| async move {
        let mut x = vec![1u64; 10_000];
        for _ in 0..3 {
            x = group.start(owned::all_reduce(x, Op::Sum)).await?;
        }
        Ok::<_, Error>(())
    });
    assert_eq!(outcome.report.trace_hash, tasks.report.trace_hash);
}
