//! The cluster: ranks, their hosts, and what is known of every pair of them.
//!
//! Knowledge is directed, because files are: each rank says which devices it has towards each other rank. A **link** exists
//! where both ends say so; what only one end says is kept for reports ([`Cluster::one_way`]). Names are per host: rank 0 may
//! reach rank 1 over `rdma_en4` and rank 1 answer over `rdma_en5`. The first name of one end belongs to the first of the
//! other.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use unisono_core::{Link, Rank, Topology};

use crate::address::Address;
use crate::text::shown;
use crate::{Figure, LinkSpec, Preset, Provenance, Rate, TopologyError, Transport};

/// The most ranks that are taken.
pub const MAX_RANKS: u64 = 1 << 20;

/// Ranks, hosts and links: what a file says, or a generator makes.
///
/// ```
/// use unisono_topology::{Transport, read};
///
/// let cluster = read(r#"[[null, "rdma_en4"], ["rdma_en5", null]]"#)?;
/// assert!(cluster.topology(Transport::Rdma).is_full());
/// let rails = cluster.rails(Transport::Rdma, 0, 1);
/// assert_eq!((rails[0].near, rails[0].far), (Some("rdma_en4"), Some("rdma_en5")));
/// let figures = cluster.figures(Transport::Rdma, 0, 1).unwrap();
/// assert_eq!(figures.alpha.from.to_string(), "preset thunderbolt5-rdma");
/// # Ok::<(), unisono_topology::TopologyError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    pub(crate) size: Rank,
    /// None, or one per rank.
    pub(crate) hosts: Vec<Host>,
    pub(crate) backend: Option<String>,
    pub(crate) envs: Vec<String>,
    pub(crate) gamma: Option<Figure<Rate>>,
    pub(crate) rdma: Network,
    pub(crate) tcp: Network,
}

/// Where a rank runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Host {
    /// The name to log in with.
    pub ssh: Option<String>,
    /// IP addresses or host names, without a port; may repeat: one connection each.
    pub ips: Vec<String>,
    /// Addresses with a port, one connection each.
    pub addresses: Vec<Address>,
}

/// One cable of a link, or one connection, seen from one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rail<'a> {
    /// The device at this end, where devices are named.
    pub near: Option<&'a str>,
    /// The device at the other end.
    pub far: Option<&'a str>,
}

/// What one direction of a link costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Latency.
    pub alpha: Figure<Duration>,
    /// Bandwidth of one rail.
    pub beta: Figure<Rate>,
    /// What a message costs a core at each end.
    pub overhead: Figure<Duration>,
}

/// Rails that one end lists and the other does not: no link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneWay {
    /// Over this transport.
    pub transport: Transport,
    /// The rank that lists them; the row of a matrix.
    pub from: Rank,
    /// The rank that should list them as well; the column.
    pub to: Rank,
    /// How many rails too many.
    pub rails: u32,
    /// Their devices, where named.
    pub devices: Vec<String>,
}

impl fmt::Display for OneWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OneWay {
            from, to, rails, ..
        } = self;
        let (first, more) = self.devices.split_at(self.devices.len().min(4));
        match first.iter().map(|name| shown(name)).collect::<Vec<_>>() {
            names if names.is_empty() => write!(f, "{rails} rail(s)")?,
            names => write!(f, "`{}`", names.join("`, `"))?,
        }
        if !more.is_empty() {
            write!(f, " and {} more", more.len())?;
        }
        write!(
            f,
            " at ({from}, {to}) without a counterpart at ({to}, {from})"
        )
    }
}

/// The links of one transport.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Network {
    /// Where figures come from that nobody gave.
    pub(crate) preset: Preset,
    pub(crate) alpha: Option<Figure<Duration>>,
    pub(crate) beta: Option<Figure<Rate>>,
    pub(crate) overhead: Option<Figure<Duration>>,
    /// Rails between every pair of ranks; 0: only what the sides say.
    pub(crate) mesh: u32,
    /// What the first rank says of its way to the second.
    pub(crate) sides: BTreeMap<(Rank, Rank), Side>,
}

/// What one rank says of its way to another.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Side {
    /// `None`: as many as there are anyway, one at least.
    pub(crate) rails: Option<Rails>,
    pub(crate) alpha: Option<Figure<Duration>>,
    pub(crate) beta: Option<Figure<Rate>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rails {
    Count(u32),
    Named(Vec<String>),
}

impl Rails {
    pub(crate) fn count(&self) -> u32 {
        match self {
            Rails::Count(count) => *count,
            Rails::Named(names) => names.len() as u32,
        }
    }

    fn name(&self, rail: u32) -> Option<&str> {
        match self {
            Rails::Count(_) => None,
            Rails::Named(names) => names.get(rail as usize).map(String::as_str),
        }
    }
}

impl Network {
    fn new(transport: Transport) -> Network {
        Network {
            preset: transport.default_preset(),
            alpha: None,
            beta: None,
            overhead: None,
            mesh: 0,
            sides: BTreeMap::new(),
        }
    }

    fn apply(&mut self, spec: &LinkSpec) {
        let known = |from| !matches!(from, Provenance::Preset(_));
        let froms = [spec.alpha.from, spec.bandwidth.from, spec.overhead.from];
        if let Some(preset) = froms.into_iter().find_map(|from| match from {
            Provenance::Preset(preset) => Some(preset),
            _ => None,
        }) {
            self.preset = preset;
        }
        self.alpha = known(spec.alpha.from).then_some(spec.alpha);
        self.beta = known(spec.bandwidth.from).then_some(spec.bandwidth);
        self.overhead = known(spec.overhead.from).then_some(spec.overhead);
    }

    fn figures(&self, side: Option<&Side>) -> Figures {
        let preset = self.preset.spec();
        let alpha = side.and_then(|s| s.alpha).or(self.alpha);
        let beta = side.and_then(|s| s.beta).or(self.beta);
        Figures {
            alpha: alpha.unwrap_or(preset.alpha),
            beta: beta.unwrap_or(preset.bandwidth),
            overhead: self.overhead.unwrap_or(preset.overhead),
        }
    }
}

impl Cluster {
    /// So many ranks without a link.
    pub(crate) fn without_links(ranks: u64) -> Result<Cluster, TopologyError> {
        match ranks {
            0 => Err(TopologyError::NoRanks),
            1..=MAX_RANKS => Ok(Cluster {
                size: ranks as Rank,
                hosts: Vec::new(),
                backend: None,
                envs: Vec::new(),
                gamma: None,
                rdma: Network::new(Transport::Rdma),
                tcp: Network::new(Transport::Tcp),
            }),
            _ => Err(TopologyError::TooManyRanks {
                ranks,
                most: MAX_RANKS,
            }),
        }
    }

    /// The links of `topology`, all of one sort.
    ///
    /// # Errors
    /// [`TopologyError`] for no ranks, too many, or several without any link.
    pub fn from_topology(topology: &Topology, spec: &LinkSpec) -> Result<Cluster, TopologyError> {
        let mut cluster = Cluster::without_links(u64::from(topology.size()))?.with_spec(spec);
        let network = cluster.network_mut(spec.transport);
        if topology.is_declared_full() {
            // Of a world of one there is no pair to ask.
            network.mesh = topology.rails(0, 1).max(1);
        } else {
            for (Link { a, b }, rails) in topology.links() {
                for pair in [(a, b), (b, a)] {
                    let rails = Some(Rails::Count(rails));
                    network.sides.insert(
                        pair,
                        Side {
                            rails,
                            ..Side::default()
                        },
                    );
                }
            }
        }
        cluster.checked()
    }

    /// The same where links over the transport of `spec` cost what it says, except those whose own figures are known.
    #[must_use]
    pub fn with_spec(mut self, spec: &LinkSpec) -> Cluster {
        self.network_mut(spec.transport).apply(spec);
        if !matches!(spec.reduce.from, Provenance::Preset(_)) {
            self.gamma = Some(spec.reduce);
        }
        self
    }

    /// Notes what one direction of a link was measured to cost.
    ///
    /// # Errors
    /// [`TopologyError::NotLinked`].
    pub fn set_measured(
        &mut self,
        transport: Transport,
        (from, to): (Rank, Rank),
        alpha: Duration,
        beta: Rate,
    ) -> Result<(), TopologyError> {
        if !self.linked(transport, from, to) {
            return Err(TopologyError::NotLinked {
                transport,
                from,
                to,
            });
        }
        let side = self
            .network_mut(transport)
            .sides
            .entry((from, to))
            .or_default();
        side.alpha = Some(Figure::measured(alpha));
        side.beta = Some(Figure::measured(beta));
        Ok(())
    }

    /// Number of ranks, 1 at least.
    pub fn size(&self) -> Rank {
        self.size
    }

    /// Where `rank` runs, if the file says so.
    pub fn host(&self, rank: Rank) -> Option<&Host> {
        self.hosts.get(rank as usize)
    }

    /// The `backend` of a hostfile: `jaccl`, `ring`.
    pub fn backend(&self) -> Option<&str> {
        self.backend.as_deref()
    }

    /// Environment variables for every rank, `NAME=value`.
    pub fn envs(&self) -> &[String] {
        &self.envs
    }

    /// The transports that have a link, the preferred one first.
    pub fn transports(&self) -> impl Iterator<Item = Transport> + '_ {
        Transport::ALL.into_iter().filter(|&t| self.has_links(t))
    }

    /// The links over `transport`.
    pub fn topology(&self, transport: Transport) -> Topology {
        let sides = &self.network(transport).sides;
        let plain = sides.values().all(|side| side.rails.is_none());
        let link = |(a, b)| (a, b, self.rail_count(transport, a, b));
        match self.everywhere(transport) {
            Some(rails) if plain && rails > 0 => Topology::full(self.size).with_rails(rails),
            Some(0) => Topology::from_rails(
                self.size,
                sides.keys().filter(|(a, b)| a < b).map(|&pair| link(pair)),
            ),
            _ => {
                let pairs = (0..self.size).flat_map(|a| (0..a).map(move |b| (b, a)));
                Topology::from_rails(self.size, pairs.map(link))
            }
        }
    }

    /// The pairs that any transport links.
    pub fn all_links(&self) -> Topology {
        let each = Transport::ALL.map(|t| self.topology(t));
        match each.iter().find(|t| t.is_declared_full()) {
            Some(full) => full.clone().with_rails(1),
            None => {
                let links = each.iter().flat_map(Topology::links);
                Topology::from_links(self.size, links.map(|(link, _)| (link.a, link.b)))
            }
        }
    }

    /// Whether both ends say that they can reach each other over `transport`.
    pub fn linked(&self, transport: Transport, a: Rank, b: Rank) -> bool {
        self.rail_count(transport, a, b) > 0
    }

    /// Number of rails of a link; 0 where there is none.
    pub fn rail_count(&self, transport: Transport, a: Rank, b: Rank) -> u32 {
        if a == b || a >= self.size || b >= self.size {
            return 0;
        }
        let said = |a, b| self.said(transport, a, b);
        said(a, b).min(said(b, a))
    }

    /// The rails of a link seen from `from`; none where there is no link.
    pub fn rails(&self, transport: Transport, from: Rank, to: Rank) -> Vec<Rail<'_>> {
        let name = |a, b, rail| {
            let side = self.network(transport).sides.get(&(a, b))?;
            side.rails.as_ref()?.name(rail)
        };
        (0..self.rail_count(transport, from, to))
            .map(|rail| Rail {
                near: name(from, to, rail),
                far: name(to, from, rail),
            })
            .collect()
    }

    /// What the way from `from` to `to` costs; `None` where there is no link.
    pub fn figures(&self, transport: Transport, from: Rank, to: Rank) -> Option<Figures> {
        let network = self.network(transport);
        self.linked(transport, from, to)
            .then(|| network.figures(network.sides.get(&(from, to))))
    }

    /// What links over `transport` cost where [`Cluster::exceptions`] does not say otherwise.
    pub fn default_figures(&self, transport: Transport) -> Figures {
        self.network(transport).figures(None)
    }

    /// The directions `(from, to)` of links that have figures of their own, in order.
    pub fn exceptions(
        &self,
        transport: Transport,
    ) -> impl Iterator<Item = (Rank, Rank, Figures)> + '_ {
        let network = self.network(transport);
        let own = network.sides.iter();
        own.filter(|(_, side)| side.alpha.is_some() || side.beta.is_some())
            .filter(move |&(&(a, b), _)| self.linked(transport, a, b))
            .map(|(&(a, b), side)| (a, b, network.figures(Some(side))))
    }

    /// How fast a core reduces or copies.
    pub fn gamma(&self) -> Figure<Rate> {
        self.gamma.unwrap_or_else(|| {
            let transport = self.transports().next().unwrap_or(Transport::Rdma);
            self.network(transport).preset.spec().reduce
        })
    }

    /// What only one end lists, in order.
    pub fn one_way(&self) -> Vec<OneWay> {
        let cells = Transport::ALL.into_iter().flat_map(|transport| {
            let sides = self.network(transport).sides.iter();
            sides.filter_map(move |(&(from, to), side)| {
                let both = self.rail_count(transport, from, to);
                let said = self.said(transport, from, to);
                let devices = match &side.rails {
                    Some(Rails::Named(names)) => names[both as usize..].to_vec(),
                    _ => Vec::new(),
                };
                (said > both).then_some(OneWay {
                    transport,
                    from,
                    to,
                    rails: said - both,
                    devices,
                })
            })
        });
        cells.collect()
    }

    pub(crate) fn network(&self, transport: Transport) -> &Network {
        match transport {
            Transport::Rdma => &self.rdma,
            Transport::Tcp => &self.tcp,
        }
    }

    pub(crate) fn network_mut(&mut self, transport: Transport) -> &mut Network {
        match transport {
            Transport::Rdma => &mut self.rdma,
            Transport::Tcp => &mut self.tcp,
        }
    }

    /// The cluster, unless it has several ranks and no link at all.
    pub(crate) fn checked(self) -> Result<Cluster, TopologyError> {
        if self.size == 1 || self.transports().next().is_some() {
            return Ok(self);
        }
        Err(TopologyError::NoLinks {
            ranks: self.size,
            one_way: self.one_way(),
        })
    }

    fn has_links(&self, transport: Transport) -> bool {
        let network = self.network(transport);
        let addresses = || self.hosts.iter().any(|h| h.connections() > 0);
        self.size > 1
            && (network.mesh > 0
                || (transport == Transport::Tcp && addresses())
                || network
                    .sides
                    .keys()
                    .any(|&(a, b)| self.linked(transport, a, b)))
    }

    /// Rails from `a` to `b` according to `a`.
    fn said(&self, transport: Transport, a: Rank, b: Rank) -> u32 {
        let network = self.network(transport);
        let anyway = || network.mesh.max(self.by_address(transport, a, b));
        match network.sides.get(&(a, b)) {
            None => anyway(),
            Some(side) => match &side.rails {
                Some(rails) => rails.count(),
                None => anyway().max(1),
            },
        }
    }

    /// Connections that addresses allow: one end must have an address for the other to call; where both have several, the
    /// shorter list counts.
    fn by_address(&self, transport: Transport, a: Rank, b: Rank) -> u32 {
        let connections = |rank| self.host(rank).map_or(0, Host::connections);
        match (transport, connections(a), connections(b)) {
            (Transport::Rdma, ..) => 0,
            (Transport::Tcp, 0, other) | (Transport::Tcp, other, 0) => other,
            (Transport::Tcp, one, other) => one.min(other),
        }
    }

    /// Rails that all pairs have anyway, if that is the same number for all.
    fn everywhere(&self, transport: Transport) -> Option<u32> {
        let mesh = self.network(transport).mesh;
        if transport != Transport::Tcp || self.hosts.is_empty() {
            return Some(mesh);
        }
        let first = self.hosts[0].connections();
        let alike = self.hosts.iter().all(|h| h.connections() == first);
        alike.then_some(first.max(mesh))
    }
}

impl Host {
    /// How many connections its addresses make for.
    pub(crate) fn connections(&self) -> u32 {
        self.ips.len().max(self.addresses.len()) as u32
    }
}
