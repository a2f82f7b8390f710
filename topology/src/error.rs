//! What can be wrong with a cluster file.
//!
//! Rows and columns count from 0, as ranks do; lines and columns of text from 1, as editors do.

use std::fmt;
use std::path::PathBuf;

use unisono_core::Rank;

use crate::{AddressFault, LinkSpecError, OneWay, QuantityError, Transport};

/// Why a text is no cluster, each case with its place and what was expected. One line each.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// More text than any cluster needs.
    #[error("the file has more than {most} bytes")]
    TooLong {
        /// The most that is read.
        most: u64,
    },
    /// Not text at all.
    #[error("byte {offset} is not UTF-8; expected text in UTF-8")]
    NotUtf8 {
        /// Bytes before it.
        offset: usize,
    },
    /// Nothing there.
    #[error("the file is empty; expected {FORMATS}")]
    Empty,
    /// Well-formed, and of no format that is known.
    #[error("found {found} at the top; expected {FORMATS}")]
    UnknownFormat {
        /// What stands there.
        found: Kind,
    },
    /// The text ends in the middle.
    #[error(
        "line {line}, column {column}: the text ends too early; expected the rest of the {language}"
    )]
    Truncated {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// `JSON` or `TOML`.
        language: &'static str,
    },
    /// Something stands after the end.
    #[error("line {line}, column {column}: more text after the end of the JSON; expected nothing")]
    Trailing {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// The text is no JSON or no TOML.
    #[error("line {line}, column {column}: no {language}: {reason}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// `JSON` or `TOML`.
        language: &'static str,
        /// What its parser says.
        reason: String,
    },
    /// A key that stands twice in one object.
    #[error("line {line}: key `{key}` stands twice; expected it once")]
    DuplicateKey {
        /// From 1.
        line: usize,
        /// The key.
        key: String,
    },
    /// Lists within lists without an end.
    #[error("line {line}: nested more than {most} deep")]
    TooDeep {
        /// From 1.
        line: usize,
        /// The deepest that is read.
        most: usize,
    },

    /// Nobody is there.
    #[error("the cluster has no ranks; expected one at least")]
    NoRanks,
    /// More ranks than are taken.
    #[error("{ranks} ranks are too many; expected {most} at most")]
    TooManyRanks {
        /// Asked for.
        ranks: u64,
        /// The limit.
        most: u64,
    },
    /// Several ranks and no way between any two of them.
    #[error("{ranks} ranks have no link at all; expected one that both of its ends list{}", OneWays(.one_way))]
    NoLinks {
        /// Number of ranks.
        ranks: Rank,
        /// What one end alone lists.
        one_way: Vec<OneWay>,
    },
    /// A link that was asked for is not there.
    #[error("ranks {from} and {to} have no link over {transport}")]
    NotLinked {
        /// Over which transport.
        transport: Transport,
        /// From this rank.
        from: Rank,
        /// To that rank.
        to: Rank,
    },

    /// A row of a matrix that is no list.
    #[error("row {row}: found {found}; expected a list of cells or of addresses")]
    Row {
        /// From 0.
        row: usize,
        /// What stands there.
        found: Kind,
    },
    /// A matrix that is ragged or not square.
    #[error("row {row} has {columns} cells; expected {rows}, one per rank: a matrix is square")]
    NotSquare {
        /// From 0.
        row: usize,
        /// Cells in this row.
        columns: usize,
        /// Rows of the matrix.
        rows: usize,
    },
    /// The cells of a host do not match the hosts.
    #[error("host {row} lists {columns} rdma cells; expected {hosts}, one per host")]
    HostColumns {
        /// The host, from 0.
        row: usize,
        /// Its cells.
        columns: usize,
        /// Number of hosts.
        hosts: usize,
    },
    /// A cell that is no name.
    #[error(
        "row {row}, column {column}: found {found}; expected null, a device name, or a list of device names"
    )]
    Cell {
        /// From 0.
        row: usize,
        /// From 0.
        column: usize,
        /// What stands there.
        found: Kind,
    },
    /// A device of a rank to itself.
    #[error(
        "row {row}, column {row}: `{name}` on the diagonal; expected null: no rank has a cable to itself"
    )]
    Diagonal {
        /// The rank.
        row: usize,
        /// The device.
        name: String,
    },
    /// A name of no letters.
    #[error(
        "row {row}, column {column}: an empty name; expected a device such as rdma_en2, or null"
    )]
    EmptyName {
        /// From 0.
        row: usize,
        /// From 0.
        column: usize,
    },
    /// A name that stands twice in one cell.
    #[error("row {row}, column {column}: `{name}` stands twice; expected one name per cable")]
    DuplicateName {
        /// From 0.
        row: usize,
        /// From 0.
        column: usize,
        /// The device.
        name: String,
    },

    /// Two entries of one host.
    #[error("host {second}: ssh `{ssh}` is host {first} already; expected each host once")]
    DuplicateHost {
        /// The name.
        ssh: String,
        /// From 0.
        first: usize,
        /// From 0.
        second: usize,
    },
    /// A rank nobody can call in a list of addresses.
    #[error("rank {rank} has no address; expected one at least, such as 192.168.1.2:5000")]
    NoAddress {
        /// The rank.
        rank: usize,
    },
    /// An address nobody can connect to.
    #[error("rank {rank}, address {index} `{text}`: {fault}")]
    Address {
        /// The rank or host.
        rank: usize,
        /// Which of its addresses, from 0.
        index: usize,
        /// As it was given.
        text: String,
        /// Why.
        fault: AddressFault,
    },
    /// One address for two connections.
    #[error(
        "rank {rank}, address {index}: `{address}` belongs to rank {first} already; expected another port"
    )]
    DuplicateAddress {
        /// The rank.
        rank: usize,
        /// Which of its addresses, from 0.
        index: usize,
        /// The address.
        address: String,
        /// Who has it already.
        first: usize,
    },

    /// A key that must be there.
    #[error("line {line}: {place} has no key `{key}`; expected {expected}")]
    MissingKey {
        /// Where the object ends or begins, from 1.
        line: usize,
        /// Of which object.
        place: String,
        /// The key.
        key: &'static str,
        /// What belongs there.
        expected: &'static str,
    },
    /// A key that our own format does not have.
    #[error("line {line}: unknown key `{key}` in {place}; expected {}", .known.join(", "))]
    UnknownKey {
        /// From 1.
        line: usize,
        /// In which object.
        place: String,
        /// As it was given.
        key: String,
        /// The keys that object has.
        known: &'static [&'static str],
    },
    /// A value of another type than belongs there.
    #[error("line {line}: {place}: found {found}; expected {expected}")]
    WrongType {
        /// From 1.
        line: usize,
        /// The path to the value.
        place: String,
        /// What stands there.
        found: Kind,
        /// What belongs there.
        expected: &'static str,
    },
    /// A text that does not say what belongs there.
    #[error("line {line}: {place}: found `{text}`; expected {expected}")]
    WrongText {
        /// From 1.
        line: usize,
        /// The path to the value.
        place: String,
        /// As it was given.
        text: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// A number that is out of range.
    #[error("line {line}: {place}: {number} is out of range; expected {least} to {most}")]
    OutOfRange {
        /// From 1.
        line: usize,
        /// The path to the number.
        place: String,
        /// As it was given.
        number: i128,
        /// The least that is taken.
        least: u64,
        /// The most that is taken.
        most: u64,
    },
    /// A time or a rate that cannot be read.
    #[error("line {line}: {place}: {source}")]
    Quantity {
        /// From 1.
        line: usize,
        /// The path to the figure.
        place: String,
        /// What is wrong.
        source: Box<QuantityError>,
    },
    /// A preset or a transport that is not known.
    #[error("line {line}: {place}: {source}")]
    Spec {
        /// From 1.
        line: usize,
        /// The path to the name.
        place: String,
        /// What is wrong.
        source: Box<LinkSpecError>,
    },
    /// Hosts and ranks that do not match.
    #[error("line {line}: {hosts} hosts for {ranks} ranks; expected one per rank, or none")]
    HostCount {
        /// From 1.
        line: usize,
        /// Entries in `hosts`.
        hosts: usize,
        /// Number of ranks.
        ranks: Rank,
    },
    /// A link of a rank with itself.
    #[error("line {line}: {place}: rank {rank} has no link with itself; expected two ranks")]
    SelfLink {
        /// From 1.
        line: usize,
        /// The path to the link.
        place: String,
        /// The rank.
        rank: Rank,
    },
    /// A link that is described twice.
    #[error(
        "line {line}: {place}: the way from {from} to {to} over {transport} was described before; expected it once"
    )]
    DuplicateLink {
        /// From 1.
        line: usize,
        /// The path to the link.
        place: String,
        /// Over which transport.
        transport: Transport,
        /// From this rank.
        from: Rank,
        /// To that rank.
        to: Rank,
    },
    /// The sides of a torus, or another shape, that cannot be read.
    #[error("`{text}` is no size of a torus; expected two numbers, such as 4x8")]
    Torus {
        /// As it was given.
        text: String,
    },
}

/// What the formats are, for messages.
const FORMATS: &str = "a matrix of devices, a hostfile, a list of addresses per rank, or ranks and links in TOML or JSON";

/// What sort of value stands somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// Any number, also `nan` and `inf` of TOML.
    Number,
    /// A text in quotes.
    Text,
    /// A list.
    List,
    /// An object of JSON, a table of TOML.
    Object,
    /// A date of TOML.
    Date,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Null => "null",
            Kind::Bool => "true or false",
            Kind::Number => "a number",
            Kind::Text => "a text",
            Kind::List => "a list",
            Kind::Object => "an object",
            Kind::Date => "a date",
        })
    }
}

/// The first few one-way cells, for a message.
struct OneWays<'a>(&'a [OneWay]);

impl fmt::Display for OneWays<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, cell) in self.0.iter().take(4).enumerate() {
            write!(f, "{}{cell}", if at == 0 { "; found " } else { ", " })?;
        }
        match self.0.len().saturating_sub(4) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
