//! Butterfly algorithms: ⌈log2 p⌉ rounds in which everyone exchanges with someone twice as far away.
//!
//! | name | world | collectives | rounds | each rank sends, of a vector (or table) of m bytes |
//! |---|---|---|---|---|
//! | [`butterfly-doubling`](Doubling) | any | all_reduce | ⌊log2 p⌋ (+ 2 unless a power of two) | m a round |
//! | | | barrier | the same | one sync a round |
//! | [`butterfly-halving`](Halving) | 2^k | reduce_scatter, all_gather | log2 p | m (p-1)/p |
//! | | | all_reduce | 2 log2 p | 2 m (p-1)/p |
//! | [`butterfly-circulant`](Circulant) | any | reduce_scatter, all_gather | ⌈log2 p⌉ | m (p-1)/p |
//! | | | all_reduce | 2 ⌈log2 p⌉ | 2 m (p-1)/p |
//!
//! Doubling is for small messages, the other two for middle ones: the fewest bytes in few rounds, over links that must
//! carry messages between far ranks. R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication
//! operations in MPICH", Int. J. High Perf. Comput. Appl. 19 (2005); J. L. Träff, "Optimal, non-pipelined reduce-scatter
//! and allreduce algorithms", arXiv:2410.14234 (2024).
//!
//! All of them change the order of operands, the same way on every rank: results have the same bits everywhere.
//!
//! ```
//! use unisono_butterfly::Circulant;
//! use unisono_core::Collective;
//! use unisono_program::{Context, build};
//!
//! let program = build(&Circulant, &Context::full(Collective::AllReduce, 0, 1000)).unwrap();
//! assert_eq!(program.steps(), 2 * 2 * 10);
//! ```
#![forbid(unsafe_code)]

mod circulant;
mod doubling;
mod halving;

pub use circulant::Circulant;
pub use doubling::Doubling;
pub use halving::Halving;
use unisono_program::{Context, Registry, Unsupported};

/// Adds `butterfly-doubling`, `butterfly-halving` and `butterfly-circulant`.
pub fn register(registry: &mut Registry) {
    registry
        .add_proved(Doubling)
        .add_proved(Halving)
        .add_proved(Circulant);
}

/// Operands may change places, where there are any.
fn operands_commute(cx: &Context) -> Result<(), Unsupported> {
    if cx.collective().reduces() {
        cx.require_commutative()?;
    }
    Ok(())
}

/// 1, 2, 4, ... below `p`.
fn powers_below(p: i64) -> impl DoubleEndedIterator<Item = i64> {
    let rounds = if p < 2 { 0 } else { (p - 1).ilog2() + 1 };
    (0..rounds).map(|k| 1 << k)
}
