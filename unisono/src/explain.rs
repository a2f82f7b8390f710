//! What a group would use, and why; and how to want it otherwise.
//!
//! ```text
//! Group::with_tune      overrides, in the grammar of `UNISONO_TUNE`
//! Group::with_selector  facts about the links: then price chooses, instead of a fixed order
//! Group::explain        chosen, rejected, predicted, and the facts behind it
//! ```

use std::sync::Arc;

use unisono_core::Collective;
use unisono_select::{Explanation, SelectError, Selector, Tune};

use crate::{Error, Group};

/// Overrides for all groups of a process.
const TUNE: &str = "UNISONO_TUNE";

/// A selector, compared by identity: it is part of what a plan is found by.
#[derive(Debug, Clone)]
pub(crate) struct Prices(pub(crate) Arc<Selector>);

impl PartialEq for Prices {
    fn eq(&self, other: &Prices) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Prices {}

/// What `UNISONO_TUNE` says; nothing where it is not set or empty.
pub(crate) fn tune_of_environment() -> Result<Option<Tune>, SelectError> {
    let Some(text) = std::env::var_os(TUNE) else {
        return Ok(None);
    };
    // What is no text is no override either, and the parser says where.
    let tune: Tune = text.to_string_lossy().parse()?;
    Ok(Some(tune).filter(|t| !t.entries().is_empty()))
}

impl Group {
    /// A handle whose calls follow these overrides, instead of those of `UNISONO_TUNE`. Every rank must do the same.
    ///
    /// The grammar is `collective[:lo-hi][@ranks=a-b]=[^][algorithm[(params)]][@transport]`, entries separated by `;`; see
    /// [`Tune`](crate::select::Tune). An algorithm named by [`with_algorithm`](Group::with_algorithm) is stronger.
    ///
    /// ```
    /// # use unisono::{Collective, Op};
    /// # std::thread::scope(|s| for group in unisono::inproc(2) { s.spawn(move || {
    /// let group = group.with_tune("*=^ring; all_reduce:0-32K=tree; all_reduce:32K-=ring(segments=4)")?;
    /// let choice = group.choice::<f32>(Collective::AllReduce, 100, Some(Op::Sum))?;
    /// assert_eq!(choice.algorithm.name(), "tree");
    /// let choice = group.choice::<f32>(Collective::AllReduce, 100_000, Some(Op::Sum))?;
    /// assert_eq!((choice.algorithm.name(), choice.segments), ("ring", 4));
    /// # Ok::<(), unisono::Error>(()) }); });
    /// ```
    ///
    /// # Errors
    /// [`Error::Select`], with the place of the mistake. That a call can be carried out so is found out by the call.
    pub fn with_tune(&self, tune: &str) -> Result<Group, Error> {
        let tune: Tune = tune.parse().map_err(SelectError::from)?;
        let core = self.shared.lock();
        let names: Vec<&str> = core.plans.registry().names().collect();
        tune.check(names).map_err(SelectError::from)?;
        drop(core);
        let mut group = self.clone();
        group.tuning.tune = Some(Arc::new(tune));
        Ok(group)
    }

    /// A handle whose calls are chosen by price, from facts about the links. Every rank must do the same with equal facts;
    /// ranks in one process may share the selector, and so its tables.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use unisono::select::{Facts, Selector};
    /// # use unisono::Collective;
    ///
    /// let group = unisono::inproc(1).pop().unwrap();
    /// # let cluster = unisono_topology::read("[[null]]").unwrap();
    /// let selector = Selector::new(Facts::of(&cluster), unisono::registry(), None).unwrap();
    /// let group = group.with_selector(Arc::new(selector))?;
    /// assert_eq!(group.explain(Collective::AllReduce, 1 << 20)?.chosen.transport, "none");
    /// # Ok::<(), unisono::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Select`] when the facts are about another world.
    pub fn with_selector(&self, selector: Arc<Selector>) -> Result<Group, Error> {
        self.shared.lock().plans.fits(&selector)?;
        let mut group = self.clone();
        group.tuning.prices = Some(Prices(selector));
        Ok(group)
    }

    /// What a call would use, what it would not, and why; `bytes` in the larger buffer, as `unisono bench` counts them.
    ///
    /// ```
    /// # use unisono::Collective;
    /// # std::thread::scope(|s| for group in unisono::inproc(2) { s.spawn(move || {
    /// let why = group.explain(Collective::AllReduce, 64 << 20)?;
    /// assert_eq!(why.chosen.algorithm, "mesh-twoshot");
    /// println!("{why}");
    /// # Ok::<(), unisono::Error>(()) }); });
    /// ```
    ///
    /// # Errors
    /// [`Error::Select`] when nothing can do it.
    pub fn explain(&self, collective: Collective, bytes: u64) -> Result<Explanation, Error> {
        let core = self.shared.lock();
        core.plans.explain(collective, bytes, &self.tuning)
    }
}
