//! Why nothing could be chosen. The text is the same on every rank.

use unisono_core::{Collective, Link, Rank, UnknownName};
use unisono_program::Unsupported;
use unisono_topology::OneWay;

use crate::{Require, TuneError, Way};

/// Why nothing could be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The name is not known.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// An override cannot be read.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The named algorithm cannot do it.
    #[error("{algorithm} cannot do {collective} here: {why}")]
    Unsupported {
        /// The algorithm.
        algorithm: String,
        /// The exchange.
        collective: Collective,
        /// What is missing.
        why: Unsupported,
    },
    /// No registered algorithm can do it.
    #[error("no algorithm can do {collective} here{}", listed(.reasons))]
    Nobody {
        /// The exchange.
        collective: Collective,
        /// What each one misses.
        reasons: Vec<(String, Unsupported)>,
    },
    /// An override asks for what cannot be had.
    #[error("the override `{entry}` is impossible for {collective}: {missing}")]
    Impossible {
        /// The override.
        entry: String,
        /// The exchange.
        collective: Collective,
        /// Which capability is missing.
        missing: String,
    },
    /// No links join all ranks.
    #[error("no links join all {size} ranks: {}", joins(.ways))]
    Apart {
        /// Number of ranks.
        size: Rank,
        /// What each way joins.
        ways: Vec<(Way, Vec<Vec<Rank>>)>,
    },
    /// Links that are required join only some ranks.
    #[error("{require} is required, but {}{}", joins(std::slice::from_ref(.joined)), one_ways(.one_way))]
    RequiredApart {
        /// What is required.
        require: Require,
        /// What it joins.
        joined: (Way, Vec<Vec<Rank>>),
        /// Cells that only one end lists.
        one_way: Vec<OneWay>,
    },
    /// A mesh is required, and pairs are missing.
    #[error("{require} is required, but there is no link {}{}", missing_of(.missing, *.pairs), one_ways(.one_way))]
    RequiredMesh {
        /// What is required.
        require: Require,
        /// The pairs without a link.
        missing: Vec<Link>,
        /// Number of pairs, linked or not.
        pairs: u64,
        /// Cells that only one end lists.
        one_way: Vec<OneWay>,
    },
    /// The facts name links that the group does not have.
    #[error("the facts have a link {link} over {way}, the group has none")]
    NoSuchLink {
        /// The first such link.
        link: Link,
        /// Over which way.
        way: Way,
    },
    /// The facts are about a world of another size.
    #[error("the facts are about {facts} ranks, the group has {group}")]
    OtherWorld {
        /// Ranks in the facts.
        facts: Rank,
        /// Ranks of the group.
        group: Rank,
    },
}

pub(crate) fn listed(reasons: &[(String, Unsupported)]) -> String {
    reasons
        .iter()
        .map(|(name, why)| format!("; {name}: {why}"))
        .collect()
}

/// `0-1 (5 of 6)`. All pairs are named: whoever reads this goes and plugs them in.
pub(crate) fn missing_of(missing: &[Link], pairs: u64) -> String {
    let names: Vec<String> = missing.iter().map(Link::to_string).collect();
    let there = pairs - missing.len() as u64;
    format!("{} ({there} of {pairs})", names.join(", "))
}

fn joins(ways: &[(Way, Vec<Vec<Rank>>)]) -> String {
    let each = ways.iter().map(|(way, components)| match &components[..] {
        [] => format!("no two ranks have a {way} link"),
        _ => format!("{way} joins only {}", in_braces(components)),
    });
    each.collect::<Vec<_>>().join("; ")
}

/// `{0,1} and {2,3}`.
pub(crate) fn in_braces(components: &[Vec<Rank>]) -> String {
    let each = components.iter().map(|component| {
        let ranks: Vec<String> = component.iter().map(Rank::to_string).collect();
        format!("{{{}}}", ranks.join(","))
    });
    each.collect::<Vec<_>>().join(" and ")
}

fn one_ways(cells: &[OneWay]) -> String {
    let each = cells.iter().map(|cell| format!("; {cell}"));
    each.collect()
}
