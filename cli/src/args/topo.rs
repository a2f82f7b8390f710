//! Arguments of `topo`.

use std::path::PathBuf;

/// Shows the cabling that a file describes, and what is missing in it.
///
/// As text: hosts, links, missing pairs, cells that only one end lists, rings. As a picture: ranks in a circle, links as
/// lines, missing pairs dashed and named.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono topo cluster.json
  unisono topo cluster.json --svg cabling.svg
  unisono topo hosts.json --dot | neato -Tpdf > cabling.pdf")]
pub(crate) struct Args {
    /// A device matrix, a hostfile, a list of ring addresses, or our own TOML or JSON.
    #[arg(value_name = "FILE")]
    pub(crate) topology: PathBuf,

    /// Draw an SVG picture into this file (`-`: to stdout).
    #[arg(long, value_name = "FILE.svg", conflicts_with = "dot")]
    pub(crate) svg: Option<PathBuf>,

    /// Write the graph in the language of Graphviz on stdout.
    #[arg(long)]
    pub(crate) dot: bool,
}
