//! From the steps of an algorithm to a program: lanes, waits, homes.
//!
//! The builder keeps, per block, who last wrote it and who still reads it, and gives each step the waits that follow
//! (read after write, write after read, write after write), at most one per lane and none that the order of its own lane
//! already implies. Waits are inferred as if input and output were the same memory, which serves both bindings.

mod error;
mod lanes;
mod roll;
mod rotate;

pub use error::BuildError;
pub use rotate::rotate;

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;
use unisono_core::{Homes, Rank};

use crate::emit::Named;
use crate::hazards::{Access, Hazards};
use crate::{
    Algorithm, Blocks, Context, Emit, Kind, LaneKind, Location, Operand, Program, Slot, Span,
    Stage, Symmetry, Unsupported,
};
use lanes::Lanes;
use roll::Step;

/// The program of `cx.rank()`.
pub fn build(algorithm: &dyn Algorithm, cx: &Context) -> Result<Program, BuildError> {
    supported(algorithm, cx)?;
    let mut builder = Builder::new(algorithm, cx);
    let channels = cx.params().channels.max(1);
    let parts = algorithm.parts(cx).max(1);
    for channel in 0..channels {
        builder.enter(channel, u32::from(channel) * parts, parts);
        algorithm.emit(cx, &mut builder);
    }
    builder.finish()
}

/// The programs of all ranks, in rank order.
///
/// Where the algorithm promises a symmetry, worlds above 256 ranks are made from rank 0's program.
pub fn build_all(algorithm: &dyn Algorithm, cx: &Context) -> Result<Vec<Arc<Program>>, BuildError> {
    supported(algorithm, cx)?;
    let size = cx.size();
    if size > 256 && algorithm.symmetry(cx) == Symmetry::Rotation {
        let first = build(algorithm, &cx.at_rank(0))?;
        return Ok((0..size).map(|r| Arc::new(rotate(&first, r))).collect());
    }
    (0..size)
        .map(|r| build(algorithm, &cx.at_rank(r)).map(Arc::new))
        .collect()
}

/// Blocks that an algorithm may cut a vector into.
const MOST_BLOCKS: u64 = 1 << 20;
/// Channels, and parts, that each block may be cut into.
const MOST_SHARES: u64 = 256;

fn supported(algorithm: &dyn Algorithm, cx: &Context) -> Result<(), BuildError> {
    let within = |name, value: u64, most: u64, range| {
        if value <= most {
            return Ok(());
        }
        Err(Unsupported::Parameter { name, value, range })
    };
    algorithm
        .supports(cx)
        .and_then(|()| {
            within(
                "channels",
                cx.params().channels.into(),
                MOST_SHARES,
                "1 to 256",
            )
        })
        .and_then(|()| within("parts", algorithm.parts(cx).into(), MOST_SHARES, "1 to 256"))
        .and_then(|()| match cx.collective().rows(cx.size()) {
            Some(_) => Ok(()),
            None => within("blocks", algorithm.blocks(cx), MOST_BLOCKS, "1 to 1048576"),
        })
        .map_err(|why| BuildError::Unsupported {
            algorithm: algorithm.name().to_owned(),
            collective: cx.collective(),
            why,
        })
}

/// Sorted, disjoint, touching ones joined.
fn join(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|s| s.first);
    let mut out: Vec<Span> = Vec::new();
    for s in spans {
        match out.last_mut() {
            Some(last) if last.first + last.len == s.first => last.len += s.len,
            _ => out.push(s),
        }
    }
    out
}

/// The index under which hazards keep the one empty block that all sync steps share.
const SYNC: u64 = u64::MAX - 1;

struct Builder<'a> {
    cx: &'a Context,
    homes: Homes,
    program: Program,
    lanes: Lanes,
    hazards: Hazards,
    slots: HashMap<(u32, u64), u64>,
    channel: u16,
    sub: u32,
    first_sub: u32,
    parts: u32,
    stage: Option<Stage>,
    error: Option<BuildError>,
}

impl<'a> Builder<'a> {
    fn new(algorithm: &dyn Algorithm, cx: &'a Context) -> Self {
        let (collective, rank, size) = (cx.collective(), cx.rank(), cx.size());
        let blocks = collective
            .rows(size)
            .unwrap_or_else(|| algorithm.blocks(cx).max(1));
        let subs = u32::from(cx.params().channels.max(1)) * algorithm.parts(cx).max(1);
        Builder {
            cx,
            homes: Homes::new(collective, rank, size, cx.root()),
            program: Program {
                algorithm: algorithm.name().to_owned(),
                params: cx.params(),
                collective,
                rank,
                size,
                root: cx.root(),
                blocks,
                subs,
                lanes: Vec::new(),
                slots: Vec::new(),
                homeless: Vec::new(),
                commutative: cx.commutative(),
                average: cx.average(),
            },
            lanes: Lanes::default(),
            hazards: Hazards::default(),
            slots: HashMap::new(),
            channel: 0,
            sub: 0,
            first_sub: 0,
            parts: 1,
            stage: None,
            error: None,
        }
    }

    /// Starts copy `channel` of the algorithm. Point-to-point has channel 1, further copies 2, 3, ...
    fn enter(&mut self, channel: u16, first_sub: u32, parts: u32) {
        self.channel = match (self.program.collective, channel) {
            (c, _) if c.is_point_to_point() => 1,
            (_, 0) => 0,
            (_, c) => c + 1,
        };
        self.first_sub = first_sub;
        self.sub = first_sub;
        self.parts = parts;
        self.stage = None;
    }

    fn fail(&mut self, error: BuildError) {
        self.error.get_or_insert(error);
    }

    fn span(&mut self, named: Blocks, what: &str) -> Option<Span> {
        let n = self.program.blocks;
        match named.named {
            Named::Data { len, .. } if len > n || n == 0 => {
                let rank = self.program.rank;
                self.fail(BuildError::TooLong {
                    rank,
                    what: what.to_owned(),
                    len,
                    blocks: n,
                });
                None
            }
            Named::Data { first, len } => Some(Span {
                first: u64::from(self.sub) * n + first.rem_euclid(n as i64) as u64,
                len,
            }),
            Named::Scratch { slot, like } => {
                let like = u64::from(self.sub) * n + like.rem_euclid(n.max(1) as i64) as u64;
                let next = self.program.slots.len() as u64;
                let dense = *self.slots.entry((self.sub, slot)).or_insert(next);
                if dense == next {
                    self.program.slots.push(Slot { like });
                } else if self.program.slots[dense as usize].like != like {
                    let rank = self.program.rank;
                    self.fail(BuildError::Sizes {
                        rank,
                        what: what.to_owned(),
                    });
                }
                Some(Span {
                    first: self.program.data_indices() + dense,
                    len: 1,
                })
            }
        }
    }

    fn check_peer(&mut self, peer: Rank, what: &str) -> bool {
        let (rank, size) = (self.program.rank, self.program.size);
        if peer >= size || peer == rank {
            self.fail(BuildError::Peer {
                rank,
                what: what.to_owned(),
                peer,
                size,
            });
            return false;
        }
        if !self.cx.topology().linked(rank, peer) {
            self.fail(BuildError::NoLink {
                rank,
                what: what.to_owned(),
                peer,
            });
            return false;
        }
        true
    }

    /// Where the blocks of `span` are now.
    fn locate(&mut self, span: Span, what: &str) -> Location {
        let mut parts: SmallVec<[(u64, bool); 4]> = SmallVec::new();
        let (mut input, mut nothing) = (true, None);
        for range in self.program.ranges(span) {
            let (program, homes) = (&self.program, &self.homes);
            self.hazards.visit(range, |r, cell| {
                let written = cell.is_some_and(|c| c.writer.is_some());
                if !written && nothing.is_none() {
                    nothing = r.clone().find(|&i| {
                        !program.is_data(i) || homes.input(program.block_of(i)).is_none()
                    });
                }
                input &= !written;
                match parts.last_mut() {
                    Some((len, w)) if *w == written => *len += r.end - r.start,
                    _ => parts.push((r.end - r.start, written)),
                }
            });
        }
        if let Some(index) = nothing {
            let error = BuildError::ReadsNothing {
                rank: self.program.rank,
                what: what.to_owned(),
                block: if self.program.is_data(index) {
                    self.program.block_of(index)
                } else {
                    index
                },
            };
            self.fail(error);
        }
        match parts.len() {
            0 | 1 if input && span.len > 0 => Location::Input,
            0 | 1 => Location::Work,
            _ => Location::Mixed(parts.into_vec().into()),
        }
    }

    /// Adds a step: finds its lane, its waits, and notes what it reads and writes.
    fn step(&mut self, lane: LaneKind, kind: Kind, target: Span, sources: &[Span], what: &str) {
        if self.error.is_some() {
            return;
        }
        let lane = self.lanes.lane(lane, self.stage);
        let step = self.lanes.steps(lane);
        let operand = |span, location| Operand {
            span,
            stride: 0,
            location,
        };
        let reads_target = matches!(kind, Kind::Send | Kind::RecvReduce);
        let writes = !matches!(kind, Kind::Send | Kind::SyncTo);
        let sync = matches!(kind, Kind::SyncTo | Kind::SyncFrom);

        let location = if reads_target {
            self.locate(target, what)
        } else {
            Location::Work
        };
        let sources: Box<[Operand]> = sources
            .iter()
            .map(|&s| {
                let location = self.locate(s, what);
                operand(s, location)
            })
            .collect();

        let mut waits = lanes::Waits::new(lane);
        let ranges = |program: &Program, span: Span| -> SmallVec<[std::ops::Range<u64>; 2]> {
            if sync {
                std::iter::once(SYNC..SYNC + 1).collect()
            } else {
                program.ranges(span).collect()
            }
        };
        let target_ranges = ranges(&self.program, target);
        for range in &target_ranges {
            self.hazards.visit(range.clone(), |_, cell| {
                if let Some(cell) = cell {
                    cell.writer.iter().for_each(|w| waits.add(w, target));
                    // A sync overwrites nothing, so it need not wait for syncs still on their way out: with that wait,
                    // two ranks that both send twice before they listen would need more than one message of room.
                    if writes && !sync {
                        cell.readers.iter().for_each(|r| waits.add(r, target));
                    }
                }
            });
        }
        for source in &sources {
            for range in ranges(&self.program, source.span) {
                self.hazards.visit(range, |_, cell| {
                    if let Some(w) = cell.and_then(|c| c.writer.as_ref()) {
                        waits.add(w, source.span);
                    }
                });
            }
        }

        for source in &sources {
            let access = Access {
                lane,
                step,
                span: source.span,
            };
            for range in ranges(&self.program, source.span) {
                self.hazards.read(range, access);
            }
        }
        let access = Access {
            lane,
            step,
            span: target,
        };
        for range in target_ranges {
            if writes {
                self.hazards.write(range, access);
            } else {
                self.hazards.read(range, access);
            }
        }

        let waits = self.lanes.drop_implied(lane, waits);
        let step = Step {
            kind,
            target: operand(target, location),
            sources,
            waits,
            stage: self.stage,
        };
        self.lanes.push(lane, step, &self.program);
    }

    fn message(&mut self, kind: Kind, peer: Rank, named: Blocks, what: &str) {
        if !self.check_peer(peer, what) {
            return;
        }
        let Some(span) = self.span(named, what) else {
            return;
        };
        let channel = self.channel;
        let lane = match kind {
            Kind::Send => LaneKind::Send { peer, channel },
            _ => LaneKind::Recv { peer, channel },
        };
        self.step(lane, kind, span, &[], what);
    }

    fn sync(&mut self, kind: Kind, peer: Rank, what: &str) {
        if !self.check_peer(peer, what) {
            return;
        }
        let channel = self.channel;
        let lane = match kind {
            Kind::SyncTo => LaneKind::Send { peer, channel },
            _ => LaneKind::Recv { peer, channel },
        };
        self.step(lane, kind, Span { first: 0, len: 0 }, &[], what);
    }

    fn local(&mut self, kind: Kind, into: Blocks, sources: &[Blocks], what: &str) {
        let Some(target) = self.span(into, what) else {
            return;
        };
        let mut spans: SmallVec<[Span; 8]> = SmallVec::new();
        for &source in sources {
            match self.span(source, what) {
                Some(span) => spans.push(span),
                None => return,
            }
        }
        if spans.iter().any(|s| s.len != target.len) {
            let rank = self.program.rank;
            return self.fail(BuildError::Sizes {
                rank,
                what: what.to_owned(),
            });
        }
        let channel = self.channel;
        self.step(LaneKind::Local { channel }, kind, target, &spans, what);
    }

    /// Appends what the collective owes: copies of output blocks never written, and the division of an average.
    fn finish(mut self) -> Result<Program, BuildError> {
        self.stage = None;
        let n = self.program.blocks;
        for sub in 0..self.program.subs {
            self.channel = match sub / self.parts {
                _ if self.program.collective.is_point_to_point() => 1,
                0 => 0,
                c => c as u16 + 1,
            };
            let base = u64::from(sub) * n;
            for range in self.homes.output_blocks(n) {
                self.complete(base + range.start..base + range.end);
            }
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut homeless = Vec::new();
        self.hazards
            .visit(0..self.program.data_indices(), |r, cell| {
                if cell.is_some_and(|c| c.writer.is_some()) {
                    let no_home =
                        r.filter(|&i| self.homes.output(self.program.block_of(i)).is_none());
                    homeless.extend(no_home.map(|first| Span { first, len: 1 }));
                }
            });
        self.program.homeless = join(homeless);
        self.program.lanes = self.lanes.into_lanes();
        Ok(self.program)
    }

    fn complete(&mut self, range: std::ops::Range<u64>) {
        let mut unwritten: Vec<Span> = Vec::new();
        let mut written: Vec<(Access, bool, Span)> = Vec::new();
        self.hazards.visit(range, |r, cell| {
            let span = Span {
                first: r.start,
                len: r.end - r.start,
            };
            match cell.and_then(|c| c.writer.map(|w| (w, c.readers.is_empty()))) {
                None => unwritten.push(span),
                Some((writer, last)) => written.push((writer, last, span)),
            }
        });
        for span in join(unwritten) {
            for index in span.first..span.first + span.len {
                let block = self.program.block_of(index);
                if self.homes.input(block).is_none() {
                    let rank = self.program.rank;
                    return self.fail(BuildError::NeverWritten { rank, block });
                }
            }
            let kind = if self.program.average {
                Kind::Reduce { finish: true }
            } else {
                Kind::Copy
            };
            let channel = self.channel;
            self.step(
                LaneKind::Local { channel },
                kind,
                span,
                &[span],
                "copy of the input",
            );
        }
        if !self.program.average {
            return;
        }
        // In the order in which blocks become complete, so that each division overlaps what follows.
        written.sort_by_key(|(w, _, _)| (w.lane, w.step));
        for (writer, last, span) in written {
            if last && writer.span == span && self.lanes.finish_in_place(writer) {
                continue;
            }
            let channel = self.channel;
            let kind = Kind::Reduce { finish: true };
            self.step(LaneKind::Local { channel }, kind, span, &[span], "division");
        }
    }
}

impl Emit for Builder<'_> {
    fn send(&mut self, to: Rank, what: Blocks) {
        self.message(Kind::Send, to, what, "send");
    }

    fn recv(&mut self, from: Rank, into: Blocks) {
        self.message(Kind::Recv, from, into, "recv");
    }

    fn recv_reduce(&mut self, from: Rank, into: Blocks) {
        self.message(Kind::RecvReduce, from, into, "recv_reduce");
    }

    fn reduce(&mut self, into: Blocks, sources: &[Blocks]) {
        if sources.is_empty() {
            let rank = self.program.rank;
            return self.fail(BuildError::NoSources { rank });
        }
        self.local(Kind::Reduce { finish: false }, into, sources, "reduce");
    }

    fn copy(&mut self, into: Blocks, from: Blocks) {
        self.local(Kind::Copy, into, &[from], "copy");
    }

    fn sync_to(&mut self, to: Rank) {
        self.sync(Kind::SyncTo, to, "sync");
    }

    fn sync_from(&mut self, from: Rank) {
        self.sync(Kind::SyncFrom, from, "sync");
    }

    fn part(&mut self, part: u32) {
        if part >= self.parts {
            let (rank, parts) = (self.program.rank, self.parts);
            return self.fail(BuildError::Part { rank, part, parts });
        }
        self.sub = self.first_sub + part;
    }

    fn stage(&mut self, stage: Stage) {
        self.stage = Some(stage);
    }
}
