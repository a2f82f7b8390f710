//! From a described cluster (crate `unisono-topology`: files, generators, measurements) to one that runs, or is priced.
//!
//! [`Network::described`] says how each figure is taken over. Nothing else is known of a described cluster, so nothing is
//! shared: a star is a rank with many cables, not a switch. Add [`Network::with_segment`] for one.
//!
//! ```
//! use unisono_sim::{Cluster, Network, Op, Ask, Collective, DType, PieceCall};
//! use unisono_topology::{Transport, read};
//!
//! // Ranks 0 and 1 have two cables between them.
//! let described = read(r#"[
//!     [null, ["rdma_en4", "rdma_en5"], "rdma_en3"],
//!     [["rdma_en4", "rdma_en5"], null, "rdma_en3"],
//!     ["rdma_en3", "rdma_en4", null]
//! ]"#)?;
//! let network = Network::described(&described, Transport::Rdma);
//! assert_eq!(network.links().cost(1, 0).beta, 2 * network.links().cost(1, 2).beta);
//!
//! let cluster = Cluster::described(&described, Transport::Rdma);
//! let call = PieceCall::new(Collective::AllReduce, 1000, DType::F32).op(Op::Sum);
//! assert!(cluster.collective(&Ask::new(call)).into_result()?.1.total_ps > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::Duration;

use unisono_evaluator::LinkCost;
use unisono_topology::{Cluster as Described, Figures, Transport};

use crate::{Cluster, Network};

impl Network {
    /// What the links of `cluster` over `transport` cost, and its cores.
    ///
    /// | described | here |
    /// |---|---|
    /// | alpha, beta of a direction | latency and bandwidth of that direction |
    /// | rails | **multiply the bandwidth**, and not the latency: a message is spread evenly over them |
    /// | overhead | of either core, for every message |
    /// | gamma | what a core reduces or copies |
    pub fn described(cluster: &Described, transport: Transport) -> Network {
        let topology = cluster.topology(transport);
        // A declared mesh has equal rails everywhere, and is not to be looked at pair by pair.
        let rails = match topology.is_declared_full() {
            true => topology.rails(0, 1).max(1),
            false => 1,
        };
        let all = cluster.default_figures(transport);
        let usual = cost(&all, rails);
        let mut network = Network::uniform(usual.alpha_ns, usual.beta)
            .with_overhead_ns(nanoseconds(all.overhead.value));
        let gamma = cluster.gamma().value;
        if !gamma.is_unlimited() {
            network = network.with_reduce_rate(gamma.bytes_per_second());
        }
        if !topology.is_declared_full() {
            for (link, rails) in topology.links().filter(|&(_, rails)| rails != 1) {
                for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                    network = network.with_link(from, to, cost(&all, rails));
                }
            }
        }
        for (from, to, figures) in cluster.exceptions(transport) {
            let cost = cost(&figures, topology.rails(from, to));
            network = network.with_link(from, to, cost);
        }
        network
    }
}

impl Cluster {
    /// The ranks of `cluster`, linked where it has links over `transport`, at the cost that [`Network::described`] gives.
    /// Links over other transports are left out.
    pub fn described(cluster: &Described, transport: Transport) -> Cluster {
        Cluster::from_topology(cluster.topology(transport))
            .network(Network::described(cluster, transport))
    }
}

/// One direction of so many rails.
fn cost(figures: &Figures, rails: u32) -> LinkCost {
    let rate = figures.beta.value.bytes_per_second(); // 0: no limit, here as there
    LinkCost {
        alpha_ns: nanoseconds(figures.alpha.value),
        beta: rate.saturating_mul(rails.max(1).into()),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_topology::{LinkSpec, read};

    #[test]
    fn each_direction_costs_what_is_said_of_it() {
        let described = read(
            "ranks = 3\ngamma = \"30GB/s\"\n[rdma]\nalpha = \"4us\"\nbeta = \"6GB/s\"\noverhead = \"1us\"\n\
             [[links]]\nranks = [0, 1]\nrails = 3\n[[links]]\nfrom = 1\nto = 2\nalpha = \"9us\"\n\
             [[links]]\nfrom = 2\nto = 1\nbeta = \"1GB/s\"\n",
        )
        .unwrap();
        let network = Network::described(&described, Transport::Rdma);
        let figures = |from, to| {
            let cost = network.links().cost(from, to);
            (cost.alpha_ns, cost.beta)
        };
        assert_eq!(figures(0, 1), (4_000, 18_000_000_000));
        assert_eq!(figures(1, 0), (4_000, 18_000_000_000));
        assert_eq!(figures(1, 2), (9_000, 6_000_000_000));
        assert_eq!(figures(2, 1), (4_000, 1_000_000_000));
        assert_eq!(network.overhead_ps(), 1_000_000);
        assert_eq!(network.compute_ps(30_000), 1_000_000);
    }

    #[test]
    fn the_default_spec_is_the_default_network() {
        let described = Described::mesh(4, &LinkSpec::default()).unwrap();
        let network = Network::described(&described, Transport::Rdma);
        assert_eq!(network, Network::default());
    }

    #[test]
    fn a_mesh_of_rails_and_a_world_of_one_work() {
        let mesh = read("ranks = 3\n[rdma]\nmesh = 2\n").unwrap();
        let network = Network::described(&mesh, Transport::Rdma);
        assert_eq!(network.links().cost(2, 0).beta, 10_000_000_000);
        let alone = read("[[null]]").unwrap();
        assert_eq!(
            Cluster::described(&alone, Transport::Rdma)
                .topology()
                .size(),
            1
        );
    }

    #[test]
    fn what_is_unlimited_costs_nothing() {
        let spec: LinkSpec = "alpha=1us,bandwidth=unlimited".parse().unwrap();
        let described = Described::ring(4, &spec).unwrap();
        let network = Network::described(&described, Transport::Rdma);
        let link = network.links().cost(0, 1);
        assert_eq!(
            (link.transfer_ps(1 << 40), network.compute_ps(1 << 40)),
            (0, 0)
        );
    }
}
