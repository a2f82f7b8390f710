//! Every program between threads.

use std::thread;

use unisono::{Error, Group};
use unisono_examples as examples;

/// What each rank of three returns.
fn three<T: Send>(program: impl Fn(&Group) -> Result<T, Error> + Sync) -> Vec<T> {
    between(3, program)
}

fn between<T: Send>(ranks: u32, program: impl Fn(&Group) -> Result<T, Error> + Sync) -> Vec<T> {
    let program = &program;
    thread::scope(|scope| {
        let groups = unisono::inproc(ranks).into_iter();
        let threads: Vec<_> = groups
            .map(|group| scope.spawn(move || program(&group)))
            .collect();
        let joined = threads.into_iter().map(|t| t.join().unwrap());
        joined.map(|result| result.unwrap()).collect()
    })
}

#[test]
fn everybody_has_the_sum() {
    for x in three(examples::allreduce) {
        assert_eq!(x, vec![6.0; 1000]);
    }
}

#[test]
fn the_loss_falls_and_is_the_same_everywhere() {
    let losses = three(examples::training_step);
    assert!(losses.iter().all(|l| *l == losses[0]));
    let (first, last) = (losses[0][0], losses[0][losses[0].len() - 1]);
    assert!(last < first / 50.0, "{first} -> {last}");
    assert!(losses[0].windows(2).all(|w| w[1] < w[0]));
}

#[test]
fn a_rod_in_pieces_is_as_warm_as_a_rod_in_one() {
    let pieces: Vec<f64> = three(examples::halo).concat();
    // The rod in one, without any group.
    let mut rod = vec![0.0; 3 * examples::CELLS];
    rod[0] = 1000.0;
    for _ in 0..200 {
        let at = |i: usize| rod[i.min(rod.len() - 1)];
        rod = (0..rod.len())
            .map(|i| at(i) + 0.25 * (at(i.saturating_sub(1)) - 2.0 * at(i) + at(i + 1)))
            .collect();
    }
    assert_eq!(pieces, rod);
    assert!(pieces[examples::CELLS] > 0.0, "no heat came over the cut");
    assert_eq!(between(1, examples::halo)[0].len(), examples::CELLS);
}

#[test]
fn gradients_that_travelled_behind_the_computation_are_averages() {
    let all = three(|group| examples::block_on(examples::async_overlap(group)));
    for gradients in all {
        for (layer, gradient) in gradients.iter().enumerate() {
            let average = 2.0 * (layer + 1) as f32;
            assert!(gradient.iter().all(|g| *g == average), "layer {layer}");
        }
    }
}
