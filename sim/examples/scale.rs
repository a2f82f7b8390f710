//! What a small collective costs in real time: `cargo run --release -p unisono-sim --example scale [RANKS] [KIB]`.
//!
//! The world is built anew each time, as a search over algorithms or seeds would do it.

use std::time::Instant;

use unisono_sim::{Ask, Cluster, Collective, DType, Op, PieceCall};

const TIMES: u32 = 200;

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse().unwrap_or(0));
    let ranks: u32 = args.next().unwrap_or(8) as u32;
    let kib: u64 = args.next().unwrap_or(64);
    let cluster = Cluster::mesh(ranks);
    let call = PieceCall::new(Collective::AllReduce, kib << 8, DType::F32).op(Op::Sum);
    for name in unisono::registry().names() {
        let ask = Ask::new(call).algorithm(name).segments(1);
        let began = Instant::now();
        let mut events = 0;
        let mut right = true;
        for _ in 0..TIMES {
            let outcome = cluster.collective(&ask);
            right &= outcome.results.iter().all(|r| matches!(r, Some(Ok(true))));
            events = outcome.report.events;
        }
        let each = began.elapsed() / TIMES;
        if right {
            println!(
                "{name:20} {ranks} ranks, {kib} KiB: {events} events in {each:.1?} of real time"
            );
        }
    }
}
