//! How an [`Explanation`] comes about: the choice, and every other candidate priced at the very size that was asked for.
//!
//! The choice is the table's, so that a live group does what is printed. The table is made at a few sizes; where another
//! candidate is cheaper at this one size, that is said.

use unisono_core::{Rank, RingSearch};
use unisono_program::{Context, Registry};
use unisono_topology::format_time;

use crate::bound::{Bound, bound};
use crate::candidates::{Candidate, Kind, Refusal, context, is_mesh};
use crate::explanation::{Chosen, Explanation, FactsShown, LinksShown, Rejected};
use crate::facts::Network;
use crate::price::{Price, Pricer};
use crate::table::sizes;
use crate::{Ask, Choice, MOST_PRICED, SelectError, Selector, Way, choose};

/// Missing pairs that are listed.
const MOST_MISSING: usize = 100;
/// Diameter and centre take a walk from every rank.
const MOST_WALKED: Rank = 2048;

/// A candidate and what it costs at the size asked for.
struct Priced {
    candidate: Candidate,
    price: Result<Price, String>,
    by_policy: bool,
}

impl Selector {
    /// What [`choose`](Selector::choose) chooses, what it rejects, and why.
    ///
    /// # Errors
    /// As [`choose`](Selector::choose).
    pub fn explain(&self, ask: &Ask<'_>) -> Result<Explanation, SelectError> {
        let choice = self.choose(ask)?;
        let facts = self.facts();
        if facts.size() < 2 {
            return Ok(self.alone(ask, &choice));
        }
        let kind = Kind {
            root: root(ask.context),
            ..self.kind(ask.context)
        };
        let limits = self.limits(ask);
        let survey = self.survey(kind, &limits)?;
        let network = choice.way.and_then(|way| facts.network(way));
        let bound = network.map(|n| bound(n, kind.collective, kind.root, ask.bytes));
        let priced = facts.size() <= MOST_PRICED;
        let mut all: Vec<Priced> = Vec::new();
        let candidates = survey.candidates.into_iter().map(|c| (c, false));
        let left_out = survey.left_out.into_iter().map(|c| (c, true));
        for (candidate, by_policy) in candidates.chain(left_out) {
            let price = match priced {
                true => self.price(&candidate, kind, ask.bytes),
                false => Err(format!("{} ranks are not priced", facts.size())),
            };
            all.push(Priced {
                candidate,
                price,
                by_policy,
            });
        }
        let predicted = priced.then(|| self.predicted(&choice, kind, ask)).flatten();
        let rejected = self.rejected(&choice, predicted, all, survey.refusals);
        let chosen = Chosen {
            algorithm: choice.algorithm.name().to_owned(),
            transport: choice.way.map_or("none", Way::name).to_owned(),
            variant: variant(&choice),
            predicted_us: predicted.map(microseconds),
            bound_share: predicted.zip(bound).map(|(ps, b)| share(b.ps, ps)),
        };
        let ring = match choice.topology.as_ref().map(|t| t.search_ring()) {
            Some(RingSearch::Found(ring)) => Some(order(&ring, facts.size())),
            _ => None,
        };
        let shown = self.shown(ask, self.policy(&choice, kind), bound);
        Ok(Explanation {
            chosen,
            rejected,
            facts: shown,
            ring,
        })
    }

    fn price(&self, candidate: &Candidate, kind: Kind, n: u64) -> Result<Price, String> {
        let network = &self.facts().networks()[candidate.network];
        let cx = context(network, kind, candidate.params);
        let pricer = Pricer::new(candidate.algorithm.as_ref(), &cx, network);
        let priced = pricer.and_then(|p| p.price(n, None));
        priced.map_err(|why| why.to_string())
    }

    /// What the choice costs with its own segments.
    fn predicted(&self, choice: &Choice, kind: Kind, ask: &Ask<'_>) -> Option<u64> {
        let network = self.facts().network(choice.way?)?;
        let cx = context(network, kind, choice.params);
        let pricer = Pricer::new(choice.algorithm.as_ref(), &cx, network).ok()?;
        pricer.predict(ask.bytes, choice.segments).ok()
    }

    /// One line for each algorithm over each way, the best of its variants.
    fn rejected(
        &self,
        choice: &Choice,
        predicted: Option<u64>,
        mut all: Vec<Priced>,
        refusals: Vec<Refusal>,
    ) -> Vec<Rejected> {
        let way = |p: &Priced| self.facts().networks()[p.candidate.network].way();
        let ps = |p: &Priced| p.price.as_ref().map_or(u64::MAX, |p| p.ps);
        all.retain(|p| {
            (p.candidate.algorithm.name(), Some(way(p))) != (choice.algorithm.name(), choice.way)
        });
        all.sort_by_key(|p| (p.by_policy, ps(p), p.candidate.algorithm.name().to_owned()));
        let mut rejected: Vec<Rejected> = Vec::new();
        let mut add = |algorithm: &str, way: Way, reason: String, us: Option<f64>| {
            let known = |r: &Rejected| r.algorithm == algorithm && r.transport == way.name();
            if !rejected.iter().any(known) {
                rejected.push(Rejected {
                    algorithm: algorithm.to_owned(),
                    transport: way.name().to_owned(),
                    reason,
                    predicted_us: us,
                });
            }
        };
        for priced in &all {
            let name = priced.candidate.algorithm.name();
            let cost = match (&priced.price, predicted) {
                (Err(why), _) => why.clone(),
                (Ok(price), Some(chosen)) => {
                    let times = price.ps as f64 / chosen.max(1) as f64;
                    let us = microseconds(price.ps);
                    match (priced.by_policy, price.ps < chosen) {
                        (false, true) => format!(
                            "{us} us predicted, {times:.2} x the chosen: less at this one size, which the table lies beside"
                        ),
                        _ => format!("{us} us predicted, {times:.2} x the chosen"),
                    }
                }
                (Ok(price), None) => format!("{} us predicted", microseconds(price.ps)),
            };
            let reason = match priced.by_policy {
                true => format!("policy: a full rdma mesh uses the mesh family; {cost}"),
                false => cost,
            };
            let us = priced.price.as_ref().ok().map(|p| microseconds(p.ps));
            add(name, way(priced), reason, us);
        }
        for refusal in refusals {
            add(&refusal.algorithm, refusal.way, refusal.reason, None);
        }
        rejected
    }

    fn policy(&self, choice: &Choice, kind: Kind) -> String {
        let facts = self.facts();
        let way = choice.way.map_or("none", Way::name);
        let joins = match (self.require(), choice.way) {
            (Some(require), _) => format!("{require} is required"),
            (None, Some(Way::Rdma)) => "rdma joins all ranks".to_owned(),
            (None, _) => match facts.network(Way::Rdma) {
                None => format!("no two ranks have an rdma link: {way}"),
                Some(n) => format!(
                    "rdma joins only {}: {way}",
                    crate::error::in_braces(&n.topology().components())
                ),
            },
        };
        let mesh = choice.way == Some(Way::Rdma)
            && is_mesh(choice.algorithm.name())
            && facts.network(Way::Rdma).is_some_and(Network::is_full);
        let mesh = match mesh {
            true => ", in a full mesh",
            false => "",
        };
        let by = match facts.size() > MOST_PRICED {
            true => format!(
                "policy alone: more than {MOST_PRICED} ranks are not priced, the order of preference decides"
            ),
            false => match sizes(kind.collective, facts.size()).0.len() {
                1 => "price decides".to_owned(),
                n => format!("price decides, from a table of {n} sizes"),
            },
        };
        format!("{joins}{mesh}; {by}")
    }

    fn shown(&self, ask: &Ask<'_>, policy: String, bound: Option<Bound>) -> FactsShown {
        let facts = self.facts();
        FactsShown {
            policy,
            require: self.require().map(|r| r.to_string()),
            entry: self.entry(ask).map(|e| e.to_string()),
            bound_us: bound.map(|b| microseconds(b.ps)),
            bound_by: bound.map(|b| b.by.to_string()),
            reduce: Some(facts.gamma().value.to_string()),
            reduce_from: Some(facts.gamma().from.to_string()),
            links: facts.networks().iter().map(links).collect(),
            one_way: facts.one_way().iter().map(|c| c.to_string()).collect(),
            ..nothing_known(ask)
        }
    }

    fn alone(&self, ask: &Ask<'_>, choice: &Choice) -> Explanation {
        let policy = "a world of one sends nothing".to_owned();
        Explanation {
            chosen: Chosen {
                algorithm: choice.algorithm.name().to_owned(),
                transport: "none".to_owned(),
                variant: "channels=1,segments=1".to_owned(),
                predicted_us: Some(0.0),
                bound_share: Some(1.0),
            },
            rejected: Vec::new(),
            facts: self.shown(ask, policy, None),
            ring: Some(vec![0]),
        }
    }
}

/// What [`choose`] chooses without facts, what it rejects, and why.
///
/// # Errors
/// As [`choose`].
pub fn explain(registry: &Registry, ask: &Ask<'_>) -> Result<Explanation, SelectError> {
    let choice = choose(registry, ask)?;
    let transport = ask.transport.unwrap_or("unknown").to_owned();
    let cx = ask.context.clone().with_params(choice.params);
    let others = registry
        .iter()
        .filter(|a| a.name() != choice.algorithm.name());
    let rejected = others.map(|algorithm| Rejected {
        algorithm: algorithm.name().to_owned(),
        transport: transport.clone(),
        predicted_us: None,
        reason: match algorithm.supports(&cx) {
            Ok(()) => "comes later in the order of preference, or was not asked for".to_owned(),
            Err(why) => why.to_string(),
        },
    });
    let ring = match cx.topology().search_ring() {
        RingSearch::Found(ring) => Some(order(&ring, cx.size())),
        _ => None,
    };
    Ok(Explanation {
        rejected: rejected.collect(),
        chosen: Chosen {
            algorithm: choice.algorithm.name().to_owned(),
            variant: variant(&choice),
            transport: transport.clone(),
            predicted_us: None,
            bound_share: None,
        },
        facts: FactsShown {
            policy: format!(
                "nothing is known of the links, a fixed order decides: {}",
                choice.reason
            ),
            ..nothing_known(ask)
        },
        ring,
    })
}

fn nothing_known(ask: &Ask<'_>) -> FactsShown {
    let cx = ask.context;
    FactsShown {
        op: cx.collective(),
        bytes: ask.total(),
        root: cx.collective().is_rooted().then(|| cx.root()),
        ranks: cx.size(),
        policy: String::new(),
        require: None,
        entry: None,
        bound_us: None,
        bound_by: None,
        reduce: None,
        reduce_from: None,
        links: Vec::new(),
        one_way: Vec::new(),
    }
}

fn links(network: &Network) -> LinksShown {
    let topology = network.topology();
    let figures = network.figures();
    let missing = topology.missing().take(MOST_MISSING);
    let walked = topology.is_declared_full() || topology.size() <= MOST_WALKED;
    LinksShown {
        transport: network.way().to_string(),
        links: topology.link_count(),
        pairs: topology.pair_count(),
        missing: missing.map(|l| l.to_string()).collect(),
        rails: network.most_rails(),
        diameter: topology.diameter().filter(|_| walked),
        centre: topology.centre().filter(|_| walked),
        bridges: topology.bridges().iter().map(|l| l.to_string()).collect(),
        components: topology.components(),
        ring: match topology.search_ring() {
            RingSearch::Found(ring) => {
                let ranks = order(&ring, topology.size());
                let ranks: Vec<String> = ranks.iter().map(Rank::to_string).collect();
                ranks.join("-")
            }
            RingSearch::Impossible(why) => format!("none: {why}"),
            RingSearch::GaveUp { steps } => format!("not found in {steps} steps of search"),
            _ => "unknown".to_owned(),
        },
        alpha: format_time(figures.alpha.value),
        alpha_from: figures.alpha.from.to_string(),
        bandwidth: figures.beta.value.to_string(),
        bandwidth_from: figures.beta.from.to_string(),
        overhead: format_time(network.overhead()),
        overhead_from: figures.overhead.from.to_string(),
        own_figures: network.own_figures().count(),
    }
}

fn root(cx: &Context) -> Rank {
    match cx.collective().is_rooted() {
        true => cx.root(),
        false => 0,
    }
}

fn order(ring: &unisono_core::RingOrder, size: Rank) -> Vec<Rank> {
    (0..i64::from(size)).map(|i| ring.at(i)).collect()
}

fn variant(choice: &Choice) -> String {
    format!(
        "channels={},segments={}",
        choice.params.channels, choice.segments
    )
}

/// To the nanosecond.
fn microseconds(ps: u64) -> f64 {
    (ps / 1000) as f64 / 1000.0
}

/// To four digits.
fn share(bound: u64, predicted: u64) -> f64 {
    let share = bound as f64 / predicted.max(1) as f64;
    (share.min(1.0) * 10_000.0).round() / 10_000.0
}
