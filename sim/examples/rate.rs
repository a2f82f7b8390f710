//! How fast the simulator is: `cargo run --release -p unisono-sim --example rate [RANKS] [MIB]`.

use std::time::Instant;

use unisono_sim::{Ask, Cluster, Collective, DType, Network, Op, PieceCall};

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse().unwrap_or(0));
    let ranks: u32 = args.next().unwrap_or(1024) as u32;
    let mib: u64 = args.next().unwrap_or(64);
    let cluster = Cluster::mesh(ranks).network(Network::uniform(5_000, 5_000_000_000));
    let call = PieceCall::new(Collective::AllReduce, mib << 18, DType::F32).op(Op::Sum);
    let began = Instant::now();
    let outcome = cluster.collective(&Ask::new(call).algorithm("ring").segments(1));
    let seconds = began.elapsed().as_secs_f64();
    let report = outcome.report;
    println!(
        "{ranks} ranks, {mib} MiB: {:.0} us of virtual time, {} events in {seconds:.3} s: {:.2} million a second; {:?}",
        report.virtual_us(),
        report.events,
        report.events as f64 / seconds / 1e6,
        report.error,
    );
    let right = outcome
        .results
        .iter()
        .filter(|r| matches!(r, Some(Ok(true))));
    println!("{} ranks are right", right.count());
}
