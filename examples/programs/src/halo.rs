//! Heat in a rod that is cut into one piece per rank: before each step, neighbours exchange the cells at their cuts.
//!
//! ```text
//! rank 0            rank 1            rank 2
//! [. . . . o] <-->  [o . . . o]  <--> [o . . . .]
//! ```

use unisono::{Error, Group, Rank};

/// Cells of each rank.
pub const CELLS: usize = 12;

const STEPS: usize = 200;

/// Lets the heat of one hot cell at the left end spread; this rank's piece of the rod afterwards.
///
/// # Errors
/// The group has failed.
pub fn halo(group: &Group) -> Result<Vec<f64>, Error> {
    let left = group.rank().checked_sub(1);
    let right = Some(group.rank() + 1).filter(|&r| r < group.size());

    // One more cell on either side: a copy of the neighbour's, or at an end of the rod of our own (no heat gets out).
    let mut rod = [0.0; CELLS + 2];
    if left.is_none() {
        rod[1] = 1000.0;
    }
    for _ in 0..STEPS {
        let (mut from_left, mut from_right) = ([rod[1]], [rod[CELLS]]);
        shift(group, [rod[CELLS]], right, &mut from_left, left)?;
        shift(group, [rod[1]], left, &mut from_right, right)?;
        (rod[0], rod[CELLS + 1]) = (from_left[0], from_right[0]);
        let flow = |w: &[f64]| w[1] + 0.25 * (w[0] - 2.0 * w[1] + w[2]);
        let next: Vec<f64> = rod.windows(3).map(flow).collect();
        rod[1..=CELLS].copy_from_slice(&next);
    }
    Ok(rod[1..=CELLS].to_vec())
}

/// Everybody passes a cell on in the same direction; at the ends of the line there is nobody to pass it to.
fn shift(
    group: &Group,
    cell: [f64; 1],
    to: Option<Rank>,
    ghost: &mut [f64; 1],
    from: Option<Rank>,
) -> Result<(), Error> {
    match (to, from) {
        (Some(to), Some(from)) => group.send_recv(&cell, to, ghost, from),
        (Some(to), None) => group.send(&cell, to),
        (None, Some(from)) => group.recv(ghost, from),
        (None, None) => Ok(()),
    }
}
