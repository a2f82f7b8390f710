//! [`Facts`]: what the choice rests on, the same on every rank and frozen.
//!
//! ```
//! use unisono_select::{Facts, Way};
//!
//! // Three ranks in a line over RDMA.
//! let cluster = unisono_topology::read(r#"[[null,"a",null],["a",null,"b"],[null,"a",null]]"#)?;
//! let facts = Facts::of(&cluster);
//! let rdma = facts.network(Way::Rdma).unwrap();
//! assert!(rdma.is_connected() && !rdma.is_full());
//! assert_eq!(rdma.topology().centre(), Some(1));
//! assert_eq!(rdma.figures().alpha.from.to_string(), "preset thunderbolt5-rdma");
//! # Ok::<(), unisono_topology::TopologyError>(())
//! ```
//!
//! Measured figures are rounded to two digits, so that a choice does not depend on the noise of a ping; figures that somebody
//! wrote stand as they are. Nothing here reads a clock or the environment: equal clusters give equal facts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use unisono_core::{Rank, Topology};
use unisono_evaluator::{LinkCost, Links};
use unisono_topology::{Cluster, Figure, Figures, OneWay, Provenance, Rate, Transport};

use crate::Way;

/// Ranks, links and figures.
#[derive(Debug, Clone)]
pub struct Facts {
    size: Rank,
    networks: Vec<Network>,
    gamma: Figure<Rate>,
    one_way: Vec<OneWay>,
}

/// The links of one way.
#[derive(Debug, Clone)]
pub struct Network {
    way: Way,
    topology: Arc<Topology>,
    connected: bool,
    default: Figures,
    own: BTreeMap<(Rank, Rank), Figures>,
    overhead: Duration,
    gamma: Rate,
}

impl Facts {
    /// What a cluster file, a generator or a measurement says.
    pub fn of(cluster: &Cluster) -> Facts {
        let gamma = Figure {
            value: match cluster.gamma() {
                Figure {
                    value,
                    from: Provenance::Measured,
                } => Rate::new(two_digits(value.bytes_per_second())),
                given => given.value,
            },
            from: cluster.gamma().from,
        };
        let of = |t| Network::of(cluster, t, gamma.value);
        let mut networks: Vec<Network> = cluster.transports().map(of).collect();
        if let [rdma, tcp] = &networks[..]
            && !rdma.connected
        {
            networks.push(Network::mixed(rdma, tcp));
        }
        Facts {
            size: cluster.size(),
            networks,
            gamma,
            one_way: cluster.one_way(),
        }
    }

    /// Number of ranks.
    pub fn size(&self) -> Rank {
        self.size
    }

    /// The ways that have a link, the preferred one first; none in a world of one.
    pub fn networks(&self) -> &[Network] {
        &self.networks
    }

    /// The links of this way.
    pub fn network(&self, way: Way) -> Option<&Network> {
        self.networks.iter().find(|n| n.way == way)
    }

    /// How fast a core reduces or copies.
    pub fn gamma(&self) -> Figure<Rate> {
        self.gamma
    }

    /// Cells of the file that only one end lists.
    pub fn one_way(&self) -> &[OneWay] {
        &self.one_way
    }
}

impl Network {
    fn of(cluster: &Cluster, transport: Transport, gamma: Rate) -> Network {
        let topology = cluster.topology(transport);
        let default = quantised(cluster.default_figures(transport));
        let own = cluster.exceptions(transport);
        Network {
            way: transport.into(),
            connected: topology.is_connected(),
            topology: Arc::new(topology),
            own: own.map(|(a, b, f)| ((a, b), quantised(f))).collect(),
            overhead: default.overhead.value,
            default,
            gamma,
        }
    }

    /// RDMA where it is, TCP elsewhere. Both cost a core what the dearer one does: there is one figure for all messages.
    fn mixed(rdma: &Network, tcp: &Network) -> Network {
        let mut own = rdma.own.clone();
        let mut links: Vec<(Rank, Rank, u32)> = Vec::new();
        for (link, rails) in rdma.topology.links() {
            links.push((link.a, link.b, rails));
        }
        for (link, rails) in tcp.topology.links() {
            if !rdma.topology.linked(link.a, link.b) {
                links.push((link.a, link.b, rails));
                for pair in [(link.a, link.b), (link.b, link.a)] {
                    own.insert(pair, tcp.own.get(&pair).copied().unwrap_or(tcp.default));
                }
            }
        }
        let topology = Topology::from_rails(rdma.topology.size(), links);
        Network {
            way: Way::Mixed,
            connected: topology.is_connected(),
            topology: Arc::new(topology),
            default: rdma.default,
            own,
            overhead: rdma.overhead.max(tcp.overhead),
            gamma: rdma.gamma,
        }
    }

    /// Which way these links are.
    pub fn way(&self) -> Way {
        self.way
    }

    /// The links.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// Whether they join all ranks, over others if need be.
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether every two ranks have one.
    pub fn is_full(&self) -> bool {
        self.topology.is_full()
    }

    /// What a link costs that has no figures of its own.
    pub fn figures(&self) -> Figures {
        self.default
    }

    /// Directions `(from, to)` with figures of their own.
    pub fn own_figures(&self) -> impl Iterator<Item = (Rank, Rank, Figures)> + '_ {
        self.own.iter().map(|(&(a, b), &f)| (a, b, f))
    }

    /// The most rails that any two ranks have.
    pub fn most_rails(&self) -> u32 {
        if self.topology.is_declared_full() {
            return self.topology.rails(0, 1).max(1);
        }
        self.topology.links().map(|(_, r)| r).max().unwrap_or(1)
    }

    /// Whether all links are alike, so that no rank of a full mesh is better placed than another.
    pub fn is_uniform(&self) -> bool {
        let mut rails = self.topology.links().map(|(_, r)| r);
        let alike = self.topology.is_declared_full() || {
            let first = rails.next();
            rails.all(|r| Some(r) == first)
        };
        self.own.is_empty() && alike
    }

    /// What a core pays for each message it sends or receives.
    pub fn overhead(&self) -> Duration {
        self.overhead
    }

    /// What links and cores cost a program with so many channels: each channel keeps to one rail, so two rails serve two.
    pub fn links(&self, channels: u16) -> Links {
        let topology = &self.topology;
        let uniform = topology.is_declared_full();
        let most = match uniform {
            true => self.most_rails(),
            false => 1,
        };
        let base = cost(&self.default, most.min(channels.into()));
        let mut links = Links::uniform(base.alpha_ns, base.beta)
            .with_overhead_ns(self.overhead.as_nanos() as u64);
        if !self.gamma.is_unlimited() {
            links = links.with_reduce_rate(self.gamma.bytes_per_second());
        }
        if !uniform {
            for (link, rails) in topology.links().filter(|&(_, r)| r > 1) {
                let each = cost(&self.default, rails.min(channels.into()));
                links = links
                    .with_link(link.a, link.b, each)
                    .with_link(link.b, link.a, each);
            }
        }
        for (&(a, b), figures) in &self.own {
            let rails = topology.rails(a, b).min(channels.into());
            links = links.with_link(a, b, cost(figures, rails));
        }
        links
    }
}

fn cost(figures: &Figures, rails: u32) -> LinkCost {
    let beta = figures.beta.value.bytes_per_second();
    LinkCost {
        alpha_ns: figures.alpha.value.as_nanos() as u64,
        beta: beta.saturating_mul(rails.max(1).into()),
    }
}

/// What was measured, to two digits.
fn quantised(figures: Figures) -> Figures {
    let time = |f: Figure<Duration>| match f.from {
        Provenance::Measured => {
            Figure::measured(Duration::from_nanos(two_digits(f.value.as_nanos() as u64)))
        }
        _ => f,
    };
    let beta = match figures.beta.from {
        Provenance::Measured => {
            Figure::measured(Rate::new(two_digits(figures.beta.value.bytes_per_second())))
        }
        _ => figures.beta,
    };
    Figures {
        alpha: time(figures.alpha),
        beta,
        overhead: time(figures.overhead),
    }
}

/// The nearest number with two digits and zeros.
fn two_digits(n: u64) -> u64 {
    let unit = 10u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
    (n / unit).saturating_add(u64::from(n % unit >= unit.div_ceil(2) && unit > 1)) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_are_kept_and_the_rest_rounded() {
        for (n, kept) in [
            (0, 0),
            (7, 7),
            (99, 99),
            (104, 100),
            (105, 110),
            (4_949, 4_900),
            (4_950, 5_000),
            (996, 1000),
        ] {
            assert_eq!(two_digits(n), kept, "{n}");
        }
    }

    #[test]
    fn noise_of_a_measurement_does_not_reach_the_facts() {
        let facts = |ns, rate| {
            let mut cluster = unisono_topology::read(r#"[[null,"a"],["b",null]]"#).unwrap();
            for pair in [(0, 1), (1, 0)] {
                cluster
                    .set_measured(
                        Transport::Rdma,
                        pair,
                        Duration::from_nanos(ns),
                        Rate::new(rate),
                    )
                    .unwrap();
            }
            Facts::of(&cluster).network(Way::Rdma).unwrap().links(1)
        };
        assert_eq!(facts(5_021, 4_980_000_000), facts(4_977, 5_010_000_000));
        assert_ne!(facts(5_021, 4_980_000_000), facts(4_877, 5_010_000_000));
    }

    #[test]
    fn two_rails_carry_twice_as_much_for_two_channels_only() {
        let cluster = unisono_topology::read(r#"[[null,["a","b"]],[["a","b"],null]]"#).unwrap();
        let facts = Facts::of(&cluster);
        let rdma = facts.network(Way::Rdma).unwrap();
        assert_eq!(rdma.most_rails(), 2);
        assert_eq!(rdma.links(1).cost(0, 1).beta, 5_000_000_000);
        assert_eq!(rdma.links(2).cost(1, 0).beta, 10_000_000_000);
        assert_eq!(rdma.links(4).cost(1, 0).beta, 10_000_000_000);
    }
}
