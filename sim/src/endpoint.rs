//! [`SimEndpoint`]: a rank's attachment to the simulated network, and [`SimHost`]: its clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use unisono_contract::{
    Completions, Drain, Endpoint, Frame, Host, Limits, LinkCause, LinkError, Piece, Port,
    PostError, Ready, Time, Token, WaitSet,
};
use unisono_control::{Cause, Kind};
use unisono_core::{Rank, Topology};

use crate::baton;
use crate::world::{FifoKey, Shared};

/// Posts outstanding per port and direction.
const DEPTH: usize = 64;
/// Pieces of a gather list.
const PIECES: usize = 8;

/// A rank's attachment to the simulated network.
pub(crate) struct SimEndpoint {
    shared: Arc<Shared>,
    topology: Arc<Topology>,
    group: u32,
    rank: Rank,
    seat: usize,
    limits: Limits,
    ports: Vec<Local>,
}

/// What an endpoint knows of a port.
struct Local {
    peer: Rank,
    channel: u16,
    /// The FIFO out of here, and the FIFO into here.
    fifos: [u32; 2],
    /// Posts not yet polled, sends and receives.
    outstanding: [usize; 2],
    failed: Option<LinkCause>,
}

impl SimEndpoint {
    pub(crate) fn new(
        shared: Arc<Shared>,
        topology: Arc<Topology>,
        group: u32,
        rank: Rank,
    ) -> SimEndpoint {
        let seat = shared.lock().seat(group, rank);
        SimEndpoint {
            shared,
            topology,
            group,
            rank,
            seat,
            limits: Limits {
                pieces: PIECES,
                depth: DEPTH,
                registers: false,
                name: "sim",
            },
            ports: Vec::new(),
        }
    }

    /// What a post needs: its FIFO, if there is room.
    fn fifo(&self, port: Port, side: usize) -> Result<u32, PostError> {
        let local = &self.ports[port.0 as usize];
        if let Some(cause) = &local.failed {
            return Err(broken(port, local, cause.clone()).into());
        }
        if local.outstanding[side] >= DEPTH {
            return Err(PostError::Full);
        }
        Ok(local.fifos[side])
    }

    fn posted(
        &mut self,
        port: Port,
        side: usize,
        result: Result<(), LinkCause>,
    ) -> Result<(), PostError> {
        let local = &mut self.ports[port.0 as usize];
        match result {
            Ok(()) => {
                local.outstanding[side] += 1;
                Ok(())
            }
            Err(cause) => {
                local.failed = Some(cause.clone());
                Err(broken(port, local, cause).into())
            }
        }
    }
}

#[cold]
fn broken(port: Port, local: &Local, cause: LinkCause) -> LinkError {
    LinkError {
        port,
        peer: local.peer,
        cause,
    }
}

impl Endpoint for SimEndpoint {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        if !self.topology.linked(self.rank, peer) {
            return None;
        }
        let known = self
            .ports
            .iter()
            .position(|local| local.peer == peer && local.channel == channel);
        let index = known.unwrap_or_else(|| {
            let port = Port(self.ports.len() as u32);
            let (rank, group) = (self.rank, self.group);
            let mut world = self.shared.lock();
            let fifos = [(rank, peer), (peer, rank)].map(|(from, to)| {
                let key = FifoKey {
                    group,
                    from,
                    to,
                    channel,
                };
                world.open(key, rank, port)
            });
            self.ports.push(Local {
                peer,
                channel,
                fifos,
                outstanding: [0; 2],
                failed: None,
            });
            port.0 as usize
        });
        Some(Port(index as u32))
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let fifo = self.fifo(port, 0)?;
        let result = self.shared.lock().post_send(fifo, frame, data, token);
        self.posted(port, 0, result)
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let fifo = self.fifo(port, 1)?;
        let result = self.shared.lock().post_recv(fifo, expect, into, token);
        self.posted(port, 1, result)
    }

    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        let news = &self.shared.signals.seats[self.seat].news;
        if !news.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut world = self.shared.lock();
        let seat = &mut world.seats[self.seat];
        for completion in seat.done.drain(..) {
            let local = &mut self.ports[completion.port.0 as usize];
            // What is posted on a broken port does not complete.
            if local.failed.is_none() {
                local.outstanding[completion.direction as usize] -= 1;
                done.push(completion);
            }
        }
        let failure = seat.failures.pop_front();
        news.store(!seat.failures.is_empty(), Ordering::Release);
        match failure {
            None => Ok(()),
            Some((port, cause)) => {
                let local = &mut self.ports[port.0 as usize];
                if local.failed.is_some() {
                    return Ok(()); // told already
                }
                local.failed = Some(cause.clone());
                Err(broken(port, local, cause))
            }
        }
    }

    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        let signals = &self.shared.signals.seats[self.seat];
        if signals.news.load(Ordering::Acquire) {
            return Ok(Ready::Now);
        }
        set.add(&signals.event);
        Ok(Ready::Wait)
    }

    fn quiesce(&mut self) -> Drain {
        let mut world = self.shared.lock();
        for local in &mut self.ports {
            let [out, into] = local.fifos;
            if world.is_busy(out, into) && local.failed.is_none() {
                local.failed = Some(LinkCause::Closed);
                world.depart(out, into);
            }
        }
        Drain::Quiet
    }
}

impl Drop for SimEndpoint {
    fn drop(&mut self) {
        let mut world = self.shared.lock();
        for local in &self.ports {
            world.depart(local.fifos[0], local.fifos[1]);
        }
    }
}

/// A rank's clock, and its way to sleep.
pub(crate) struct SimHost {
    pub(crate) shared: Arc<Shared>,
    pub(crate) group: u32,
    pub(crate) rank: Rank,
}

impl Host for SimHost {
    fn now(&self) -> Time {
        Time(self.shared.now_at(self.rank) / 1000)
    }

    fn park(&mut self, set: &mut WaitSet, until: Time) {
        if set.has_passed() {
            return;
        }
        let mut world = self.shared.lock();
        if world.is_async {
            // Nobody else can run while this call waits: the call fails instead, by the way of all failures.
            world.blocked.get_or_insert(self.rank);
            let text = "a blocking call inside Cluster::run would wait for ever: await operations started by \
                        Group::start, or use Cluster::run_blocking";
            let kind = Kind::Other {
                text: text.to_owned(),
            };
            let cause = Cause::new(self.rank, None, kind);
            return world.abort(self.group, self.rank, cause);
        }
        if until != Time::NEVER {
            world.alarm_rank(until.0.saturating_mul(1000), self.rank);
        }
        baton::pass(&self.shared, world, self.rank);
    }

    fn spin_budget(&self) -> Duration {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests;
