//! `unisono topo`: the cabling that a file describes, as text or as a picture.
//!
//! ```text
//! 4 ranks
//! rdma: 5 of 6 links, no 0-1; diameter 2; ring 0-2-1-3
//!   0-2  rdma_en4 to rdma_en4
//! ```

mod draw;

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use unisono_core::{Link, Rank, RingSearch, Topology};
use unisono_topology::{Cluster, Transport, read_file};

use crate::args::topo::Args;
use crate::output::Output;

/// More links than these are no picture.
const MOST_LINKS: u64 = 20_000;
/// Rows of text, and missing pairs, that are written for each transport.
const MOST_LINES: usize = 1_000;

/// Reads the file and shows it.
///
/// # Errors
/// The file is no cluster, is too large for a picture, or the picture cannot be written.
pub(crate) fn run(args: &Args, out: &mut Output) -> Result<()> {
    let cluster = read_file(&args.topology)
        .with_context(|| format!("cannot use {}", args.topology.display()))?;
    if args.dot || args.svg.is_some() {
        let pairs = cluster.all_links().pair_count();
        if pairs > MOST_LINKS {
            bail!("{} ranks are too many for a picture", cluster.size());
        }
    }
    match &args.svg {
        _ if args.dot => out.text(draw::dot(&cluster))?,
        None => text(&cluster, out)?,
        Some(file) if file == Path::new("-") => out.text(draw::svg(&cluster))?,
        Some(file) => std::fs::write(file, draw::svg(&cluster))
            .with_context(|| format!("cannot write {}", file.display()))?,
    }
    out.flush()
}

fn text(cluster: &Cluster, out: &mut Output) -> Result<()> {
    let ranks = cluster.size();
    out.line(format!("{ranks} rank{}", if ranks == 1 { "" } else { "s" }))?;
    for rank in (0..ranks).take(MOST_LINES) {
        if let Some(name) = host(cluster, rank) {
            out.line(format!("rank {rank} is {name}"))?;
        }
    }
    for transport in cluster.transports() {
        let topology = cluster.topology(transport);
        out.line(heading(transport, &topology))?;
        for (link, rails) in topology.links().take(MOST_LINES) {
            out.line(format!(
                "  {link}{}",
                described(cluster, transport, link, rails)
            ))?;
        }
        if topology.link_count() > MOST_LINES as u64 {
            let more = topology.link_count() - MOST_LINES as u64;
            out.line(format!("  and {more} more"))?;
        }
    }
    for cell in cluster.one_way() {
        out.line(format!("one way: {cell}"))?;
    }
    Ok(())
}

/// One line on the links of a transport.
fn heading(transport: Transport, topology: &Topology) -> String {
    let (links, pairs) = (topology.link_count(), topology.pair_count());
    let mut line = format!("{transport}: {links} of {pairs} links");
    let missing = missing(topology);
    if !missing.is_empty() {
        line += &format!(", no {missing}");
    }
    let components = topology.components();
    if components.len() > 1 {
        let each = components.iter().map(|c| {
            let ranks: Vec<String> = c.iter().map(Rank::to_string).collect();
            format!("{{{}}}", ranks.join(","))
        });
        line += &format!("; joins only {}", each.collect::<Vec<_>>().join(" and "));
    }
    match topology.search_ring() {
        RingSearch::Found(ring) => {
            let ranks = (0..i64::from(topology.size())).map(|i| ring.at(i).to_string());
            line += &format!("; ring {}", ranks.collect::<Vec<_>>().join("-"));
        }
        RingSearch::Impossible(why) => line += &format!("; no ring: {why}"),
        _ => line += "; no ring was found",
    }
    line
}

/// The missing pairs, named.
fn missing(topology: &Topology) -> String {
    let all = topology.pair_count() - topology.link_count();
    let some = topology.missing().take(MOST_LINES).map(|l| l.to_string());
    let some: Vec<String> = some.collect();
    match all - some.len() as u64 {
        0 => some.join(", "),
        more => format!("{} and {more} more", some.join(", ")),
    }
}

/// Its devices, or how many rails it has.
fn described(cluster: &Cluster, transport: Transport, link: Link, rails: u32) -> String {
    let named = cluster.rails(transport, link.a, link.b);
    let names: Vec<String> = named
        .iter()
        .filter_map(|r| Some(format!("{} to {}", r.near?, r.far?)))
        .collect();
    match (names.is_empty(), rails) {
        (false, _) => format!("  {}", names.join(", ")),
        (true, 1) => String::new(),
        (true, rails) => format!("  {rails} rails"),
    }
}

/// What people call the host of a rank.
fn host(cluster: &Cluster, rank: Rank) -> Option<String> {
    let host = cluster.host(rank)?;
    let address = || host.addresses.first().map(|a| a.to_string());
    host.ssh
        .clone()
        .or_else(|| host.ips.first().cloned())
        .or_else(address)
}
