//! The cabling as a picture: ranks in a circle, in the order of a ring where there is one.

use std::f64::consts::TAU;
use std::fmt::Write;

use unisono_core::{Link, Rank, RingSearch};
use unisono_topology::{Cluster, Transport};

use super::{described, heading, host};

/// In the language of Graphviz.
pub(super) fn dot(cluster: &Cluster) -> String {
    let mut text = "graph cluster {\n  layout=circo;\n  node [shape=circle];\n".to_owned();
    for rank in 0..cluster.size() {
        let name = host(cluster, rank).unwrap_or_default();
        let name = name.replace(['"', '\\'], "_");
        let line = if name.is_empty() { "" } else { "\\n" };
        let _ = writeln!(text, "  {rank} [label=\"{rank}{line}{name}\"];");
    }
    for (transport, link, rails) in lines(cluster) {
        let mut label = transport.name().to_owned();
        if rails > 1 {
            let _ = write!(label, " x {rails}");
        }
        let _ = writeln!(text, "  {} -- {} [label=\"{label}\"];", link.a, link.b);
    }
    for (transport, link) in gaps(cluster) {
        let _ = writeln!(
            text,
            "  {} -- {} [label=\"no {transport} link {link}\", style=dashed, color=red, constraint=false];",
            link.a, link.b
        );
    }
    text + "}\n"
}

const SIDE: f64 = 640.0;
const LINE: f64 = 18.0;

/// As an SVG picture.
pub(super) fn svg(cluster: &Cluster) -> String {
    let captions = captions(cluster);
    let height = SIDE + LINE * (captions.len() as f64 + 1.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIDE} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{SIDE}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let places = places(cluster);
    let at = |rank: Rank| places[rank as usize];
    for (transport, link) in gaps(cluster) {
        let ((x, y), (u, v)) = (at(link.a), at(link.b));
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{u:.1}\" y2=\"{v:.1}\" stroke=\"#d62728\" \
             stroke-dasharray=\"6 5\"><title>no {transport} link {link}</title></line>"
        );
        if gaps(cluster).len() <= 12 {
            let (x, y) = (x + (u - x) * 0.4, y + (v - y) * 0.4);
            let _ = writeln!(
                text,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"#d62728\">no {link}</text>"
            );
        }
    }
    for (transport, link, rails) in lines(cluster) {
        let ((x, y), (u, v)) = (at(link.a), at(link.b));
        let colour = if transport == Transport::Rdma {
            "#1f77b4"
        } else {
            "#999999"
        };
        let width = 2.0 * f64::from(rails.min(4));
        let title = escaped(&described(cluster, transport, link, rails));
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{u:.1}\" y2=\"{v:.1}\" stroke=\"{colour}\" \
             stroke-width=\"{width}\"><title>{transport} {link}{title}</title></line>"
        );
    }
    for rank in 0..cluster.size() {
        let (x, y) = at(rank);
        let name = escaped(&host(cluster, rank).unwrap_or_default());
        let _ = writeln!(
            text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"16\" fill=\"white\" stroke=\"black\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{rank}</text>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{name}</text>",
            y + 4.5,
            y + 30.0
        );
    }
    for (line, caption) in captions.iter().enumerate() {
        let y = SIDE + LINE * line as f64;
        let _ = writeln!(text, "<text x=\"12\" y=\"{y}\">{}</text>", escaped(caption));
    }
    text + "</svg>\n"
}

/// Links to be drawn: those of RDMA, and those of TCP between ranks that have no others.
fn lines(cluster: &Cluster) -> Vec<(Transport, Link, u32)> {
    let mut lines = Vec::new();
    for transport in cluster.transports() {
        for (link, rails) in cluster.topology(transport).links() {
            if transport == Transport::Rdma || !cluster.linked(Transport::Rdma, link.a, link.b) {
                lines.push((transport, link, rails));
            }
        }
    }
    lines
}

/// Pairs without a link of the preferred transport.
fn gaps(cluster: &Cluster) -> Vec<(Transport, Link)> {
    let Some(transport) = cluster.transports().next() else {
        return Vec::new();
    };
    let topology = cluster.topology(transport);
    topology.missing().map(|link| (transport, link)).collect()
}

/// Where each rank stands.
fn places(cluster: &Cluster) -> Vec<(f64, f64)> {
    let size = cluster.size();
    let ring = cluster
        .transports()
        .next()
        .map(|t| cluster.topology(t).search_ring());
    let position = |rank| match &ring {
        Some(RingSearch::Found(ring)) => ring.position_of(rank),
        _ => i64::from(rank),
    };
    let radius = if size > 1 { SIDE / 2.0 - 60.0 } else { 0.0 };
    let place = |rank| {
        let angle = TAU * position(rank) as f64 / f64::from(size) - TAU / 4.0;
        let middle = SIDE / 2.0 - 10.0;
        (middle + radius * angle.cos(), middle + radius * angle.sin())
    };
    (0..size).map(place).collect()
}

fn captions(cluster: &Cluster) -> Vec<String> {
    let each = cluster
        .transports()
        .map(|t| heading(t, &cluster.topology(t)));
    let cells = cluster.one_way();
    let cells = cells.iter().map(|cell| format!("one way: {cell}"));
    each.chain(cells).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
