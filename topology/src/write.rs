//! Our own format, written: what is read back is the same cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use unisono_core::Rank;

use crate::cluster::{Network, Rails, Side};
use crate::quantity::format_time;
use crate::{Cluster, Figure, Provenance, Rate, Transport};

impl Cluster {
    /// The cluster in our own format as TOML.
    pub fn to_toml(&self) -> String {
        // Only maps with keys that are no text, and the like, cannot be written; there are none.
        toml::to_string(&File::new(self)).unwrap_or_default()
    }

    /// The cluster in our own format as JSON, in one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&File::new(self)).unwrap_or_default()
    }
}

#[derive(Serialize)]
struct File<'a> {
    ranks: Rank,
    #[serde(skip_serializing_if = "Option::is_none")]
    gamma: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    envs: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<WrittenHost<'a>>,
    #[serde(flatten)]
    networks: BTreeMap<&'static str, WrittenNetwork>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<WrittenLink<'a>>,
}

#[derive(Serialize)]
struct WrittenHost<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ssh: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    ips: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<String>,
}

#[derive(Serialize)]
struct WrittenNetwork {
    preset: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mesh: Option<Mesh>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alpha: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beta: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overhead: Option<Written>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Mesh {
    One(bool),
    Many(u32),
}

#[derive(Default, Serialize)]
struct WrittenLink<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<[Rank; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Rank>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Rank>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rails: Option<WrittenRails<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alpha: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beta: Option<Written>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenRails<'a> {
    Count(u32),
    Named(Vec<[&'a str; 2]>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Written {
    Given(String),
    Measured { measured: String },
}

impl Written {
    fn new<T>(figure: Figure<T>, text: impl Fn(T) -> String) -> Option<Written> {
        match figure.from {
            Provenance::Measured => Some(Written::Measured {
                measured: text(figure.value),
            }),
            Provenance::Given => Some(Written::Given(text(figure.value))),
            // Its preset says it already.
            Provenance::Preset(_) => None,
        }
    }

    fn time(figure: Option<Figure<Duration>>) -> Option<Written> {
        figure.and_then(|figure| Written::new(figure, format_time))
    }

    fn rate(figure: Option<Figure<Rate>>) -> Option<Written> {
        figure.and_then(|figure| Written::new(figure, |rate| rate.to_string()))
    }
}

impl<'a> File<'a> {
    fn new(cluster: &'a Cluster) -> File<'a> {
        let networks = Transport::ALL.into_iter();
        let networks = networks.filter_map(|t| Some((t.name(), network(t, cluster.network(t))?)));
        let hosts = cluster.hosts.iter().map(|host| WrittenHost {
            ssh: host.ssh.as_deref(),
            ips: &host.ips,
            addresses: host.addresses.iter().map(ToString::to_string).collect(),
        });
        let links = Transport::ALL.into_iter();
        File {
            ranks: cluster.size,
            gamma: Written::rate(cluster.gamma),
            backend: cluster.backend.as_deref(),
            envs: &cluster.envs,
            hosts: hosts.collect(),
            networks: networks.collect(),
            links: links
                .flat_map(|t| links_of(t, cluster.network(t)))
                .collect(),
        }
    }
}

/// Nothing where everything is as it is without a word.
fn network(transport: Transport, network: &Network) -> Option<WrittenNetwork> {
    let written = WrittenNetwork {
        preset: network.preset.name(),
        mesh: match network.mesh {
            0 => None,
            1 => Some(Mesh::One(true)),
            rails => Some(Mesh::Many(rails)),
        },
        alpha: Written::time(network.alpha),
        beta: Written::rate(network.beta),
        overhead: Written::time(network.overhead),
    };
    let silent = network.preset == transport.default_preset()
        && written.mesh.is_none()
        && written.alpha.is_none()
        && written.beta.is_none()
        && written.overhead.is_none();
    (!silent).then_some(written)
}

/// A link in one entry where its directions are alike, else each by itself.
fn links_of(transport: Transport, network: &Network) -> Vec<WrittenLink<'_>> {
    let mut links = Vec::new();
    for (&(from, to), side) in &network.sides {
        let back = network.sides.get(&(to, from));
        let both = back.and_then(|back| Some((rails_of_both(side, back)?, back)));
        let link = match both {
            // Written with the other direction already.
            Some(_) if from > to => continue,
            Some((rails, _)) => WrittenLink {
                ranks: Some([from, to]),
                rails,
                ..figures(transport, side)
            },
            None => WrittenLink {
                from: Some(from),
                to: Some(to),
                rails: match side.rails {
                    Some(Rails::Count(count)) => Some(WrittenRails::Count(count)),
                    _ => None,
                },
                devices: match &side.rails {
                    Some(Rails::Named(names)) => Some(names),
                    _ => None,
                },
                ..figures(transport, side)
            },
        };
        links.push(link);
    }
    links
}

fn figures(transport: Transport, side: &Side) -> WrittenLink<'_> {
    WrittenLink {
        transport: (transport != Transport::Rdma).then_some(transport.name()),
        alpha: Written::time(side.alpha),
        beta: Written::rate(side.beta),
        ..WrittenLink::default()
    }
}

/// The rails of two directions as one entry can say them; `None` where it cannot.
fn rails_of_both<'a>(there: &'a Side, back: &'a Side) -> Option<Option<WrittenRails<'a>>> {
    if there.alpha != back.alpha || there.beta != back.beta {
        return None;
    }
    match (&there.rails, &back.rails) {
        (None, None) => Some(None),
        (Some(Rails::Count(a)), Some(Rails::Count(b))) if a == b => {
            Some(Some(WrittenRails::Count(*a)))
        }
        (Some(Rails::Named(a)), Some(Rails::Named(b))) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).map(|(a, b)| [a.as_str(), b.as_str()]);
            Some(Some(WrittenRails::Named(pairs.collect())))
        }
        _ => None,
    }
}
