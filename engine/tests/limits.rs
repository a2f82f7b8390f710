//! Endpoints that take short gather lists, few posts, or change their mind.

mod support;

use std::cell::Cell;
use std::rc::Rc;

use support::ranks::Ranks;
use support::{Call, Memory, registry};
use unisono_contract::null::{self, Policy};
use unisono_contract::{
    Completions, Drain, Endpoint, Frame, Limits, LinkError, Piece, Port, PostError, Ready, Token,
    WaitSet,
};
use unisono_core::{Collective, Op, Rank};

thread_local! {
    /// Posts that were refused, of all endpoints of a test's thread.
    static REFUSED: Rc<Cell<usize>> = Rc::default();
}

/// A null endpoint that says something else about its limits.
struct Narrow {
    inner: null::Endpoint,
    limits: Limits,
}

impl Narrow {
    fn wrap(inner: null::Endpoint, pieces: usize, depth: usize) -> Box<dyn Endpoint> {
        let limits = Limits {
            pieces,
            depth,
            ..inner.limits().clone()
        };
        Box::new(Narrow { inner, limits })
    }

    fn count(result: Result<(), PostError>) -> Result<(), PostError> {
        if let Err(PostError::Full) = result {
            REFUSED.with(|r| r.set(r.get() + 1));
        }
        result
    }
}

impl Endpoint for Narrow {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        self.inner.port(peer, channel)
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        assert!(data.len() <= self.limits.pieces, "{} pieces", data.len());
        Self::count(self.inner.post_send(port, frame, data, token))
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        assert!(into.len() <= self.limits.pieces, "{} pieces", into.len());
        Self::count(self.inner.post_recv(port, expect, into, token))
    }

    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        self.inner.poll(done)
    }

    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        self.inner.wait_on(set)
    }

    fn quiesce(&mut self) -> Drain {
        self.inner.quiesce()
    }
}

fn run(call: &Call, policy: Policy, pieces: usize, depth: usize) {
    for algorithm in registry().iter() {
        let Some(programs) = call.programs(&**algorithm) else {
            continue;
        };
        let mut ranks = Ranks::new(call.size, policy, |e| Narrow::wrap(e, pieces, depth));
        let memory: Vec<Memory> = (0..call.size).map(|r| Memory::new(call, r)).collect();
        for program in &programs {
            let plan = ranks.plan(program, &call.request());
            let m = &memory[program.rank as usize];
            ranks.submit(program.rank, &plan, m.input, m.output);
        }
        ranks.run();
        for (rank, m) in memory.into_iter().enumerate() {
            m.check(call, algorithm.name(), rank as Rank);
        }
    }
}

#[test]
fn long_gather_lists_are_packed_where_an_endpoint_takes_two_pieces() {
    for collective in Collective::ALL {
        for (size, channels) in [(4, 3), (5, 2), (7, 1), (8, 3)] {
            for segments in [1, 3] {
                for policy in [Policy::instant(), Policy::hostile(5)] {
                    let call = Call {
                        channels,
                        segments,
                        ..Call::new(collective, size, 200)
                    };
                    run(&call, policy, 2, policy.depth);
                }
            }
        }
    }
}

#[test]
fn one_post_at_a_time_is_enough() {
    for collective in Collective::ALL {
        for seed in 0..4 {
            let policy = Policy {
                depth: 1,
                ..Policy::hostile(seed)
            };
            let call = Call {
                segments: 1 + seed,
                op: Op::Max,
                ..Call::new(collective, 5, 100)
            };
            run(&call, policy, 8, 1);
        }
    }
}

#[test]
fn a_refused_post_is_offered_again() {
    for collective in Collective::ALL {
        let policy = Policy {
            depth: 1,
            ..Policy::hostile(7)
        };
        let call = Call {
            segments: 4,
            ..Call::new(collective, 4, 300)
        };
        run(&call, policy, 8, 16); // It promises more than it takes.
    }
    assert!(REFUSED.with(|r| r.get()) > 100, "nothing was refused");
}
