//! What every block holds, as sets of contributions, and whether every output ends with the right ones.
//!
//! A value is "index i of these ranks' inputs, reduced": one rank after an all_gather, each rank exactly once after an
//! all_reduce. Blocks are wholes here: where no two steps race (see [`races`](super::races)), every element takes the
//! same way at every number of segments. A step that makes no partial result (a contribution twice, operands out of
//! order) spoils its target; what is spoiled only matters if it reaches an output.
//!
//! One pass serves both bindings: out of place, the work vector is empty until it is written; in place, it is the
//! input. Reading must give the same in both.

use super::graph::{Graph, NONE};
use super::races::{for_each_located, uses};
use super::sets::{SetId, Sets};
use super::{Flaw, Spoil, checks};
use crate::{Kind, Operand, Program, Span};
use unisono_core::{Collective, Homes, Rank};

/// What one block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// Nothing was written.
    Empty,
    /// The reduction of these ranks' contributions to data index `index`; `finished`: divided.
    Sum {
        index: u64,
        ranks: SetId,
        finished: bool,
    },
    /// No partial result; the number of the reason.
    Spoiled(u32),
}

struct Memory {
    homes: Homes,
    /// Contents of each index in the work vector and scratch, and who wrote it.
    work: Vec<(Value, u32)>,
}

struct Values<'g, 'a> {
    graph: &'g Graph<'a>,
    sets: Sets,
    own: Vec<SetId>,
    spoils: Vec<(u32, Spoil)>,
    memories: Vec<Memory>,
}

/// Runs all steps on symbolic contents and checks the outputs.
pub(super) fn check(graph: &Graph<'_>) -> Result<(), Flaw> {
    let mut sets = Sets::default();
    let memory = |p: &Program| Memory {
        homes: p.homes(),
        work: vec![(Value::Empty, NONE); p.data_indices() as usize + p.slots.len()],
    };
    let mut values = Values {
        graph,
        own: (0..graph.programs.len() as Rank)
            .map(|r| sets.range(r, r + 1))
            .collect(),
        sets,
        spoils: Vec::new(),
        memories: graph.programs.iter().map(|p| memory(p)).collect(),
    };
    let mut in_flight: Vec<Option<Box<[Value]>>> = vec![None; graph.len() as usize];
    for &id in &graph.order {
        values.step(id, &mut in_flight)?;
    }
    for p in graph.programs {
        values.outputs(p)?;
    }
    Ok(())
}

impl Values<'_, '_> {
    fn step(&mut self, id: u32, in_flight: &mut [Option<Box<[Value]>>]) -> Result<(), Flaw> {
        let (node, p) = (self.graph.node(id), self.graph.program(id));
        let target = p.span_at(&node.run.target, node.k);
        let (reads, writes) = uses(node.run.kind);
        let mut result = Vec::new();
        if reads {
            result = self.read(id, p, &node.run.target, target)?;
        }
        for source in &node.run.sources {
            let operand = self.read(id, p, source, p.span_at(source, node.k))?;
            self.reduce(id, &mut result, &operand);
        }
        if let Some(message) = self
            .graph
            .sender(id)
            .and_then(|s| in_flight[s as usize].take())
        {
            self.reduce(id, &mut result, &message);
        }
        if let Kind::Reduce { finish: true } = node.run.kind {
            for value in &mut result {
                *value = self.divide(id, *value);
            }
        }
        if writes {
            self.write(id, p, target, &result)
        } else {
            in_flight[id as usize] = Some(result.into());
            Ok(())
        }
    }

    fn read(
        &mut self,
        id: u32,
        p: &Program,
        operand: &Operand,
        span: Span,
    ) -> Result<Vec<Value>, Flaw> {
        let memory = &self.memories[p.rank as usize];
        let mut values = Vec::with_capacity(span.len as usize);
        for_each_located(p, operand, span, |index, input| {
            let (written, writer) = memory.work[index as usize];
            let nothing = |from| Flaw::ReadsNothing {
                place: self.graph.place(id),
                block: checks::block_name(p, index),
                from,
            };
            if !input {
                values.push(written);
                return if written == Value::Empty {
                    Err(nothing("work vector"))
                } else {
                    Ok(())
                };
            }
            let block = p.block_of(index);
            if memory.homes.input(block).is_none() {
                return Err(nothing("input"));
            }
            let contribution = Value::Sum {
                index,
                ranks: self.own[p.rank as usize],
                finished: false,
            };
            if memory.homes.output(block).is_some()
                && written != Value::Empty
                && written != contribution
            {
                return Err(Flaw::InputOverwritten {
                    place: self.graph.place(id),
                    block: checks::block_name(p, index),
                    writer: self.graph.place(writer),
                });
            }
            values.push(contribution);
            Ok(())
        })?;
        Ok(values)
    }

    fn write(&mut self, id: u32, p: &Program, span: Span, values: &[Value]) -> Result<(), Flaw> {
        let memory = &mut self.memories[p.rank as usize];
        for (index, &value) in p.ranges(span).flatten().zip(values) {
            if p.is_data(index) && memory.homes.output(p.block_of(index)).is_none() {
                let at = p.homeless.partition_point(|s| s.first + s.len <= index);
                if p.homeless.get(at).is_none_or(|s| index < s.first) {
                    return Err(Flaw::NoHome {
                        place: self.graph.place(id),
                        block: checks::block_name(p, index),
                    });
                }
            }
            memory.work[index as usize] = (value, id);
        }
        Ok(())
    }

    /// `into = into (+) operand`; the first operand is taken as it is.
    fn reduce(&mut self, id: u32, into: &mut Vec<Value>, operand: &[Value]) {
        if into.is_empty() {
            into.extend_from_slice(operand);
            return;
        }
        for (left, &right) in into.iter_mut().zip(operand) {
            *left = self.join(id, *left, right);
        }
    }

    fn join(&mut self, id: u32, left: Value, right: Value) -> Value {
        let (
            Value::Sum {
                index,
                ranks: a,
                finished,
            },
            Value::Sum {
                index: other,
                ranks: b,
                finished: too,
            },
        ) = (left, right)
        else {
            return if let Value::Spoiled(_) = left {
                left
            } else {
                right
            };
        };
        if index != other {
            return self.spoil(
                id,
                Spoil::OtherBlock {
                    left: index,
                    right: other,
                },
            );
        }
        if finished || too {
            return self.spoil(id, Spoil::Divided);
        }
        let (ranks, twice) = self.sets.union(a, b);
        if let Some(rank) = twice {
            return self.spoil(id, Spoil::Twice { rank });
        }
        if !self.graph.program(id).commutative {
            // Values are single intervals here, by induction.
            let (left, right) = (self.sets.list(a), self.sets.list(b));
            let last = left.last().map_or(0, |l| l.1);
            let next = right.first().map_or(0, |r| r.0);
            if last != next {
                let spoil = Spoil::OutOfOrder {
                    left: last.saturating_sub(1),
                    right: next,
                };
                return self.spoil(id, spoil);
            }
        }
        Value::Sum {
            index,
            ranks,
            finished: false,
        }
    }

    fn divide(&mut self, id: u32, value: Value) -> Value {
        match value {
            Value::Sum { finished: true, .. } => self.spoil(id, Spoil::Divided),
            Value::Sum { index, ranks, .. } => Value::Sum {
                index,
                ranks,
                finished: true,
            },
            other => other,
        }
    }

    fn spoil(&mut self, id: u32, why: Spoil) -> Value {
        self.spoils.push((id, why));
        Value::Spoiled(self.spoils.len() as u32 - 1)
    }

    fn outputs(&mut self, p: &Program) -> Result<(), Flaw> {
        let size = p.size;
        let finished = p.average && p.collective.reduces();
        let everyone = self.sets.range(0, size);
        for sub in 0..u64::from(p.subs) {
            for block in p.homes().output_blocks(p.blocks).flatten() {
                let index = sub * p.blocks + block;
                let (value, writer) = self.memories[p.rank as usize].work[index as usize];
                let name = checks::block_name(p, index);
                let rank = p.rank;
                let ranks = match p.collective {
                    Collective::AllGather | Collective::Gather => self.own[block as usize],
                    Collective::AllToAll => self.own[(block / u64::from(size)) as usize],
                    Collective::Broadcast | Collective::Scatter => self.own[p.root as usize],
                    _ => everyone,
                };
                let expected = Value::Sum {
                    index,
                    ranks,
                    finished,
                };
                match value {
                    Value::Empty => {
                        return Err(Flaw::NeverWritten {
                            rank,
                            block: name,
                            place: self.graph.last_place(rank),
                        });
                    }
                    Value::Spoiled(i) => {
                        let (id, why) = self.spoils[i as usize];
                        let place = self.graph.place(id);
                        return Err(Flaw::Spoiled {
                            rank,
                            block: name,
                            place,
                            why,
                        });
                    }
                    found if found != expected => {
                        return Err(Flaw::WrongResult {
                            rank,
                            block: name,
                            found: self.show(p, found),
                            expected: self.show(p, expected),
                            place: self.graph.place(writer),
                        });
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn show(&self, p: &Program, value: Value) -> String {
        match value {
            Value::Sum {
                index,
                ranks,
                finished,
            } => format!(
                "{}block {} of rank(s) {}",
                if finished { "the average of " } else { "" },
                checks::block_name(p, index),
                self.sets.show(ranks)
            ),
            _ => "nothing".to_owned(),
        }
    }
}

/// No rank leaves a barrier before every rank has entered: messages and waits tell each of all others.
pub(super) fn barrier(graph: &Graph<'_>) -> Result<(), Flaw> {
    if graph
        .programs
        .first()
        .is_none_or(|p| p.collective != Collective::Barrier)
    {
        return Ok(());
    }
    let mut sets = Sets::default();
    let size = graph.programs.len() as Rank;
    let mut heard: Vec<SetId> = (0..size).map(|r| sets.range(r, r + 1)).collect();
    let mut entered = vec![0; graph.len() as usize];
    for &id in &graph.order {
        let rank = graph.node(id).rank as usize;
        let mut set = sets.range(rank as Rank, rank as Rank + 1);
        graph.needs(id, |need| set = sets.union(set, entered[need as usize]).0);
        entered[id as usize] = set;
        heard[rank] = sets.union(heard[rank], set).0;
    }
    for (rank, &set) in heard.iter().enumerate() {
        if let Some(absent) = sets.first_absent(set, size) {
            return Err(Flaw::LeavesEarly {
                rank: rank as Rank,
                absent,
                place: graph.last_place(rank as Rank),
            });
        }
    }
    Ok(())
}
