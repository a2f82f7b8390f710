//! Our own format, in TOML or JSON. The crate's page documents it.

use std::collections::btree_map::Entry;

use unisono_core::Rank;

use crate::addresses::Seen;
use crate::cluster::{Host, MAX_RANKS, Rails, Side};
use crate::hostfile::{Names, read_ips, read_launch};
use crate::matrix::distinct;
use crate::quantity::{QuantityError, parse_time};
use crate::text::{Node, Object, Value, shown};
use crate::{Cluster, Figure, LinkSpecError, Preset, TopologyError, Transport};

/// Keys that a hostfile does not have: an object with one of them is ours.
pub(crate) const MARKS: &[&str] = &["ranks", "gamma", "rdma", "tcp", "links"];

const KEYS: &[&str] = &[
    "ranks", "gamma", "backend", "envs", "hosts", "rdma", "tcp", "links",
];
const HOST_KEYS: &[&str] = &["ssh", "ips", "addresses"];
const NETWORK_KEYS: &[&str] = &["preset", "alpha", "beta", "overhead", "mesh"];
const LINK_KEYS: &[&str] = &["ranks", "transport", "rails", "alpha", "beta"];
const SIDE_KEYS: &[&str] = &[
    "from",
    "to",
    "transport",
    "rails",
    "devices",
    "alpha",
    "beta",
];

const RANKS: &str = "the number of ranks";
const RANK: &str = "a rank";
const PAIR: &str = "two ranks, such as [0, 1]";
const RAILS: &str =
    "the number of rails, or a list of [device at the first rank, device at the second]";
const DEVICES: &str = "a list of device names";
const TIME: &str = "a time in quotes such as \"5us\", or { measured = \"5us\" }";
const RATE: &str = "a rate in quotes such as \"5GB/s\", or { measured = \"5GB/s\" }";

/// More cables between two ranks than any machine has ports.
const MAX_RAILS: u64 = 4096;

pub(crate) fn read(root: &Node) -> Result<Cluster, TopologyError> {
    let root = root.object("", "ranks and links")?;
    root.only(KEYS)?;
    let ranks = root.need("ranks", RANKS)?;
    let ranks = match ranks.value {
        Value::Integer(0) => 0,
        _ => ranks.number("ranks", RANKS, (1, MAX_RANKS))?,
    };
    let mut cluster = Cluster::without_links(ranks)?;
    if let Some(node) = root.find("gamma") {
        cluster.gamma = Some(figure(node, "gamma", RATE, str::parse)?);
    }
    read_launch(&mut cluster, &root)?;
    if let Some(node) = root.find("hosts") {
        read_hosts(&mut cluster, node)?;
    }
    for transport in Transport::ALL {
        if let Some(node) = root.find(transport.name()) {
            read_network(&mut cluster, transport, node)?;
        }
    }
    if let Some(node) = root.find("links") {
        for (i, node) in node.list("links", "a list of links")?.iter().enumerate() {
            let link = node.object(&format!("links[{i}]"), "a link")?;
            match link.find("ranks") {
                Some(pair) => read_link(&mut cluster, &link, pair)?,
                None => read_side(&mut cluster, &link)?,
            }
        }
    }
    cluster.checked()
}

fn read_hosts(cluster: &mut Cluster, node: &Node) -> Result<(), TopologyError> {
    let hosts = node.list("hosts", "a list of hosts")?;
    if !hosts.is_empty() && hosts.len() as u64 != u64::from(cluster.size) {
        return Err(TopologyError::HostCount {
            line: node.line,
            hosts: hosts.len(),
            ranks: cluster.size,
        });
    }
    let (mut names, mut seen) = (Names::default(), Seen::default());
    for (i, node) in hosts.iter().enumerate() {
        let object = node.object(&format!("hosts[{i}]"), "a host")?;
        object.only(HOST_KEYS)?;
        let mut host = Host::default();
        if let Some(ssh) = object.find("ssh") {
            let name = ssh.text(&object.path("ssh"), "the name of the host")?;
            host.ssh = Some(names.add(i, ssh.line, name)?);
        }
        if let Some(ips) = object.find("ips") {
            host.ips = read_ips(i, ips, &object.path("ips"))?;
        }
        if let Some(addresses) = object.find("addresses") {
            let texts = addresses.texts(&object.path("addresses"), "a list of address:port")?;
            host.addresses = seen.read(i, &texts)?;
        }
        cluster.hosts.push(host);
    }
    Ok(())
}

fn read_network(
    cluster: &mut Cluster,
    transport: Transport,
    node: &Node,
) -> Result<(), TopologyError> {
    let object = node.object(transport.name(), "the figures of a transport")?;
    object.only(NETWORK_KEYS)?;
    let network = cluster.network_mut(transport);
    if let Some(node) = object.find("preset") {
        let place = object.path("preset");
        let name = node.text(&place, "the name of a preset")?;
        network.preset = Preset::find(name).ok_or_else(|| TopologyError::Spec {
            line: node.line,
            place,
            source: Box::new(LinkSpecError::UnknownPreset { name: shown(name) }),
        })?;
    }
    network.alpha = optional(&object, "alpha", TIME, parse_time)?;
    network.beta = optional(&object, "beta", RATE, str::parse)?;
    network.overhead = optional(&object, "overhead", TIME, parse_time)?;
    if let Some(node) = object.find("mesh") {
        network.mesh = match node.value {
            Value::Bool(mesh) => mesh.into(),
            _ => {
                let expected = "true, or the number of rails between every two ranks";
                node.number(&object.path("mesh"), expected, (1, MAX_RAILS))? as u32
            }
        };
    }
    Ok(())
}

/// A link with both of its ends.
fn read_link(cluster: &mut Cluster, link: &Object<'_>, pair: &Node) -> Result<(), TopologyError> {
    link.only(LINK_KEYS)?;
    let place = link.path("ranks");
    let [a, b] = pair.list(&place, PAIR)? else {
        return Err(pair.wrong(&place, PAIR));
    };
    let a = rank(cluster, a, &format!("{place}[0]"))?;
    let b = rank(cluster, b, &format!("{place}[1]"))?;
    let (near, far) = match link.find("rails") {
        None => (None, None),
        Some(node) => match &node.value {
            Value::List(rails) => {
                let place = link.path("rails");
                let (mut near, mut far) = (Vec::new(), Vec::new());
                for (i, rail) in rails.iter().enumerate() {
                    let names = rail.texts(&format!("{place}[{i}]"), RAILS)?;
                    let [at_a, at_b] = names[..] else {
                        return Err(rail.wrong(&format!("{place}[{i}]"), RAILS));
                    };
                    near.push(at_a);
                    far.push(at_b);
                }
                (Some(named(&near, a, b)?), Some(named(&far, b, a)?))
            }
            _ => {
                let count = rails(node, &link.path("rails"))?;
                (Some(count.clone()), Some(count))
            }
        },
    };
    for ((from, to), rails) in [((a, b), near), ((b, a), far)] {
        add_side(cluster, link, (from, to), rails)?;
    }
    Ok(())
}

/// What one end says.
fn read_side(cluster: &mut Cluster, link: &Object<'_>) -> Result<(), TopologyError> {
    link.only(SIDE_KEYS)?;
    let expected = "either ranks = [0, 1] for both directions, or from and to for one";
    let (from, to) = (link.need("from", expected)?, link.need("to", expected)?);
    let from = rank(cluster, from, &link.path("from"))?;
    let to = rank(cluster, to, &link.path("to"))?;
    let rails = match (link.find("devices"), link.find("rails")) {
        (Some(node), None) => {
            let names = node.texts(&link.path("devices"), DEVICES)?;
            Some(named(&names, from, to)?)
        }
        (None, Some(node)) => Some(rails(node, &link.path("rails"))?),
        (None, None) => None,
        (Some(_), Some(node)) => {
            return Err(node.wrong(&link.path("rails"), "devices or rails, not both"));
        }
    };
    add_side(cluster, link, (from, to), rails)
}

fn add_side(
    cluster: &mut Cluster,
    link: &Object<'_>,
    (from, to): (Rank, Rank),
    rails: Option<Rails>,
) -> Result<(), TopologyError> {
    let (line, place) = (link.line, link.path(""));
    let place = place.trim_end_matches('.').to_owned();
    if from == to {
        let rank = from;
        return Err(TopologyError::SelfLink { line, place, rank });
    }
    let transport = match link.find("transport") {
        None => Transport::Rdma,
        Some(node) => {
            let place = link.path("transport");
            let name = node.text(&place, "rdma or tcp")?;
            name.parse().map_err(|_| TopologyError::Spec {
                line: node.line,
                place,
                source: Box::new(LinkSpecError::UnknownTransport { name: shown(name) }),
            })?
        }
    };
    let side = Side {
        rails,
        alpha: optional(link, "alpha", TIME, parse_time)?,
        beta: optional(link, "beta", RATE, str::parse)?,
    };
    match cluster.network_mut(transport).sides.entry((from, to)) {
        Entry::Vacant(entry) => {
            entry.insert(side);
            Ok(())
        }
        Entry::Occupied(_) => Err(TopologyError::DuplicateLink {
            line,
            place,
            transport,
            from,
            to,
        }),
    }
}

fn rank(cluster: &Cluster, node: &Node, place: &str) -> Result<Rank, TopologyError> {
    let last = u64::from(cluster.size) - 1;
    Ok(node.number(place, RANK, (0, last))? as Rank)
}

fn rails(node: &Node, place: &str) -> Result<Rails, TopologyError> {
    Ok(Rails::Count(
        node.number(place, RAILS, (1, MAX_RAILS))? as u32
    ))
}

fn named(names: &[&str], from: Rank, to: Rank) -> Result<Rails, TopologyError> {
    distinct(names, from as usize, to as usize).map(Rails::Named)
}

fn optional<T>(
    object: &Object<'_>,
    key: &str,
    expected: &'static str,
    parse: fn(&str) -> Result<T, QuantityError>,
) -> Result<Option<Figure<T>>, TopologyError> {
    let node = object.find(key);
    node.map(|node| figure(node, &object.path(key), expected, parse))
        .transpose()
}

/// `"5us"` is given, `{ measured = "5us" }` measured. A bare number would leave the unit open.
fn figure<T>(
    node: &Node,
    place: &str,
    expected: &'static str,
    parse: fn(&str) -> Result<T, QuantityError>,
) -> Result<Figure<T>, TopologyError> {
    let (text, make): (&str, fn(T) -> Figure<T>) = match &node.value {
        Value::Object(_) => {
            let object = node.object(place, expected)?;
            object.only(&["measured"])?;
            let measured = object.need("measured", expected)?;
            (
                measured.text(&object.path("measured"), expected)?,
                Figure::measured,
            )
        }
        _ => (node.text(place, expected)?, Figure::given),
    };
    parse(text)
        .map(make)
        .map_err(|source| TopologyError::Quantity {
            line: node.line,
            place: place.to_owned(),
            source: Box::new(source),
        })
}
