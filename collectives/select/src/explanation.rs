//! [`Explanation`]: a choice with its reasons, to be printed or written as JSON.
//!
//! ```text
//! {"chosen": {"algorithm", "transport", "variant", "predicted_us", "bound_share"},
//!  "rejected": [{"algorithm", "transport", "reason"}], "facts": {...}, "ring": [...] | null}
//! ```

use std::fmt;

use serde::Serialize;
use unisono_core::{Collective, Rank};

/// What a call uses, what it does not use, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// What is used.
    pub chosen: Chosen,
    /// What is not, each with its reason.
    pub rejected: Vec<Rejected>,
    /// What both rest on.
    pub facts: FactsShown,
    /// A ring through all ranks over the links that may be used, from rank 0 on, the smaller neighbour first; whatever was
    /// chosen.
    pub ring: Option<Vec<Rank>>,
}

/// What is used.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Chosen {
    /// Name of the algorithm.
    pub algorithm: String,
    /// `rdma`, `tcp`, `rdma+tcp`; `none` in a world of one.
    pub transport: String,
    /// `channels=N,segments=N`, as an override would say it.
    pub variant: String,
    /// Microseconds; `None` where nothing is priced.
    pub predicted_us: Option<f64>,
    /// The least possible time over the predicted one, at most 1.
    pub bound_share: Option<f64>,
}

/// What is not used.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rejected {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Over which links.
    pub transport: String,
    /// Why not.
    pub reason: String,
    /// Microseconds, of those that have a price: the reason says it, so the object has no such key.
    #[serde(skip)]
    pub predicted_us: Option<f64>,
}

/// What a choice rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FactsShown {
    /// The exchange.
    #[serde(serialize_with = "name")]
    pub op: Collective,
    /// Bytes of the larger buffer.
    pub bytes: u64,
    /// The root, where there is one.
    pub root: Option<Rank>,
    /// Number of ranks.
    pub ranks: Rank,
    /// How it was chosen.
    pub policy: String,
    /// What is required.
    pub require: Option<String>,
    /// The override that decided.
    #[serde(rename = "override")]
    pub entry: Option<String>,
    /// The least possible time.
    pub bound_us: Option<f64>,
    /// What binds it.
    pub bound_by: Option<String>,
    /// Rate at which a core reduces or copies.
    pub reduce: Option<String>,
    /// Where that figure came from.
    pub reduce_from: Option<String>,
    /// The links of each transport, the preferred one first.
    pub links: Vec<LinksShown>,
    /// Cells that only one end lists.
    pub one_way: Vec<String>,
}

/// The links of one transport.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LinksShown {
    /// `rdma`, `tcp` or `rdma+tcp`.
    pub transport: String,
    /// Linked pairs.
    pub links: u64,
    /// Pairs, linked or not.
    pub pairs: u64,
    /// The pairs without a link, the first hundred of them.
    pub missing: Vec<String>,
    /// The most rails of a pair.
    pub rails: u32,
    /// Hops between the two ranks farthest apart.
    pub diameter: Option<u32>,
    /// The rank from which the farthest is nearest.
    pub centre: Option<Rank>,
    /// Links without which the world falls apart.
    pub bridges: Vec<String>,
    /// The ranks that can reach each other; one component where all can.
    pub components: Vec<Vec<Rank>>,
    /// `found`, or why there is none.
    pub ring: String,
    /// Latency.
    pub alpha: String,
    /// Where that figure came from.
    pub alpha_from: String,
    /// Bandwidth of one rail, one way.
    pub bandwidth: String,
    /// Where that figure came from.
    pub bandwidth_from: String,
    /// What a message costs a core at each end.
    pub overhead: String,
    /// Where that figure came from.
    pub overhead_from: String,
    /// Directions with figures of their own.
    pub own_figures: usize,
}

fn name<S: serde::Serializer>(op: &Collective, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(op.name())
}

impl Explanation {
    /// The object on one line.
    pub fn to_json(&self) -> String {
        match serde_json::to_string(self) {
            Ok(text) => text,
            Err(_) => unreachable!("strings and numbers are always written"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (facts, chosen) = (&self.facts, &self.chosen);
        write!(
            f,
            "{} of {} bytes on {} ranks",
            facts.op, facts.bytes, facts.ranks
        )?;
        if let Some(root) = facts.root {
            write!(f, ", root {root}")?;
        }
        writeln!(f)?;
        let mut rows = vec![
            [
                chosen.algorithm.as_str(),
                &chosen.transport,
                &chosen.variant,
                "chosen",
            ]
            .map(str::to_owned),
        ];
        if let Some(us) = chosen.predicted_us {
            rows[0][3] = format!("chosen: {us} us predicted");
            if let Some(share) = chosen.bound_share {
                rows[0][3] += &format!(", {:.0} % of the bound", share * 100.0);
            }
        }
        for rejected in &self.rejected {
            let reason = &rejected.reason;
            rows.push([&rejected.algorithm, &rejected.transport, "", reason].map(str::to_owned));
        }
        let width = |column: usize| rows.iter().map(|r| r[column].len()).max().unwrap_or(0);
        let (a, b, c) = (width(0), width(1), width(2));
        for [algorithm, transport, variant, why] in &rows {
            writeln!(f, "  {algorithm:a$}  {transport:b$}  {variant:c$}  {why}")?;
        }
        write!(f, "{facts}")?;
        match &self.ring {
            Some(ring) => writeln!(f, "ring: {}", dashed(ring)),
            None => writeln!(f, "ring: none"),
        }
    }
}

impl fmt::Display for FactsShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "policy: {}", self.policy)?;
        if let Some(require) = &self.require {
            writeln!(f, "required: {require}")?;
        }
        if let Some(entry) = &self.entry {
            writeln!(f, "override: {entry}")?;
        }
        if let (Some(us), Some(by)) = (self.bound_us, &self.bound_by) {
            writeln!(f, "bound: {us} us, by {by}")?;
        }
        for links in &self.links {
            write!(f, "{links}")?;
        }
        if let (Some(rate), Some(from)) = (&self.reduce, &self.reduce_from) {
            writeln!(f, "cores: reduce {rate} ({from})")?;
        }
        for cell in &self.one_way {
            writeln!(f, "one way: {cell}")?;
        }
        Ok(())
    }
}

impl fmt::Display for LinksShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let l = self;
        write!(f, "{}: {} of {} links", l.transport, l.links, l.pairs)?;
        if !l.missing.is_empty() {
            let absent = l.pairs - l.links;
            let more = absent - l.missing.len() as u64;
            write!(f, ", no {}", l.missing.join(", "))?;
            if more > 0 {
                write!(f, " and {more} more")?;
            }
        }
        if l.rails > 1 {
            write!(f, ", up to {} rails", l.rails)?;
        }
        if l.components.len() > 1 {
            write!(f, ", joins only {}", crate::error::in_braces(&l.components))?;
        }
        if let (Some(diameter), Some(centre)) = (l.diameter, l.centre) {
            write!(f, "; diameter {diameter}, centre {centre}")?;
        }
        if !l.bridges.is_empty() {
            write!(f, ", bridges {}", l.bridges.join(", "))?;
        }
        writeln!(f, "; ring {}", l.ring)?;
        writeln!(
            f,
            "  alpha {} ({}), bandwidth {} a rail ({}), overhead {} ({})",
            l.alpha, l.alpha_from, l.bandwidth, l.bandwidth_from, l.overhead, l.overhead_from
        )?;
        match l.own_figures {
            0 => Ok(()),
            n => writeln!(f, "  {n} directions have figures of their own"),
        }
    }
}

fn dashed(ring: &[Rank]) -> String {
    let ranks: Vec<String> = ring.iter().map(Rank::to_string).collect();
    ranks.join("-")
}
