//! Collectives that check their own results.
#![allow(dead_code, unreachable_pub)] // each test uses its part

use unisono_sim::{Collective, Error, Group, Op, Rank, owned};

pub const COLLECTIVES: [Collective; 9] = [
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

/// What rank `r` has at position `i`.
fn value(r: Rank, i: usize) -> u64 {
    u64::from(r) * 1_000_003 + i as u64 * 17
}

fn vector(r: Rank, n: usize) -> Vec<u64> {
    (0..n).map(|i| value(r, i)).collect()
}

fn sums(p: Rank, n: usize) -> Vec<u64> {
    (0..n).map(|i| (0..p).map(|r| value(r, i)).sum()).collect()
}

/// Runs a collective over `n` elements (or rows of them); whether the result is right.
pub async fn checked(
    group: &Group,
    collective: Collective,
    n: usize,
    root: Rank,
) -> Result<bool, Error> {
    let (me, p) = (group.rank(), group.size());
    let all = n * p as usize;
    let mine = me as usize * n..(me as usize + 1) * n;
    let at_root = me == root;
    let everybody = || -> Vec<u64> { (0..p).flat_map(|r| vector(r, n)).collect() };
    Ok(match collective {
        Collective::AllReduce => {
            let x = group
                .start(owned::all_reduce(vector(me, n), Op::Sum))
                .await?;
            x == sums(p, n)
        }
        Collective::ReduceScatter => {
            let start = owned::reduce_scatter(vector(me, all), vec![0; n], Op::Sum);
            group.start(start).await?.1 == sums(p, all)[mine]
        }
        Collective::AllGather => {
            let start = owned::all_gather(vector(me, n), vec![0; all]);
            group.start(start).await?.1 == everybody()
        }
        Collective::Broadcast => {
            let x = group.start(owned::broadcast(vector(me, n), root)).await?;
            x == vector(root, n)
        }
        Collective::Reduce => {
            let y = at_root.then(|| vec![0; n]);
            let (_, y) = group
                .start(owned::reduce(vector(me, n), y, Op::Sum, root))
                .await?;
            !at_root || y == Some(sums(p, n))
        }
        Collective::Gather => {
            let y = at_root.then(|| vec![0; all]);
            let (_, y) = group.start(owned::gather(vector(me, n), y, root)).await?;
            !at_root || y == Some(everybody())
        }
        Collective::Scatter => {
            let x = at_root.then(|| vector(root, all));
            let (_, y) = group.start(owned::scatter(x, vec![0; n], root)).await?;
            y == vector(root, all)[mine]
        }
        Collective::AllToAll => {
            let start = owned::all_to_all(vector(me, all), vec![0; all]);
            let (_, y) = group.start(start).await?;
            let expected: Vec<u64> = (0..p)
                .flat_map(|r| vector(r, all)[mine.clone()].to_vec())
                .collect();
            y == expected
        }
        _ => {
            group.start(owned::barrier()).await?;
            true
        }
    })
}
