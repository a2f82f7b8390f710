//! The algorithm plug-in, and the registry that names are looked up in.

use std::collections::BTreeMap;
use std::sync::Arc;

use unisono_core::{Collective, Link, Rank, UnknownName};

use crate::{Context, Emit, Params};

/// A family of programs for some collectives: a function from (call, rank) to steps.
pub trait Algorithm: Send + Sync {
    /// The name: the family first, as in `ring-bidir`.
    fn name(&self) -> &str;

    /// Whether this call can be carried out; if not, what is missing. Must not depend on the rank.
    fn supports(&self, cx: &Context) -> Result<(), Unsupported>;

    /// The variants worth considering for this call.
    fn variants(&self, _cx: &Context) -> Vec<Params> {
        vec![Params::default()]
    }

    /// Into how many blocks the vector is cut. Ignored where the collective fixes it (rows of a table).
    fn blocks(&self, cx: &Context) -> u64 {
        u64::from(cx.size())
    }

    /// Into how many parts each block is cut again, for [`Emit::part`].
    fn parts(&self, _cx: &Context) -> u32 {
        1
    }

    /// How the programs of two ranks resemble each other; lets large worlds be built from one program.
    fn symmetry(&self, _cx: &Context) -> Symmetry {
        Symmetry::None
    }

    /// The steps of `cx.rank()`, in the order of the textbook loop.
    fn emit(&self, cx: &Context, b: &mut dyn Emit);
}

/// How the programs of two ranks resemble each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Symmetry {
    /// Nothing is promised.
    None,
    /// Rank r's program is rank 0's with r added to every peer (mod p) and r*n/p to every block (mod n).
    Rotation,
}

/// Why an algorithm cannot carry out a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// Another exchange is asked for.
    #[error("offers {} but not {asked}", list(.offered))]
    Collective {
        /// What was asked for.
        asked: Collective,
        /// What the algorithm can do.
        offered: Vec<Collective>,
    },
    /// The world has the wrong size.
    #[error("needs {needs}, the world has {size} ranks")]
    WorldSize {
        /// Number of ranks.
        size: Rank,
        /// What would do: "a power of two".
        needs: &'static str,
    },
    /// Pairs that must be linked are not.
    #[error("no link {}", list(.missing))]
    MissingLinks {
        /// The missing pairs.
        missing: Vec<Link>,
    },
    /// No ring through all ranks was found.
    #[error("the links have no ring through all ranks (no link {})", list(.missing))]
    NoRing {
        /// The pairs without a link.
        missing: Vec<Link>,
    },
    /// The algorithm reorders operands.
    #[error("changes the order of operands, and the operator does not commute")]
    NotCommutative,
    /// Too many channels, or another parameter out of range.
    #[error("parameter {name} = {value} is out of range: {range}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: u64,
        /// What would do.
        range: &'static str,
    },
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    let mut text: Vec<String> = items.iter().take(8).map(T::to_string).collect();
    if items.len() > 8 {
        text.push(format!("and {} more", items.len() - 8));
    }
    text.join(", ")
}

/// Above so many ranks a group uses an algorithm from outside without having proved it: a proof costs every rank the
/// programs of all.
pub const PROVED_BEFORE_USE: Rank = 256;

/// Algorithms by name.
///
/// A third party adds its own with [`add`](Registry::add); later entries replace earlier ones of the same name.
#[derive(Clone, Default)]
pub struct Registry {
    by_name: BTreeMap<String, Entry>,
}

#[derive(Clone)]
struct Entry {
    algorithm: Arc<dyn Algorithm>,
    proved: bool,
}

impl Registry {
    /// Without any algorithm.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds (or replaces) an algorithm. Groups prove each of its program sets by [`verify`](crate::verify()) before they
    /// first use it, up to [`PROVED_BEFORE_USE`] ranks.
    pub fn add(&mut self, algorithm: impl Algorithm + 'static) -> &mut Registry {
        self.insert(algorithm, false)
    }

    /// Adds (or replaces) an algorithm whose own tests prove it at every world size: groups use it without a proof.
    pub fn add_proved(&mut self, algorithm: impl Algorithm + 'static) -> &mut Registry {
        self.insert(algorithm, true)
    }

    fn insert(&mut self, algorithm: impl Algorithm + 'static, proved: bool) -> &mut Registry {
        let name = algorithm.name().to_owned();
        let algorithm = Arc::new(algorithm);
        self.by_name.insert(name, Entry { algorithm, proved });
        self
    }

    /// Whether the algorithm called `name` was added as proved.
    pub fn is_proved(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|e| e.proved)
    }

    /// The algorithm called `name`, or an error listing the known names.
    pub fn find(&self, name: &str) -> Result<&Arc<dyn Algorithm>, UnknownName> {
        self.by_name
            .get(name)
            .map(|e| &e.algorithm)
            .ok_or_else(|| UnknownName::new("algorithm", name, self.names()))
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The algorithms, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Algorithm>> {
        self.by_name.values().map(|e| &e.algorithm)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
