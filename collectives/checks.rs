//! What the tests of every algorithm crate ask of programs; included by path, part of no crate.
//!
//! Each test is allowed not to use some of it.
#![allow(dead_code)]

use std::sync::Arc;

use unisono_core::{Collective, Rank, Topology};
use unisono_program::verify::{Proof, verify};
use unisono_program::{
    Algorithm, Context, Kind, LaneKind, Params, Program, Symmetry, build, build_all,
};

/// The roots worth trying: the first, the second, the last.
pub(crate) fn roots(collective: Collective, p: Rank) -> Vec<Rank> {
    let mut roots = match collective.is_rooted() {
        true => vec![0, 1, p - 1],
        false => vec![0],
    };
    roots.retain(|&r| r < p);
    roots.dedup();
    roots
}

/// The programs of all ranks, each emitted.
pub(crate) fn emitted(algorithm: &dyn Algorithm, cx: &Context) -> Vec<Arc<Program>> {
    (0..cx.size())
        .map(|r| match build(algorithm, &cx.at_rank(r)) {
            Ok(program) => Arc::new(program),
            Err(e) => panic!(
                "{} {} p={}: {e}",
                algorithm.name(),
                cx.collective(),
                cx.size()
            ),
        })
        .collect()
}

/// Builds and proves `collectives` at every world size up to 65 (the relays of all_to_all: 17) and at every root, and
/// says what `check` is to look at.
pub(crate) fn in_every_world(
    algorithm: &dyn Algorithm,
    collectives: &[Collective],
    check: impl Fn(&World<'_>),
) {
    for &collective in collectives {
        for p in 1..=if collective == Collective::AllToAll {
            17
        } else {
            65
        } {
            for root in roots(collective, p) {
                let cx = Context::full(collective, 0, p).with_root(root);
                if algorithm.supports(&cx).is_err() {
                    continue;
                }
                let programs = emitted(algorithm, &cx);
                if p == 1 {
                    let exchanges = programs[0]
                        .lanes
                        .iter()
                        .any(|l| !matches!(l.kind, LaneKind::Local { .. }));
                    assert!(!exchanges, "{}: {:#?}", algorithm.name(), programs[0]);
                }
                let proof = prove(algorithm, &cx, &programs);
                check(&World {
                    collective,
                    p: p.into(),
                    root,
                    programs: &programs,
                    proof: &proof,
                });
            }
        }
    }
}

/// One proved program set.
pub(crate) struct World<'a> {
    pub(crate) collective: Collective,
    pub(crate) p: u64,
    pub(crate) root: Rank,
    pub(crate) programs: &'a [Arc<Program>],
    pub(crate) proof: &'a Proof,
}

impl World<'_> {
    /// Asserts that every rank sends so many blocks.
    pub(crate) fn each_sends(&self, blocks: u64) {
        for program in self.programs {
            assert_eq!(
                blocks_sent(program),
                blocks,
                "rank {} of {}",
                program.rank,
                self.p
            );
        }
    }

    /// Blocks that all ranks send.
    pub(crate) fn blocks_sent(&self) -> u64 {
        self.programs.iter().map(|x| blocks_sent(x)).sum()
    }

    /// Asserts the number of rounds if each rank sends and receives one message at a time.
    pub(crate) fn takes_rounds(&self, rounds: u64) {
        assert_eq!(
            self.proof.rounds, rounds,
            "{} p={} root={}",
            self.collective, self.p, self.root
        );
    }

    /// Asserts the number of messages on the longest chain: the rounds if ports are no limit.
    pub(crate) fn is_deep(&self, depth: u64) {
        assert_eq!(
            self.proof.depth, depth,
            "{} p={} root={}",
            self.collective, self.p, self.root
        );
    }
}

/// Proves `collectives` at world sizes up to 17 with averages and with operators that do not commute, and on channels.
pub(crate) fn verify_small_worlds(algorithm: &dyn Algorithm, collectives: &[Collective]) {
    verify_channels(algorithm, collectives);
    for &collective in collectives {
        for p in 1..=17 {
            for root in roots(collective, p) {
                let cx = Context::full(collective, 0, p).with_root(root);
                for average in [false, true] {
                    for commutative in [true, false] {
                        let cx = cx
                            .clone()
                            .with_average(average)
                            .with_commutative(commutative);
                        let plain = !average && commutative;
                        if algorithm.supports(&cx).is_ok() && (plain || collective.reduces()) {
                            verified(algorithm, &cx);
                        }
                    }
                }
            }
        }
    }
}

/// Proves that copies on two more channels do not disturb each other.
fn verify_channels(algorithm: &dyn Algorithm, collectives: &[Collective]) {
    for &collective in collectives {
        for p in [2, 5] {
            let cx =
                Context::full(collective, 0, p).with_params(Params::default().with_channels(3));
            if algorithm.supports(&cx).is_ok() {
                verified(algorithm, &cx);
            }
        }
    }
}

/// Proves one set of programs.
pub(crate) fn verified(algorithm: &dyn Algorithm, cx: &Context) -> Proof {
    prove(algorithm, cx, &emitted(algorithm, cx))
}

fn prove(algorithm: &dyn Algorithm, cx: &Context, programs: &[Arc<Program>]) -> Proof {
    verify(programs).unwrap_or_else(|flaw| {
        panic!(
            "{} {} p={} root={} average={} commutative={}: {flaw}",
            algorithm.name(),
            cx.collective(),
            cx.size(),
            cx.root(),
            cx.average(),
            cx.commutative()
        )
    })
}

/// Proves `collective` for every root of a world with these links.
pub(crate) fn verify_over(
    algorithm: &dyn Algorithm,
    collective: Collective,
    topology: &Arc<Topology>,
) {
    for root in roots(collective, topology.size()) {
        verified(
            algorithm,
            &Context::new(collective, 0, topology.clone()).with_root(root),
        );
    }
}

/// That the promised symmetry holds: rank 0's program, rotated, is what every rank emits.
pub(crate) fn assert_rotates(algorithm: &dyn Algorithm, collective: Collective) {
    for average in [false, true] {
        for p in 2..=17 {
            let cx = Context::full(collective, 0, p).with_average(average && collective.reduces());
            let promised = algorithm.symmetry(&cx) == Symmetry::Rotation;
            if algorithm.supports(&cx).is_err() || (average && !promised) {
                continue;
            }
            assert_eq!(
                algorithm.symmetry(&cx),
                Symmetry::Rotation,
                "{collective} p={p}"
            );
            let first = build(algorithm, &cx).unwrap();
            for (r, program) in emitted(algorithm, &cx).iter().enumerate() {
                let rotated = unisono_program::build::rotate(&first, r as Rank);
                assert_eq!(
                    rotated,
                    **program,
                    "{} {collective} p={p} r={r}",
                    algorithm.name()
                );
            }
        }
    }
    let large = Context::full(collective, 0, 512);
    assert_eq!(build_all(algorithm, &large).unwrap().len(), 512);
}

/// Blocks (parts of blocks) that a rank sends.
pub(crate) fn blocks_sent(program: &Program) -> u64 {
    sends(program, |run| run.count * run.target.span.len)
}

/// Messages that a rank sends.
pub(crate) fn messages_sent(program: &Program) -> u64 {
    sends(program, |run| run.count)
}

fn sends(program: &Program, count: impl Fn(&unisono_program::Run) -> u64) -> u64 {
    let runs = program.lanes.iter().flat_map(|l| &l.runs);
    runs.filter(|r| matches!(r.kind, Kind::Send | Kind::SyncTo))
        .map(count)
        .sum()
}

/// Runs, that is, the size of a program.
pub(crate) fn runs(program: &Program) -> usize {
    program.lanes.iter().map(|l| l.runs.len()).sum()
}

/// ⌈log2 p⌉.
pub(crate) fn log2(p: u64) -> u64 {
    p.next_power_of_two().ilog2().into()
}
