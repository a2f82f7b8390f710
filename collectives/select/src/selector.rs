//! [`Selector`]: chooses by price, and says why.
//!
//! ```text
//! facts + registry (+ what is required)
//!    |  first use of a kind of call (collective, root, commutative; what an override leaves)
//! table ---- one binary search per call ----> Choice
//! ```
//!
//! One selector may serve all ranks of a simulated world: a table is made once, by whoever asks first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use unisono_core::Rank;
use unisono_program::{Context, Params, Registry};

use crate::candidates::{Kind, Limits, Survey, survey, usable};
use crate::facts::Facts;
use crate::preferences::{made, preferred};
use crate::table::Table;
use crate::{Ask, Choice, Require, SelectError, Way};

/// Above so many ranks nothing is priced: policy alone chooses.
pub const MOST_PRICED: Rank = 512;

/// Chooses by price from facts.
///
/// ```
/// use unisono_core::Collective;
/// use unisono_program::{Context, Registry};
/// use unisono_select::{Ask, Facts, Selector};
///
/// let cluster = unisono_topology::read(r#"[[null,"a",null],["a",null,"b"],[null,"a",null]]"#)?;
/// let mut registry = Registry::new();
/// unisono_ring::register(&mut registry);
/// unisono_tree::register(&mut registry);
/// let selector = Selector::new(Facts::of(&cluster), registry, None)?;
///
/// let cx = Context::full(Collective::AllReduce, 0, 3);
/// let choice = selector.choose(&Ask::new(&cx, 64 << 20))?;
/// assert_eq!(choice.algorithm.name(), "tree-centre"); // three ranks in a line have no ring
/// assert_eq!(choice.way.unwrap().name(), "rdma");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Selector {
    facts: Facts,
    registry: Registry,
    require: Option<Require>,
    tables: Mutex<BTreeMap<(Kind, Limits), Arc<Table>>>,
}

impl Selector {
    /// A selector over these links and algorithms.
    ///
    /// # Errors
    /// What is required, or any way at all, does not join all ranks: the same error on all of them.
    pub fn new(
        facts: Facts,
        registry: Registry,
        require: Option<Require>,
    ) -> Result<Selector, SelectError> {
        usable(&facts, require)?;
        Ok(Selector {
            facts,
            registry,
            require,
            tables: Mutex::new(BTreeMap::new()),
        })
    }

    /// What it rests on.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The algorithms it chooses from.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What is required.
    pub fn require(&self) -> Option<Require> {
        self.require
    }

    /// The ways that may be used, the preferred one first; none in a world of one.
    pub fn usable(&self) -> Vec<Way> {
        usable(&self.facts, self.require).unwrap_or_default()
    }

    /// The table of a kind of call, made on first use.
    ///
    /// `None` where nothing is priced: in a world of one, above [`MOST_PRICED`] ranks, or where every program has too many
    /// steps.
    ///
    /// # Errors
    /// Nobody can do it.
    pub fn table(&self, ask: &Ask<'_>) -> Result<Option<Arc<Table>>, SelectError> {
        let limits = self.limits(ask);
        self.table_of(self.kind(ask.context), &limits)
    }

    /// Chooses for one call. The same on every rank: nothing here depends on the rank.
    ///
    /// # Errors
    /// [`SelectError`], naming what is missing.
    pub fn choose(&self, ask: &Ask<'_>) -> Result<Choice, SelectError> {
        self.check(ask)?;
        let limits = self.limits(ask);
        let kind = self.kind(ask.context);
        let mut choice = match self.table_of(kind, &limits)? {
            Some(table) => self.by_table(ask, &table),
            None => self.by_policy(ask, kind, &limits)?,
        };
        if let Some(entry) = self.entry(ask) {
            if let Some(segments) = entry.segments {
                choice.segments = segments;
            }
            choice.reason = format!("{}; override `{entry}`", choice.reason);
        }
        if let Some(segments) = ask.segments {
            choice.segments = segments;
        }
        choice.segments = choice
            .segments
            .min(ask.bytes.div_ceil(64))
            .clamp(1, 1 << 16);
        Ok(choice)
    }

    pub(crate) fn check(&self, ask: &Ask<'_>) -> Result<(), SelectError> {
        let (facts, group) = (self.facts.size(), ask.context.size());
        if facts != group {
            return Err(SelectError::OtherWorld { facts, group });
        }
        if let Some(name) = ask.algorithm {
            self.registry.find(name)?;
        }
        if let Some(tune) = ask.tune {
            let names: Vec<&str> = self.registry.names().collect();
            tune.check(names)?;
        }
        Ok(())
    }

    /// The override that decides this call, unless an algorithm was named for it.
    pub(crate) fn entry<'a>(&self, ask: &Ask<'a>) -> Option<&'a crate::Entry> {
        let cx = ask.context;
        let tune = ask.tune.filter(|_| ask.algorithm.is_none())?;
        tune.find(cx.collective(), ask.total(), cx.size())
    }

    pub(crate) fn limits(&self, ask: &Ask<'_>) -> Limits {
        let mut limits = match self.entry(ask) {
            Some(entry) => Limits::of(entry),
            None => Limits {
                algorithm: ask.algorithm.map(str::to_owned),
                ..Limits::default()
            },
        };
        limits.channels = ask.channels.or(limits.channels);
        limits
    }

    /// Calls that cannot differ share a table: roots of a uniform mesh do.
    pub(crate) fn kind(&self, cx: &Context) -> Kind {
        let usable = self.usable();
        let networks = self.facts.networks().iter();
        let alike = networks
            .filter(|n| usable.contains(&n.way()))
            .all(|n| n.is_full() && n.is_uniform());
        let rooted = cx.collective().is_rooted() && !alike;
        Kind {
            collective: cx.collective(),
            root: if rooted { cx.root() } else { 0 },
            commutative: cx.commutative() || !cx.collective().reduces(),
        }
    }

    pub(crate) fn survey(&self, kind: Kind, limits: &Limits) -> Result<Survey, SelectError> {
        survey(&self.facts, &self.registry, self.require, kind, limits)
    }

    pub(crate) fn table_of(
        &self,
        kind: Kind,
        limits: &Limits,
    ) -> Result<Option<Arc<Table>>, SelectError> {
        if self.facts.size() < 2 || self.facts.size() > MOST_PRICED {
            return Ok(None);
        }
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, limits.clone());
        if let Some(table) = tables.get(&key) {
            return Ok(Some(Arc::clone(table)));
        }
        let mut survey = self.survey(kind, limits)?;
        let Some(table) = Table::make(&self.facts, kind, &mut survey) else {
            return Ok(None);
        };
        let table = Arc::new(table);
        tables.insert(key, Arc::clone(&table));
        Ok(Some(table))
    }

    fn by_table(&self, ask: &Ask<'_>, table: &Table) -> Choice {
        let row = table.row(ask.total());
        let candidate = table.candidate(row);
        let network = &self.facts.networks()[candidate.network];
        Choice {
            algorithm: Arc::clone(&candidate.algorithm),
            params: candidate.params,
            segments: row.segments,
            way: Some(network.way()),
            topology: Some(Arc::clone(network.topology())),
            reason: format!(
                "the least predicted time over {} from {} bytes on",
                network.way(),
                row.from
            ),
        }
    }

    /// Without prices: the order of preference over the links that policy takes.
    fn by_policy(&self, ask: &Ask<'_>, kind: Kind, limits: &Limits) -> Result<Choice, SelectError> {
        let params = Params::default().with_channels(limits.channels.unwrap_or(1));
        if self.facts.size() < 2 {
            let cx = ask.context.clone().with_params(params);
            return preferred(&self.registry, ask, &cx, None);
        }
        let survey = self.survey(kind, limits)?;
        let allowed: Vec<&str> = survey
            .candidates
            .iter()
            .map(|c| c.algorithm.name())
            .collect();
        let Some(first) = survey.candidates.first() else {
            return Err(SelectError::Nobody {
                collective: kind.collective,
                reasons: Vec::new(),
            });
        };
        let network = &self.facts.networks()[first.network];
        let topology = network.topology();
        let cx = crate::candidates::context(network, kind, params).with_root(ask.context.root());
        let mut choice = preferred(&self.registry, ask, &cx, Some(&allowed))
            .unwrap_or_else(|_| made(&first.algorithm, ask, &cx, String::new()));
        choice.way = Some(network.way());
        choice.topology = Some(Arc::clone(topology));
        choice.reason = format!(
            "policy alone, over {}: {} ranks are not priced",
            network.way(),
            self.facts.size()
        );
        Ok(choice)
    }
}

impl std::fmt::Debug for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selector")
            .field("facts", &self.facts)
            .field("registry", &self.registry)
            .field("require", &self.require)
            .finish_non_exhaustive()
    }
}
