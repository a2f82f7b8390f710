//! Who may do a call: algorithm x variant x links, and why the others may not.
//!
//! ```text
//! links       rdma if it joins all ranks; else rdma+tcp and tcp, whichever does        (policy, or what is required)
//! algorithm   on a full rdma mesh the mesh family for four of the collectives         (policy)
//!             else all that the links allow                                            (price)
//! variant     one channel, and one per rail where there are several rails
//! ```

use std::sync::Arc;

use unisono_core::{Collective, Rank, RingSearch};
use unisono_program::{Algorithm, Context, Params, Registry, Unsupported};

use crate::error::{in_braces, missing_of};
use crate::facts::{Facts, Network};
use crate::{Entry, Require, SelectError, Way};

/// What of a call matters to the choice, besides its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Kind {
    pub(crate) collective: Collective,
    pub(crate) root: Rank,
    pub(crate) commutative: bool,
}

/// What an override, or a handle of the group, leaves of the candidates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Limits {
    pub(crate) exclude: bool,
    pub(crate) algorithm: Option<String>,
    pub(crate) transport: Option<String>,
    pub(crate) channels: Option<u16>,
    /// The override, for messages.
    pub(crate) entry: Option<String>,
}

impl Limits {
    pub(crate) fn of(entry: &Entry) -> Limits {
        Limits {
            exclude: entry.exclude,
            algorithm: entry.algorithm.clone(),
            transport: entry.transport.clone(),
            channels: entry.channels,
            entry: Some(entry.to_string()),
        }
    }

    fn names(&self, algorithm: &str, way: Way) -> bool {
        self.algorithm.as_deref().is_none_or(|a| a == algorithm)
            && self.transport.as_deref().is_none_or(|t| t == way.name())
    }

    /// Whether `algorithm` over `way` may be used as far as this is concerned.
    fn allows(&self, algorithm: &str, way: Way) -> bool {
        let anything = self.algorithm.is_none() && self.transport.is_none();
        anything || self.names(algorithm, way) != self.exclude
    }
}

/// One way to carry out a call.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) algorithm: Arc<dyn Algorithm>,
    pub(crate) params: Params,
    /// Index of its network in the facts.
    pub(crate) network: usize,
}

/// Why an algorithm over some links is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) algorithm: String,
    pub(crate) way: Way,
    pub(crate) reason: String,
}

/// The candidates of a kind of call.
#[derive(Default)]
pub(crate) struct Survey {
    /// Those among which the price decides.
    pub(crate) candidates: Vec<Candidate>,
    /// Those that policy leaves out, though they could.
    pub(crate) left_out: Vec<Candidate>,
    pub(crate) refusals: Vec<Refusal>,
}

/// Whether policy keeps to the mesh family on a full mesh over RDMA.
fn is_for_meshes(collective: Collective) -> bool {
    use Collective as C;
    matches!(
        collective,
        C::AllReduce | C::ReduceScatter | C::AllGather | C::AllToAll
    )
}

pub(crate) fn is_mesh(name: &str) -> bool {
    name.starts_with("mesh-")
}

/// The context of rank 0 over `network`.
pub(crate) fn context(network: &Network, kind: Kind, params: Params) -> Context {
    Context::new(kind.collective, 0, Arc::clone(network.topology()))
        .with_root(kind.root)
        .with_commutative(kind.commutative)
        .with_params(params)
}

/// The networks that may be used, or the error that all ranks give.
pub(crate) fn usable(facts: &Facts, require: Option<Require>) -> Result<Vec<Way>, SelectError> {
    let joined = |way| match facts.network(way) {
        Some(network) => (way, network.topology().components()),
        None => (way, Vec::new()),
    };
    if facts.size() < 2 {
        return Ok(Vec::new());
    }
    if let Some(require) = require {
        let way = require.way();
        let one_way = || {
            let cells = facts.one_way().iter();
            cells
                .filter(|c| Way::from(c.transport) == way)
                .cloned()
                .collect()
        };
        let network = facts.network(way);
        return match network {
            Some(n) if require == Require::MeshRdma && !n.is_full() => {
                Err(SelectError::RequiredMesh {
                    require,
                    missing: n.topology().missing().collect(),
                    pairs: n.topology().pair_count(),
                    one_way: one_way(),
                })
            }
            Some(n) if n.is_connected() => Ok(vec![way]),
            _ => Err(SelectError::RequiredApart {
                require,
                joined: joined(way),
                one_way: one_way(),
            }),
        };
    }
    let connected = |way| facts.network(way).is_some_and(Network::is_connected);
    if connected(Way::Rdma) {
        return Ok(vec![Way::Rdma]);
    }
    let ways: Vec<Way> = [Way::Tcp, Way::Mixed]
        .into_iter()
        .filter(|&w| connected(w))
        .collect();
    if ways.is_empty() {
        let ways = facts.networks().iter().map(|n| joined(n.way()));
        return Err(SelectError::Apart {
            size: facts.size(),
            ways: ways.collect(),
        });
    }
    Ok(ways)
}

/// Everyone who may do a call of this kind, and why others may not.
///
/// # Errors
/// Nobody may.
pub(crate) fn survey(
    facts: &Facts,
    registry: &Registry,
    require: Option<Require>,
    kind: Kind,
    limits: &Limits,
) -> Result<Survey, SelectError> {
    let usable = usable(facts, require)?;
    // Asked for by name, or with the others excluded, links are used that policy would not.
    let named = |way: Way| limits.transport.as_deref() == Some(way.name()) && !limits.exclude;
    let excluded =
        |way: Way| limits.exclude && limits.algorithm.is_none() && named_out(limits, way);
    let others_out = usable.iter().all(|&way| excluded(way));
    let mut survey = Survey::default();
    let mut unable: Vec<(String, Unsupported)> = Vec::new();
    for (index, network) in facts.networks().iter().enumerate() {
        let way = network.way();
        let allowed = usable.contains(&way)
            || (require.is_none() && network.is_connected() && (named(way) || others_out));
        let mesh = way == Way::Rdma && network.is_full() && is_for_meshes(kind.collective);
        for algorithm in registry.iter() {
            let name = algorithm.name();
            let mut refuse = |reason: String| {
                survey.refusals.push(Refusal {
                    algorithm: name.to_owned(),
                    way,
                    reason,
                });
            };
            if !network.is_connected() {
                let parts = in_braces(&network.topology().components());
                refuse(format!("{way} joins only {parts}"));
                continue;
            }
            if !allowed {
                refuse(not_this_way(&usable, require));
                continue;
            }
            let cx = context(network, kind, Params::default());
            if let Err(why) = algorithm.supports(&cx) {
                refuse(unsupported(network, &why));
                unable.push((name.to_owned(), why));
                continue;
            }
            if !limits.allows(name, way) {
                refuse(match (&limits.entry, limits.exclude) {
                    (Some(entry), true) => format!("excluded by the override `{entry}`"),
                    (Some(entry), false) => format!("the override `{entry}` asks for another"),
                    (None, _) => "another was asked for by name".to_owned(),
                });
                continue;
            }
            let variants = variants(algorithm.as_ref(), &cx, network, limits);
            if variants.is_empty() {
                let channels = limits.channels.unwrap_or(1);
                refuse(format!("cannot run on {channels} channels"));
            }
            for params in variants {
                let candidate = Candidate {
                    algorithm: Arc::clone(algorithm),
                    params,
                    network: index,
                };
                // An override may name what policy would leave out.
                let by_name = limits.algorithm.is_some() && !limits.exclude;
                match mesh && !is_mesh(name) && !by_name {
                    true => survey.left_out.push(candidate),
                    false => survey.candidates.push(candidate),
                }
            }
        }
    }
    if survey.candidates.is_empty() {
        // No mesh algorithm is registered, or all are excluded.
        survey.candidates = std::mem::take(&mut survey.left_out);
    }
    match survey.candidates.is_empty() && facts.size() > 1 {
        false => Ok(survey),
        true => Err(nobody(facts, kind, limits, &survey, unable)),
    }
}

fn named_out(limits: &Limits, way: Way) -> bool {
    limits.transport.as_deref() == Some(way.name())
}

fn not_this_way(usable: &[Way], require: Option<Require>) -> String {
    match require {
        Some(require) => format!("{require} is required"),
        None => format!(
            "policy: {} joins all ranks",
            usable.first().copied().unwrap_or(Way::Rdma)
        ),
    }
}

/// One channel, what the algorithm suggests, and a channel for each rail.
fn variants(
    algorithm: &dyn Algorithm,
    cx: &Context,
    network: &Network,
    limits: &Limits,
) -> Vec<Params> {
    let rails = network.most_rails().min(16) as u16;
    let wanted = match limits.channels {
        Some(channels) => vec![Params::default().with_channels(channels)],
        None if rails > 1 && cx.collective() != Collective::Barrier => {
            let mut wanted = algorithm.variants(cx);
            wanted.push(Params::default().with_channels(rails));
            wanted
        }
        None => algorithm.variants(cx),
    };
    let mut distinct: Vec<Params> = Vec::new();
    for params in wanted {
        if !distinct.contains(&params)
            && algorithm.supports(&cx.clone().with_params(params)).is_ok()
        {
            distinct.push(params);
        }
    }
    distinct
}

/// What is missing, and of how many.
fn unsupported(network: &Network, why: &Unsupported) -> String {
    let topology = network.topology();
    match why {
        Unsupported::MissingLinks { missing }
            if missing.len() as u64 + topology.link_count() == topology.pair_count() =>
        {
            format!("no link {}", missing_of(missing, topology.pair_count()))
        }
        Unsupported::MissingLinks { missing } => {
            let some: Vec<String> = missing.iter().take(8).map(|l| l.to_string()).collect();
            let more = match missing.len() {
                0..=8 => String::new(),
                n => format!(" and {} more", n - 8),
            };
            let (there, pairs) = (topology.link_count(), topology.pair_count());
            format!("no link {}{more} ({there} of {pairs})", some.join(", "))
        }
        Unsupported::NoRing { .. } => match topology.search_ring() {
            RingSearch::Impossible(why) => format!("no ring through all ranks: {why}"),
            RingSearch::GaveUp { steps } => {
                format!("no ring through all ranks was found in {steps} steps of search")
            }
            _ => "no ring through all ranks".to_owned(),
        },
        other => other.to_string(),
    }
}

fn nobody(
    facts: &Facts,
    kind: Kind,
    limits: &Limits,
    survey: &Survey,
    unable: Vec<(String, Unsupported)>,
) -> SelectError {
    let collective = kind.collective;
    let Some(entry) = &limits.entry else {
        let named = limits.algorithm.as_ref();
        let why = unable.iter().find(|(name, _)| Some(name) == named);
        return match why {
            Some((algorithm, why)) => SelectError::Unsupported {
                algorithm: algorithm.clone(),
                collective,
                why: why.clone(),
            },
            None => SelectError::Nobody {
                collective,
                reasons: unable,
            },
        };
    };
    let of_links = |way: Way| match facts.network(way) {
        None => Some(format!("no two ranks have a {way} link")),
        Some(n) if !n.is_connected() => {
            let parts = in_braces(&n.topology().components());
            Some(format!("{way} joins only {parts}"))
        }
        Some(_) => None,
    };
    let transport = match limits.transport.as_deref().filter(|_| !limits.exclude) {
        None => None,
        Some("rdma") => of_links(Way::Rdma),
        Some("tcp") => of_links(Way::Tcp),
        Some("rdma+tcp") if facts.network(Way::Rdma).is_some_and(Network::is_connected) => {
            Some("rdma alone joins all ranks".to_owned())
        }
        Some("rdma+tcp") => of_links(Way::Mixed),
        Some(other) => Some(format!("no two ranks have a link over {other}")),
    };
    let of_algorithm = || {
        let reasons = survey.refusals.iter();
        let mine = reasons.filter(|r| limits.names(&r.algorithm, r.way));
        let mut texts: Vec<String> = mine.map(|r| format!("{}: {}", r.way, r.reason)).collect();
        texts.dedup();
        texts.join("; ")
    };
    let missing = match (limits.exclude, transport) {
        (true, _) => "nothing else can do it".to_owned(),
        (_, Some(transport)) => transport,
        _ => of_algorithm(),
    };
    SelectError::Impossible {
        entry: entry.clone(),
        collective,
        missing,
    }
}
