//! Lists of addresses, as the ring of MLX reads them: for each rank, the addresses it can be called at, one per connection.

use std::collections::HashMap;

use crate::address::{Address, parse_address};
use crate::cluster::Host;
use crate::text::{Node, Value, shown};
use crate::{Cluster, TopologyError};

const ROW: &str = "a list of addresses, such as 192.168.1.2:5000";

pub(crate) fn read(root: &Node) -> Result<Cluster, TopologyError> {
    let rows = root.list("", "a list of ranks")?;
    let mut cluster = Cluster::without_links(rows.len() as u64)?;
    let mut seen = Seen::default();
    for (rank, row) in rows.iter().enumerate() {
        // MLX takes a bare address for a list of one.
        let texts = match &row.value {
            Value::Text(text) => vec![text.as_str()],
            Value::List(_) => row.texts(&format!("[{rank}]"), ROW)?,
            _ => {
                let found = row.kind();
                return Err(TopologyError::Row { row: rank, found });
            }
        };
        if texts.is_empty() {
            return Err(TopologyError::NoAddress { rank });
        }
        let addresses = seen.read(rank, &texts)?;
        cluster.hosts.push(Host {
            addresses,
            ..Host::default()
        });
    }
    cluster.checked()
}

/// Whose the addresses are that were read.
#[derive(Default)]
pub(crate) struct Seen(HashMap<Address, usize>);

impl Seen {
    /// Reads the addresses of one rank, each new to the cluster.
    pub(crate) fn read(
        &mut self,
        rank: usize,
        texts: &[&str],
    ) -> Result<Vec<Address>, TopologyError> {
        let mut addresses = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            let address = parse_address(text).map_err(|fault| TopologyError::Address {
                rank,
                index,
                text: shown(text),
                fault,
            })?;
            if let Some(first) = self.0.insert(address.clone(), rank) {
                return Err(TopologyError::DuplicateAddress {
                    rank,
                    index,
                    address: address.to_string(),
                    first,
                });
            }
            addresses.push(address);
        }
        Ok(addresses)
    }
}
