//! One door for all formats: which one a text is, is seen from what stands in it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::text::{self, Node, Value};
use crate::{Cluster, TopologyError, addresses, hostfile, matrix, own};

/// No cluster of a million ranks needs more text.
const MOST_BYTES: u64 = 64 << 20;

/// The formats that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A square matrix of device names: `[[null, "rdma_en2"], ["rdma_en2", null]]`.
    DeviceMatrix,
    /// Hosts with `ssh`, `ips` and `rdma`, as a list or under `hosts`.
    Hostfile,
    /// Addresses with ports, rank by rank: `[["10.0.0.1:5000"], ["10.0.0.2:5000"]]`.
    Addresses,
    /// Unisono's own, in JSON.
    Json,
    /// Unisono's own, in TOML.
    Toml,
}

/// Reads a cluster in any of the formats.
///
/// # Errors
/// [`TopologyError`], with the place and what was expected there.
pub fn read(text: impl AsRef<[u8]>) -> Result<Cluster, TopologyError> {
    let (root, toml) = text::parse(text.as_ref())?;
    match format(&root, toml)? {
        Format::DeviceMatrix => matrix::read(&root),
        Format::Hostfile => hostfile::read(&root),
        Format::Addresses => addresses::read(&root),
        Format::Json | Format::Toml => own::read(&root),
    }
}

/// Reads a cluster file.
///
/// # Errors
/// [`TopologyError::Io`] when it cannot be read, and all of [`read`].
pub fn read_file(path: impl AsRef<Path>) -> Result<Cluster, TopologyError> {
    let path = path.as_ref();
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|source| TopologyError::Io {
            path: path.to_owned(),
            source,
        })?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(TopologyError::TooLong { most: MOST_BYTES });
    }
    read(bytes)
}

/// The format of a text, before anything in it is checked.
///
/// # Errors
/// [`TopologyError`] when it is no JSON or TOML, or of no format that is known.
pub fn detect(text: impl AsRef<[u8]>) -> Result<Format, TopologyError> {
    let (root, toml) = text::parse(text.as_ref())?;
    format(&root, toml)
}

fn format(root: &Node, toml: bool) -> Result<Format, TopologyError> {
    let found = root.kind();
    match &root.value {
        _ if toml => Ok(Format::Toml),
        Value::Object(entries) => {
            let has = |keys: &[&str]| entries.iter().any(|e| keys.contains(&e.key.as_str()));
            match has(&["hosts"]) && !has(own::MARKS) {
                true => Ok(Format::Hostfile),
                false => Ok(Format::Json),
            }
        }
        Value::List(rows) => match rows.first().map(|row| &row.value) {
            None => Err(TopologyError::NoRanks),
            Some(Value::Object(_)) => Ok(Format::Hostfile),
            Some(_) if rows.iter().any(has_address) => Ok(Format::Addresses),
            Some(_) => Ok(Format::DeviceMatrix),
        },
        _ => Err(TopologyError::UnknownFormat { found }),
    }
}

/// Whether a row is a list of addresses, or an address by itself. No device has a name with a dot or a colon.
fn has_address(row: &Node) -> bool {
    let is_address = |node: &Node| matches!(&node.value, Value::Text(t) if t.contains([':', '.']));
    match &row.value {
        Value::List(cells) => cells.iter().any(is_address),
        _ => is_address(row),
    }
}
