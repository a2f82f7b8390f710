//! From a call to a plan: checked, chosen, built, bound, and kept for the next time.

use std::sync::Arc;

use unisono_contract::Endpoint;
use unisono_core::{Collective, DType, Op, Rank, Topology};
use unisono_engine::{Engine, Lru, Plan, Request};
use unisono_program::{
    Algorithm, Context, PROVED_BEFORE_USE, Params, Program, Registry, build, build_all,
    point_to_point, verify,
};
use unisono_reduce::{Kernels, UserOperator};
use unisono_select::{Ask, Choice, choose};

use crate::Error;

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
        let ask = Ask {
            context: &cx,
            bytes: spec.count.saturating_mul(spec.dtype.size() as u64),
            algorithm: tuning.algorithm.as_deref(),
            segments: tuning.segments,
            channels: tuning.channels,
            crowded: self.crowded,
        };
        Ok(choose(&self.registry, &ask)?)
    }

    fn context(&self, spec: &Spec) -> Context {
        let root = if spec.collective.is_rooted() {
            spec.root
        } else {
            0
        };
        Context::new(spec.collective, self.rank, Arc::clone(&self.topology))
            .with_root(root)
            .with_commutative(spec.op.is_none_or(|op| op.commutative()))
            .with_average(spec.op == Some(Op::Avg))
    }

    fn program(&mut self, spec: &Spec, choice: &Choice) -> Result<Arc<Program>, Error> {
        let cx = self.context(spec).with_params(choice.params);
        let key = ProgramKey {
            collective: spec.collective,
            root: cx.root(),
            algorithm: choice.algorithm.name().into(),
            params: choice.params,
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
