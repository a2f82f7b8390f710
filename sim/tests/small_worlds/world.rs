//! Engines and a network whose events happen when they are told to.

use std::collections::VecDeque;
use std::hash::Hasher;

use unisono_contract::{Direction, Frame, Piece, Port, Token};
use unisono_engine::Request;
use unisono_sim::{Collective, DType, Op, Rank};

use super::seat::{Call, MARK, Seat, input};

/// Something that can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Leave(usize),
    Land(usize),
    Tell(usize),
}

struct Posted {
    frame: Frame,
    pieces: Vec<Piece>,
    token: Token,
}

struct Fifo {
    from: Rank,
    to: Rank,
    /// The ports of both ends, once known.
    ports: [Port; 2],
    channel: u16,
    sends: VecDeque<Posted>,
    wire: VecDeque<(Frame, Vec<u8>)>,
    recvs: VecDeque<Posted>,
    landed: VecDeque<Token>,
}

/// The world.
pub(crate) struct World {
    p: Rank,
    count: u64,
    call: (Collective, Rank),
    expected: Vec<Vec<u32>>,
    seats: Vec<Seat>,
    fifos: Vec<Fifo>,
    window: usize,
}

impl World {
    /// `window` messages on a wire, and as many posts outstanding in each direction.
    pub(crate) fn new(call: &Call, p: Rank, segments: u64, window: usize, count: u64) -> World {
        let collective = call.collective;
        let request = Request {
            count: if collective == Collective::Barrier {
                0
            } else {
                count
            },
            dtype: DType::U32,
            op: collective.reduces().then_some(Op::Sum),
            kernels: None,
            segments,
        };
        let seats: Vec<Seat> = (0..p)
            .map(|rank| Seat::new(call, rank, p, &request, window))
            .collect();
        let mut fifos: Vec<Fifo> = Vec::new();
        for (rank, seat) in (0..).zip(&seats) {
            for (port, &(peer, channel)) in (0..).zip(&seat.ports) {
                for (side, from, to) in [(0, rank, peer), (1, peer, rank)] {
                    let known = fifos
                        .iter()
                        .position(|f| (f.from, f.to, f.channel) == (from, to, channel));
                    let at = known.unwrap_or_else(|| {
                        fifos.push(Fifo {
                            from,
                            to,
                            ports: [Port(u32::MAX); 2],
                            channel,
                            sends: VecDeque::new(),
                            wire: VecDeque::new(),
                            recvs: VecDeque::new(),
                            landed: VecDeque::new(),
                        });
                        fifos.len() - 1
                    });
                    fifos[at].ports[side] = Port(port);
                }
            }
        }
        let expected = (0..p).map(|rank| {
            let elements = call.rows(rank, p).1 * request.count;
            (0..elements)
                .map(|i| call.expected(rank, p, count, i))
                .collect()
        });
        World {
            p,
            count: request.count,
            call: (collective, call.root),
            expected: expected.collect(),
            seats,
            fifos,
            window,
        }
    }

    /// Back to the beginning: nothing has happened but what ranks do by themselves.
    pub(crate) fn reset(&mut self) {
        for fifo in &mut self.fifos {
            fifo.sends.clear();
            fifo.wire.clear();
            fifo.recvs.clear();
            fifo.landed.clear();
        }
        for (rank, seat) in (0..).zip(&mut self.seats) {
            seat.engine.abandon();
            while seat.engine.finished().is_some() {}
            seat.input.fill(|i| input(rank, i));
            seat.output.fill(|_| MARK);
            seat.work.fill(|_| MARK);
            seat.engine
                .submit(&seat.plan, seat.input.piece, seat.output.piece)
                .unwrap();
        }
        (0..self.p).for_each(|rank| self.drive(rank));
    }

    /// Takes all posts of a rank.
    fn drive(&mut self, rank: Rank) {
        let seat = &mut self.seats[rank as usize];
        while let Some(post) = seat.engine.next().unwrap() {
            let posted = Posted {
                frame: post.frame,
                pieces: post.pieces.to_vec(),
                token: post.token,
            };
            let side = usize::from(post.direction == Direction::Recv);
            let end = |f: &&mut Fifo| [f.from, f.to][side] == rank && f.ports[side] == post.port;
            let fifo = self.fifos.iter_mut().find(end).unwrap();
            match post.direction {
                Direction::Send => fifo.sends.push_back(posted),
                Direction::Recv => fifo.recvs.push_back(posted),
            }
            assert!(
                fifo.sends.len() <= self.window
                    && fifo.recvs.len() + fifo.landed.len() <= self.window
            );
            seat.engine.posted();
        }
    }

    /// All that can happen now.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (i, fifo) in self.fifos.iter().enumerate() {
            if !fifo.sends.is_empty() && fifo.wire.len() < self.window {
                events.push(Event::Leave(i));
            }
            if !fifo.wire.is_empty() && !fifo.recvs.is_empty() {
                events.push(Event::Land(i));
            }
            if !fifo.landed.is_empty() {
                events.push(Event::Tell(i));
            }
        }
        events
    }

    pub(crate) fn happen(&mut self, event: Event) {
        match event {
            Event::Leave(i) => {
                let fifo = &mut self.fifos[i];
                let sent = fifo.sends.pop_front().unwrap();
                let mut bytes = Vec::new();
                for piece in &sent.pieces {
                    piece.read(|b| bytes.extend_from_slice(b)).unwrap();
                }
                assert_eq!(bytes.len() as u64, sent.frame.length);
                fifo.wire.push_back((sent.frame, bytes));
                let (rank, port) = (fifo.from, fifo.ports[0]);
                self.complete(rank, port, sent.token);
            }
            Event::Land(i) => {
                let fifo = &mut self.fifos[i];
                let (frame, bytes) = fifo.wire.pop_front().unwrap();
                let posted = fifo.recvs.pop_front().unwrap();
                posted.frame.compare(&frame).unwrap();
                let mut rest = &bytes[..];
                for piece in &posted.pieces {
                    let (now, then) = rest.split_at(piece.len());
                    piece.write(|b| b.copy_from_slice(now)).unwrap();
                    rest = then;
                }
                assert!(rest.is_empty());
                fifo.landed.push_back(posted.token);
            }
            Event::Tell(i) => {
                let fifo = &mut self.fifos[i];
                let token = fifo.landed.pop_front().unwrap();
                let (rank, port) = (fifo.to, fifo.ports[1]);
                self.complete(rank, port, token);
            }
        }
    }

    fn complete(&mut self, rank: Rank, port: Port, token: Token) {
        self.seats[rank as usize]
            .engine
            .complete(port, token)
            .unwrap();
        self.drive(rank);
    }

    /// Nothing can happen any more: everything must be done, and right.
    pub(crate) fn check_end(&self) {
        let (collective, root) = self.call;
        let what = || {
            format!(
                "{collective} root {root}, {} ranks, {} elements",
                self.p, self.count
            )
        };
        for fifo in &self.fifos {
            assert!(
                fifo.sends.is_empty() && fifo.wire.is_empty(),
                "{}: messages are left",
                what()
            );
        }
        for ((rank, seat), expected) in (0..).zip(&self.seats).zip(&self.expected) {
            assert_eq!(seat.engine.running(), 0, "{}: rank {rank} is stuck", what());
            seat.output.check(&what(), |i| expected[i as usize]);
            seat.input.check(&what(), |i| input(rank, i));
        }
    }

    /// What identifies a state: all that can be seen of it.
    pub(crate) fn key(&self) -> u64 {
        let mut key = Mix(0);
        self.see(&mut key);
        key.finish()
    }

    /// What engines that are not done say of their insides, without what is history: their last posts, and all that
    /// counts operations.
    pub(crate) fn insides(&self) -> String {
        let under_way = self.seats.iter().filter(|seat| seat.engine.running() > 0);
        under_way
            .map(|seat| without_history(&format!("{:?}", seat.engine)))
            .collect()
    }

    fn see(&self, key: &mut Mix) {
        for seat in &self.seats {
            for memory in [&seat.input, &seat.output, &seat.work] {
                memory.piece.read(|bytes| key.write(bytes)).unwrap();
            }
            key.write_u64(seat.engine.running() as u64);
        }
        for fifo in &self.fifos {
            for queue in [&fifo.sends, &fifo.recvs] {
                key.write_u64(queue.len() as u64);
                for posted in queue {
                    key.write_u64(u64::from(posted.frame.message) << 32 | posted.frame.length);
                    for piece in &posted.pieces {
                        key.write_u64(piece.addr() as u64);
                    }
                }
            }
            key.write_u64((fifo.wire.len() << 32 | fifo.landed.len()) as u64);
            for (frame, bytes) in &fifo.wire {
                key.write_u64(frame.message.into());
                key.write(bytes);
            }
        }
    }
}

fn without_history(text: &str) -> String {
    let (before, rest) = text.split_once("post: Post {").unwrap_or((text, ""));
    let (_, after) = rest.split_once("offered:").unwrap_or(("", rest));
    let (after, _) = after.split_once("plans:").unwrap_or((after, ""));
    let history = |part: &&str| {
        let counts = ["sequence:", "steps:", "submitted:"];
        counts.iter().any(|name| part.starts_with(name))
            || part.contains("Ticket(")
            || part
                .strip_prefix("operations: ")
                .is_some_and(|rest| !rest.starts_with('['))
    };
    let parts = before.split(", ").chain(after.split(", "));
    parts.filter(|part| !history(part)).collect()
}

/// A fast hash of 64 bits.
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let mut w = [0; 8];
            w.copy_from_slice(word);
            self.write_u64(u64::from_le_bytes(w));
        }
        let mut last = [0; 8];
        let rest = words.remainder();
        last[..rest.len()].copy_from_slice(rest);
        self.write_u64(u64::from_le_bytes(last) ^ rest.len() as u64);
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0xa076_1d64_78bd_642f;
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
