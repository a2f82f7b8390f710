//! The simulator runs the very schedules that the evaluator prices: where no link is shared, both take the same time.

use unisono::program::{Context, build_all};
use unisono_sim::{
    Cluster, Collective, DType, Error, Group, LinkCost, Network, Op, Topology, owned,
};

const COLLECTIVES: [Collective; 9] = [
    Collective::AllReduce,
    Collective::ReduceScatter,
    Collective::AllGather,
    Collective::Broadcast,
    Collective::Reduce,
    Collective::AllToAll,
    Collective::Gather,
    Collective::Scatter,
    Collective::Barrier,
];

/// Elements of f32 in the vector, or in one row.
async fn call(group: &Group, collective: Collective, count: usize) -> Result<(), Error> {
    let table = vec![1.0f32; count * group.size() as usize];
    let row = vec![1.0f32; count];
    match collective {
        Collective::AllReduce => drop(group.start(owned::all_reduce(row, Op::Sum)).await?),
        Collective::ReduceScatter => {
            drop(
                group
                    .start(owned::reduce_scatter(table, row, Op::Sum))
                    .await?,
            );
        }
        Collective::AllGather => drop(group.start(owned::all_gather(row, table)).await?),
        Collective::Broadcast => drop(group.start(owned::broadcast(row, 0)).await?),
        Collective::Reduce => {
            let y = (group.rank() == 0).then(|| vec![0.0; count]);
            drop(group.start(owned::reduce(row, y, Op::Sum, 0)).await?);
        }
        Collective::Gather => {
            let y = (group.rank() == 0).then_some(table);
            drop(group.start(owned::gather(row, y, 0)).await?);
        }
        Collective::Scatter => {
            let x = (group.rank() == 0).then_some(table);
            drop(group.start(owned::scatter(x, row, 0)).await?);
        }
        Collective::Barrier => group.start(owned::barrier()).await?,
        _ => {
            let y = table.clone();
            drop(group.start(owned::all_to_all(table, y)).await?);
        }
    }
    Ok(())
}

/// Time in the simulator, and in the evaluator; `None` when the algorithm cannot do it.
fn both(
    cluster: &Cluster,
    name: &str,
    collective: Collective,
    count: usize,
    segments: u64,
) -> Option<(u64, u64)> {
    let registry = unisono::registry();
    let topology = cluster.topology().clone();
    let cx = Context::new(collective, 0, std::sync::Arc::new(topology));
    let algorithm = registry.find(name).ok()?;
    algorithm.supports(&cx).ok()?;
    let outcome = cluster.run(|group| async move {
        let group = group.with_algorithm(name)?.with_segments(segments);
        let op = matches!(
            collective,
            Collective::AllReduce | Collective::ReduceScatter | Collective::Reduce
        );
        let choice = group.choice::<f32>(collective, count, op.then_some(Op::Sum))?;
        call(&group, collective, count).await?;
        Ok::<_, Error>((choice.params, choice.segments))
    });
    let (results, report) = outcome.into_result().unwrap();
    let (params, mut segments) = results[0].as_ref().ok().copied()?;
    if collective == Collective::Barrier {
        segments = 1; // there is nothing to cut
    }
    let programs = build_all(&**algorithm, &cx.with_params(params)).unwrap();
    let mut call = unisono_evaluator::Call::new(count as u64, DType::F32).with_segments(segments);
    call.in_place = matches!(collective, Collective::AllReduce | Collective::Broadcast);
    let priced = unisono_evaluator::evaluate(&programs, &call, cluster.costs().links()).unwrap();
    // Link by link, too.
    let used = priced.links.into_iter().filter(|link| link.messages > 0);
    assert_eq!(
        report.links,
        used.collect::<Vec<_>>(),
        "{name} {collective}"
    );
    Some((report.total_ps, priced.total_ps))
}

fn gallery() -> Vec<(&'static str, Topology)> {
    let ring = |p: u32| Topology::from_links(p, (0..p).map(move |r| (r, (r + 1) % p)));
    let line = |p: u32| Topology::from_links(p, (1..p).map(|r| (r - 1, r)));
    let star = |p: u32| Topology::from_links(p, (1..p).map(|r| (0, r)));
    let torus = |a: u32, b: u32| {
        let at = move |x: u32, y: u32| (x % a) * b + y % b;
        let links = (0..a * b).flat_map(move |i| {
            let (x, y) = (i / b, i % b);
            [(i, at(x + 1, y)), (i, at(x, y + 1))]
        });
        Topology::from_links(a * b, links)
    };
    vec![
        ("mesh of 2", Topology::full(2)),
        ("mesh of 4", Topology::full(4)),
        ("mesh of 5", Topology::full(5)),
        ("mesh of 8", Topology::full(8)),
        ("ring of 4", ring(4)),
        ("ring of 7", ring(7)),
        ("line of 3", line(3)),
        ("line of 6", line(6)),
        ("star of 5", star(5)),
        ("torus of 3 x 3", torus(3, 3)),
        ("ring of 6 with a chord", {
            let links = (0..6).map(|r| (r, (r + 1) % 6)).chain([(0, 3)]);
            Topology::from_links(6, links)
        }),
        ("two triangles and a bridge", {
            let links = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)];
            Topology::from_links(6, links)
        }),
    ]
}

/// Compares all algorithms on the gallery; the number of comparisons and the largest deviation.
fn compare(network: &Network, sizes: &[(usize, u64)]) -> (usize, f64) {
    let (mut compared, mut worst) = (0, 0.0f64);
    for (place, topology) in gallery() {
        let cluster = Cluster::from_topology(topology).network(network.clone());
        for collective in COLLECTIVES {
            for name in unisono::registry().names() {
                for &(count, segments) in sizes {
                    let Some((sim, priced)) = both(&cluster, name, collective, count, segments)
                    else {
                        continue;
                    };
                    compared += 1;
                    let off = sim as f64 / priced as f64 - 1.0;
                    if off.abs() > worst {
                        worst = off.abs();
                        println!(
                            "{name} {collective} on {place}, {count} x {segments}: {sim} simulated, {priced} priced"
                        );
                    }
                }
            }
        }
    }
    (compared, worst)
}

/// No comparison is off by more.
const WORST: f64 = 0.05;

const SIZES: [(usize, u64); 3] = [(1, 1), (3_000, 1), (60_000, 4)];

#[test]
fn simulator_and_evaluator_agree_where_cores_cost_nothing() {
    let plain = Network::uniform(7_000, 3_000_000_000);
    let slow = LinkCost {
        alpha_ns: 7_000,
        beta: 300_000_000,
    };
    for network in [plain.clone(), plain.with_link(0, 1, slow)] {
        let (compared, worst) = compare(&network, &SIZES);
        assert!(compared > 500, "{compared} compared");
        assert!(worst <= WORST, "{worst}");
    }
}

/// Where cores cost as much as links, the order in which a core takes what is ready at the same time decides who waits.
/// The evaluator follows the engine's, up to ties between messages of a tree that have passed through many ranks.
#[test]
fn they_agree_where_cores_are_busy_as_well() {
    let slow_cores = Network::uniform(1_000, 10_000_000_000)
        .with_overhead_ns(5_000)
        .with_reduce_rate(1_000_000_000);
    for network in [Network::default(), slow_cores] {
        let (compared, worst) = compare(&network, &SIZES);
        assert!(compared > 500, "{compared} compared");
        assert!(worst <= WORST, "{worst}");
    }
}

/// Above five percent, in one case: where messages cost their cores nothing and copies do, everything that waited for a
/// copy becomes ready in the same instant, and tree-centre all_gather on the torus of 3 x 3 (3000 elements) puts two of
/// these messages on a link in the other order: 5.8 %.
#[test]
fn they_nearly_agree_where_only_work_on_data_takes_the_core() {
    let network = Network::uniform(5_000, 5_000_000_000).with_reduce_rate(2_000_000_000);
    let (compared, worst) = compare(&network, &SIZES);
    assert!(compared > 500, "{compared} compared");
    assert!(worst <= 0.06, "{worst}");
}
