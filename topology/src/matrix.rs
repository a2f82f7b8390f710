//! Device matrices, as MLX and JACCL write them: row i, column j holds the devices of rank i that lead to rank j.

use std::collections::HashSet;

use unisono_core::Rank;

use crate::cluster::{Rails, Side};
use crate::text::{Node, Value, shown};
use crate::{Cluster, TopologyError};

pub(crate) fn read(root: &Node) -> Result<Cluster, TopologyError> {
    let rows = root.list("", "a list of rows")?;
    let mut cluster = Cluster::without_links(rows.len() as u64)?;
    for (row, node) in rows.iter().enumerate() {
        let Value::List(cells) = &node.value else {
            let found = node.kind();
            return Err(TopologyError::Row { row, found });
        };
        if cells.len() != rows.len() {
            return Err(TopologyError::NotSquare {
                row,
                columns: cells.len(),
                rows: rows.len(),
            });
        }
        read_row(&mut cluster, row, cells)?;
    }
    cluster.checked()
}

/// Adds what one rank lists. There are as many cells as ranks.
pub(crate) fn read_row(
    cluster: &mut Cluster,
    row: usize,
    cells: &[Node],
) -> Result<(), TopologyError> {
    for (column, cell) in cells.iter().enumerate() {
        let names = names(cell, row, column)?;
        let Some(name) = names.first() else {
            continue;
        };
        if row == column {
            let name = shown(name);
            return Err(TopologyError::Diagonal { row, name });
        }
        let rails = Some(Rails::Named(names));
        let side = Side {
            rails,
            ..Side::default()
        };
        cluster
            .rdma
            .sides
            .insert((row as Rank, column as Rank), side);
    }
    Ok(())
}

/// The devices of a cell; none for `null` and for a list of none.
fn names(cell: &Node, row: usize, column: usize) -> Result<Vec<String>, TopologyError> {
    let entries = match &cell.value {
        Value::Null => &[],
        Value::Text(_) => std::slice::from_ref(cell),
        Value::List(entries) => &entries[..],
        _ => {
            let found = cell.kind();
            return Err(TopologyError::Cell { row, column, found });
        }
    };
    let texts = entries.iter().map(|entry| match &entry.value {
        Value::Text(name) => Ok(name.as_str()),
        _ => {
            let found = entry.kind();
            Err(TopologyError::Cell { row, column, found })
        }
    });
    distinct(&texts.collect::<Result<Vec<_>, _>>()?, row, column)
}

/// The names of one cell, none of them empty, each once.
pub(crate) fn distinct(
    names: &[&str],
    row: usize,
    column: usize,
) -> Result<Vec<String>, TopologyError> {
    let mut seen = HashSet::new();
    for name in names {
        if name.trim().is_empty() {
            return Err(TopologyError::EmptyName { row, column });
        }
        if !seen.insert(name) {
            let name = shown(name);
            return Err(TopologyError::DuplicateName { row, column, name });
        }
    }
    Ok(names.iter().map(|&name| name.to_owned()).collect())
}
