//! The space-time picture of a program set, as SVG.
//!
//! Ranks from top to bottom, slots from left to right. Each message is an arrow from the slot in which it is sent to
//! where it is taken; its colour is its block (its sender, where there is but one block). A slot is the time of one
//! message: the picture shows the schedule that the waits of the programs allow when every message takes one slot and
//! nothing else takes time.
//!
//! ```
//! # use unisono_core::Collective;
//! # use unisono_program::*;
//! # struct Exchange;
//! # impl Algorithm for Exchange {
//! #     fn name(&self) -> &str { "exchange" }
//! #     fn supports(&self, _: &Context) -> Result<(), Unsupported> { Ok(()) }
//! #     fn emit(&self, cx: &Context, b: &mut dyn Emit) {
//! #         b.send(1 - cx.rank(), block(0));
//! #         b.recv_reduce(1 - cx.rank(), block(0));
//! #     }
//! # }
//! let programs = build_all(&Exchange, &Context::full(Collective::AllReduce, 0, 2)).unwrap();
//! let picture = unisono_program::draw::svg(&programs).unwrap();
//! assert!(picture.starts_with("<svg") && picture.contains("exchange all_reduce"));
//! ```
//!
//! The picture brings its own light background, so that it reads the same on a dark page.

mod layout;
mod legend;
mod paint;
mod palette;
mod schedule;
mod signs;
mod svg;

use std::sync::Arc;

use unisono_core::Rank;

use crate::Program;
use crate::ir::LaneKind;
use crate::run::Stuck;

/// More messages than this are not drawn: nobody could see them. The text form has no such limit.
pub const MAX_MESSAGES: u64 = 10_000;

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The programs are not those of all ranks in rank order.
    #[error("a picture needs the programs of all {size} ranks in rank order; at place {place} it has {}", found(.rank))]
    Incomplete {
        /// Number of ranks.
        size: Rank,
        /// The first place with another program.
        place: usize,
        /// The rank of that program; `None`: there is none.
        rank: Option<Rank>,
    },
    /// More than [`MAX_MESSAGES`].
    #[error(
        "{messages} messages are too many for a picture (at most {limit}); the text form shows them"
    )]
    TooManyMessages {
        /// Messages there are.
        messages: u64,
        /// Messages that are drawn at most.
        limit: u64,
    },
    /// The programs do not complete.
    #[error("the programs do not complete: {0}")]
    Stuck(#[from] Stuck),
}

fn found(rank: &Option<Rank>) -> String {
    rank.map_or("none".to_owned(), |r| format!("that of rank {r}"))
}

/// The picture of the programs of all ranks, in rank order.
///
/// Up to about 16 ranks every message bears its block; beyond 24 ranks rows shrink and labels go.
///
/// # Errors
/// See [`DrawError`].
pub fn svg(programs: &[Arc<Program>]) -> Result<String, DrawError> {
    complete(programs)?;
    let messages = messages(programs);
    if messages > MAX_MESSAGES {
        return Err(DrawError::TooManyMessages {
            messages,
            limit: MAX_MESSAGES,
        });
    }
    let schedule = schedule::schedule(programs)?;
    Ok(paint::paint(&programs[0], &schedule))
}

fn complete(programs: &[Arc<Program>]) -> Result<(), DrawError> {
    let size = programs.first().map_or(1, |p| p.size);
    for place in 0..programs.len().max(size as usize) {
        let rank = programs.get(place).map(|p| p.rank);
        if rank.map(|r| r as usize) != Some(place) || place >= size as usize {
            return Err(DrawError::Incomplete { size, place, rank });
        }
    }
    Ok(())
}

fn messages(programs: &[Arc<Program>]) -> u64 {
    let lanes = programs.iter().flat_map(|p| &p.lanes);
    lanes
        .filter(|l| matches!(l.kind, LaneKind::Send { .. }))
        .map(|l| l.steps)
        .sum()
}
