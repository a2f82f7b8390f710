//! Communication behind computation: gradients of the last layers travel while those of the first are computed.

use unisono::{Error, Group, Op, owned};

const LAYERS: usize = 6;
const WIDTH: usize = 20_000;

/// Averages the gradients of all layers; they come back in the order of the layers.
///
/// # Errors
/// The group has failed.
pub async fn async_overlap(group: &Group) -> Result<Vec<Vec<f32>>, Error> {
    let mut travelling = Vec::new();
    for layer in (0..LAYERS).rev() {
        let gradient = backward(group, layer)?;
        // Started, not waited for: the memory comes back with the result.
        travelling.push(group.start(owned::all_reduce(gradient, Op::Avg)));
    }
    let mut gradients = Vec::new();
    for gradient in travelling {
        gradients.push(gradient.await?);
    }
    gradients.reverse();
    Ok(gradients)
}

/// Computes for a while, in pieces. Between two of them, data move that can: an idle group uses no CPU of its own.
fn backward(group: &Group, layer: usize) -> Result<Vec<f32>, Error> {
    let mut gradient = vec![0.0; WIDTH];
    for piece in gradient.chunks_mut(WIDTH / 8) {
        let start = (layer + 1) as f32 * (group.rank() + 1) as f32;
        piece.fill(start);
        for _ in 0..20 {
            piece.iter_mut().for_each(|g| *g = (*g * *g).sqrt());
        }
        group.progress()?;
    }
    Ok(gradient)
}
