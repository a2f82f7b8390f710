//! Where it runs: ranks, links and what they cost, from a file or a shape.

use std::fmt;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use unisono_core::{Rank, Topology};
use unisono_sim::{Cluster, Network};
use unisono_topology::{
    Cluster as Described, Figures, LinkSpec, TopologyError, Transport, format_time, read_file,
};

use crate::args::ranks;
use crate::args::sim::Args;
use crate::exit::say;

/// A cluster over one of its transports.
pub(super) struct Place {
    described: Described,
    transport: Transport,
    pub(super) topology: Arc<Topology>,
    pub(super) network: Network,
    /// `ring of 8`, or the file.
    name: String,
}

impl Place {
    /// The one that the arguments describe. What only one end of a link lists is said on stderr.
    ///
    /// # Errors
    /// The file is no cluster, or has no links of the sort that `--link` is about.
    pub(super) fn new(args: &Args) -> Result<Place> {
        let spec = args.link.unwrap_or_default();
        let (described, name) = match &args.place.topology {
            Some(path) => {
                let read = match read_file(path) {
                    // It names the file and the reason already.
                    Err(error @ TopologyError::Io { .. }) => bail!("{error}"),
                    read => read.with_context(|| path.display().to_string())?,
                };
                if read.size() > ranks::MOST {
                    bail!(
                        "{}: {} ranks are too many: at most {}",
                        path.display(),
                        read.size(),
                        ranks::MOST
                    );
                }
                (from_file(read, args.link)?, path.display().to_string())
            }
            None => shape(args, &spec)?,
        };
        let transport = match args.link {
            Some(link) => link.transport,
            None => described.transports().next().unwrap_or(spec.transport),
        };
        for cell in described.one_way() {
            if cell.transport == transport {
                say(&format!("note: {name}: {transport}: {cell}"));
            }
        }
        let topology = described.topology(transport);
        Ok(Place {
            network: Network::described(&described, transport),
            topology: Arc::new(topology),
            described,
            transport,
            name,
        })
    }

    pub(super) fn ranks(&self) -> Rank {
        self.topology.size()
    }

    /// A simulated cluster, without anything that goes wrong.
    pub(super) fn cluster(&self) -> Cluster {
        Cluster::from_topology((*self.topology).clone()).network(self.network.clone())
    }

    /// What links cost unless they have figures of their own.
    pub(super) fn figures(&self) -> Figures {
        self.described.default_figures(self.transport)
    }

    /// Figures that differ from those.
    pub(super) fn exceptions(&self) -> impl Iterator<Item = Figures> + '_ {
        let own = self.described.exceptions(self.transport);
        own.map(|(_, _, figures)| figures)
    }

    /// Bytes per second that a core reduces or copies; `None`: it takes no time.
    pub(super) fn gamma(&self) -> Option<u64> {
        let gamma = self.described.gamma().value;
        (!gamma.is_unlimited()).then(|| gamma.bytes_per_second())
    }
}

fn from_file(read: Described, link: Option<LinkSpec>) -> Result<Described> {
    let Some(link) = link else { return Ok(read) };
    let known: Vec<&str> = read.transports().map(Transport::name).collect();
    // A world of one has no links that could be of another sort.
    if read.size() > 1 && !known.contains(&link.transport.name()) {
        bail!(
            "--link is about links over {}, and the file has none; it has links over {}",
            link.transport,
            known.join(", ")
        );
    }
    Ok(read.with_spec(&link))
}

fn shape(args: &Args, spec: &LinkSpec) -> Result<(Described, String)> {
    let place = &args.place;
    Ok(
        match (place.mesh, place.ring, place.line, place.star, place.torus) {
            (Some(n), ..) => (Described::mesh(n, spec)?, format!("mesh of {n}")),
            (_, Some(n), ..) => (Described::ring(n, spec)?, format!("ring of {n}")),
            (_, _, Some(n), ..) => (Described::line(n, spec)?, format!("line of {n}")),
            (_, _, _, Some(n), _) => (Described::star(n, spec)?, format!("star of {n}")),
            (.., Some((a, b))) => (Described::torus(a, b, spec)?, format!("torus of {a}x{b}")),
            _ => bail!("no ranks were asked for"),
        },
    )
}

/// `ring of 8 over rdma: alpha 5us (preset thunderbolt5-rdma), ...`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures {
            alpha,
            beta,
            overhead,
        } = self.figures();
        let gamma = self.described.gamma();
        write!(f, "{}", self.name)?;
        if self.ranks() > 1 {
            write!(
                f,
                " over {}: alpha {} ({}), bandwidth {} ({}), overhead {} ({}), reduce {} ({})",
                self.transport,
                format_time(alpha.value),
                alpha.from,
                beta.value,
                beta.from,
                format_time(overhead.value),
                overhead.from,
                gamma.value,
                gamma.from,
            )?;
        }
        match self.exceptions().count() {
            0 => Ok(()),
            n => write!(f, "; {n} directions have figures of their own"),
        }
    }
}
