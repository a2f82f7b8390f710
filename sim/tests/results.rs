//! Programs give the same results in virtual time as anywhere, and the same run every time.

use unisono_sim::{Cluster, Error, Group, Network, Op, Topology, owned};

async fn sum(group: Group, n: usize) -> Result<Vec<u64>, Error> {
    let x = (0..n as u64)
        .map(|i| i * 7 + u64::from(group.rank()))
        .collect();
    Ok(group.start(owned::all_reduce(x, Op::Sum)).await?)
}

fn expected(p: u32, n: usize) -> Vec<u64> {
    let p = u64::from(p);
    (0..n as u64).map(|i| p * i * 7 + p * (p - 1) / 2).collect()
}

#[test]
fn every_algorithm_adds_up_in_virtual_time() {
    for p in [1, 2, 3, 4, 7, 8] {
        for name in unisono::registry().names() {
            for n in [1, 5, 1000, 40_000] {
                let cluster = Cluster::mesh(p);
                let outcome = cluster.run(|group| async move {
                    let group = group.with_algorithm(name)?;
                    sum(group, n).await
                });
                let (results, report) = outcome.into_result().unwrap();
                for result in results {
                    match result {
                        Ok(x) => assert_eq!(x, expected(p, n), "{name}, {p} ranks, {n}"),
                        Err(Error::Select(_)) => assert!(report.total_ps == 0),
                        Err(error) => panic!("{name}, {p} ranks, {n}: {error}"),
                    }
                }
            }
        }
    }
}

#[test]
fn the_links_that_exist_are_enough() {
    let line = Topology::from_links(4, [(0, 1), (1, 2), (2, 3)]);
    let ring = Topology::from_links(4, [(0, 2), (2, 1), (1, 3), (3, 0)]);
    for topology in [line, ring] {
        let outcome = Cluster::from_topology(topology).run(|group| sum(group, 100));
        for result in outcome.into_result().unwrap().0 {
            assert_eq!(result.unwrap(), expected(4, 100));
        }
    }
}

#[test]
fn threads_and_tasks_make_the_same_run() {
    let cluster = Cluster::mesh(5).seed(3).jitter(0.3);
    let tasks = cluster.run(|group| async move {
        let mut last = Vec::new();
        for n in [10, 5000, 70_000] {
            last = sum(group.clone(), n).await.unwrap();
        }
        last
    });
    let threads = cluster.run_blocking(|group| {
        let mut last = Vec::new();
        for n in [10, 5000, 70_000] {
            last = (0..n).map(|i| i * 7 + u64::from(group.rank())).collect();
            group.all_reduce(&mut last, Op::Sum).unwrap();
        }
        last
    });
    let (x, first) = tasks.into_result().unwrap();
    let (y, second) = threads.into_result().unwrap();
    assert_eq!(x, y);
    assert_eq!(first.ranks, second.ranks);
    assert_eq!(first.trace_hash, second.trace_hash);
}

#[test]
fn the_hash_is_that_of_the_run_and_of_the_seed() {
    let hash = |seed, jitter| {
        let cluster = Cluster::mesh(4).seed(seed).jitter(jitter);
        let outcome = cluster.run(|group| sum(group, 3000));
        outcome.into_result().unwrap().1.trace_hash
    };
    assert_eq!(hash(1, 0.0), hash(1, 0.0));
    assert_eq!(
        hash(1, 0.0),
        hash(2, 0.0),
        "without randomness a seed is nothing"
    );
    assert_eq!(hash(1, 0.2), hash(1, 0.2));
    assert_ne!(hash(1, 0.2), hash(2, 0.2));
    assert_ne!(hash(1, 0.0), hash(1, 0.2));
}

#[test]
fn operations_overlap_with_each_other_with_messages_and_with_another_group() {
    let cluster = Cluster::mesh(4).network(Network::uniform(1000, 1_000_000_000));
    let outcome = cluster.run_groups(2, |groups| async move {
        let me = groups[0].rank();
        let (right, left) = ((me + 1) % 4, (me + 3) % 4);
        let x = |k: u64| vec![k + u64::from(me); 5000];
        let first = groups[0].start(owned::all_reduce(x(1), Op::Sum));
        let other = groups[1].start(owned::all_reduce(x(1000), Op::Max));
        let send = groups[0].start(owned::send(vec![me; 3], right));
        let recv = groups[0].start(owned::recv(vec![0; 3], left));
        let second = groups[0].start(owned::all_gather(vec![me], vec![0; 4]));
        assert_eq!(recv.await.unwrap(), [left; 3]);
        assert_eq!(other.await.unwrap(), [1003; 5000]);
        assert_eq!(second.await.unwrap().1, [0, 1, 2, 3]);
        assert_eq!(first.await.unwrap(), [4 + 6; 5000]);
        send.await.unwrap();
    });
    outcome.into_result().unwrap();
}

#[test]
fn the_examples_run_unchanged() {
    use unisono_examples as examples;
    let cluster = Cluster::mesh(3);
    let (sums, _) = cluster
        .run_blocking(|group| examples::allreduce(&group).unwrap())
        .into_result()
        .unwrap();
    assert!(sums.iter().all(|x| *x == [6.0; 1000]));
    let (losses, _) = cluster
        .run_blocking(|group| examples::training_step(&group).unwrap())
        .into_result()
        .unwrap();
    assert!(
        losses
            .iter()
            .all(|l| *l == losses[0] && l[39] < l[0] / 50.0)
    );
    let (rod, _) = cluster
        .run_blocking(|group| examples::halo(&group).unwrap())
        .into_result()
        .unwrap();
    let heat: f64 = rod.concat().iter().sum();
    assert!(
        (heat - 1000.0).abs() < 1e-6,
        "heat is neither made nor lost: {heat}"
    );
    let (gradients, _) = cluster
        .run(|group| async move { examples::async_overlap(&group).await.unwrap() })
        .into_result()
        .unwrap();
    assert!(gradients.iter().all(|g| g[1] == [4.0; 20_000]));
}
