//! Which algorithm a call uses, in how many segments, and why.
//!
//! A first, static choice by size and world, behind the interface that a choice by price will have: the same answer on
//! every rank, an override by name, a reason in words.
//!
//! ```
//! use unisono_core::Collective;
//! use unisono_program::{Context, Registry};
//! use unisono_select::{Ask, SelectError, choose};
//!
//! let cx = Context::full(Collective::AllReduce, 0, 4);
//! let error = choose(&Registry::new(), &Ask::new(&cx, 1024)).unwrap_err();
//! assert!(matches!(error, SelectError::Nobody { .. }));
//! ```
#![forbid(unsafe_code)]

use std::sync::Arc;

use unisono_core::{Collective, UnknownName};
use unisono_program::{Algorithm, Context, Params, Registry, Unsupported};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The call.
    pub context: &'a Context,
    /// Bytes of the vector, or of one row of the table.
    pub bytes: u64,
    /// The name of the algorithm to use, whatever it costs.
    pub algorithm: Option<&'a str>,
    /// The number of segments to use.
    pub segments: Option<u64>,
    /// The number of channels to use.
    pub channels: Option<u16>,
    /// Ranks share cores, so that a message costs more than its time on the wire.
    pub crowded: bool,
}

impl<'a> Ask<'a> {
    /// Everything free.
    pub fn new(context: &'a Context, bytes: u64) -> Ask<'a> {
        Ask {
            context,
            bytes,
            algorithm: None,
            segments: None,
            channels: None,
            crowded: false,
        }
    }
}

/// What a call uses.
#[derive(Clone)]
#[non_exhaustive]
pub struct Choice {
    /// The algorithm.
    pub algorithm: Arc<dyn Algorithm>,
    /// Its variant.
    pub params: Params,
    /// Segments of every step.
    pub segments: u64,
    /// Why, in words.
    pub reason: String,
}

impl std::fmt::Debug for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Choice")
            .field("algorithm", &self.algorithm.name())
            .field("params", &self.params)
            .field("segments", &self.segments)
            .field("reason", &self.reason)
            .finish()
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, segments) = (self.algorithm.name(), self.segments);
        let plural = if segments == 1 { "" } else { "s" };
        write!(f, "{name}, {segments} segment{plural}: {}", self.reason)
    }
}

/// Why nothing could be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The name is not known.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The named algorithm cannot do it.
    #[error("{algorithm} cannot do {collective} here: {why}")]
    Unsupported {
        /// The algorithm.
        algorithm: String,
        /// The exchange.
        collective: Collective,
        /// What is missing.
        why: Unsupported,
    },
    /// No registered algorithm can do it.
    #[error("no algorithm can do {collective} here{}", list(.reasons))]
    Nobody {
        /// The exchange.
        collective: Collective,
        /// What each one misses.
        reasons: Vec<(String, Unsupported)>,
    },
}

fn list(reasons: &[(String, Unsupported)]) -> String {
    reasons
        .iter()
        .map(|(name, why)| format!("; {name}: {why}"))
        .collect()
}

/// Segments of this many bytes stay in a core's cache between their arrival and their reduction.
const SEGMENT: u64 = 256 * 1024;
const MOST_SEGMENTS: u64 = 1024;

/// Chooses for one call. The same on every rank: nothing here depends on the rank.
///
/// # Errors
/// [`SelectError`], naming what is missing.
pub fn choose(registry: &Registry, ask: &Ask<'_>) -> Result<Choice, SelectError> {
    let params = Params::default().with_channels(ask.channels.unwrap_or(1));
    let cx = &ask.context.clone().with_params(params);
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
    let mut reasons = Vec::new();
    let preferred = preferences(cx, ask);
    let others = registry.names().filter(|n| !preferred.contains(n));
    for name in preferred.iter().copied().chain(others) {
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
                    format!("the best that this call allows{}", list(&reasons))
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

fn made(algorithm: &Arc<dyn Algorithm>, ask: &Ask<'_>, cx: &Context, reason: String) -> Choice {
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
