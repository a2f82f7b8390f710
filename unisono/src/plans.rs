//! From a call to a plan: checked, chosen, built, bound, and kept for the next time.

use std::sync::Arc;

use unisono_contract::Endpoint;
use unisono_core::{Collective, DType, Link, Op, Rank, Topology};
use unisono_engine::{Engine, Lru, Plan, Request};
use unisono_program::{
    Algorithm, Context, PROVED_BEFORE_USE, Params, Program, Registry, build, build_all,
    point_to_point, verify,
};
use unisono_reduce::{Kernels, UserOperator};
use unisono_select::{
    Ask, Choice, Explanation, SelectError, Selector, Tune, Way, choose, explain, row_bytes,
};

use crate::Error;
use crate::explain::{Prices, tune_of_environment};

/// What a call says about itself, apart from its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) collective: Collective,
    /// Elements of the vector, or of one row.
    pub(crate) count: u64,
    pub(crate) dtype: DType,
    pub(crate) op: Option<Op>,
    /// The root, or the peer of a point-to-point message.
    pub(crate) root: Rank,
}

/// What a handle of the group adds to every call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tuning {
    pub(crate) algorithm: Option<Arc<str>>,
    pub(crate) segments: Option<u64>,
    pub(crate) channels: Option<u16>,
    /// Overrides, instead of those of the environment.
    pub(crate) tune: Option<Arc<Tune>>,
    /// Chooses by price; without it, a fixed order does.
    pub(crate) prices: Option<Prices>,
}

#[derive(Debug, PartialEq)]
struct PlanKey {
    spec: Spec,
    tuning: Tuning,
}

#[derive(Debug, PartialEq)]
struct ProgramKey {
    collective: Collective,
    root: Rank,
    algorithm: Arc<str>,
    params: Params,
    /// The links that the program keeps to, where they are not all that the group has.
    way: Option<Way>,
    commutative: bool,
    average: bool,
}

/// Point-to-point messages of more than this travel in segments.
const MESSAGE_SEGMENT: u64 = 512 * 1024;

pub(crate) struct Plans {
    rank: Rank,
    topology: Arc<Topology>,
    registry: Registry,
    /// Ranks share cores.
    crowded: bool,
    /// What the environment says; a mistake in it is every call's error.
    tune: Result<Option<Arc<Tune>>, SelectError>,
    /// The transport, as soon as a call has shown it.
    transport: Option<&'static str>,
    pub(crate) operators: Vec<UserOperator>,
    plans: Lru<PlanKey, Arc<Plan>>,
    programs: Lru<ProgramKey, Arc<Program>>,
}

impl Plans {
    pub(crate) fn new(rank: Rank, topology: Topology, registry: Registry, crowded: bool) -> Plans {
        Plans {
            rank,
            topology: Arc::new(topology),
            registry,
            crowded,
            tune: tune_of_environment().map(|tune| tune.map(Arc::new)),
            transport: None,
            operators: Vec::new(),
            plans: Lru::new(64),
            programs: Lru::new(64),
        }
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The plan of a call; no allocation when it is known.
    pub(crate) fn find(
        &mut self,
        spec: Spec,
        tuning: &Tuning,
        engine: &mut Engine,
        endpoints: &mut [Box<dyn Endpoint>],
    ) -> Result<Arc<Plan>, Error> {
        let key = PlanKey {
            spec,
            tuning: tuning.clone(),
        };
        if let Some(plan) = self.plans.find(&key) {
            return Ok(plan);
        }
        self.transport = endpoints.first().map(|e| e.limits().name);
        let kernels = self.kernels(&spec)?;
        let (program, segments) = if spec.collective.is_point_to_point() {
            let cx = self.context(&spec);
            let bytes = spec.count.saturating_mul(spec.dtype.size() as u64);
            let segments = bytes.div_ceil(MESSAGE_SEGMENT).max(1);
            let program = point_to_point::message(&cx, spec.root)?;
            (Arc::new(program), segments)
        } else {
            let choice = self.choose(spec, tuning)?;
            let segments = choice.segments;
            (self.program(&spec, &choice)?, segments)
        };
        let request = Request {
            count: spec.count,
            dtype: spec.dtype,
            op: spec.op,
            kernels,
            segments,
        };
        let plan = engine.plan(program, &request, endpoints)?;
        self.plans.insert(key, Arc::clone(&plan));
        Ok(plan)
    }

    /// The algorithm of a call and why.
    pub(crate) fn choose(&self, spec: Spec, tuning: &Tuning) -> Result<Choice, Error> {
        let cx = self.context(&spec);
        let ask = self.ask(&cx, &spec, tuning)?;
        Ok(match &tuning.prices {
            Some(prices) => prices.0.choose(&ask)?,
            None => choose(&self.registry, &ask)?,
        })
    }

    /// The same with all that was rejected, for `total` bytes in the larger buffer.
    pub(crate) fn explain(
        &self,
        collective: Collective,
        total: u64,
        tuning: &Tuning,
    ) -> Result<Explanation, Error> {
        let spec = Spec {
            collective,
            count: row_bytes(collective, self.topology.size(), total),
            dtype: DType::U8,
            op: None,
            root: 0,
        };
        let cx = self.context(&spec);
        let ask = self.ask(&cx, &spec, tuning)?;
        Ok(match &tuning.prices {
            Some(prices) => prices.0.explain(&ask)?,
            None => explain(&self.registry, &ask)?,
        })
    }

    fn ask<'a>(
        &'a self,
        cx: &'a Context,
        spec: &Spec,
        tuning: &'a Tuning,
    ) -> Result<Ask<'a>, SelectError> {
        let tune = match &tuning.tune {
            Some(tune) => Some(tune),
            None => self.tune.as_ref().map_err(Clone::clone)?.as_ref(),
        };
        Ok(Ask {
            context: cx,
            bytes: spec.count.saturating_mul(spec.dtype.size() as u64),
            algorithm: tuning.algorithm.as_deref(),
            segments: tuning.segments,
            channels: tuning.channels,
            crowded: self.crowded,
            tune: tune.map(|tune| &**tune),
            transport: self.transport,
        })
    }

    /// Whether a selector's facts are about this group.
    pub(crate) fn fits(&self, selector: &Selector) -> Result<(), SelectError> {
        let (facts, group) = (selector.facts().size(), self.topology.size());
        if facts != group {
            return Err(SelectError::OtherWorld { facts, group });
        }
        if self.topology.is_declared_full() {
            return Ok(());
        }
        for way in selector.usable() {
            let Some(network) = selector.facts().network(way) else {
                continue;
            };
            let mut links = network.topology().links();
            let unknown = |link: &Link| !self.topology.linked(link.a, link.b);
            if let Some((link, _)) = links.find(|(link, _)| unknown(link)) {
                return Err(SelectError::NoSuchLink { link, way });
            }
        }
        Ok(())
    }

    fn context(&self, spec: &Spec) -> Context {
        self.context_over(spec, Arc::clone(&self.topology))
    }

    fn context_over(&self, spec: &Spec, topology: Arc<Topology>) -> Context {
        let root = if spec.collective.is_rooted() {
            spec.root
        } else {
            0
        };
        Context::new(spec.collective, self.rank, topology)
            .with_root(root)
            .with_commutative(spec.op.is_none_or(|op| op.commutative()))
            .with_average(spec.op == Some(Op::Avg))
    }

    fn program(&mut self, spec: &Spec, choice: &Choice) -> Result<Arc<Program>, Error> {
        let mut cx = self.context(spec);
        if let Some(topology) = &choice.topology {
            cx = self.context_over(spec, Arc::clone(topology));
        }
        let cx = cx.with_params(choice.params);
        let key = ProgramKey {
            collective: spec.collective,
            root: cx.root(),
            algorithm: choice.algorithm.name().into(),
            params: choice.params,
            way: choice.way,
            commutative: cx.commutative(),
            average: cx.average(),
        };
        if let Some(program) = self.programs.find(&key) {
            return Ok(program);
        }
        let program = self.build(&*choice.algorithm, &cx)?;
        self.programs.insert(key, Arc::clone(&program));
        Ok(program)
    }

    /// This rank's program; of an algorithm from outside only after a proof, which comes out alike on every rank.
    fn build(&self, algorithm: &dyn Algorithm, cx: &Context) -> Result<Arc<Program>, Error> {
        if self.registry.is_proved(algorithm.name()) || cx.size() > PROVED_BEFORE_USE {
            return Ok(Arc::new(build(algorithm, cx)?));
        }
        let programs = build_all(algorithm, cx)?;
        verify(&programs).map_err(|flaw| Error::Flaw {
            algorithm: algorithm.name().to_owned(),
            collective: cx.collective(),
            flaw: Arc::new(flaw),
        })?;
        Ok(Arc::clone(&programs[self.rank as usize]))
    }

    /// The kernels of a user operator.
    fn kernels(&self, spec: &Spec) -> Result<Option<Kernels>, Error> {
        let Some(op @ Op::User(user)) = spec.op else {
            return Ok(None);
        };
        self.operators
            .get(usize::from(user.number()))
            .filter(|o| o.op() == op && o.dtype() == spec.dtype)
            .map(|o| Some(Kernels::user(o)))
            .ok_or(Error::NotRegistered {
                rank: self.rank,
                collective: spec.collective,
                op,
                dtype: spec.dtype,
            })
    }
}
