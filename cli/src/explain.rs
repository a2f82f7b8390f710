//! `unisono explain`: what a call would use on the links of a file, and why.
//!
//! Everything is the selector's; this reads the file, asks, and prints.

use anyhow::{Context as _, Result, bail};
use unisono::select::{Ask, Facts, Selector, row_bytes};
use unisono_core::{Collective, Topology};
use unisono_program::Context;
use unisono_topology::read_file;

use crate::args::explain::Args;
use crate::catalogue;
use crate::exit::Stopped;
use crate::output::Output;

/// Reads the file and explains the choice.
///
/// # Errors
/// The file is no cluster, or its links cannot do what is asked for or required.
pub(crate) fn run(args: &Args, out: &mut Output) -> Result<()> {
    let total = size(args)?;
    let cluster = read_file(&args.topology)
        .with_context(|| format!("cannot use {}", args.topology.display()))?;
    let cluster = match &args.link {
        Some(spec) => cluster.with_spec(spec),
        None => cluster,
    };
    let ranks = cluster.size();
    if args.root >= ranks {
        bail!(
            "root {} is out of range: the world has {ranks} ranks, 0 to {}",
            args.root,
            ranks - 1
        );
    }
    let registry = catalogue::algorithms().clone();
    let selector = Selector::new(Facts::of(&cluster), registry, args.require)?;
    let root = if args.op.is_rooted() { args.root } else { 0 };
    let cx = Context::new(args.op, 0, Topology::full(ranks).into()).with_root(root);
    let mut ask = Ask::new(&cx, row_bytes(args.op, ranks, total));
    ask.tune = args.tune.as_ref();
    let explanation = selector.explain(&ask)?;
    if args.json {
        return out.json(&explanation);
    }
    out.text(explanation)?;
    out.flush()
}

/// The one size that was asked for.
fn size(args: &Args) -> Result<u64> {
    let usage = |cause: &str| {
        let hint = "Usage: unisono explain --topology FILE --op OP --bytes N";
        Err(Stopped::usage(cause, hint).into())
    };
    match &args.bytes {
        _ if args.op == Collective::Barrier => Ok(0),
        None => usage("--bytes is missing: how long a call takes depends on its size"),
        Some(sizes) => match sizes.0[..] {
            [one] => Ok(one),
            _ => usage("--bytes takes one size here"),
        },
    }
}
