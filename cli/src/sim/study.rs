//! Which rows there are: from arguments to [`Study`]s.

use std::fmt;
use std::sync::Arc;

use anyhow::{Result, bail};
use unisono::parts::{Event, SystemHost, in_process};
use unisono::{Choice as Chosen, Group, Parts};
use unisono_core::{Collective, Op};
use unisono_program::Context;
use unisono_sim::Unposted;

use super::place::Place;
use crate::args::names::{AlgorithmName, Choice, Operation, every_algorithm};
use crate::args::sim::{self as arguments, Args, EVENTS_BY_ITSELF, Payload, SIZE};
use crate::args::sizes::Sizes;
use crate::bench::case::{self, Case};
use crate::catalogue;
use crate::exit::say;

/// Who finds out how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    Evaluator,
    Events,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Engine::Evaluator => "evaluator",
            Engine::Events => "events",
        })
    }
}

/// One row before it is found out.
#[derive(Debug, Clone)]
pub(super) struct Study {
    pub(super) case: Case,
    pub(super) collective: Collective,
    /// The algorithm, its variant and its segments.
    pub(super) chosen: Chosen,
    pub(super) engine: Engine,
    /// Whether it was asked for by name: then it is not to be skipped.
    pub(super) named: bool,
}

impl Study {
    /// The call as algorithms see it, at rank 0.
    pub(super) fn context(&self, place: &Place) -> Context {
        context(place, &self.case, self.collective).with_params(self.chosen.params)
    }

    pub(super) fn algorithm(&self) -> &str {
        self.chosen.algorithm.name()
    }

    /// The operator, where there is one.
    pub(super) fn op(&self) -> Option<Op> {
        self.collective.reduces().then_some(self.case.reduce)
    }
}

/// For messages.
impl fmt::Display for Study {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.case)
    }
}

/// Every row, in the order of the arguments: operations, algorithms, sizes. What one of `all` algorithms misses is said
/// on stderr.
///
/// # Errors
/// What was named cannot be done, or nothing is left that can.
pub(super) fn studies(args: &Args, place: &Place) -> Result<Vec<Study>> {
    let engine = engine(args, place)?;
    let planner = planner(place)?;
    // What the help says parses.
    let default_size = || SIZE.parse().unwrap_or(Sizes(vec![4]));
    let Sizes(sizes) = args.bytes.clone().unwrap_or_else(default_size);
    let mut studies = Vec::new();
    for collective in args.op.or(Collective::ALL) {
        let op = Operation::Collective(collective);
        let mut cases = Vec::new();
        let sizes: &[u64] = if op.is_barrier() { &[0] } else { &sizes };
        for &bytes in sizes {
            let case = case(args, place, op, bytes)?;
            case.validate()?;
            cases.push(case);
        }
        for (name, named) in names(args, place, collective, &cases)? {
            for case in &cases {
                let algorithm = name.clone();
                let case = Case {
                    algorithm,
                    ..case.clone()
                };
                let chosen = chosen(&planner, &case, collective)?;
                studies.push(Study {
                    case: Case {
                        algorithm: Some(chosen.algorithm.name().to_owned()),
                        ..case
                    },
                    collective,
                    chosen,
                    engine,
                    named,
                });
            }
        }
    }
    if studies.is_empty() {
        bail!("no algorithm that was named can do anything here");
    }
    Ok(studies)
}

fn case(args: &Args, place: &Place, op: Operation, bytes: u64) -> Result<Case> {
    let ranks = place.ranks();
    Ok(Case {
        op,
        ranks,
        root: if op.is_rooted() { args.root } else { 0 },
        algorithm: None,
        segments: args.segments,
        channels: None,
        dtype: args.dtype,
        reduce: args.reduce,
        count: case::whole_count(op, ranks, args.dtype, bytes)?,
        iters: 1,
        warmup: 0,
        check: true,
        corrupt: None,
    })
}

fn context(place: &Place, case: &Case, collective: Collective) -> Context {
    Context::new(collective, 0, Arc::clone(&place.topology))
        .with_root(case.root)
        .with_average(collective.reduces() && case.reduce == Op::Avg)
}

/// The algorithms to try with an operation, and whether each must succeed; `None`: the one that a call would choose.
fn names(
    args: &Args,
    place: &Place,
    collective: Collective,
    cases: &[Case],
) -> Result<Vec<(Option<String>, bool)>> {
    let choice = match &args.algorithm {
        crate::args::bench::Algorithms::Auto => return Ok(vec![(None, true)]),
        crate::args::bench::Algorithms::These(choice) => choice,
    };
    let Some(first) = cases.first() else {
        return Ok(Vec::new());
    };
    // What was named must be possible, what is one of all may be skipped.
    let named = choice.is_named() && args.op.is_named();
    let cx = context(place, first, collective);
    let mut names = Vec::new();
    for AlgorithmName(name) in choice.or(every_algorithm()) {
        match catalogue::algorithms().find(&name)?.supports(&cx) {
            Ok(()) => names.push((Some(name), named)),
            Err(why) if named => bail!("{name} cannot do {collective} here: {why}"),
            // With all operations, every algorithm misses some.
            Err(_) if !args.op.is_named() && matches!(choice, Choice::All) => {}
            Err(why) => say(&format!("skipped {name} for {collective}: {why}")),
        }
    }
    Ok(names)
}

/// Who can do what is asked for.
fn engine(args: &Args, place: &Place) -> Result<Engine> {
    let asked = [
        (!args.fault.is_empty(), "--fault"),
        (args.jitter > 0.0, "--jitter"),
        (args.trace.is_some(), "--trace"),
        (args.svg.is_some(), "--svg"),
        (args.payload == Payload::Real, "--payload real"),
        (args.unposted != Unposted::Buffer, "--unposted"),
    ];
    let needs = asked.into_iter().find(|(asked, _)| *asked);
    match (args.engine, needs) {
        (arguments::Engine::Evaluator, Some((_, what))) => {
            bail!("{what} needs messages, and the evaluator has none; use --engine events")
        }
        (arguments::Engine::Evaluator, None) => Ok(Engine::Evaluator),
        (arguments::Engine::Events, _) | (_, Some(_)) => Ok(Engine::Events),
        _ if place.ranks() <= EVENTS_BY_ITSELF => Ok(Engine::Events),
        _ => Ok(Engine::Evaluator),
    }
}

/// One rank of a group over these links, which is asked what a call would use, and never called.
fn planner(place: &Place) -> Result<Group> {
    let event = Event::new();
    let Some(control) = in_process(vec![event]).pop() else {
        bail!("no control plane for one rank");
    };
    let parts = Parts::new(
        0,
        (*place.topology).clone(),
        Vec::new(),
        Box::new(control),
        Box::new(SystemHost::new(1)),
        unisono::registry(),
    );
    Ok(Group::assemble(parts)?)
}

/// What a call of this case would use.
fn chosen(planner: &Group, case: &Case, collective: Collective) -> Result<Chosen> {
    let mut group = planner.with_channels(1);
    if let Some(name) = &case.algorithm {
        group = group.with_algorithm(name)?;
    }
    if let Some(segments) = case.segments {
        group = group.with_segments(segments);
    }
    let (op, count) = (
        collective.reduces().then_some(case.reduce),
        case.call_count(),
    );
    // Of an element type, the choice knows the size.
    let chosen = match case.dtype.size() {
        1 => group.choice::<u8>(collective, count, op),
        2 => group.choice::<u16>(collective, count, op),
        4 => group.choice::<f32>(collective, count, op),
        _ => group.choice::<f64>(collective, count, op),
    };
    Ok(chosen?)
}
