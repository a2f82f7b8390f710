//! Training with the data of all ranks: everybody computes a gradient from its own, and all step along the average.

use unisono::{Error, Group, Op};

const FEATURES: usize = 8;
const SAMPLES: usize = 256;
const STEPS: usize = 40;
const RATE: f32 = 0.3;

/// Fits a linear model; the loss before each step, averaged over all ranks and the same bits on each.
///
/// # Errors
/// The group has failed.
pub fn training_step(group: &Group) -> Result<Vec<f32>, Error> {
    let data = Data::of(u64::from(group.rank()));
    // All start from the weights of rank 0, wherever it got them from.
    let mut weights = [group.rank() as f32; FEATURES];
    group.broadcast(&mut weights, 0)?;

    let mut losses = Vec::new();
    for step in 0..STEPS {
        // The loss travels with the gradient: one exchange instead of two.
        let mut sums = data.gradient_and_loss(&weights);
        group.all_reduce(&mut sums, Op::Avg)?;
        let (gradient, loss) = (&sums[..FEATURES], sums[FEATURES]);
        for (w, g) in weights.iter_mut().zip(gradient) {
            *w -= RATE * g;
        }
        if group.rank() == 0 && step % 10 == 0 {
            println!("step {step}: loss {loss:.6}");
        }
        losses.push(loss);
    }
    Ok(losses)
}

/// What one rank learns from: inputs, and outputs of a model that nobody knows.
struct Data {
    inputs: Vec<[f32; FEATURES]>,
    outputs: Vec<f32>,
}

impl Data {
    fn of(seed: u64) -> Data {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        // A linear congruential generator, numbers from -1 to 1.
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        let inputs: Vec<_> = (0..SAMPLES)
            .map(|_| std::array::from_fn(|_| random()))
            .collect();
        let secret: [f32; FEATURES] = std::array::from_fn(|i| 1.0 - i as f32 / 4.0);
        let outputs = inputs.iter().map(|x| dot(x, &secret)).collect();
        Data { inputs, outputs }
    }

    /// The gradient of half the mean squared error, and behind it that error.
    fn gradient_and_loss(&self, weights: &[f32; FEATURES]) -> [f32; FEATURES + 1] {
        let mut sums = [0.0; FEATURES + 1];
        for (x, y) in self.inputs.iter().zip(&self.outputs) {
            let error = dot(x, weights) - y;
            for (sum, x) in sums.iter_mut().zip(x) {
                *sum += error * x / SAMPLES as f32;
            }
            sums[FEATURES] += error * error / (2 * SAMPLES) as f32;
        }
        sums
    }
}

fn dot(a: &[f32; FEATURES], b: &[f32; FEATURES]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
