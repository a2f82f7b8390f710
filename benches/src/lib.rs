//! What the benchmarks share: times of interleaved rounds.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

/// A name, and what does some work and gives the number of units (steps, operations) it was.
pub type Case<'a> = (&'a str, Box<dyn FnMut() -> u64 + 'a>);

/// Time per unit of a case, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The middle of all rounds.
    pub median: f64,
    /// The fastest round: the least disturbed one.
    pub best: f64,
}

/// Runs every case once per round, in turn, and gives the time per unit of each.
///
/// Interleaving lets all cases see the same minutes of a noisy machine.
pub fn interleaved<'a>(rounds: usize, cases: &mut [Case<'a>]) -> Vec<(&'a str, Times)> {
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
        .map(|(case, times)| (case.0, summary(times)))
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

fn summary(times: Vec<f64>) -> Times {
    Times {
        best: times.iter().copied().fold(f64::NAN, f64::min),
        median: median(times),
    }
}
