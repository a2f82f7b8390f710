//! Phantom payload: nothing in memory, everything accounted for.

use unisono_sim::{Ask, Cluster, Collective, DType, Network, Op, PieceCall, owned};

const COLLECTIVES: [Collective; 9] = [
    Collective::AllReduce,
    Collective::ReduceScatter,
    Collective::AllGather,
    Collective::Broadcast,
    Collective::Reduce,
    Collective::Gather,
    Collective::Scatter,
    Collective::AllToAll,
    Collective::Barrier,
];

#[test]
fn every_collective_accounts_for_every_contribution() {
    let mut ran = 0;
    for p in [1, 2, 3, 5, 8] {
        for name in unisono::registry().names() {
            for collective in COLLECTIVES {
                for op in [Op::Sum, Op::Avg] {
                    let call = PieceCall::new(collective, 1001, DType::F32)
                        .op(op)
                        .root(p - 1);
                    let ask = Ask::new(call).algorithm(name).segments(3).rounds(2);
                    let outcome = Cluster::mesh(p).seed(9).collective(&ask);
                    let (results, _) = outcome.into_result().unwrap();
                    for result in results {
                        match result {
                            Ok(right) => {
                                assert!(right, "{name} {collective} {op}, {p} ranks");
                                ran += 1;
                            }
                            Err(unisono_sim::Error::Select(_)) => {}
                            Err(error) => panic!("{name} {collective}, {p} ranks: {error}"),
                        }
                    }
                }
            }
        }
    }
    assert!(ran > 1000, "{ran}");
}

#[test]
fn phantoms_take_the_time_of_real_bytes() {
    for p in [2, 5] {
        let cluster = Cluster::mesh(p).network(Network::default());
        let call = PieceCall::new(Collective::AllReduce, 10_000, DType::U64).op(Op::Sum);
        let phantom = cluster.collective(&Ask::new(call)).into_result().unwrap().1;
        let real = cluster.run(|group| async move {
            group
                .start(owned::all_reduce(vec![1u64; 10_000], Op::Sum))
                .await
                .unwrap();
        });
        let real = real.into_result().unwrap().1;
        assert_eq!(phantom.total_ps, real.total_ps);
        assert_eq!(phantom.links, real.links);
    }
}

#[test]
fn a_wrong_place_a_missing_and_a_double_contribution_are_seen() {
    let outcome = Cluster::mesh(2).run_phantom(|group, phantoms| async move {
        let x = phantoms.alloc(800).unwrap();
        let mine = phantoms.contribution(group.rank());
        let sum = phantoms.contribution(0).plus(phantoms.contribution(1));
        let call = PieceCall::new(Collective::AllReduce, 100, DType::F64).op(Op::Sum);
        phantoms.fill(x, mine);
        group.start_pieces(call, x, x).await.unwrap();
        assert_eq!(phantoms.value(x), Some(sum));
        // Twice: not what once gives.
        group.start_pieces(call, x, x).await.unwrap();
        assert_eq!(phantoms.value(x), Some(sum.plus(sum)));
        // One element off.
        phantoms.fill(x.slice(0..792), mine.at(8));
        group.start_pieces(call, x, x).await.unwrap();
        assert_ne!(phantoms.value(x), Some(sum));
    });
    outcome.into_result().unwrap();
}

#[test]
fn the_hash_covers_what_phantoms_hold() {
    let call = PieceCall::new(Collective::AllReduce, 1000, DType::U8).op(Op::Sum);
    let hash = |seed| {
        let outcome = Cluster::mesh(3).seed(seed).collective(&Ask::new(call));
        outcome.into_result().unwrap().1.trace_hash
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}
