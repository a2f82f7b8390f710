//! A few calls that between them make an engine do every kind of local work.

use unisono_core::{Collective, DType, Op};

use super::Call;

/// Calls that between them copy, reduce, land, pack, divide and keep their order.
pub(crate) fn calls() -> Vec<Call> {
    let call = |collective, count| Call {
        dtype: DType::F32,
        ..Call::new(collective, 5, count)
    };
    vec![
        call(Collective::AllReduce, 37),
        Call {
            op: Op::Avg,
            segments: 3,
            ..call(Collective::AllReduce, 1000)
        },
        Call {
            in_place: true,
            op: Op::Avg,
            dtype: DType::BF16,
            ..call(Collective::AllReduce, 64)
        },
        Call {
            channels: 2,
            ..call(Collective::ReduceScatter, 33)
        },
        Call {
            root: 3,
            op: Op::Max,
            ..call(Collective::Reduce, 17)
        },
        call(Collective::AllGather, 9),
        call(Collective::AllToAll, 13),
        call(Collective::Broadcast, 13),
        call(Collective::Scatter, 13),
        call(Collective::Gather, 13),
        // Long gather lists.
        Call {
            channels: 2,
            ..Call::new(Collective::Scatter, 19, 7)
        },
        Call {
            channels: 2,
            ..Call::new(Collective::AllReduce, 19, 61)
        },
    ]
}
