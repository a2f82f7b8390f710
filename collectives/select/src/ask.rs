//! [`Ask`], what is to be chosen for, and [`Choice`], what was chosen.

use std::fmt;
use std::sync::Arc;

use unisono_core::Topology;
use unisono_program::{Algorithm, Context, Params};

use crate::{Tune, Way};

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
    /// What somebody wants otherwise. A named `algorithm` is stronger.
    pub tune: Option<&'a Tune>,
    /// The transport of a group without facts, if it is known: what an override may name.
    pub transport: Option<&'a str>,
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
            tune: None,
            transport: None,
        }
    }

    /// Bytes of the larger buffer: a row for every rank where the collective has rows. Tables and overrides count in these.
    pub fn total(&self) -> u64 {
        let cx = self.context;
        match cx.collective().rows(cx.size()) {
            None | Some(0) => self.bytes,
            Some(_) => self.bytes.saturating_mul(cx.size().into()),
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
    /// Over which links; `None` where nothing is known of them.
    pub way: Option<Way>,
    /// The links that the programs must keep to; `None`: those of the call.
    pub topology: Option<Arc<Topology>>,
    /// Why, in words.
    pub reason: String,
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choice")
            .field("algorithm", &self.algorithm.name())
            .field("params", &self.params)
            .field("segments", &self.segments)
            .field("way", &self.way)
            .field("reason", &self.reason)
            .finish()
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, segments) = (self.algorithm.name(), self.segments);
        let plural = if segments == 1 { "" } else { "s" };
        write!(f, "{name}, {segments} segment{plural}: {}", self.reason)
    }
}
