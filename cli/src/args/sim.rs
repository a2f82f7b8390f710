//! Arguments of `sim`.

use std::path::PathBuf;
use std::str::FromStr;

use unisono_core::{Collective, DType, Op, Rank, UnknownName};
use unisono_sim::{Fault, Unposted};
use unisono_topology::{LinkSpec, parse_torus};

use super::bench::Algorithms;
use super::names::Choice;
use super::ranks::{self, world};
use super::sizes::Sizes;

/// The size of a simulation that names none.
pub(crate) const SIZE: &str = "64M";

/// Up to so many ranks, `auto` runs events.
pub(crate) const EVENTS_BY_ITSELF: Rank = 256;

/// Runs collectives in virtual time, on a cluster that need not exist, and says how long they take and why.
///
/// The programs, the engine and the groups are those that run on wires; `events` executes them message by message, with
/// faults and jitter, `evaluator` only prices them, for ten thousand ranks. Both go by the same rules: a message takes
/// the core of its sender for the overhead, its link for its bytes, the latency, and the core of its receiver for the
/// overhead; reducing and copying take a core. Sizes are 1024-based, rates powers of 1000.
///
/// One row, or one JSON object, per operation, algorithm and size. op, algorithm: text; ranks, bytes, steps, segments:
/// whole numbers (bytes: the larger buffer of a rank, rounded up as in bench; steps: sends, receives, reductions and
/// copies of all ranks, in segments); virtual_us: microseconds until the last rank is done; algbw = bytes / virtual_us in
/// GB/s (1e9), busbw = algbw times the share of the busiest link, as in bench, both null if no time passes or the
/// operation fails; links: for each direction that carried something from, to, bytes, messages, busy_us; bottleneck: the
/// busiest of them as text, "0>1" for the way from rank 0 to rank 1, null if nothing was sent; trace_hash: 16 hexadecimal
/// digits, equal for equal runs of the same engine; wall_ms: real time. Behind these: engine, payload, dtype, segments,
/// messages, lost, and error, the cause, if the operation failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono sim --mesh 4
  unisono sim --topology cluster.json --algorithm all --bytes 4K,1M,1G
  unisono sim --torus 4x4 --link roce100g --op all_gather --json
  unisono sim --ring 10000 --link alpha=5us,bandwidth=5GB/s --algorithm ring
  unisono sim --mesh 8 --jitter 0.2 --seed 7 --trace run.json --svg run.svg
  unisono sim --mesh 4 --fault 'crash rank=2 at=100us'      exit status 1, and what every rank was told
Faults:
  crash rank=2 at=100us | stall rank=3 at=0us for=20ms | down link=0-1 at=1ms [up=2ms] | slow link=2-3 factor=0.1
  drop|duplicate|corrupt|delay link=0-1 nth=3 [by=1ms] | oneway link=0>1 at=1ms | loss link=0-1 rate=0.01")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) place: Place,

    /// What links cost: thunderbolt5-rdma, thunderbolt5-tcp, 10gbe, roce100g, or
    /// alpha=5us,bandwidth=5GB/s[,overhead=0.5us,reduce=20GB/s]. On a file: of its links over that transport, except for
    /// figures that links have of their own [default: thunderbolt5-rdma, or what the file says]
    #[arg(long, value_name = "PRESET|FIGURES")]
    pub(crate) link: Option<LinkSpec>,

    /// Collectives, comma separated, or `all`: all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter,
    /// all_to_all, barrier.
    #[arg(long, value_name = "OP", default_value = "all_reduce")]
    pub(crate) op: Choice<Collective>,

    /// Sizes: K, M, G are 1024-based; a..b doubles from a and includes both ends; lists. A barrier takes none.
    /// [default: 64M]
    #[arg(long, value_name = "SIZE|A..B")]
    pub(crate) bytes: Option<Sizes>,

    /// Names of algorithms, comma separated; `all` runs each that these links allow and says on stderr what the others
    /// miss, `auto` takes the one that a call would.
    #[arg(long, value_name = "NAME|all", default_value = "auto")]
    pub(crate) algorithm: Algorithms,

    /// The element type.
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: DType,

    /// The operator of reductions: sum, prod, min, max, avg (floats only).
    #[arg(long, value_name = "OPERATOR", default_value = "sum")]
    pub(crate) reduce: Op,

    /// The root, where there is one.
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    pub(crate) root: Rank,

    /// Segments that every step is cut into [default: chosen by size]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 16))]
    pub(crate) segments: Option<u64>,

    /// `events`, `evaluator`, or `auto`: events for up to 256 ranks, and wherever a fault, jitter, a trace, a picture, real
    /// payload or another --unposted is asked for.
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub(crate) engine: Engine,

    /// `phantom`: lengths and fingerprints of contributions, checked at the end, whatever the size; `real`: bytes in
    /// memory, every element checked.
    #[arg(long, value_name = "PAYLOAD", default_value = "phantom")]
    pub(crate) payload: Payload,

    /// Where all randomness comes from.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Latency and transfer of each message are longer by a random share, uniform from 0 to this.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = jitter, allow_hyphen_values = true)]
    pub(crate) jitter: f64,

    /// Something that goes wrong; may be given several times.
    #[arg(long, value_name = "SPEC")]
    pub(crate) fault: Vec<Fault>,

    /// A message that arrives where no receive is posted: `buffer` keeps it, `block` does not let it leave, `drop` loses it
    /// silently, as an unreliable connection does.
    #[arg(long, value_name = "RULE", default_value = "buffer", value_parser = unposted)]
    pub(crate) unposted: Unposted,

    /// Write what happened when for chrome://tracing and ui.perfetto.dev. One row only.
    #[arg(long, value_name = "FILE.json")]
    pub(crate) trace: Option<PathBuf>,

    /// Draw ranks down and time across, and below how busy each link was. One row only.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) svg: Option<PathBuf>,

    /// One JSON object per row on stdout, and nothing else.
    #[arg(long)]
    pub(crate) json: bool,

    /// Run everything twice, and fail if the hashes differ.
    #[arg(long)]
    pub(crate) repeat_check: bool,
}

/// Ranks and links.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Place {
    /// A device matrix, a hostfile, a list of ring addresses, or our own TOML or JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,

    /// So many ranks, every two of them linked.
    #[arg(long, value_name = "N", value_parser = world)]
    pub(crate) mesh: Option<Rank>,

    /// So many ranks, each linked with the next, the last with the first.
    #[arg(long, value_name = "N", value_parser = world)]
    pub(crate) ring: Option<Rank>,

    /// So many ranks, each linked with the next.
    #[arg(long, value_name = "N", value_parser = world)]
    pub(crate) line: Option<Rank>,

    /// So many ranks, rank 0 linked with every other.
    #[arg(long, value_name = "N", value_parser = world)]
    pub(crate) star: Option<Rank>,

    /// A rows of B ranks, every row and every column a ring.
    #[arg(long, value_name = "AxB", value_parser = torus)]
    pub(crate) torus: Option<(Rank, Rank)>,
}

/// Who finds out how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Whichever can do what is asked for.
    Auto,
    /// Prices programs.
    Evaluator,
    /// Executes them.
    Events,
}

impl FromStr for Engine {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Engine, UnknownName> {
        match name {
            "auto" => Ok(Engine::Auto),
            "evaluator" => Ok(Engine::Evaluator),
            "events" => Ok(Engine::Events),
            _ => Err(UnknownName::new(
                "engine",
                name,
                ["auto", "evaluator", "events"],
            )),
        }
    }
}

/// What messages carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload {
    /// Lengths and fingerprints.
    Phantom,
    /// Bytes.
    Real,
}

impl FromStr for Payload {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Payload, UnknownName> {
        match name {
            "phantom" => Ok(Payload::Phantom),
            "real" => Ok(Payload::Real),
            _ => Err(UnknownName::new("payload", name, ["phantom", "real"])),
        }
    }
}

fn unposted(name: &str) -> Result<Unposted, UnknownName> {
    match name {
        "buffer" => Ok(Unposted::Buffer),
        "block" => Ok(Unposted::Block),
        "drop" => Ok(Unposted::Drop),
        _ => Err(UnknownName::new(
            "rule for unposted receives",
            name,
            ["buffer", "block", "drop"],
        )),
    }
}

/// Longer than this by chance is no jitter.
const MOST_JITTER: f64 = 1000.0;

fn jitter(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=MOST_JITTER).contains(&share) => Ok(share),
        _ => Err(format!(
            "`{text}` is no share; expected a number from 0 to {MOST_JITTER}, such as 0.2"
        )),
    }
}

fn torus(text: &str) -> Result<(Rank, Rank), String> {
    let (a, b) = parse_torus(text).map_err(|e| e.to_string())?;
    match u64::from(a) * u64::from(b) <= ranks::MOST.into() {
        true => Ok((a, b)),
        false => Err(format!(
            "{a}x{b} ranks are too many: at most {}",
            ranks::MOST
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_a_share() {
        assert_eq!(jitter("0.2"), Ok(0.2));
        for bad in ["-1", "NaN", "inf", "", "20%", "1e9"] {
            assert!(jitter(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_torus_has_two_sides_and_not_too_many_ranks() {
        assert_eq!(torus("4x8"), Ok((4, 8)));
        for bad in ["4", "0x4", "4x4x4", "65536x2", "4294967295x4294967295"] {
            assert!(torus(bad).is_err(), "{bad}");
        }
    }
}
