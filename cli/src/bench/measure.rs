//! Measures one case on real buffers: as one rank of a group of processes, or as all of them, a thread each.
//!
//! ```text
//! each rank:  fill | warmup x call | iters x (barrier, time of the call) | fill, call, compare
//! ```
//!
//! The time of a call is that of its slowest rank.

use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use unisono::{Error, Group};
use unisono_core::{Collective, DType, Op, Rank};

use super::case::{Case, Stretch, total};
use super::pattern::{Patterns, Sample};
use crate::args::names::Operation;
use crate::exit;

/// What came of a case.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// Time of each timed call in nanoseconds, sorted.
    pub(super) nanos: Vec<u64>,
    /// Wrong elements of all ranks, if they were counted.
    pub(super) wrong: Option<u64>,
}

/// Calls a function for the element type of a case.
macro_rules! typed {
    ($case:expr, $function:ident($($argument:expr),*)) => {{
        use half::{bf16, f16};
        match $case.dtype {
            DType::I8 => $function::<i8>($($argument),*),
            DType::I16 => $function::<i16>($($argument),*),
            DType::I32 => $function::<i32>($($argument),*),
            DType::I64 => $function::<i64>($($argument),*),
            DType::U8 => $function::<u8>($($argument),*),
            DType::U16 => $function::<u16>($($argument),*),
            DType::U32 => $function::<u32>($($argument),*),
            DType::U64 => $function::<u64>($($argument),*),
            DType::F16 => $function::<f16>($($argument),*),
            DType::BF16 => $function::<bf16>($($argument),*),
            DType::F32 => $function::<f32>($($argument),*),
            DType::F64 => $function::<f64>($($argument),*),
            other => Err(anyhow!("bench has no data of type {other}")),
        }
    }};
}
pub(crate) use typed;

/// Runs the case between threads of this process.
///
/// # Errors
/// What a rank returned: the first cause rather than what it led to elsewhere.
pub(super) fn threads(case: &Case, groups: Vec<Group>) -> Result<Measured> {
    typed!(case, between_threads(case, groups))
}

/// Runs the part of one rank of the case, and learns from the others how it went with them.
///
/// # Errors
/// The group failed.
pub(super) fn member(case: &Case, group: &Group) -> Result<Measured> {
    let mut measured = typed!(case, as_member(case, group))?;
    // A call takes as long as its slowest rank.
    group.all_reduce(&mut measured.nanos, Op::Max)?;
    measured.nanos.sort_unstable();
    if let Some(wrong) = &mut measured.wrong {
        group.all_reduce(std::slice::from_mut(wrong), Op::Sum)?;
    }
    Ok(measured)
}

fn as_member<T: Sample>(case: &Case, group: &Group) -> Result<Measured> {
    let op = case.op.reduces().then_some(case.reduce);
    rank(group, case, &Patterns::<T>::new(case.ranks, op))
}

/// The algorithm that a call of this case will use; `None` for messages, which belong to none.
///
/// # Errors
/// Nothing can do it.
pub(super) fn choice(case: &Case, group: &Group) -> Result<Option<String>> {
    let Operation::Collective(collective) = case.op else {
        return Ok(None);
    };
    let group = case.tuned(group)?;
    let (op, count) = (case.op.reduces().then_some(case.reduce), case.call_count());
    // Of an element type, the choice knows the size.
    let choice = match case.dtype.size() {
        1 => group.choice::<u8>(collective, count, op),
        2 => group.choice::<u16>(collective, count, op),
        4 => group.choice::<f32>(collective, count, op),
        _ => group.choice::<f64>(collective, count, op),
    };
    Ok(Some(choice?.algorithm.name().to_owned()))
}

fn between_threads<T: Sample>(case: &Case, groups: Vec<Group>) -> Result<Measured> {
    let op = case.op.reduces().then_some(case.reduce);
    let patterns = &Patterns::<T>::new(case.ranks, op);
    let ends: Vec<Result<Measured>> = thread::scope(|scope| {
        let threads: Vec<_> = groups
            .into_iter()
            .map(|group| {
                let name = format!("rank {}", group.rank());
                let run = move || rank(&group, case, patterns);
                // A rank without a thread drops its group, which tells the others.
                thread::Builder::new().name(name).spawn_scoped(scope, run)
            })
            .collect();
        let ranks = threads.into_iter().zip(0..);
        ranks
            .map(|(thread, r): (_, Rank)| {
                let thread = thread.with_context(|| format!("rank {r}: no thread"))?;
                thread.join().unwrap_or_else(|panic| {
                    Err(anyhow!(
                        "rank {r} panicked: {}",
                        exit::payload(panic.as_ref())
                    ))
                })
            })
            .collect()
    });
    joined(ends)
}

/// All ranks together: the slowest of each call, the sum of what is wrong, or the cause.
fn joined(ends: Vec<Result<Measured>>) -> Result<Measured> {
    let (mut all, mut cause): (Option<Measured>, Option<anyhow::Error>) = (None, None);
    let led_to = |e: &anyhow::Error| matches!(e.downcast_ref(), Some(Error::Failed { .. }));
    for end in ends {
        match end {
            Ok(one) => match &mut all {
                None => all = Some(one),
                Some(all) => {
                    for (slowest, &nanos) in all.nanos.iter_mut().zip(&one.nanos) {
                        *slowest = nanos.max(*slowest);
                    }
                    all.wrong = all.wrong.zip(one.wrong).map(|(a, b)| a + b);
                }
            },
            Err(e) if cause.as_ref().is_none_or(|c| led_to(c) && !led_to(&e)) => cause = Some(e),
            Err(_) => {}
        }
    }
    match (cause, all) {
        (Some(e), _) => Err(e),
        (None, Some(mut all)) => {
            all.nanos.sort_unstable();
            Ok(all)
        }
        (None, None) => Err(anyhow!("a group without ranks")),
    }
}

/// The part of one rank.
fn rank<T: Sample>(group: &Group, case: &Case, patterns: &Patterns<T>) -> Result<Measured> {
    let mut buffers = Buffers::new(group, case, patterns)?;
    for _ in 0..case.warmup {
        buffers.call()?;
    }
    let mut nanos = Vec::with_capacity(case.iters as usize);
    for _ in 0..case.iters {
        group.barrier()?;
        let start = Instant::now();
        buffers.call()?;
        nanos.push(start.elapsed().as_nanos() as u64);
    }
    let wrong = case.check.then(|| buffers.check()).transpose()?;
    Ok(Measured { nanos, wrong })
}

impl Case {
    /// A handle whose calls do what was asked for.
    fn tuned(&self, group: &Group) -> Result<Group, Error> {
        let mut group = match &self.algorithm {
            Some(name) => group.with_algorithm(name)?,
            None => group.clone(),
        };
        if let Some(segments) = self.segments {
            group = group.with_segments(segments);
        }
        if let Some(channels) = self.channels {
            group = group.with_channels(channels);
        }
        Ok(group)
    }
}

/// One rank's buffers and how they are used.
pub(crate) struct Buffers<'a, T> {
    /// With the algorithm that was asked for.
    group: Group,
    case: &'a Case,
    patterns: &'a Patterns<T>,
    input: (Vec<T>, Vec<Stretch>),
    output: (Vec<T>, Vec<Stretch>),
}

impl<'a, T: Sample> Buffers<'a, T> {
    pub(crate) fn new(
        group: &Group,
        case: &'a Case,
        patterns: &'a Patterns<T>,
    ) -> Result<Buffers<'a, T>> {
        let rank = group.rank();
        let buffer = |stretches: Vec<Stretch>| -> Result<(Vec<T>, Vec<Stretch>)> {
            let len = total(&stretches);
            let mut buffer = Vec::new();
            let reserved = buffer.try_reserve_exact(len);
            reserved.with_context(|| format!("rank {rank}: no memory for {len} elements"))?;
            buffer.resize(len, T::sample(0));
            Ok((buffer, stretches))
        };
        let mut buffers = Buffers {
            input: buffer(case.input(rank))?,
            output: buffer(case.output(rank))?,
            group: case.tuned(group)?,
            case,
            patterns,
        };
        buffers.fill();
        Ok(buffers)
    }

    /// Inputs as they should be, outputs as they should not be; a broadcast starts from its output at the root.
    fn fill(&mut self) {
        let (input, stretches) = &mut self.input;
        self.patterns.fill(input, stretches);
        let (output, stretches) = &mut self.output;
        let broadcast = self.case.op == Operation::Collective(Collective::Broadcast);
        if broadcast && self.group.rank() == self.case.root {
            self.patterns.fill(output, stretches);
        } else {
            bytemuck::cast_slice_mut::<T, u8>(output).fill(0xa5);
        }
    }

    fn call(&mut self) -> Result<(), Error> {
        use Collective as C;
        let Buffers { group, case, .. } = self;
        let (x, y) = (&self.input.0, &mut self.output.0);
        let (op, root, rank) = (case.reduce, case.root, group.rank());
        let at_root = rank == root;
        match case.op {
            Operation::SendRecv => {
                let (right, left) = (rank + 1, rank + case.ranks - 1);
                group.send_recv(x, right % case.ranks, y, left % case.ranks)
            }
            Operation::Collective(collective) => match collective {
                C::AllReduce => group.all_reduce_into(x, y, op),
                C::ReduceScatter => group.reduce_scatter(x, y, op),
                C::AllGather => group.all_gather(x, y),
                C::Broadcast => group.broadcast(y, root),
                C::Reduce => group.reduce(x, at_root.then_some(&mut y[..]), op, root),
                C::Gather => group.gather(x, at_root.then_some(&mut y[..]), root),
                C::Scatter => group.scatter(at_root.then_some(&x[..]), y, root),
                C::AllToAll => group.all_to_all(x, y),
                _ => group.barrier(),
            },
        }
    }

    /// One more call, from fresh data; counts what is wrong afterwards.
    pub(crate) fn check(&mut self) -> Result<u64> {
        self.fill();
        self.call()?;
        if self.case.corrupt == Some(self.group.rank()) {
            self.corrupt();
        }
        let wrong =
            |(buffer, stretches): &(Vec<T>, Vec<Stretch>)| self.patterns.wrong(buffer, stretches);
        Ok(wrong(&self.input) + wrong(&self.output))
    }

    /// Flips one byte of the result; of the input at a rank that has no result, for that is checked as well.
    fn corrupt(&mut self) {
        let buffer = match self.output.0.is_empty() {
            true => &mut self.input.0,
            false => &mut self.output.0,
        };
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(buffer);
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 0xff;
        }
    }
}
