//! Clusters that no file describes: mesh, ring, line, star, torus.

use unisono_core::{Rank, Topology};

use crate::{Cluster, LinkSpec, TopologyError};

impl Cluster {
    /// Every two of `ranks` ranks linked.
    ///
    /// # Errors
    /// [`TopologyError`] for no ranks or too many; so for every shape.
    pub fn mesh(ranks: Rank, spec: &LinkSpec) -> Result<Cluster, TopologyError> {
        Cluster::from_topology(&Topology::full(ranks), spec)
    }

    /// Each rank linked with the next, the last with the first.
    ///
    /// # Errors
    /// See [`Cluster::mesh`].
    pub fn ring(ranks: Rank, spec: &LinkSpec) -> Result<Cluster, TopologyError> {
        Cluster::of(ranks.into(), spec, |p| {
            (0..p).map(move |r| (r, (r + 1) % p))
        })
    }

    /// Each rank linked with the next.
    ///
    /// # Errors
    /// See [`Cluster::mesh`].
    pub fn line(ranks: Rank, spec: &LinkSpec) -> Result<Cluster, TopologyError> {
        Cluster::of(ranks.into(), spec, |p| (1..p).map(|r| (r - 1, r)))
    }

    /// Rank 0 linked with every other.
    ///
    /// # Errors
    /// See [`Cluster::mesh`].
    pub fn star(ranks: Rank, spec: &LinkSpec) -> Result<Cluster, TopologyError> {
        Cluster::of(ranks.into(), spec, |p| (1..p).map(|r| (0, r)))
    }

    /// `a` rows of `b` ranks, each row and each column a ring: rank `x*b + y` stands in row x, column y.
    ///
    /// # Errors
    /// See [`Cluster::mesh`].
    pub fn torus(a: Rank, b: Rank, spec: &LinkSpec) -> Result<Cluster, TopologyError> {
        Cluster::of(u64::from(a) * u64::from(b), spec, |p| {
            (0..p).flat_map(move |r| {
                let (x, y) = (r / b, r % b);
                [(r, (x + 1) % a * b + y), (r, x * b + (y + 1) % b)]
            })
        })
    }

    /// The size is checked before any link is made.
    fn of<L: Iterator<Item = (Rank, Rank)>>(
        ranks: u64,
        spec: &LinkSpec,
        links: impl Fn(Rank) -> L,
    ) -> Result<Cluster, TopologyError> {
        let ranks = Cluster::without_links(ranks)?.size;
        Cluster::from_topology(&Topology::from_links(ranks, links(ranks)), spec)
    }
}

/// Reads the sides of a torus: `4x8`.
///
/// # Errors
/// [`TopologyError::Torus`].
pub fn parse_torus(text: &str) -> Result<(Rank, Rank), TopologyError> {
    let side = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        digits
            .then(|| text.parse().ok())
            .flatten()
            .filter(|&n| n > 0)
    };
    text.split_once('x')
        .and_then(|(a, b)| Some((side(a)?, side(b)?)))
        .ok_or_else(|| TopologyError::Torus {
            text: crate::text::shown(text),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Preset, Transport};

    fn links(cluster: Result<Cluster, TopologyError>) -> Vec<String> {
        let topology = cluster.unwrap().topology(Transport::Rdma);
        topology.links().map(|(link, _)| link.to_string()).collect()
    }

    #[test]
    fn shapes_have_the_links_of_their_names() {
        let spec = LinkSpec::default();
        assert_eq!(links(Cluster::mesh(3, &spec)), ["0-1", "0-2", "1-2"]);
        assert_eq!(links(Cluster::ring(4, &spec)), ["0-1", "0-3", "1-2", "2-3"]);
        assert_eq!(links(Cluster::line(3, &spec)), ["0-1", "1-2"]);
        assert_eq!(links(Cluster::star(4, &spec)), ["0-1", "0-2", "0-3"]);
        assert_eq!(links(Cluster::torus(3, 4, &spec)).len(), 24);
        assert_eq!(
            links(Cluster::torus(2, 3, &spec)),
            [
                "0-1", "0-2", "0-3", "1-2", "1-4", "2-5", "3-4", "3-5", "4-5"
            ]
        );
        for one in [
            Cluster::mesh(1, &spec),
            Cluster::ring(1, &spec),
            Cluster::torus(1, 1, &spec),
        ] {
            assert!(links(one).is_empty());
        }
    }

    #[test]
    fn links_go_over_the_transport_of_their_spec() {
        let cluster = Cluster::ring(3, &Preset::TenGbe.spec()).unwrap();
        assert_eq!(cluster.transports().collect::<Vec<_>>(), [Transport::Tcp]);
        assert_eq!(
            cluster.default_figures(Transport::Tcp).alpha,
            Preset::TenGbe.spec().alpha
        );
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let spec = LinkSpec::default();
        assert!(matches!(
            Cluster::mesh(0, &spec),
            Err(TopologyError::NoRanks)
        ));
        for cluster in [
            Cluster::ring(Rank::MAX, &spec),
            Cluster::torus(1 << 20, 1 << 20, &spec),
        ] {
            assert!(matches!(cluster, Err(TopologyError::TooManyRanks { .. })));
        }
        assert_eq!(parse_torus("4x8").unwrap(), (4, 8));
        for text in [
            "",
            "4",
            "x",
            "4x",
            "0x4",
            "4x-1",
            "4x8x2",
            "4 x 8",
            "99999999999x1",
        ] {
            assert!(parse_torus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ten_thousand_ranks_in_a_mesh_cost_nothing() {
        let cluster = Cluster::mesh(10_000, &LinkSpec::default()).unwrap();
        assert!(cluster.topology(Transport::Rdma).is_declared_full());
        assert!(cluster.to_toml().len() < 200);
    }
}
