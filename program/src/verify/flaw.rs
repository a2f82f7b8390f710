//! What can be wrong with a program set, and where.

use unisono_core::Rank;

use super::Place;
use crate::run::Stuck;

/// The first thing found wrong with a program set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// The programs do not belong together.
    #[error("rank {rank}: {field} is {found}, expected {expected}")]
    Disagree {
        /// The rank whose program disagrees.
        rank: Rank,
        /// What disagrees: `collective`, `blocks`, ...
        field: &'static str,
        /// The value at that rank.
        found: String,
        /// The value elsewhere.
        expected: String,
    },
    /// A lane or a scratch table that no executor could use.
    #[error("rank {rank} lane {lane}: {why}")]
    Lane {
        /// The rank.
        rank: Rank,
        /// The lane.
        lane: u32,
        /// What is wrong.
        why: &'static str,
    },
    /// A step that no executor could carry out.
    #[error("{place}: {why}")]
    Malformed {
        /// The step.
        place: Box<Place>,
        /// What is wrong.
        why: &'static str,
    },
    /// A span reaches beyond the work vector and its scratch.
    #[error("{place}: {len} blocks from index {first} reach beyond {limit}")]
    OutOfBounds {
        /// The step.
        place: Box<Place>,
        /// First index named.
        first: u64,
        /// Blocks named.
        len: u64,
        /// Indices there are.
        limit: u64,
    },
    /// A wait names a lane or a step that does not exist.
    #[error("{place} waits for step {step} of lane {lane}, which has {steps}")]
    WaitOutOfRange {
        /// The waiting step.
        place: Box<Place>,
        /// The lane waited for.
        lane: u32,
        /// The step waited for.
        step: i64,
        /// Steps of that lane, 0 if there is no such lane.
        steps: u64,
    },
    /// A step waits for one lane twice.
    #[error("{place} waits for lane {lane} twice")]
    TwoWaits {
        /// The waiting step.
        place: Box<Place>,
        /// The lane.
        lane: u32,
    },
    /// In a schedule of waves, a step comes no later than a step it depends on.
    #[error("stages must rise along dependencies, but fall from {earlier} to {place}")]
    StageFalls {
        /// The step that depends.
        place: Box<Place>,
        /// The step it depends on.
        earlier: Box<Place>,
    },
    /// The ends of a FIFO expect different numbers of messages.
    #[error(
        "{from} sends {sent} messages to {to} on channel {channel}, but {received} are received; without its other end: {place}"
    )]
    Unmatched {
        /// The sender.
        from: Rank,
        /// The receiver.
        to: Rank,
        /// The channel.
        channel: u16,
        /// Messages sent.
        sent: u64,
        /// Messages received.
        received: u64,
        /// The first step without its other end.
        place: Box<Place>,
    },
    /// The ends of a message name different things.
    #[error("message {number} of a FIFO has two faces ({why}): {send}; {recv}")]
    Mismatch {
        /// Position of the message in its FIFO, at one segment per step.
        number: u64,
        /// The step that sends it.
        send: Box<Place>,
        /// The step that receives it.
        recv: Box<Place>,
        /// What differs.
        why: &'static str,
    },
    /// Steps wait for each other in a circle.
    #[error("steps wait for each other: {}", circle(.places))]
    Cycle {
        /// Each waits for the next, the last for the first.
        places: Vec<Place>,
    },
    /// The program does not complete with room for one segment on each FIFO.
    #[error("does not complete with {segments} segment(s) and {}: {stuck}", if *.needs_room { "room for one message on each FIFO, though it would with more (cure: receive into scratch, so that no message waits for the step that it holds up)" } else { "any room on its FIFOs" })]
    Stuck {
        /// Number of segments of the run that stopped.
        segments: u64,
        /// Whether it completes where FIFOs hold any number of messages.
        needs_room: bool,
        /// The step to change: a receive that holds up its FIFO because it waits for another step.
        place: Option<Box<Place>>,
        /// Where every lane stands.
        stuck: Box<Stuck>,
    },
    /// Two steps use one block, at least one writes it, and nothing orders them.
    #[error("nothing orders {place} after {earlier}, and both use block {block}{}", if *.segments { " (segments of different spans: the wait must be for the whole step)" } else { "" })]
    Race {
        /// The later one in one of the possible orders.
        place: Box<Place>,
        /// The other one.
        earlier: Box<Place>,
        /// The block: see [`Place::what`].
        block: String,
        /// Whether they are ordered segment by segment but name different spans.
        segments: bool,
    },
    /// A step reads a block that has no contents there.
    #[error("{place} reads block {block} from the {from}, where it has no contents")]
    ReadsNothing {
        /// The step.
        place: Box<Place>,
        /// The block.
        block: String,
        /// `input` or `work vector`.
        from: &'static str,
    },
    /// A step reads a block from the input after it has been overwritten in place.
    #[error(
        "{place} reads block {block} from the input, which in place was overwritten by {writer}"
    )]
    InputOverwritten {
        /// The step.
        place: Box<Place>,
        /// The block.
        block: String,
        /// The step that wrote it.
        writer: Box<Place>,
    },
    /// A written block without an output home is not in the list of those that live in scratch.
    #[error("{place} writes block {block}, which has neither an output home nor scratch")]
    NoHome {
        /// The step.
        place: Box<Place>,
        /// The block.
        block: String,
    },
    /// A block of the output is never written.
    #[error("rank {rank}: block {block} of the output is never written; its last step is {}", step(.place))]
    NeverWritten {
        /// The rank.
        rank: Rank,
        /// The block.
        block: String,
        /// The last step of the rank.
        place: Option<Box<Place>>,
    },
    /// A block of the output holds something else than it should.
    #[error(
        "rank {rank}: block {block} of the output holds {found} instead of {expected}; last written by {place}"
    )]
    WrongResult {
        /// The rank.
        rank: Rank,
        /// The block.
        block: String,
        /// What it holds.
        found: String,
        /// What it should hold.
        expected: String,
        /// The step that wrote it last.
        place: Box<Place>,
    },
    /// A block of the output holds what a wrong step made.
    #[error("rank {rank}: block {block} of the output is spoiled by {place}: {why}")]
    Spoiled {
        /// The rank with the spoiled output.
        rank: Rank,
        /// The block.
        block: String,
        /// The step that went wrong first.
        place: Box<Place>,
        /// How.
        why: Spoil,
    },
    /// A rank leaves a barrier that others may not have entered.
    #[error("rank {rank} may leave before rank {absent} has entered; its last step is {}", step(.place))]
    LeavesEarly {
        /// The rank that leaves.
        rank: Rank,
        /// A rank it has not heard of.
        absent: Rank,
        /// The last step of the rank.
        place: Option<Box<Place>>,
    },
    /// More steps than this check can hold.
    #[error("{steps} steps are too many to verify one by one")]
    TooLarge {
        /// Steps of all ranks.
        steps: u64,
    },
}

/// How a step made a value that is no partial result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Spoil {
    /// A contribution is counted twice.
    #[error("the contribution of rank {rank} is counted twice")]
    Twice {
        /// Whose.
        rank: Rank,
    },
    /// Operands that are not neighbours in rank order, where order matters.
    #[error(
        "contributions of ranks up to {left} are followed by those from rank {right}, and the operator does not commute"
    )]
    OutOfOrder {
        /// Last rank of the left operand.
        left: Rank,
        /// First rank of the right operand.
        right: Rank,
    },
    /// Contributions to different blocks are reduced.
    #[error("contributions to index {left} are reduced with those to index {right}")]
    OtherBlock {
        /// Data index of the left operand.
        left: u64,
        /// Data index of the right operand.
        right: u64,
    },
    /// A value that was already divided is reduced or divided again.
    #[error("a value that is already divided by the number of ranks is reduced or divided again")]
    Divided,
}

impl Flaw {
    /// The step that is to blame, where one is.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Flaw::Malformed { place, .. }
            | Flaw::OutOfBounds { place, .. }
            | Flaw::WaitOutOfRange { place, .. }
            | Flaw::TwoWaits { place, .. }
            | Flaw::StageFalls { place, .. }
            | Flaw::Unmatched { place, .. }
            | Flaw::Race { place, .. }
            | Flaw::ReadsNothing { place, .. }
            | Flaw::InputOverwritten { place, .. }
            | Flaw::NoHome { place, .. }
            | Flaw::WrongResult { place, .. }
            | Flaw::Spoiled { place, .. } => Some(place),
            Flaw::Mismatch { recv, .. } => Some(recv),
            Flaw::Cycle { places } => places.first(),
            Flaw::Stuck { place, .. }
            | Flaw::NeverWritten { place, .. }
            | Flaw::LeavesEarly { place, .. } => place.as_deref(),
            _ => None,
        }
    }

    /// The rank that is to blame, where one is.
    pub fn rank(&self) -> Option<Rank> {
        match self {
            Flaw::Disagree { rank, .. }
            | Flaw::Lane { rank, .. }
            | Flaw::NeverWritten { rank, .. }
            | Flaw::LeavesEarly { rank, .. } => Some(*rank),
            other => other.place().map(|p| p.rank),
        }
    }
}

fn step(place: &Option<Box<Place>>) -> String {
    place.as_ref().map_or("none".to_owned(), |p| p.to_string())
}

fn circle(places: &[Place]) -> String {
    let text: Vec<String> = places.iter().map(Place::to_string).collect();
    text.join(" <- ")
}
