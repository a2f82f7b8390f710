//! The choice without facts: by size and world, in a fixed order.
//!
//! ```text
//! all_reduce, 8 ranks or fewer, at most 32 KiB: mesh-oneshot, butterfly-doubling, tree, tree-centre, then any other
//! ```
//!
//! The first algorithm of the list that the links allow is taken. It is what a group does that knows nothing of its links,
//! and what the table falls back on above [`MOST_PRICED`](crate::MOST_PRICED) ranks.

use std::sync::Arc;

use unisono_core::Collective;
use unisono_program::{Algorithm, Context, Params, Registry};

use crate::error::listed;
use crate::{Ask, Choice, Entry, SelectError};

/// Segments of this many bytes stay in a core's cache between their arrival and their reduction.
const SEGMENT: u64 = 256 * 1024;
const MOST_SEGMENTS: u64 = 1024;

/// Chooses for one call without facts. The same on every rank: nothing here depends on the rank.
///
/// # Errors
/// [`SelectError`], naming what is missing.
pub fn choose(registry: &Registry, ask: &Ask<'_>) -> Result<Choice, SelectError> {
    let cx = ask.context;
    if let Some(tune) = ask.tune {
        let names: Vec<&str> = registry.names().collect();
        tune.check(names)?;
    }
    let entry = ask
        .tune
        .filter(|_| ask.algorithm.is_none())
        .and_then(|tune| tune.find(cx.collective(), ask.total(), cx.size()));
    let channels = ask.channels.or(entry.and_then(|e| e.channels));
    let cx = &cx
        .clone()
        .with_params(Params::default().with_channels(channels.unwrap_or(1)));
    if let Some(name) = ask.algorithm {
        let algorithm = registry.find(name)?;
        return match algorithm.supports(cx) {
            Ok(()) => Ok(made(algorithm, ask, cx, "asked for by name".to_owned())),
            Err(why) => Err(SelectError::Unsupported {
                algorithm: name.to_owned(),
                collective: cx.collective(),
                why,
            }),
        };
    }
    match entry {
        None => preferred(registry, ask, cx, None),
        Some(entry) => overridden(registry, ask, cx, entry),
    }
}

/// What an override leaves.
fn overridden(
    registry: &Registry,
    ask: &Ask<'_>,
    cx: &Context,
    entry: &Entry,
) -> Result<Choice, SelectError> {
    let impossible = |missing: String| SelectError::Impossible {
        entry: entry.to_string(),
        collective: cx.collective(),
        missing,
    };
    // What transport this is may not be known: then it is taken for the one that is meant.
    let mine = match (&entry.transport, ask.transport) {
        (Some(wanted), Some(have)) => wanted == have,
        _ => true,
    };
    if !mine && !entry.exclude {
        return Err(impossible(format!(
            "the group is linked over {}",
            ask.transport.unwrap_or("another transport")
        )));
    }
    let mut choice = match (&entry.algorithm, entry.exclude) {
        (Some(name), false) => {
            let algorithm = registry.find(name)?;
            algorithm
                .supports(cx)
                .map_err(|why| impossible(why.to_string()))?;
            made(algorithm, ask, cx, String::new())
        }
        (None, true) if mine => {
            return Err(impossible("the group has no other transport".to_owned()));
        }
        (Some(name), true) if mine => {
            let others: Vec<&str> = registry.names().filter(|n| n != name).collect();
            preferred(registry, ask, cx, Some(&others))
                .map_err(|_| impossible("nothing else can do it".to_owned()))?
        }
        _ => preferred(registry, ask, cx, None)?,
    };
    choice.reason = format!("override `{entry}`");
    if let Some(segments) = ask.segments.or(entry.segments) {
        choice.segments = segments.min(ask.bytes.div_ceil(64)).clamp(1, 1 << 16);
    }
    Ok(choice)
}

/// The first of the list, if it is among `allowed`, that the call allows.
pub(crate) fn preferred(
    registry: &Registry,
    ask: &Ask<'_>,
    cx: &Context,
    allowed: Option<&[&str]>,
) -> Result<Choice, SelectError> {
    let mut reasons = Vec::new();
    let listed_first = preferences(cx, ask);
    let others = registry.names().filter(|n| !listed_first.contains(n));
    let names = listed_first.iter().copied().chain(others);
    for name in names.filter(|n| allowed.is_none_or(|a| a.contains(n))) {
        let Ok(algorithm) = registry.find(name) else {
            continue;
        };
        match algorithm.supports(cx) {
            Ok(()) => {
                let reason = if reasons.is_empty() {
                    let sharing = if ask.crowded { " that share cores" } else { "" };
                    format!(
                        "first choice for {} bytes on {} ranks{sharing}",
                        ask.bytes,
                        cx.size()
                    )
                } else {
                    format!("the best that this call allows{}", listed(&reasons))
                };
                return Ok(made(algorithm, ask, cx, reason));
            }
            Err(why) => reasons.push((name.to_owned(), why)),
        }
    }
    Err(SelectError::Nobody {
        collective: cx.collective(),
        reasons,
    })
}

pub(crate) fn made(
    algorithm: &Arc<dyn Algorithm>,
    ask: &Ask<'_>,
    cx: &Context,
    reason: String,
) -> Choice {
    let message = if cx.collective().cuts_a_vector() {
        ask.bytes / algorithm.blocks(cx).max(1)
    } else {
        ask.bytes
    };
    let shares = u64::from(cx.params().channels) * u64::from(algorithm.parts(cx));
    let segments = (message / shares.max(1)).div_ceil(SEGMENT);
    Choice {
        algorithm: Arc::clone(algorithm),
        params: cx.params(),
        // More segments than there are cache lines would all be empty.
        segments: ask
            .segments
            .unwrap_or(segments.min(MOST_SEGMENTS))
            .min(ask.bytes.div_ceil(64))
            .clamp(1, 1 << 16),
        way: None,
        topology: None,
        reason,
    }
}

/// Names in the order in which they are tried. Small calls want few rounds, large ones few bytes, and a mesh over
/// many ranks has too many messages. Where ranks share cores, that is so for any mesh of more than two; and large messages
/// from many at once leave the cache before they are read.
fn preferences(cx: &Context, ask: &Ask<'_>) -> &'static [&'static str] {
    use Collective as C;
    let crowded = ask.crowded && cx.size() > 2;
    let few = cx.size() <= 8 && !crowded;
    let small = ask.bytes <= 32 * 1024;
    match cx.collective() {
        C::AllReduce if crowded && !small && ask.bytes < 4 << 20 => &[
            "butterfly-halving",
            "butterfly-circulant",
            "ring",
            "tree",
            "tree-centre",
        ],
        C::AllReduce if crowded && !small && ask.bytes < 32 << 20 => {
            &["butterfly-circulant", "ring", "tree", "tree-centre"]
        }
        C::AllReduce if crowded && !small => {
            &["ring", "butterfly-circulant", "tree", "tree-centre"]
        }
        C::AllReduce if small && few => {
            &["mesh-oneshot", "butterfly-doubling", "tree", "tree-centre"]
        }
        C::AllReduce if small => &["butterfly-doubling", "tree", "tree-centre"],
        C::AllReduce if few => &["mesh-twoshot", "ring", "tree", "tree-centre"],
        C::AllReduce => &[
            "butterfly-circulant",
            "ring",
            "mesh-twoshot",
            "tree",
            "tree-centre",
        ],
        C::ReduceScatter if few => &["mesh-oneshot", "mesh-twoshot", "ring", "tree-centre"],
        C::ReduceScatter if small => {
            &["butterfly-circulant", "mesh-twoshot", "ring", "tree-centre"]
        }
        C::ReduceScatter => &["ring", "butterfly-circulant", "mesh-twoshot", "tree-centre"],
        C::AllGather if few => &["mesh-direct", "ring", "tree-centre"],
        C::AllGather => &["butterfly-circulant", "ring", "mesh-direct", "tree-centre"],
        C::Broadcast if small || few => &["tree", "ring", "tree-centre"],
        C::Broadcast => &["mesh-twoshot", "ring", "tree", "tree-centre"],
        C::Reduce => &["tree", "ring", "tree-centre"],
        C::Gather | C::Scatter if few => &["mesh-direct", "tree", "tree-centre"],
        C::Gather | C::Scatter => &["tree", "mesh-direct", "tree-centre"],
        C::AllToAll => &["mesh-direct", "ring", "tree-centre"],
        C::Barrier => &["dissemination", "butterfly-doubling", "tree", "tree-centre"],
        _ => &[],
    }
}
