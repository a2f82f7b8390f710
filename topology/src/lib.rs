//! Readers of cluster files: who is there, which cables join them, what those cables cost.
//!
//! [`read`] takes the files other programs have already, unchanged, and our own; which format a text has is seen from what
//! stands in it. The result is a [`Cluster`]: ranks, hosts and links, every figure with its provenance. Bad input is one
//! [`TopologyError`] with its place and what was expected there, never a panic, and never a smaller cluster than was asked for.
//!
//! # Device matrix
//! What `MLX_IBV_DEVICES` points at, JSON. Row i, column j: the devices of rank i that lead to rank j, `null` where there is
//! no cable. Names are per host, so (i, j) and (j, i) may differ; a link exists where both list it, and one cell alone is
//! reported ([`Cluster::one_way`]). Several names are several rails, the first of one end belongs to the first of the other.
//! Links are assumed to be `thunderbolt5-rdma`.
//!
//! ```
//! use unisono_topology::{Transport, read};
//!
//! let cluster = read(r#"[
//!     [null, ["rdma_en6", "rdma_en7"], "rdma_en5"],
//!     [["rdma_en2", "rdma_en3"], null, null],
//!     ["rdma_en4", "rdma_en5", null]
//! ]"#)?;
//! let links = cluster.topology(Transport::Rdma);
//! assert_eq!((links.rails(0, 1), links.rails(0, 2), links.rails(1, 2)), (2, 1, 0));
//! assert_eq!(
//!     cluster.one_way()[0].to_string(),
//!     "`rdma_en5` at (2, 1) without a counterpart at (1, 2)"
//! );
//! # Ok::<(), unisono_topology::TopologyError>(())
//! ```
//!
//! # Hostfile
//! What `mlx.launch --hostfile` reads, JSON: a list of hosts, or an object with `hosts`, `backend` and `envs`. Each host has
//! `ssh`, and may have `ips` (no ports; may be empty, may repeat) and `rdma`, its row of the device matrix. Two ranks can
//! talk over TCP where one of them has an address for the other to call. TCP is assumed to be `10gbe`.
//!
//! ```
//! use unisono_topology::{Transport, read};
//!
//! let cluster = read(r#"{"backend": "jaccl", "envs": ["MLX_METAL_FAST_SYNCH=1"], "hosts": [
//!     {"ssh": "mac-1", "ips": ["192.168.1.1"], "rdma": [null, "rdma_en5"]},
//!     {"ssh": "mac-2", "ips": [], "rdma": ["rdma_en5", null]}
//! ]}"#)?;
//! assert_eq!(cluster.backend(), Some("jaccl"));
//! assert_eq!(cluster.host(1).unwrap().ssh.as_deref(), Some("mac-2"));
//! assert_eq!(cluster.transports().collect::<Vec<_>>(), [Transport::Rdma, Transport::Tcp]);
//! # Ok::<(), unisono_topology::TopologyError>(())
//! ```
//!
//! # Address list
//! What `MLX_HOSTFILE` of the ring backend points at, JSON: for each rank the addresses it can be called at, one connection
//! each. IPv6 addresses stand in brackets.
//!
//! ```
//! use unisono_topology::{Transport, read};
//!
//! let cluster = read(r#"[["10.0.0.1:5000", "10.0.0.1:5001"], ["10.0.0.2:5000", "10.0.0.2:5001"]]"#)?;
//! assert_eq!(cluster.topology(Transport::Tcp).rails(0, 1), 2);
//!
//! let wrong = read(r#"[["10.0.0.1:5000"], ["::1:5000"]]"#).unwrap_err();
//! assert_eq!(
//!     wrong.to_string(),
//!     "rank 1, address 0 `::1:5000`: an IPv6 address with a port needs brackets, such as [::1]:5000"
//! );
//! # Ok::<(), unisono_topology::TopologyError>(())
//! ```
//!
//! # Our own
//! TOML or JSON with the same keys. All but `ranks` may be left out; a key that is not listed here is an error.
//!
//! | key | value |
//! |---|---|
//! | `ranks` | number of ranks |
//! | `gamma` | rate at which a core reduces or copies, `"20GB/s"` |
//! | `backend`, `envs` | as in a hostfile |
//! | `hosts` | none, or one per rank: `ssh`, `ips` (without ports), `addresses` (with ports) |
//! | `rdma`, `tcp` | of all links over that transport: `preset`, and in place of its figures `alpha` (latency), `beta` (bandwidth of one rail, one way), `overhead` (of a message, at each end); `mesh = true` or a number of rails links every two ranks |
//! | `links` | a list, each entry as follows |
//!
//! A link is `ranks = [a, b]` for both directions or `from` and `to` for what one end says (a link needs both ends);
//! `transport` is `"rdma"` unless it is `"tcp"`; `rails` is a number, or with `ranks` a list of
//! `[device at a, device at b]`; with `from` and `to` there may be `devices` instead; `alpha` and `beta` are its own figures.
//! Times are `"5us"` (ns, us, ms, s), rates `"5GB/s"` (B/s, kB/s, MB/s, GB/s, TB/s in powers of 1000, or `"unlimited"`); a
//! measured figure is `{ measured = "5us" }`.
//!
//! ```
//! use unisono_topology::{Provenance, Transport, read};
//!
//! let cluster = read(r#"
//!     ranks = 3
//!     gamma = "30GB/s"
//!
//!     [[hosts]]
//!     ssh = "mac-1"
//!     ips = ["192.168.1.1"]
//!     [[hosts]]
//!     ssh = "mac-2"
//!     [[hosts]]
//!     ssh = "mac-3"
//!
//!     [rdma]
//!     preset = "thunderbolt5-rdma"
//!     beta = "6GB/s"
//!
//!     [[links]]
//!     ranks = [0, 1]
//!     rails = [["rdma_en4", "rdma_en5"], ["rdma_en3", "rdma_en2"]]
//!
//!     [[links]]
//!     ranks = [1, 2]
//!     alpha = { measured = "5.2us" }
//! "#)?;
//! assert_eq!(cluster.rail_count(Transport::Rdma, 0, 1), 2);
//! let figures = cluster.figures(Transport::Rdma, 2, 1).unwrap();
//! assert_eq!(figures.alpha.from, Provenance::Measured);
//! assert_eq!(figures.beta.value.to_string(), "6GB/s");
//! // Only rank 0 has an address: over TCP the cluster is a star.
//! assert_eq!(cluster.topology(Transport::Tcp).missing().count(), 1);
//!
//! // What is written reads back as the same cluster.
//! assert_eq!(read(cluster.to_toml())?, cluster);
//! assert_eq!(read(cluster.to_json())?, cluster);
//! # Ok::<(), unisono_topology::TopologyError>(())
//! ```
//!
//! # Without a file
//! [`Cluster::mesh`], [`ring`](Cluster::ring), [`line`](Cluster::line), [`star`](Cluster::star) and
//! [`torus`](Cluster::torus) make clusters of links that a [`LinkSpec`] describes; [`Preset`] lists the known sorts and the
//! reason of each figure.
//!
//! ```
//! use unisono_topology::{Cluster, LinkSpec, Transport, parse_torus};
//!
//! let spec: LinkSpec = "alpha=5us,bandwidth=5GB/s,overhead=0.5us,reduce=20GB/s".parse()?;
//! let (a, b) = parse_torus("4x4")?;
//! let links = Cluster::torus(a, b, &spec)?.topology(Transport::Rdma);
//! assert_eq!((links.link_count(), links.diameter()), (32, Some(4)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod address;
mod addresses;
mod cluster;
mod error;
mod figure;
mod generate;
mod hostfile;
mod matrix;
mod own;
mod preset;
mod quantity;
mod read;
mod spec;
mod text;
mod write;

pub use address::{Address, AddressFault};
pub use cluster::{Cluster, Figures, Host, MAX_RANKS, OneWay, Rail};
pub use error::{Kind, TopologyError};
pub use figure::{Figure, Provenance, Transport};
pub use generate::parse_torus;
pub use preset::Preset;
pub use quantity::{QuantityError, QuantityFault, Rate, format_time, parse_time};
pub use read::{Format, detect, read, read_file};
pub use spec::{LinkSpec, LinkSpecError};
