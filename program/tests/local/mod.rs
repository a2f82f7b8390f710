//! Textbook algorithms, small enough to be read at a glance, for tests of the program crate itself.
#![allow(dead_code)] // each test file uses some of them

pub(crate) mod machine;

use std::sync::Arc;

use unisono_core::Collective;
use unisono_program::{
    Algorithm, Context, Emit, Program, Stage, Unsupported, block, blocks, build_all, scratch,
};

/// An algorithm that is a function.
pub(crate) struct Local {
    pub(crate) name: &'static str,
    pub(crate) collective: Collective,
    pub(crate) blocks: fn(u64) -> u64,
    pub(crate) emit: fn(&Context, &mut dyn Emit),
}

impl Algorithm for Local {
    fn name(&self) -> &str {
        self.name
    }
    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&[self.collective])
    }
    fn blocks(&self, cx: &Context) -> u64 {
        (self.blocks)(cx.size().into())
    }
    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        (self.emit)(cx, b);
    }
}

impl Local {
    pub(crate) fn context(&self, p: u32) -> Context {
        Context::full(self.collective, 0, p)
    }

    pub(crate) fn programs(&self, p: u32) -> Vec<Arc<Program>> {
        build_all(self, &self.context(p)).unwrap()
    }
}

pub(crate) const RING: Local = Local {
    name: "ring",
    collective: Collective::AllReduce,
    blocks: |p| p,
    emit: |cx, b| {
        let (ring, p) = (cx.ring(), i64::from(cx.size()));
        let (me, left, right) = (ring.position(), ring.left(), ring.right());
        for k in 0..p - 1 {
            b.send(right, block(me - k));
            b.recv_reduce(left, block(me - k - 1));
        }
        for k in 0..p - 1 {
            b.send(right, block(me + 1 - k));
            b.recv(left, block(me - k));
        }
    },
};

/// Everyone sends everything to everyone; one reduction in rank order.
pub(crate) const ONESHOT: Local = Local {
    name: "oneshot",
    collective: Collective::AllReduce,
    blocks: |_| 1,
    emit: |cx, b| {
        let (me, p) = (cx.rank(), cx.size());
        for d in 1..p {
            b.send((me + d) % p, block(0));
            b.recv((me + p - d) % p, scratch(u64::from((me + p - d) % p)));
        }
        let sources: Vec<_> = (0..p)
            .map(|r| {
                if r == me {
                    block(0)
                } else {
                    scratch(u64::from(r))
                }
            })
            .collect();
        b.reduce(block(0), &sources);
    },
};

/// Recursive doubling in place, for powers of two.
pub(crate) const DOUBLING: Local = Local {
    name: "doubling",
    collective: Collective::AllReduce,
    blocks: |_| 1,
    emit: |cx, b| {
        let mut d = 1;
        while d < cx.size() {
            let peer = cx.rank() ^ d;
            b.send(peer, block(0));
            b.recv_reduce(peer, block(0));
            d *= 2;
        }
    },
};

/// Halving and doubling over spans, for powers of two.
pub(crate) const HALVING: Local = Local {
    name: "halving",
    collective: Collective::AllReduce,
    blocks: |p| p,
    emit: |cx, b| {
        let (me, p) = (cx.me(), i64::from(cx.size()));
        let mut d = p / 2;
        while d >= 1 {
            let peer = me ^ d;
            b.send(peer as u32, blocks(peer / d * d, d as u64));
            b.recv_reduce(peer as u32, blocks(me / d * d, d as u64));
            d /= 2;
        }
        let mut d = 1;
        while d < p {
            let peer = me ^ d;
            b.send(peer as u32, blocks(me / d * d, d as u64));
            b.recv(peer as u32, blocks(peer / d * d, d as u64));
            d *= 2;
        }
    },
};

/// Reduce-scatter and all-gather on circulant graphs (Träff), for any world.
pub(crate) const CIRCULANT: Local = Local {
    name: "circulant",
    collective: Collective::AllReduce,
    blocks: |p| p,
    emit: |cx, b| {
        let (me, p) = (cx.me(), i64::from(cx.size()));
        let at = |i: i64| i.rem_euclid(p) as u32;
        let mut skips = vec![p];
        while skips[skips.len() - 1] > 1 {
            skips.push((skips[skips.len() - 1] + 1) / 2);
        }
        // In terms of the distance i from me: R[i] is block me + i.
        for w in skips.windows(2) {
            let (s, d) = (w[0], w[1]);
            b.send(at(me + d), blocks(me + d, (s - d) as u64));
            b.recv_reduce(at(me - d), blocks(me, (s - d) as u64));
        }
        for w in skips.windows(2).rev() {
            let (s, d) = (w[0], w[1]);
            b.send(at(me - d), blocks(me, (s - d) as u64));
            b.recv(at(me + d), blocks(me + d, (s - d) as u64));
        }
    },
};

pub(crate) const CHAIN: Local = Local {
    name: "chain",
    collective: Collective::Broadcast,
    blocks: |_| 1,
    emit: |cx, b| {
        let (me, p, root) = (cx.rank(), cx.size(), cx.root());
        let place = (me + p - root) % p;
        if place > 0 {
            b.recv((me + p - 1) % p, block(0));
        }
        if place + 1 < p {
            b.send((me + 1) % p, block(0));
        }
    },
};

/// Two broadcasts from rank 0 over one chain, as waves.
pub(crate) const WAVES: Local = Local {
    name: "waves",
    collective: Collective::Broadcast,
    blocks: |_| 2,
    emit: |cx, b| {
        let (me, p) = (cx.me(), i64::from(cx.size()));
        let stage = |wave: i64, hop: i64| Stage {
            hops: wave,
            offset: hop,
        };
        for wave in 0..2 {
            b.stage(stage(wave, me - 1));
            if me > 0 {
                b.recv((me - 1) as u32, block(wave));
            }
            b.stage(stage(wave, me));
            if me + 1 < p {
                b.send((me + 1) as u32, block(wave));
            }
        }
    },
};

/// Two broadcasts from rank 0 over one chain, the second one slot behind the first: two strands per FIFO.
pub(crate) const INTERLEAVED: Local = Local {
    name: "interleaved",
    collective: Collective::Broadcast,
    blocks: |_| 2,
    emit: |cx, b| {
        let (me, p) = (cx.me(), i64::from(cx.size()));
        for wave in 0..2 {
            let stage = |hop: i64| Stage {
                hops: 0,
                offset: hop + wave,
            };
            b.stage(stage(me - 1));
            if me > 0 {
                b.recv((me - 1) as u32, block(wave));
            }
            b.stage(stage(me));
            if me + 1 < p {
                b.send((me + 1) as u32, block(wave));
            }
        }
    },
};

pub(crate) const DIRECT: Local = Local {
    name: "direct",
    collective: Collective::AllToAll,
    blocks: |p| p,
    emit: |cx, b| {
        let (me, p) = (cx.me(), i64::from(cx.size()));
        for d in 1..p {
            let (to, from) = ((me + d) % p, (me + p - d) % p);
            b.send(to as u32, block(me * p + to));
            b.recv(from as u32, block(from * p + me));
        }
    },
};

pub(crate) const BARRIER: Local = Local {
    name: "dissemination",
    collective: Collective::Barrier,
    blocks: |_| 0,
    emit: |cx, b| {
        let (me, p) = (cx.rank(), cx.size());
        let mut d = 1;
        while d < p {
            b.sync_to((me + d) % p);
            b.sync_from((me + p - d) % p);
            d *= 2;
        }
    },
};

pub(crate) const REDUCE: Local = Local {
    name: "linear",
    collective: Collective::Reduce,
    blocks: |_| 1,
    emit: |cx, b| {
        if cx.rank() != cx.root() {
            return b.send(cx.root(), block(0));
        }
        for r in (0..cx.size()).filter(|&r| r != cx.root()) {
            b.recv_reduce(r, block(0));
        }
    },
};
