//! What a rank calls, on which memory, and the engine that does it.

use std::sync::{Arc, Mutex, OnceLock};

use unisono_contract::{
    Completions, Drain, Endpoint, Frame, Limits, LinkError, OutOfMemory, Piece, Port, PostError,
    Ready, Region, Revoked, Token, WaitSet,
};
use unisono_engine::{Compute, Direct, Engine, Plan, Request, Work, Workspace};
use unisono_program::Program;
use unisono_reduce::Kernels;
use unisono_sim::{Collective, Rank};

/// What memory holds that nobody has written.
pub(crate) const MARK: u32 = 0xa5a5_a5a5;
/// Elements of a segment: messages are cut at multiples of 64 bytes.
const SEGMENT: u64 = 16;

/// What is called.
pub(crate) struct Call {
    pub(crate) collective: Collective,
    pub(crate) root: Rank,
    pub(crate) programs: Vec<Arc<Program>>,
}

impl Call {
    /// The smallest count of which each segment of each message has its part.
    pub(crate) fn full(&self, segments: u64) -> u64 {
        let program = &self.programs[0];
        let blocks = if self.collective.cuts_a_vector() {
            program.blocks.max(1)
        } else {
            1
        };
        blocks * u64::from(program.subs) * segments * SEGMENT
    }

    /// Rows of the input and of the output of `rank` among `p`.
    pub(crate) fn rows(&self, rank: Rank, p: Rank) -> (u64, u64) {
        use Collective as C;
        let (all, at_root) = (u64::from(p), u64::from(rank == self.root));
        match self.collective {
            C::AllReduce => (1, 1),
            C::ReduceScatter => (all, 1),
            C::AllGather => (1, all),
            C::AllToAll => (all, all),
            C::Broadcast => (at_root, 1),
            C::Reduce => (1, at_root),
            C::Gather => (1, at_root * all),
            C::Scatter => (at_root * all, 1),
            _ => (0, 0),
        }
    }

    /// Element `i` of what `rank` among `p` must have in the end, in rows of `count`.
    pub(crate) fn expected(&self, rank: Rank, p: Rank, count: u64, i: u64) -> u32 {
        use Collective as C;
        let (row, within) = ((i / count) as Rank, i % count);
        let mine = u64::from(rank) * count;
        let sum = |i: u64| (0..p).map(|r| input(r, i)).sum();
        match self.collective {
            C::AllReduce | C::Reduce => sum(i),
            C::ReduceScatter => sum(mine + i),
            C::AllGather | C::Gather => input(row, within),
            C::Broadcast => input(self.root, i),
            C::Scatter => input(self.root, mine + i),
            _ => input(row, mine + within),
        }
    }
}

/// Element `i` of the input of `rank`: sums of different sets of contributions differ.
pub(crate) fn input(rank: Rank, i: u64) -> u32 {
    let x = (u64::from(rank) << 32 | i)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 37) as u32
}

/// A rank.
pub(crate) struct Seat {
    pub(crate) engine: Engine,
    pub(crate) plan: Arc<Plan>,
    pub(crate) input: Memory,
    pub(crate) output: Memory,
    pub(crate) work: Memory,
    /// Per port: peer and channel.
    pub(crate) ports: Vec<(Rank, u16)>,
}

/// Memory that stays where it is.
pub(crate) struct Memory {
    _region: Region,
    pub(crate) piece: Piece,
}

impl Memory {
    fn new(bytes: usize) -> Memory {
        let region = Region::alloc(bytes.max(1)).unwrap();
        let piece = region.piece(0..bytes);
        Memory {
            _region: region,
            piece,
        }
    }

    pub(crate) fn fill(&self, value: impl Fn(u64) -> u32) {
        let filled = self.piece.write(|bytes| {
            for (element, i) in bytes.chunks_mut(4).zip(0..) {
                element.copy_from_slice(&value(i).to_ne_bytes()[..element.len()]);
            }
        });
        filled.unwrap();
    }

    pub(crate) fn check(&self, what: &str, value: impl Fn(u64) -> u32) {
        let checked = self.piece.read(|bytes| {
            for (element, i) in bytes.chunks(4).zip(0..) {
                assert_eq!(element, value(i).to_ne_bytes(), "{what}, element {i}");
            }
        });
        checked.unwrap();
    }
}

impl Seat {
    pub(crate) fn new(call: &Call, rank: Rank, p: Rank, request: &Request, window: usize) -> Seat {
        let memory = Arc::new(OnceLock::new());
        let fixed = Fixed {
            memory: Arc::clone(&memory),
        };
        let mut engine = Engine::new(0, 0).with_compute(Box::new(fixed));
        let ports = Arc::new(Mutex::new(Vec::new()));
        let names = Names {
            rank,
            p,
            limits: Limits {
                pieces: 8,
                depth: window,
                registers: false,
                name: "small",
            },
            ports: Arc::clone(&ports),
        };
        let mut endpoints: Vec<Box<dyn Endpoint>> = vec![Box::new(names)];
        let program = Arc::clone(&call.programs[rank as usize]);
        let plan = engine.plan(program, request, &mut endpoints).unwrap();
        let work = Memory::new(plan.workspace_bytes() as usize);
        memory.set(work.piece).unwrap();
        let (inputs, outputs) = call.rows(rank, p);
        let bytes = |rows: u64| (rows * request.count * 4) as usize;
        drop(endpoints);
        let ports = ports.lock().unwrap().clone();
        Seat {
            engine,
            plan,
            input: Memory::new(bytes(inputs)),
            output: Memory::new(bytes(outputs)),
            work,
            ports,
        }
    }
}

/// Private memory that is always the same.
struct Fixed {
    memory: Arc<OnceLock<Piece>>,
}

impl Compute for Fixed {
    fn copy(&mut self, work: Work, target: Piece, source: Piece) -> Result<(), Revoked> {
        Direct.copy(work, target, source)
    }

    fn reduce(
        &mut self,
        kernels: &Kernels,
        target: Piece,
        sources: &[Piece],
        finish: Option<Rank>,
    ) -> Result<(), Revoked> {
        Direct.reduce(kernels, target, sources, finish)
    }

    fn workspace(&mut self, bytes: usize, _: bool) -> Result<Workspace, OutOfMemory> {
        let memory = self.memory.get().unwrap();
        Ok(Workspace::Piece(memory.slice(0..bytes)))
    }
}

/// An endpoint that only names ports: posts are taken from the engine directly.
struct Names {
    rank: Rank,
    p: Rank,
    limits: Limits,
    ports: Arc<Mutex<Vec<(Rank, u16)>>>,
}

impl Endpoint for Names {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        if peer == self.rank || peer >= self.p {
            return None;
        }
        let mut ports = self.ports.lock().unwrap();
        let known = ports.iter().position(|&port| port == (peer, channel));
        let at = known.unwrap_or_else(|| {
            ports.push((peer, channel));
            ports.len() - 1
        });
        Some(Port(at as u32))
    }

    fn post_send(&mut self, _: Port, _: &Frame, _: &[Piece], _: Token) -> Result<(), PostError> {
        Err(PostError::Full)
    }

    fn post_recv(&mut self, _: Port, _: &Frame, _: &[Piece], _: Token) -> Result<(), PostError> {
        Err(PostError::Full)
    }

    fn poll(&mut self, _: &mut Completions) -> Result<(), LinkError> {
        Ok(())
    }

    fn wait_on(&mut self, _: &mut WaitSet) -> Result<Ready, LinkError> {
        Ok(Ready::Wait)
    }

    fn quiesce(&mut self) -> Drain {
        Drain::Quiet
    }
}
