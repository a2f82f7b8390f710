//! [`Engine`]: operations in, posts out, completions in.

use std::collections::VecDeque;
use std::sync::Arc;

use unisono_contract::{
    Completions, Direction, Endpoint, Frame, LinkError, OutOfMemory, Piece, Port, PostError,
    Revoked, Token, WaitSet,
};
use unisono_core::Rank;
use unisono_program::{LaneKind, Program};

use crate::compute::{Compute, Hook, Workspace};
use crate::fifo::Fifo;
use crate::operation::Operation;
use crate::pieces::{Binding, Pieces};
use crate::plan::{Plan, PlanError, Request, Role};
use crate::state::{Fault, Plans, State};
use crate::unclaimed::Recent;

/// Name of a submitted operation, counted from 0 in the order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What the engine wants an endpoint to do next.
#[derive(Debug, Clone)]
pub struct Post {
    /// Send or receive.
    pub direction: Direction,
    /// Which of the group's endpoints.
    pub endpoint: usize,
    /// Where.
    pub port: Port,
    /// What the message says, or must say.
    pub frame: Frame,
    /// The gather list.
    pub pieces: Pieces,
    /// To come back in the completion.
    pub token: Token,
}

/// Why operations cannot go on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A link broke.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Memory of an operation could not be reached.
    #[error("memory of an operation: {0}")]
    Memory(#[from] Revoked),
    /// No memory for scratch and staging.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// An endpoint completed something that was not posted.
    #[error("completion without a post on port {}", .port.0)]
    StrayCompletion {
        /// The port.
        port: Port,
    },
}

/// What [`Engine::drive`] achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// Something moved.
    Progress,
    /// Nothing can move until a peer does something.
    Idle,
}

/// The executor of one rank's operations. The [crate docs](crate) have the call contract.
#[derive(Debug)]
pub struct Engine {
    state: State,
    plans: Vec<Arc<Plan>>,
    submitted: u64,
    /// Collective operations so far: how many there were is what frames call their sequence.
    recent: Recent,
    done: Completions,
}

impl Engine {
    /// An engine for one rank of group `group` (0 is the world) in its life `epoch`.
    pub fn new(group: u32, epoch: u32) -> Engine {
        Engine {
            state: State::new(group, epoch),
            plans: Vec::new(),
            submitted: 0,
            recent: Recent::new(),
            done: Completions::new(),
        }
    }

    /// The same engine, whose local work `compute` does: to be said before anything is submitted.
    #[must_use]
    pub fn with_compute(mut self, compute: Box<dyn Compute>) -> Engine {
        self.state.compute = Hook::new(compute);
        self
    }

    /// Whether [`with_compute`](Engine::with_compute) was called.
    pub fn has_compute(&self) -> bool {
        !self.state.compute.is_direct()
    }

    /// Binds `program` to a call. Opens ports on `endpoints`: the first one with a link to a peer carries it.
    pub fn plan(
        &mut self,
        program: Arc<Program>,
        request: &Request,
        endpoints: &mut [Box<dyn Endpoint>],
    ) -> Result<Arc<Plan>, PlanError> {
        let pieces = endpoints
            .iter()
            .map(|e| e.limits().pieces)
            .min()
            .unwrap_or(2);
        Plan::new(program, request, pieces, |kind| self.fifo(kind, endpoints)).map(Arc::new)
    }

    /// Starts an operation. `input` and `output` are what the collective reads and writes at this rank; in place, the
    /// same memory (or the part of it that the collective says).
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`]; nothing has started then.
    pub fn submit(
        &mut self,
        plan: &Arc<Plan>,
        input: Piece,
        output: Piece,
    ) -> Result<Ticket, EngineError> {
        let workspace = self.state.compute.workspace(plan, [input, output])?;
        let binding = Binding {
            input,
            output,
            workspace: workspace.as_ref().map_or(Piece::EMPTY, Workspace::piece),
        };
        let ticket = Ticket(self.submitted);
        self.submitted += 1;
        let state = &mut self.state;
        let slot = match state.free.pop() {
            Some(slot) => {
                self.plans[slot as usize] = Arc::clone(plan);
                slot
            }
            None => {
                state.operations.push(Operation::default());
                self.plans.push(Arc::clone(plan));
                self.plans.len() as u32 - 1
            }
        };
        state.operations[slot as usize].start(ticket, plan, binding, workspace);
        state.running += 1;
        let point_to_point = plan.program.collective.is_point_to_point();
        let operation = &mut state.operations[slot as usize];
        for (index, unit) in plan.units.iter().enumerate() {
            if unit.role != Role::Local && !operation.units[index].ended {
                let fifo = &mut state.fifos[unit.fifo as usize];
                fifo.queue.push_back((slot, index as u32));
                operation.units[index].sequence = if point_to_point {
                    fifo.operations
                } else {
                    self.recent.next()
                };
                fifo.operations += 1;
            }
            operation.units[index].queued = true;
            state.work.push_back((slot, index as u32));
        }
        if !point_to_point {
            self.recent.push(&plan.opening);
        }
        if plan.total == 0 {
            state.finish(&self.plans, slot);
        }
        Ok(ticket)
    }

    /// The sequence number that the next collective will have.
    pub fn next_sequence(&self) -> u64 {
        self.recent.next()
    }

    /// Runs what can run, and gives out the next post if there is one. Answer it by [`posted`](Engine::posted) or
    /// [`refused`](Engine::refused) before calling again.
    ///
    /// # Errors
    /// [`EngineError::Memory`] when local work meets memory that is no longer lent.
    #[allow(clippy::should_implement_trait)] // the word of the call contract; not an iterator
    pub fn next(&mut self) -> Result<Option<&Post>, EngineError> {
        let found = self.state.next(&self.plans)?;
        Ok(found.then_some(&self.state.post))
    }

    /// The endpoint has taken the last post.
    pub fn posted(&mut self) {
        self.state.posted(&self.plans);
    }

    /// The endpoint had no room for the last post: it is offered again after a completion there.
    pub fn refused(&mut self) {
        self.state.refused();
    }

    /// The endpoint is done with the post that carried `token`.
    ///
    /// # Errors
    /// [`EngineError::Memory`] when what landed cannot be applied; [`EngineError::StrayCompletion`].
    pub fn complete(&mut self, port: Port, token: Token) -> Result<(), EngineError> {
        complete(&mut self.state, &self.plans, port, token)
    }

    /// An operation that is done, in the order in which they became done.
    pub fn finished(&mut self) -> Option<Ticket> {
        self.state.finished.pop_front()
    }

    /// Number of operations that are not done.
    pub fn running(&self) -> usize {
        self.state.running
    }

    /// Segments of steps executed so far.
    pub fn steps(&self) -> u64 {
        self.state.steps
    }

    /// Posts, polls and completes until nothing moves by itself. After [`Drive::Progress`] drive again before going to
    /// sleep: peers may have moved meanwhile.
    ///
    /// # Errors
    /// The first link that broke, or memory that could not be reached. Call [`abandon`](Engine::abandon) when the
    /// group gives up.
    pub fn drive(&mut self, endpoints: &mut [Box<dyn Endpoint>]) -> Result<Drive, EngineError> {
        let mut moved = self.post_all(endpoints)?;
        loop {
            if !self.poll_all(endpoints)? {
                return Ok(moved);
            }
            moved = Drive::Progress;
            // What is posted now may complete at once; without a post there is nothing new to ask for.
            if self.post_all(endpoints)? == Drive::Idle {
                return Ok(moved);
            }
        }
    }

    /// Posts until there is nothing to post.
    #[inline]
    fn post_all(&mut self, endpoints: &mut [Box<dyn Endpoint>]) -> Result<Drive, EngineError> {
        let mut moved = Drive::Idle;
        while self.state.next(&self.plans)? {
            let post = &self.state.post;
            let endpoint = &mut endpoints[post.endpoint];
            let answer = match post.direction {
                Direction::Send => {
                    endpoint.post_send(post.port, &post.frame, &post.pieces, post.token)
                }
                Direction::Recv => {
                    endpoint.post_recv(post.port, &post.frame, &post.pieces, post.token)
                }
            };
            match answer {
                Ok(()) => {
                    self.state.posted(&self.plans);
                    moved = Drive::Progress;
                }
                Err(PostError::Full) => self.state.refused(),
                Err(PostError::Link(error)) => {
                    self.state.failed();
                    return Err(error.into());
                }
            }
        }
        Ok(moved)
    }

    /// Polls every endpoint once; gives whether anything has completed.
    #[inline]
    fn poll_all(&mut self, endpoints: &mut [Box<dyn Endpoint>]) -> Result<bool, EngineError> {
        self.done.clear();
        let mut broken = None;
        for endpoint in endpoints.iter_mut() {
            if let Err(error) = endpoint.poll(&mut self.done) {
                broken.get_or_insert(error);
            }
        }
        for completion in &self.done {
            let (port, token) = (completion.port, completion.token);
            complete(&mut self.state, &self.plans, port, token)?;
        }
        match broken {
            Some(error) => Err(error.into()),
            None => Ok(!self.done.is_empty()),
        }
    }

    /// Compares what has come that no receive is posted for with what this rank has called, and adds to `set` what would
    /// announce more of it. `false`: no endpoint can tell.
    ///
    /// For who has waited long in vain: nothing else notices that a peer calls something else when its messages go where
    /// this rank expects none. It may cost system calls and memory.
    ///
    /// # Errors
    /// [`EngineError::Link`] with a mismatch.
    pub fn unclaimed(
        &mut self,
        endpoints: &mut [Box<dyn Endpoint>],
        set: &mut WaitSet,
    ) -> Result<bool, EngineError> {
        let (mut can_tell, mut found) = (false, Vec::new());
        for (index, endpoint) in endpoints.iter_mut().enumerate() {
            found.clear();
            can_tell |= endpoint.unclaimed(set, &mut found);
            for found in &found {
                let (fifos, life) = (&self.state.fifos, self.state.life);
                if let Some(mismatch) = self.recent.disagreement(fifos, life, index, found) {
                    return Err(EngineError::Link(LinkError {
                        port: found.port,
                        peer: found.peer,
                        cause: mismatch.into(),
                    }));
                }
            }
        }
        Ok(can_tell)
    }

    /// Forgets every operation, after the endpoints have gone quiet. Private memory of operations that were under way
    /// is dropped rather than used again.
    pub fn abandon(&mut self) {
        self.state.abandon();
    }

    /// What a lane of an unfinished operation is waiting for, for messages to people: (peer, direction) of each FIFO
    /// that still has messages.
    pub fn waiting_for(&self) -> impl Iterator<Item = (Rank, Direction)> + '_ {
        self.state
            .fifos
            .iter()
            .filter(|f| !f.queue.is_empty() || !f.outstanding.is_empty())
            .map(|f| (f.peer, f.direction))
    }

    fn fifo(
        &mut self,
        kind: LaneKind,
        endpoints: &mut [Box<dyn Endpoint>],
    ) -> Result<u32, PlanError> {
        let (direction, peer, channel) = match kind {
            LaneKind::Send { peer, channel } => (Direction::Send, peer, channel),
            LaneKind::Recv { peer, channel } => (Direction::Recv, peer, channel),
            LaneKind::Local { .. } => return Ok(u32::MAX),
        };
        let fifos = &mut self.state.fifos;
        if let Some(at) = fifos.iter().position(|f| f.is(direction, peer, channel)) {
            return Ok(at as u32);
        }
        let (endpoint, port) = endpoints
            .iter_mut()
            .enumerate()
            .find_map(|(i, e)| e.port(peer, channel).map(|p| (i, p)))
            .ok_or(PlanError::NoLink { peer, channel })?;
        let limits = endpoints[endpoint].limits();
        fifos.push(Fifo {
            direction,
            peer,
            channel,
            endpoint,
            port,
            depth: limits.depth,
            pieces: limits.pieces,
            queue: VecDeque::new(),
            outstanding: VecDeque::new(),
            posted: 0,
            detours: 0,
            stalled: false,
            operations: 0,
        });
        Ok(fifos.len() as u32 - 1)
    }
}

#[inline]
fn complete(state: &mut State, plans: &Plans, port: Port, token: Token) -> Result<(), EngineError> {
    match state.complete(plans, token.0 as usize) {
        Ok(()) => Ok(()),
        Err(Fault::Memory(revoked)) => Err(revoked.into()),
        Err(Fault::Stray) => Err(EngineError::StrayCompletion { port }),
    }
}
