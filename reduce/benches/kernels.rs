//! Bandwidth of the kernels in GB/s of one operand, beside a plain `f32` loop and a copy.
//!
//! `cargo bench -p unisono-reduce`. Three sizes: a small
//! message, one that stays in the second cache, and one that does not.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use unisono_core::{DType, Op};
use unisono_reduce::{Kernels, Operand};

/// Bytes of the number 1 in every element.
fn ones(dtype: DType, bytes: usize) -> Vec<u8> {
    let one: Vec<u8> = match dtype {
        DType::F16 => half::f16::ONE.to_ne_bytes().into(),
        DType::BF16 => half::bf16::ONE.to_ne_bytes().into(),
        DType::F64 => 1f64.to_ne_bytes().into(),
        _ => 1f32.to_ne_bytes().into(),
    };
    one.repeat(bytes / one.len())
}

fn accumulate(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, kernels: &Kernels, n: usize) {
    let mut target = ones(kernels.dtype(), n);
    let source = ones(kernels.dtype(), n);
    group.bench_function(name, |b| {
        b.iter(|| kernels.accumulate(black_box(&mut target), black_box(&source)));
    });
}

/// The target and two more, as in a one-shot exchange between three ranks.
fn many(group: &mut BenchmarkGroup<'_, WallTime>, kernels: &Kernels, n: usize) {
    let [mut target, a, b] = [0; 3].map(|_| ones(kernels.dtype(), n));
    let name = format!("{} {} of three", kernels.dtype(), kernels.op());
    group.bench_function(name, |bench| {
        bench.iter(|| {
            let sources = [Operand::Bytes(&a), Operand::Target, Operand::Bytes(&b)];
            kernels.many(black_box(&mut target), black_box(&sources), Some(3));
        });
    });
}

fn references(group: &mut BenchmarkGroup<'_, WallTime>, n: usize) {
    let (mut target, source) = (vec![0u8; n], vec![1u8; n]);
    group.bench_function("memcpy", |b| {
        b.iter(|| black_box(&mut target[..]).copy_from_slice(black_box(&source)));
    });
    let (mut target, source) = (vec![1f32; n / 4], vec![1f32; n / 4]);
    group.bench_function("plain f32 loop", |b| {
        b.iter(|| {
            for (t, s) in black_box(&mut target[..])
                .iter_mut()
                .zip(black_box(&source[..]))
            {
                *t += s;
            }
        });
    });
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args();
    for n in [1 << 10, 64 << 10, 8 << 20] {
        let mut group = criterion.benchmark_group(format!("{} KiB", n >> 10));
        group.throughput(Throughput::BytesDecimal(n as u64));
        references(&mut group, n);
        for (dtype, op) in [
            (DType::F32, Op::Sum),
            (DType::F32, Op::Max),
            (DType::BF16, Op::Sum),
            (DType::F16, Op::Sum),
            (DType::F16, Op::Max),
            (DType::BF16, Op::Max),
            (DType::I8, Op::Sum),
        ] {
            let fast = Kernels::new(dtype, op).expect("built in");
            accumulate(&mut group, &format!("{dtype} {op}"), &fast, n);
            let portable = Kernels::portable(dtype, op).expect("built in");
            accumulate(&mut group, &format!("{dtype} {op} portable"), &portable, n);
        }
        for (dtype, op) in [
            (DType::F32, Op::Sum),
            (DType::F32, Op::Avg),
            (DType::BF16, Op::Avg),
            (DType::F16, Op::Avg),
        ] {
            many(&mut group, &Kernels::new(dtype, op).expect("built in"), n);
        }
        group.finish();
    }
    criterion.final_summary();
}
