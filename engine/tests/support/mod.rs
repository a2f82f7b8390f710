//! Calls of every collective on real data over a world that one thread steps, checked element by element.
#![allow(dead_code)] // each test file uses its part

pub(crate) mod calls;
pub(crate) mod data;
pub(crate) mod ranks;

use std::sync::Arc;

use unisono_contract::null::Policy;
use unisono_contract::{Lease, Piece};
use unisono_core::{Collective, DType, Op, Rank};
use unisono_engine::{Request, World};
use unisono_program::{Algorithm, Context, Program, Registry, build_all};

use data::{decode, encode, value};

/// Every algorithm of this repository.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::new();
    unisono_ring::register(&mut registry);
    unisono_mesh::register(&mut registry);
    unisono_tree::register(&mut registry);
    unisono_butterfly::register(&mut registry);
    unisono_dissemination::register(&mut registry);
    registry
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) collective: Collective,
    pub(crate) size: Rank,
    pub(crate) root: Rank,
    pub(crate) count: u64,
    pub(crate) dtype: DType,
    pub(crate) op: Op,
    pub(crate) in_place: bool,
    pub(crate) segments: u64,
    pub(crate) channels: u16,
}

impl Call {
    pub(crate) fn new(collective: Collective, size: Rank, count: u64) -> Call {
        Call {
            collective,
            size,
            root: 0,
            count,
            dtype: DType::I32,
            op: Op::Sum,
            in_place: false,
            segments: 1,
            channels: 1,
        }
    }

    pub(crate) fn context(&self) -> Context {
        Context::full(self.collective, 0, self.size)
            .with_root(self.root)
            .with_average(self.collective.reduces() && self.op == Op::Avg)
            .with_commutative(self.op.commutative())
            .with_params(unisono_program::Params::default().with_channels(self.channels))
    }

    pub(crate) fn request(&self) -> Request {
        Request {
            count: self.count,
            dtype: self.dtype,
            op: self.collective.reduces().then_some(self.op),
            kernels: None,
            segments: self.segments,
        }
    }

    /// The programs of all ranks, or `None` where the algorithm does not offer this.
    pub(crate) fn programs(&self, algorithm: &dyn Algorithm) -> Option<Vec<Arc<Program>>> {
        let cx = self.context();
        algorithm.supports(&cx).ok()?;
        Some(
            build_all(algorithm, &cx)
                .unwrap_or_else(|e| panic!("{} {self:?}: {e}", algorithm.name())),
        )
    }

    /// Rows of the input of `rank`.
    fn input_rows(&self, rank: Rank) -> u64 {
        use Collective as C;
        match self.collective {
            C::AllReduce | C::Reduce | C::AllGather | C::Gather => 1,
            C::ReduceScatter | C::AllToAll => self.size.into(),
            C::Broadcast => (rank == self.root).into(),
            C::Scatter if rank == self.root => self.size.into(),
            _ => 0,
        }
    }

    /// Rows of the output of `rank`.
    fn output_rows(&self, rank: Rank) -> u64 {
        use Collective as C;
        match self.collective {
            C::AllReduce | C::Broadcast | C::ReduceScatter | C::Scatter => 1,
            C::AllGather | C::AllToAll => self.size.into(),
            C::Reduce => (rank == self.root).into(),
            C::Gather if rank == self.root => self.size.into(),
            _ => 0,
        }
    }

    /// Element `i` of the input of `rank`.
    fn input(&self, rank: Rank, i: u64) -> f64 {
        value(self.dtype, self.op, self.size, rank, i)
    }

    /// Element `i` of the output of `rank`, as it must become.
    fn expected(&self, rank: Rank, i: u64) -> f64 {
        use Collective as C;
        let all = |i: u64| {
            let values = (0..self.size).map(|r| self.input(r, i));
            match self.op {
                Op::Prod => values.product(),
                Op::Min => values.fold(f64::INFINITY, f64::min),
                Op::Max => values.fold(f64::NEG_INFINITY, f64::max),
                Op::Avg => values.sum::<f64>() / f64::from(self.size),
                _ => values.sum(),
            }
        };
        let count = self.count.max(1);
        let (row, within) = ((i / count) as Rank, i % count);
        match self.collective {
            C::AllReduce | C::Reduce => all(i),
            C::ReduceScatter => all(u64::from(rank) * count + i),
            C::AllGather | C::Gather => self.input(row, within),
            C::Broadcast => self.input(self.root, i),
            C::Scatter => self.input(self.root, u64::from(rank) * count + i),
            C::AllToAll => self.input(row, u64::from(rank) * count + within),
            _ => 0.0,
        }
    }

    /// Runs the programs and checks outputs, inputs and guards; gives the outputs.
    pub(crate) fn run(&self, programs: &[Arc<Program>], policy: Policy) -> Vec<Vec<u8>> {
        let name = &programs[0].algorithm;
        let mut world = World::new(self.size, policy);
        let plans = world
            .plans(programs, &self.request())
            .unwrap_or_else(|e| panic!("{name} {self:?}: {e}"));
        let mut memory: Vec<Memory> = (0..self.size).map(|r| Memory::new(self, r)).collect();
        for (rank, plan) in plans.iter().enumerate() {
            let m = &memory[rank];
            world
                .submit(rank as Rank, plan, m.input, m.output)
                .unwrap_or_else(|e| panic!("{name} {self:?}: {e}"));
        }
        world
            .run()
            .unwrap_or_else(|e| panic!("{name} {self:?}: {e}"));
        drop(world);
        let mut outputs = Vec::new();
        for (rank, m) in memory.drain(..).enumerate() {
            outputs.push(m.check(self, name, rank as Rank));
        }
        outputs
    }
}

const GUARD: usize = 64;
/// What memory holds that nobody has written.
pub(crate) const MARK: u8 = 0xa5;

/// The buffers of one rank, with guard bytes around them.
pub(crate) struct Memory {
    leases: Vec<Lease<Vec<u8>>>,
    pub(crate) input: Piece,
    pub(crate) output: Piece,
    output_at: usize,
    input_bytes: Vec<u8>,
}

impl Memory {
    pub(crate) fn new(call: &Call, rank: Rank) -> Memory {
        let size = call.dtype.size() as u64;
        let row = call.count * size;
        let (inputs, outputs) = (call.input_rows(rank) * row, call.output_rows(rank) * row);
        let elements = inputs / size.max(1);
        let values: Vec<f64> = (0..elements).map(|i| call.input(rank, i)).collect();
        let input_bytes = encode(call.dtype, &values);
        let guarded = |len: u64, fill: &[u8], at: usize| {
            let mut bytes = vec![MARK; len as usize + 2 * GUARD];
            bytes[GUARD + at..GUARD + at + fill.len()].copy_from_slice(fill);
            bytes
        };
        if !call.in_place || inputs == 0 || outputs == 0 {
            let input = Lease::new(guarded(inputs, &input_bytes, 0));
            let output = Lease::new(guarded(outputs, &[], 0));
            let (i, o) = (input.piece(), output.piece());
            return Memory {
                input: i.slice(GUARD..GUARD + inputs as usize),
                output: o.slice(GUARD..GUARD + outputs as usize),
                leases: vec![input, output],
                output_at: GUARD,
                input_bytes,
            };
        }
        // In place: the smaller of the two is a row of the larger.
        let mine = (u64::from(rank) * row) as usize;
        let (input_at, output_at) = match inputs.cmp(&outputs) {
            std::cmp::Ordering::Equal => (0, 0),
            std::cmp::Ordering::Less => (mine, 0),
            std::cmp::Ordering::Greater => (0, mine),
        };
        let both = Lease::new(guarded(inputs.max(outputs), &input_bytes, input_at));
        let piece = both.piece();
        Memory {
            input: piece.slice(GUARD + input_at..GUARD + input_at + inputs as usize),
            output: piece.slice(GUARD + output_at..GUARD + output_at + outputs as usize),
            leases: vec![both],
            output_at: GUARD + output_at,
            input_bytes,
        }
    }

    /// Checks output, input and guards; gives the output.
    pub(crate) fn check(self, call: &Call, name: &str, rank: Rank) -> Vec<u8> {
        let output_len = self.output.len();
        let in_place = self.leases.len() == 1;
        let mut bytes: Vec<Vec<u8>> = self.leases.into_iter().map(Lease::into_inner).collect();
        for b in &bytes {
            let guards = b[..GUARD].iter().chain(&b[b.len() - GUARD..]);
            assert!(
                guards.copied().all(|g| g == MARK),
                "{name} {call:?} rank {rank}: guard bytes"
            );
        }
        let last = bytes.pop().unwrap_or_default();
        if !in_place {
            let input = &bytes[0][GUARD..bytes[0].len() - GUARD];
            assert!(
                input == self.input_bytes,
                "{name} {call:?} rank {rank}: input was written"
            );
        } else if self.input_bytes.len() > output_len {
            let mut now = last[GUARD..last.len() - GUARD].to_vec();
            let at = self.output_at - GUARD;
            now[at..at + output_len].copy_from_slice(&self.input_bytes[at..at + output_len]);
            assert!(
                now == self.input_bytes,
                "{name} {call:?} rank {rank}: rest of the input was written"
            );
        }
        let output = last[self.output_at..self.output_at + output_len].to_vec();
        let values = decode(call.dtype, &output);
        for (i, got) in values.iter().enumerate() {
            let want = call.expected(rank, i as u64);
            let close = if call.op == Op::Avg && call.collective.reduces() {
                (got - want).abs() <= want.abs() * data::epsilon(call.dtype)
            } else {
                *got == want
            };
            assert!(
                close,
                "{name} {call:?} rank {rank} element {i}: {got}, not {want}"
            );
        }
        output
    }
}

/// Ranks whose outputs must be the same bits.
pub(crate) fn assert_identical(call: &Call, name: &str, outputs: &[Vec<u8>]) {
    if matches!(
        call.collective,
        Collective::AllReduce | Collective::AllGather | Collective::Broadcast
    ) {
        for (rank, output) in outputs.iter().enumerate() {
            assert!(
                output == &outputs[0],
                "{name} {call:?}: rank {rank} has other bits than rank 0"
            );
        }
    }
}

/// Runs `call` with every algorithm that offers it; gives how many did.
pub(crate) fn with_every_algorithm(registry: &Registry, call: &Call, policy: Policy) -> usize {
    let mut ran = 0;
    for algorithm in registry.iter() {
        if let Some(programs) = call.programs(&**algorithm) {
            let outputs = call.run(&programs, policy);
            assert_identical(call, algorithm.name(), &outputs);
            ran += 1;
        }
    }
    ran
}

/// The roots worth trying.
pub(crate) fn roots(collective: Collective, size: Rank) -> Vec<Rank> {
    let mut roots = if collective.is_rooted() {
        vec![0, 1, size - 1]
    } else {
        vec![0]
    };
    roots.retain(|r| *r < size);
    roots.dedup();
    roots
}
