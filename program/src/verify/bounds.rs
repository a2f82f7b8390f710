//! What a program set costs, beside the least that any could.
//!
//! Traffic is counted in vectors: the larger buffer of one rank (all_to_all: its p rows). The bounds hold for every
//! algorithm that does not rely on contents: each rank must get what it lacks, and each contribution must leave.
//!
//! | collective | sent, largest | received, largest |
//! |---|---|---|
//! | all_reduce | 2(p-1)/p | 2(p-1)/p |
//! | reduce_scatter, all_gather, all_to_all | (p-1)/p | (p-1)/p |
//! | broadcast, reduce | 1 | 1 |
//! | gather | 1/p | (p-1)/p |
//! | scatter | (p-1)/p | 1/p |

use std::collections::BTreeMap;
use std::fmt;

use unisono_core::{Collective, Rank};

use super::graph::Graph;
use super::rounds;

/// A share of a vector, as a fraction in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Share {
    /// Numerator.
    pub blocks: u64,
    /// Denominator.
    pub of: u64,
}

impl Share {
    /// `blocks / of`, reduced. `of` 0 counts as 1.
    pub fn new(blocks: u64, of: u64) -> Share {
        let of = of.max(1);
        let (mut a, mut b) = (blocks, of);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        Share {
            blocks: blocks / a.max(1),
            of: of / a.max(1),
        }
    }

    /// As a number.
    pub fn as_f64(self) -> f64 {
        self.blocks as f64 / self.of as f64
    }
}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Share) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Share {
    fn cmp(&self, other: &Share) -> std::cmp::Ordering {
        let cross = |a: u64, b: u64| u128::from(a) * u128::from(b);
        cross(self.blocks, other.of).cmp(&cross(other.blocks, self.of))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            1 => write!(f, "{}", self.blocks),
            of => write!(f, "{}/{of}", self.blocks),
        }
    }
}

/// What one rank moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Traffic {
    /// Sent, in vectors.
    pub sent: Share,
    /// Received, in vectors.
    pub received: Share,
    /// Messages sent, at one segment per step.
    pub messages: u64,
}

/// That a program set is right, and what it costs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proof {
    /// Name of the algorithm.
    pub algorithm: String,
    /// The exchange.
    pub collective: Collective,
    /// What each rank moves.
    pub ranks: Vec<Traffic>,
    /// The most that any rank sends, in vectors.
    pub sent: Share,
    /// What some rank sends at least, whatever the algorithm.
    pub sent_bound: Share,
    /// The most that any rank receives, in vectors.
    pub received: Share,
    /// What some rank receives at least, whatever the algorithm.
    pub received_bound: Share,
    /// The directed link that carries most, and how much, in vectors.
    pub busiest_link: Option<(Rank, Rank, Share)>,
    /// Messages on the longest chain: the rounds if ports are no limit (a mesh with a link to every peer).
    pub depth: u64,
    /// The least depth: 1 where anything must be moved.
    pub depth_bound: u64,
    /// Rounds if each rank can send one message and receive one message at a time.
    pub rounds: u64,
    /// The least rounds with one port: ceil(log2 p), since in each round the ranks that know of a rank can only double.
    pub rounds_bound: u64,
    /// Messages of all ranks, at one segment per step.
    pub messages: u64,
    /// Steps of all ranks.
    pub steps: u64,
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = self.ranks.len();
        writeln!(
            f,
            "{} {} on {p} ranks: verified",
            self.collective, self.algorithm
        )?;
        let row = |f: &mut fmt::Formatter<'_>,
                   name,
                   found: &dyn fmt::Display,
                   bound: &dyn fmt::Display| {
            writeln!(f, "  {name:<22} {found} (bound {bound})")
        };
        row(f, "sent, in vectors", &self.sent, &self.sent_bound)?;
        row(
            f,
            "received, in vectors",
            &self.received,
            &self.received_bound,
        )?;
        if let Some((from, to, share)) = self.busiest_link {
            writeln!(f, "  {:<22} {share} on {from} -> {to}", "busiest link")?;
        }
        row(f, "rounds, one port", &self.rounds, &self.rounds_bound)?;
        row(f, "rounds, all ports", &self.depth, &self.depth_bound)?;
        write!(
            f,
            "  {:<22} {} in {} steps",
            "messages", self.messages, self.steps
        )
    }
}

/// Counts what the steps move.
pub(super) fn proof(graph: &Graph<'_>) -> Proof {
    let programs = graph.programs;
    let size = programs.len() as u64;
    let (first, blocks) = match programs.first() {
        Some(p) => (p.clone(), p.blocks * u64::from(p.subs)),
        None => return empty(),
    };
    let vector = match first.collective {
        Collective::AllToAll => blocks / size,
        _ => blocks,
    };
    let mut counts = vec![(0u64, 0u64, 0u64); programs.len()];
    let mut links: BTreeMap<(Rank, Rank), u64> = BTreeMap::new();
    for id in 0..graph.len() {
        if let Some(sender) = graph.sender(id) {
            let (from, to) = (graph.node(sender).rank, graph.node(id).rank);
            let len = graph.node(id).run.target.span.len;
            counts[from as usize].0 += len;
            counts[from as usize].2 += 1;
            counts[to as usize].1 += len;
            *links.entry((from, to)).or_default() += len;
        }
    }
    let share = |count| Share::new(count, vector);
    let ranks: Vec<Traffic> = counts
        .iter()
        .map(|&(sent, received, messages)| Traffic {
            sent: share(sent),
            received: share(received),
            messages,
        })
        .collect();
    let busiest = links
        .into_iter()
        .max_by_key(|&((a, b), n)| (n, std::cmp::Reverse((a, b))));
    let (sent_bound, received_bound) = traffic_bounds(first.collective, size);
    Proof {
        algorithm: first.algorithm.clone(),
        collective: first.collective,
        sent: share(counts.iter().map(|c| c.0).max().unwrap_or(0)),
        sent_bound,
        received: share(counts.iter().map(|c| c.1).max().unwrap_or(0)),
        received_bound,
        busiest_link: busiest
            .filter(|&(_, n)| n > 0)
            .map(|((a, b), n)| (a, b, share(n))),
        depth: rounds::depth(graph),
        depth_bound: u64::from(size > 1),
        rounds: rounds::one_port(graph),
        rounds_bound: u64::from(size.max(1).next_power_of_two().trailing_zeros()),
        messages: counts.iter().map(|c| c.2).sum(),
        steps: graph.len().into(),
        ranks,
    }
}

fn empty() -> Proof {
    let none = Share::new(0, 1);
    Proof {
        algorithm: String::new(),
        collective: Collective::Barrier,
        ranks: Vec::new(),
        sent: none,
        sent_bound: none,
        received: none,
        received_bound: none,
        busiest_link: None,
        depth: 0,
        depth_bound: 0,
        rounds: 0,
        rounds_bound: 0,
        messages: 0,
        steps: 0,
    }
}

/// What some rank must send and receive at least, in vectors.
fn traffic_bounds(collective: Collective, p: u64) -> (Share, Share) {
    use Collective as C;
    let others = Share::new(p - 1, p);
    let (row, whole) = if p > 1 {
        (Share::new(1, p), Share::new(1, 1))
    } else {
        (others, others)
    };
    match collective {
        C::AllReduce => (Share::new(2 * (p - 1), p), Share::new(2 * (p - 1), p)),
        C::ReduceScatter | C::AllGather | C::AllToAll => (others, others),
        C::Broadcast | C::Reduce => (whole, whole),
        C::Gather => (row, others),
        C::Scatter => (others, row),
        _ => (Share::new(0, 1), Share::new(0, 1)),
    }
}
