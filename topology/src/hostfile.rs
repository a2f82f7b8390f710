//! Hostfiles, as MLX writes them: hosts with `ssh`, `ips` and `rdma`, as a list or under `hosts` beside `backend` and `envs`.
//!
//! Keys that are not known are left alone, as MLX does: the next version may have more.

use std::collections::HashMap;

use crate::address::parse_host;
use crate::cluster::Host;
use crate::text::{Node, Object, Value, shown};
use crate::{Cluster, TopologyError, matrix};

const HOST: &str = "a host with ssh, ips and rdma";
const IPS: &str = "a list of IP addresses";

pub(crate) fn read(root: &Node) -> Result<Cluster, TopologyError> {
    let hosts = match &root.value {
        Value::List(hosts) => hosts,
        _ => root
            .object("", HOST)?
            .need("hosts", "a list of hosts")?
            .list("hosts", "a list of hosts")?,
    };
    let mut cluster = Cluster::without_links(hosts.len() as u64)?;
    if let Value::Object(_) = &root.value {
        read_launch(&mut cluster, &root.object("", HOST)?)?;
    }
    let mut seen = Names::default();
    let mut rows: Vec<&[Node]> = Vec::new();
    for (i, node) in hosts.iter().enumerate() {
        let host = node.object(&format!("hosts[{i}]"), HOST)?;
        let ssh = host.need("ssh", "the name of the host")?;
        let ssh = ssh.text(&host.path("ssh"), "the name of the host")?;
        let ips = match host.find("ips") {
            Some(ips) => read_ips(i, ips, &host.path("ips"))?,
            None => Vec::new(),
        };
        rows.push(match host.find("rdma") {
            Some(rdma) => rdma.list(&host.path("rdma"), "a list with a cell per host")?,
            None => &[],
        });
        cluster.hosts.push(Host {
            ssh: Some(seen.add(i, node.line, ssh)?),
            ips,
            addresses: Vec::new(),
        });
    }
    // Without any cell there is no RDMA; a file that knows devices knows those of every host.
    if rows.iter().any(|cells| !cells.is_empty()) {
        for (row, cells) in rows.into_iter().enumerate() {
            if cells.len() != hosts.len() {
                return Err(TopologyError::HostColumns {
                    row,
                    columns: cells.len(),
                    hosts: hosts.len(),
                });
            }
            matrix::read_row(&mut cluster, row, cells)?;
        }
    }
    cluster.checked()
}

/// Reads `backend` and `envs`.
pub(crate) fn read_launch(cluster: &mut Cluster, root: &Object<'_>) -> Result<(), TopologyError> {
    if let Some(node) = root.find("backend") {
        let backend = node.text("backend", "the name of a backend")?;
        // MLX writes an empty one where none was asked for.
        cluster.backend = (!backend.is_empty()).then(|| backend.to_owned());
    }
    if let Some(node) = root.find("envs") {
        let expected = "a list of NAME=value";
        for (i, text) in node.texts("envs", expected)?.into_iter().enumerate() {
            if text.find('=').is_none_or(|at| at == 0) {
                return Err(TopologyError::WrongText {
                    line: node.line,
                    place: format!("envs[{i}]"),
                    text: shown(text),
                    expected: "NAME=value",
                });
            }
            cluster.envs.push(text.to_owned());
        }
    }
    Ok(())
}

/// Reads addresses without ports.
pub(crate) fn read_ips(
    rank: usize,
    node: &Node,
    place: &str,
) -> Result<Vec<String>, TopologyError> {
    let mut ips = Vec::new();
    for (index, text) in node.texts(place, IPS)?.into_iter().enumerate() {
        parse_host(text).map_err(|fault| TopologyError::Address {
            rank,
            index,
            text: shown(text),
            fault,
        })?;
        ips.push(text.to_owned());
    }
    Ok(ips)
}

/// The `ssh` names that were read, each new to the cluster.
#[derive(Default)]
pub(crate) struct Names(HashMap<String, usize>);

impl Names {
    pub(crate) fn add(
        &mut self,
        host: usize,
        line: usize,
        ssh: &str,
    ) -> Result<String, TopologyError> {
        if ssh.trim().is_empty() {
            return Err(TopologyError::WrongText {
                line,
                place: format!("hosts[{host}].ssh"),
                text: shown(ssh),
                expected: "the name of the host",
            });
        }
        match self.0.insert(ssh.to_owned(), host) {
            None => Ok(ssh.to_owned()),
            Some(first) => Err(TopologyError::DuplicateHost {
                ssh: shown(ssh),
                first,
                second: host,
            }),
        }
    }
}
