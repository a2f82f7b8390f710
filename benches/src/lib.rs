//! What the benchmarks share: medians of interleaved rounds, printed as a table.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

/// Runs every case once per round, in turn, and gives the median time of each.
///
/// Interleaving lets all cases see the same minutes of a noisy machine.
pub fn interleaved<'a>(
    rounds: usize,
    cases: &mut [(&'a str, Box<dyn FnMut() -> u64 + 'a>)],
) -> Vec<(&'a str, f64)> {
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
    for round in 0..=rounds {
        for (case, times) in cases.iter_mut().zip(&mut times) {
            let start = Instant::now();
            let units = (case.1)();
            let time = start.elapsed();
            if round > 0 {
                times.push(per_unit(time, units));
            }
        }
    }
    cases
        .iter()
        .zip(times)
        .map(|(case, times)| (case.0, median(times)))
        .collect()
}

fn per_unit(time: Duration, units: u64) -> f64 {
    time.as_nanos() as f64 / units.max(1) as f64
}

/// The middle of some figures.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
