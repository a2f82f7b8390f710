//! Prices ring all_reduce among ten thousand ranks (or as many as the first argument says): time and peak memory.
//!
//! `cargo run --release -p unisono-evaluator --example ring10k [ranks [elements [uneven | cores]]]`: with `uneven`, every
//! link has its own speed and latency; with `cores`, messages cost their ranks time too.

use std::error::Error;
use std::time::Instant;

use unisono_core::{Collective, DType};
use unisono_evaluator::{Call, LinkCost, Links, evaluate};
use unisono_program::{Algorithm, Context, Emit, Symmetry, Unsupported, block, build_all};

struct Ring;

impl Algorithm for Ring {
    fn name(&self) -> &str {
        "ring"
    }
    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&[Collective::AllReduce])
    }
    fn symmetry(&self, _: &Context) -> Symmetry {
        Symmetry::Rotation
    }
    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let (ring, p) = (cx.ring(), i64::from(cx.size()));
        let (me, left, right) = (ring.position(), ring.left(), ring.right());
        for k in 0..p - 1 {
            b.send(right, block(me - k));
            b.recv_reduce(left, block(me - k - 1));
        }
        for k in 0..p - 1 {
            b.send(right, block(me + 1 - k));
            b.recv(left, block(me - k));
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let ranks: u32 = arguments.next().map_or(Ok(10_000), |a| a.parse())?;
    let count: u64 = arguments
        .next()
        .map_or(Ok(u64::from(ranks) << 10), |a| a.parse())?;

    let start = Instant::now();
    let programs = build_all(&Ring, &Context::full(Collective::AllReduce, 0, ranks))?;
    println!("built in {:.2?}, {} KiB at peak", start.elapsed(), peak());

    let start = Instant::now();
    let mut links = Links::uniform(5_000, 10_000_000_000);
    match arguments.next().as_deref() {
        None => {}
        Some("uneven") => {
            for from in 0..ranks {
                let vary = |n: u64| u64::from(from).wrapping_mul(0x9E37_79B9) % n;
                let cost = LinkCost {
                    alpha_ns: 1_000 + vary(9_001),
                    beta: 1_000_000_000 * (1 + vary(13)),
                };
                links = links.with_link(from, (from + 1) % ranks, cost);
            }
        }
        Some("cores") => links = links.with_overhead_ns(500).with_reduce_rate(20_000_000_000),
        Some(other) => return Err(format!("`{other}` is neither `uneven` nor `cores`").into()),
    }
    let report = evaluate(&programs, &Call::new(count, DType::F32), &links)?;
    let elapsed = start.elapsed();
    println!(
        "{} ranks, {} steps: {:.6} s of traffic priced in {:.2?} ({:.1} ns per step), {} KiB at peak",
        ranks,
        report.steps,
        report.seconds(),
        elapsed,
        elapsed.as_nanos() as f64 / report.steps.max(1) as f64,
        peak()
    );
    Ok(())
}

/// The largest resident set so far, in KiB; 0 where `/proc` does not tell.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
