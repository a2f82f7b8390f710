//! A second opinion: programs executed on numbers, in random order, as an engine could.
//!
//! Shares no code with `verify` but the program's own arithmetic. A posted send reads its memory as late as the dice
//! say, and wants it unchanged until it is complete; a receive is applied when its message is there and its waits hold.
//! Wrong waits show as wrong sums for some seed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use unisono_core::{Collective, Homes, Shape};
use unisono_program::ir::next_strand;
use unisono_program::{Cursor, Kind, LaneKind, Location, Operand, Program, Run, Span};

/// How to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) segments: u64,
    pub(crate) in_place: bool,
    /// Messages a FIFO holds. 0: a message needs a receive whose waits hold (no staging).
    pub(crate) room: usize,
    pub(crate) seed: u64,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Right,
    Wrong { rank: u32, index: u64 },
    Hang,
}

type Fifo = (u32, u32, u16);

struct Machine<'a> {
    programs: &'a [Arc<Program>],
    shape: Shape,
    way: Way,
    /// Per rank and index: contents of the input, and of the work vector (in place: of both).
    input: Vec<Vec<Vec<u64>>>,
    work: Vec<Vec<Vec<u64>>>,
    /// Per rank and lane: next to post, next to leave for its FIFO, next to complete, segments completed.
    posted: Vec<Vec<Cursor>>,
    gone: Vec<Vec<Cursor>>,
    completed: Vec<Vec<Cursor>>,
    done: Vec<Vec<u64>>,
    /// Per rank and lane: what left but is not complete.
    sent: Vec<Vec<VecDeque<Vec<u64>>>>,
    /// A send whose memory changed before it was complete.
    touched: Option<End>,
    in_flight: HashMap<Fifo, VecDeque<Vec<u64>>>,
    dice: u64,
}

fn mix(a: u64) -> u64 {
    let a = (a ^ (a >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let a = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    a ^ (a >> 31)
}

fn contribution(rank: u32, index: u64, element: u64) -> u64 {
    mix(u64::from(rank) << 48 ^ index << 24 ^ element ^ 0x9e37_79b9_7f4a_7c15)
}

fn finish(value: u64) -> u64 {
    value.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0xabcd
}

/// Executes the programs on vectors (or rows) of `count` elements and checks all outputs.
pub(crate) fn execute(programs: &[Arc<Program>], count: u64, way: Way) -> End {
    machine(programs, count, way).run()
}

/// What each rank's work vector holds in the end, by index and element; `None` if the programs hang or a send's memory
/// was touched.
pub(crate) fn contents(
    programs: &[Arc<Program>],
    count: u64,
    way: Way,
) -> Option<Vec<Vec<Vec<u64>>>> {
    let mut machine = machine(programs, count, way);
    let end = machine.run();
    (end != End::Hang && machine.touched.is_none()).then_some(machine.work)
}

fn machine(programs: &[Arc<Program>], count: u64, way: Way) -> Machine<'_> {
    let first = &programs[0];
    let shape = Shape::new(first.collective, count, first.blocks, first.subs);
    let garbage = 0xdead;
    let memory = |p: &Program, contents: &dyn Fn(u64, u64) -> u64| -> Vec<Vec<u64>> {
        let slots = p.slots.iter().map(|s| (u64::MAX, s.like));
        let data = (0..p.data_indices()).map(|i| (i, i));
        let fill = |(i, like)| (0..shape.len(like)).map(|e| contents(i, e)).collect();
        data.chain(slots).map(fill).collect()
    };
    let contents = |p: &Program, i: u64, e: u64| {
        let home = i != u64::MAX && p.homes().input(p.block_of(i)).is_some();
        if home {
            contribution(p.rank, i, e)
        } else {
            garbage
        }
    };
    let both = |p: &Program, i: u64, e: u64| {
        let aliased = way.in_place && i != u64::MAX && p.homes().output(p.block_of(i)).is_some();
        if aliased { contents(p, i, e) } else { garbage }
    };
    let cursors: Vec<Vec<Cursor>> = programs
        .iter()
        .map(|p| vec![Cursor::default(); p.lanes.len()])
        .collect();
    Machine {
        programs,
        shape,
        way,
        input: programs
            .iter()
            .map(|p| memory(p, &|i, e| contents(p, i, e)))
            .collect(),
        work: programs
            .iter()
            .map(|p| memory(p, &|i, e| both(p, i, e)))
            .collect(),
        posted: cursors.clone(),
        gone: cursors.clone(),
        sent: cursors
            .iter()
            .map(|c| vec![VecDeque::new(); c.len()])
            .collect(),
        completed: cursors,
        done: programs.iter().map(|p| vec![0; p.lanes.len()]).collect(),
        touched: None,
        in_flight: HashMap::new(),
        dice: mix(way.seed),
    }
}

impl Machine<'_> {
    fn run(&mut self) -> End {
        let mut lanes: Vec<(usize, usize)> = Vec::new();
        for (r, p) in self.programs.iter().enumerate() {
            lanes.extend((0..p.lanes.len()).map(|l| (r, l)));
        }
        if lanes.is_empty() {
            return self.check();
        }
        // One lane (every other time: only the completion of what it sends) is slower than all others.
        let slow = lanes[self.dice as usize % lanes.len()];
        let posts = self.dice >> 32 & 1 == 1;
        loop {
            // From a random lane on, the first that can do something does it.
            self.dice = mix(self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15));
            let start = self.dice as usize % lanes.len();
            let mut order = lanes[start..].iter().chain(&lanes[..start]);
            let quick = order.any(|&(r, l)| match (r, l) == slow {
                true => posts && self.act(r, l, false),
                false => self.act(r, l, true),
            });
            if !quick && !self.act(slow.0, slow.1, true) {
                break;
            }
        }
        let ended = |(r, l): &(usize, usize)| {
            self.completed[*r][*l]
                .at(&self.programs[*r].lanes[*l])
                .is_none()
        };
        if !lanes.iter().all(ended) || self.in_flight.values().any(|q| !q.is_empty()) {
            return End::Hang;
        }
        self.touched.unwrap_or_else(|| self.check())
    }

    /// Whether the waits of the segment at `cursor` hold.
    fn may(&self, r: usize, run: &Run, cursor: Cursor) -> bool {
        run.waits.iter().all(|w| {
            self.done[r][w.lane as usize] >= w.needs(cursor.k, cursor.segment, self.way.segments)
        })
    }

    /// Whether lane `l` holds the next message of its FIFO, among `cursors` of its rank.
    fn turn(&self, r: usize, l: usize, cursors: &[Cursor]) -> bool {
        let lanes = &self.programs[r].lanes;
        let strands = (0..lanes.len()).filter(|&i| lanes[i].kind == lanes[l].kind);
        next_strand(
            strands.map(|i| (i, &lanes[i], cursors[i])),
            self.way.segments,
        ) == Some(l)
    }

    /// Lets a lane do one thing; a send is completed only if it `may_complete`.
    fn act(&mut self, r: usize, l: usize, may_complete: bool) -> bool {
        let programs = self.programs;
        let lane = &programs[r].lanes[l];
        let at = self.completed[r][l];
        match lane.kind {
            LaneKind::Send { peer, channel } => {
                let post = self.posted[r][l];
                if let Some(run) = post.at(lane)
                    && self.turn(r, l, &self.posted[r])
                    && self.may(r, run, post)
                {
                    self.posted[r][l].advance(lane, self.way.segments);
                    return true;
                }
                let gone = self.gone[r][l];
                if gone != post && self.turn(r, l, &self.gone[r]) {
                    let fifo = (r as u32, peer, channel);
                    let there = self.in_flight.get(&fifo).map_or(0, VecDeque::len);
                    let room =
                        there < self.way.room.max(1) && (self.way.room > 0 || self.expected(fifo));
                    if let (Some(run), true) = (gone.at(lane), room) {
                        let message = self.gather(r, &run.target, gone);
                        self.sent[r][l].push_back(message.clone());
                        self.in_flight.entry(fifo).or_default().push_back(message);
                        self.gone[r][l].advance(lane, self.way.segments);
                        return true;
                    }
                }
                if !may_complete {
                    return false;
                }
                let (Some(run), Some(message)) = (at.at(lane), self.sent[r][l].pop_front()) else {
                    return false;
                };
                if self.gather(r, &run.target, at) != message {
                    let (rank, index) = (r as u32, run.target.span.first);
                    self.touched.get_or_insert(End::Wrong { rank, index });
                }
            }
            LaneKind::Recv { .. } | LaneKind::Local { .. } if !may_complete => return false,
            LaneKind::Recv { peer, channel } => {
                let Some(run) = at.at(lane) else { return false };
                let there = self
                    .in_flight
                    .get(&(peer, r as u32, channel))
                    .is_some_and(|q| !q.is_empty());
                if !there || !self.turn(r, l, &self.completed[r]) || !self.may(r, run, at) {
                    return false;
                }
                let queue = self.in_flight.get_mut(&(peer, r as u32, channel));
                let Some(mut message) = queue.and_then(VecDeque::pop_front) else {
                    return false;
                };
                if run.kind == Kind::RecvReduce {
                    let mine = self.gather(r, &run.target, at);
                    message
                        .iter_mut()
                        .zip(mine)
                        .for_each(|(m, v)| *m = m.wrapping_add(v));
                }
                self.scatter(r, &run.target, at, &message);
            }
            LaneKind::Local { .. } => {
                let Some(run) = at.at(lane) else { return false };
                if !self.may(r, run, at) {
                    return false;
                }
                let mut result = self.gather(r, &run.sources[0], at);
                for source in &run.sources[1..] {
                    let operand = self.gather(r, source, at);
                    result
                        .iter_mut()
                        .zip(operand)
                        .for_each(|(a, b)| *a = a.wrapping_add(b));
                }
                if run.kind == (Kind::Reduce { finish: true }) {
                    result.iter_mut().for_each(|v| *v = finish(*v));
                }
                self.scatter(r, &run.target, at, &result);
            }
        }
        self.completed[r][l].advance(lane, self.way.segments);
        self.done[r][l] += 1;
        true
    }

    /// Without staging: whether the receiver's next step on this FIFO could be applied now.
    fn expected(&self, (from, to, channel): Fifo) -> bool {
        let (r, kind) = (
            to as usize,
            LaneKind::Recv {
                peer: from,
                channel,
            },
        );
        let lanes = self.programs[r]
            .lanes
            .iter()
            .enumerate()
            .filter(|(_, l)| l.kind == kind);
        let mut turn = lanes.filter(|&(l, _)| self.turn(r, l, &self.completed[r]));
        turn.next().is_some_and(|(l, lane)| {
            let at = self.completed[r][l];
            at.at(lane).is_some_and(|run| self.may(r, run, at))
        })
    }

    /// The elements of a segment of an operand: (index, element, whether in the input).
    fn elements(&self, r: usize, operand: &Operand, at: Cursor) -> Vec<(u64, u64, bool)> {
        let p = &self.programs[r];
        let span: Span = p.span_at(operand, at.k);
        let mut all = Vec::new();
        for k in 0..span.len {
            let index = p.index_in(span, k);
            let input = match &operand.location {
                Location::Input => true,
                Location::Work => false,
                Location::Mixed(parts) => {
                    let mut end = 0;
                    let part = parts.iter().find(|(n, _)| {
                        end += n;
                        k < end
                    });
                    part.is_some_and(|(_, work)| !work)
                }
            };
            let like = if p.is_data(index) {
                index
            } else {
                p.slots[(index - p.data_indices()) as usize].like
            };
            all.extend((0..self.shape.len(like)).map(|e| (index, e, input)));
        }
        let (len, s) = (all.len() as u64, self.way.segments);
        let cut = |i: u64| (i * len / s) as usize;
        all[cut(at.segment)..cut(at.segment + 1)].to_vec()
    }

    fn gather(&self, r: usize, operand: &Operand, at: Cursor) -> Vec<u64> {
        let homes = self.programs[r].homes();
        let read = |(index, e, input): (u64, u64, bool)| {
            let p = &self.programs[r];
            let aliased = self.way.in_place && input && homes.output(p.block_of(index)).is_some();
            let memory = if input && !aliased {
                &self.input
            } else {
                &self.work
            };
            memory[r][index as usize][e as usize]
        };
        self.elements(r, operand, at)
            .into_iter()
            .map(read)
            .collect()
    }

    fn scatter(&mut self, r: usize, operand: &Operand, at: Cursor, values: &[u64]) {
        for ((index, e, _), &value) in self.elements(r, operand, at).into_iter().zip(values) {
            self.work[r][index as usize][e as usize] = value;
        }
    }

    fn check(&self) -> End {
        for p in self.programs {
            let homes = Homes::new(p.collective, p.rank, p.size, p.root);
            for index in (0..p.data_indices()).filter(|i| homes.output(p.block_of(*i)).is_some()) {
                let block = p.block_of(index);
                let sources = match p.collective {
                    Collective::AllGather | Collective::Gather => block as u32..block as u32 + 1,
                    Collective::Broadcast | Collective::Scatter => p.root..p.root + 1,
                    Collective::AllToAll => {
                        let source = (block / u64::from(p.size)) as u32;
                        source..source + 1
                    }
                    _ => 0..p.size,
                };
                for e in 0..self.shape.len(index) {
                    let sum = sources.clone().map(|r| contribution(r, index, e));
                    let sum = sum.fold(0, u64::wrapping_add);
                    let right = if p.average { finish(sum) } else { sum };
                    if self.work[p.rank as usize][index as usize][e as usize] != right {
                        return End::Wrong {
                            rank: p.rank,
                            index,
                        };
                    }
                }
            }
        }
        End::Right
    }
}

/// Runs many ways; the first that is not right.
pub(crate) fn attack(programs: &[Arc<Program>], seeds: u64) -> Option<(Way, End)> {
    let count = 3 * programs[0].blocks + 2;
    for seed in 0..seeds {
        for segments in 1..=4 {
            for (in_place, room) in [(false, 1), (true, 1), (true, 3)] {
                let way = Way {
                    segments,
                    in_place,
                    room,
                    seed,
                };
                let end = execute(programs, count, way);
                if end != End::Right {
                    return Some((way, end));
                }
            }
        }
    }
    None
}
