//! Faults, and the grammar in which they are written.
//!
//! A fault either lets the run end right or gives a typed error; it never makes a result wrong, and never leaves a rank
//! waiting. What each does:
//!
//! | fault | what happens | how it ends |
//! |---|---|---|
//! | `crash rank=2 at=100us` | the rank stops; after the detection time its links close, and the others are told | every other rank: `rank 2 was lost`; right if it had ended before |
//! | `stall rank=3 at=0us for=20ms` | the rank's core does not run; its links do | right, later |
//! | `down link=0-1 at=1ms up=2ms` | nothing passes until `up`; what was on the wire is sent again | right, later |
//! | `down link=0-1 at=1ms` | nothing passes any more; after the detection time both ends find the link broken | a link error for every rank, or right if nobody needed it |
//! | `slow link=2-3 factor=0.1` | the link has a tenth of its bandwidth (from `at=`, default 0) | right, later |
//! | `drop link=0-1 nth=3` | the third message that leaves on the link, in either direction, never arrives | the next message on its FIFO does not carry the expected number: a mismatch for every rank; without a next one, the end of its sender (`rank 0 was lost`), or a deadlock that says that a message was lost |
//! | `duplicate link=0-1 nth=3` | it arrives twice | the copy is met by the next receive, whose number differs: a mismatch; right if no other message follows |
//! | `corrupt link=0-1 nth=3` | one bit of its payload flips; the link's checksum (every real transport has one) finds it, and the receiver breaks the link | a link error for every rank |
//! | `corrupt link=0-1 nth=3 part=frame` | one bit of its header flips | compared with what the receive expects: a mismatch for every rank |
//! | `delay link=0-1 nth=3 by=1ms` | it arrives later, and so does what follows it on its FIFO | right, later |
//! | `oneway link=0>1 at=1ms` | from then on nothing that 0 sends to 1 arrives | as `drop` |
//! | `loss link=0-1 rate=0.01` | every message is dropped with this probability | as `drop` |
//!
//! Links are `0-1` (both directions) or `0>1` (one); times have a unit, `ns`, `us`, `ms` or `s`.
//!
//! ```
//! use unisono_sim::Fault;
//!
//! let fault: Fault = "delay link=0-1 nth=3 by=1.5ms".parse().unwrap();
//! assert_eq!(fault.to_string(), "delay link=0-1 nth=3 by=1500us");
//! let error = "stall rank=3 at=0us".parse::<Fault>().unwrap_err();
//! assert_eq!(error.to_string(), "fault `stall` needs `for`");
//! ```

mod parse;

use std::fmt;

use unisono_core::{Rank, Topology};

use crate::error::SetupError;

pub use parse::FaultError;

/// Something that goes wrong at a known time or message. The [module](self) says how each ends.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The rank stops for good.
    Crash {
        /// The rank.
        rank: Rank,
        /// When, in picoseconds.
        at_ps: u64,
    },
    /// The rank's core does not run for a while.
    Stall {
        /// The rank.
        rank: Rank,
        /// From when, in picoseconds.
        at_ps: u64,
        /// For how long, in picoseconds.
        for_ps: u64,
    },
    /// Nothing passes the link for a while, or ever again.
    Down {
        /// The link.
        link: Cable,
        /// From when, in picoseconds.
        at_ps: u64,
        /// Until when, in picoseconds.
        up_ps: Option<u64>,
    },
    /// The link has less bandwidth.
    Slow {
        /// The link.
        link: Cable,
        /// By which factor.
        factor: f64,
        /// From when, in picoseconds.
        at_ps: u64,
    },
    /// Something happens to one message.
    Message {
        /// The link.
        link: Cable,
        /// Which message that leaves on it, counted from 1.
        nth: u64,
        /// What happens to it.
        what: Mishap,
    },
    /// Nothing arrives in one direction any more.
    OneWay {
        /// Whose messages do not arrive.
        from: Rank,
        /// Where.
        to: Rank,
        /// From when, in picoseconds.
        at_ps: u64,
    },
    /// Messages are lost at random.
    Loss {
        /// The link.
        link: Cable,
        /// The probability of each, 0 to 1.
        rate: f64,
    },
}

/// What happens to one message.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Mishap {
    /// It never arrives.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// A bit of it flips.
    Corrupt(Part),
    /// It arrives later by so many picoseconds.
    Delay(u64),
}

/// A part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What it carries; of an empty message, its header.
    Payload,
    /// Its header.
    Frame,
}

/// A link as faults name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cable {
    /// One end; the sender, if one way.
    pub a: Rank,
    /// The other end.
    pub b: Rank,
    /// Only from `a` to `b`.
    pub one_way: bool,
}

impl Cable {
    /// Whether messages from `from` to `to` are meant.
    pub fn carries(&self, from: Rank, to: Rank) -> bool {
        (self.a, self.b) == (from, to) || (!self.one_way && (self.b, self.a) == (from, to))
    }
}

impl Fault {
    /// The link it is about, if it is about one.
    pub fn cable(&self) -> Option<Cable> {
        match *self {
            Fault::Crash { .. } | Fault::Stall { .. } => None,
            Fault::Down { link, .. }
            | Fault::Slow { link, .. }
            | Fault::Message { link, .. }
            | Fault::Loss { link, .. } => Some(link),
            Fault::OneWay { from, to, .. } => Some(Cable {
                a: from,
                b: to,
                one_way: true,
            }),
        }
    }

    /// Whether the rank or link exists.
    pub(crate) fn check(&self, topology: &Topology) -> Result<(), SetupError> {
        let size = topology.size();
        let named = match *self {
            Fault::Crash { rank, .. } | Fault::Stall { rank, .. } => vec![rank],
            _ => self.cable().map_or(Vec::new(), |c| vec![c.a, c.b]),
        };
        if let Some(&rank) = named.iter().find(|&&rank| rank >= size) {
            let fault = self.to_string();
            return Err(SetupError::NoSuchRank { fault, rank, size });
        }
        match self.cable() {
            Some(Cable { a, b, .. }) if !topology.linked(a, b) => Err(SetupError::NoSuchLink {
                fault: self.to_string(),
                a,
                b,
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Cable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.one_way { '>' } else { '-' };
        write!(f, "{}{sign}{}", self.a, self.b)
    }
}

/// A time in the largest unit that keeps it whole.
struct Written(u64);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ps = self.0;
        for (unit, name) in [(1_000_000_000_000, "s"), (1_000_000_000, "ms")] {
            if ps > 0 && ps.is_multiple_of(unit) {
                return write!(f, "{}{name}", ps / unit);
            }
        }
        match ps % 1_000_000 {
            0 => write!(f, "{}us", ps / 1_000_000),
            _ if ps.is_multiple_of(1000) => write!(f, "{}ns", ps / 1000),
            _ => write!(f, "{}.{:03}ns", ps / 1000, ps % 1000),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Crash { rank, at_ps } => write!(f, "crash rank={rank} at={}", Written(at_ps)),
            Fault::Stall {
                rank,
                at_ps,
                for_ps,
            } => {
                let (at, time) = (Written(at_ps), Written(for_ps));
                write!(f, "stall rank={rank} at={at} for={time}")
            }
            Fault::Down { link, at_ps, up_ps } => {
                write!(f, "down link={link} at={}", Written(at_ps))?;
                up_ps.map_or(Ok(()), |up| write!(f, " up={}", Written(up)))
            }
            Fault::Slow {
                link,
                factor,
                at_ps,
            } => {
                write!(f, "slow link={link} factor={factor}")?;
                if at_ps > 0 {
                    write!(f, " at={}", Written(at_ps))?;
                }
                Ok(())
            }
            Fault::Message { link, nth, what } => {
                let word = match what {
                    Mishap::Drop => "drop",
                    Mishap::Duplicate => "duplicate",
                    Mishap::Corrupt(_) => "corrupt",
                    Mishap::Delay(_) => "delay",
                };
                write!(f, "{word} link={link} nth={nth}")?;
                match what {
                    Mishap::Corrupt(Part::Frame) => f.write_str(" part=frame"),
                    Mishap::Delay(by) => write!(f, " by={}", Written(by)),
                    _ => Ok(()),
                }
            }
            Fault::OneWay { from, to, at_ps } => {
                write!(f, "oneway link={from}>{to} at={}", Written(at_ps))
            }
            Fault::Loss { link, rate } => write!(f, "loss link={link} rate={rate}"),
        }
    }
}
