//! Programs over a group, each a function of a [`Group`]: where the group comes from is not their business.
//!
//! | function | what it shows |
//! |---|---|
//! | [`allreduce`] | the least there can be |
//! | [`training_step`] | gradients averaged over ranks: one model, trained on everybody's data |
//! | [`halo`] | neighbours on a line exchange their edges |
//! | [`async_overlap`] | communication behind computation |
//!
//! The programs in `src/bin` call them with the group that their environment describes:
//!
//! ```text
//! cargo build -p unisono-cli -p unisono-examples
//! unisono launch -n 3 -- target/debug/training_step
//! ```
//!
//! and here they run between threads:
//!
//! ```
//! std::thread::scope(|scope| {
//!     for group in unisono::inproc(3) {
//!         scope.spawn(move || assert_eq!(unisono_examples::allreduce(&group).unwrap()[0], 6.0));
//!     }
//! });
//! ```
#![forbid(unsafe_code)]

mod allreduce;
mod async_overlap;
mod block_on;
mod halo;
mod training_step;

use std::process::ExitCode;

pub use allreduce::allreduce;
pub use async_overlap::async_overlap;
pub use block_on::block_on;
pub use halo::{CELLS, halo};
pub use training_step::training_step;

use unisono::{Error, Group};

/// What a `main` returns: runs `program` with the group of the environment, closes the group, says what went wrong.
pub fn main_of(program: impl FnOnce(&Group) -> Result<(), Error>) -> ExitCode {
    let done = Group::from_env().and_then(|group| {
        program(&group)?;
        group.close()
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
