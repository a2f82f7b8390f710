//! Groups over TCP whose ranks are processes: this program starts itself once per rank.
//!
//! A test names a *part*, starts so many processes that play it, and looks at what they say:
//!
//! ```text
//! let job = Job::start("matrix", "i32", 3);   // three processes, each calls `matrix::rank`
//! job.done();                                 // all ended well
//! ```
//!
//! A rank of which a check fails panics, says so on stderr and ends with another status than 0. Tests and ranks look into
//! `/proc` a lot.
#![cfg(target_os = "linux")]

mod calls;
mod failures;
mod joining;
mod leftovers;
mod matrix;
mod memory;
mod mixed;
mod processes;
mod strangers;
mod streams;

/// What a rank can be asked to do.
const PARTS: [(&str, fn()); 14] = [
    ("calls", calls::rank),
    ("disagree", failures::disagreeing_rank),
    ("exchange", streams::exchanging_rank),
    ("gather", streams::gathering_rank),
    ("groups", leftovers::many_groups),
    ("join", joining::rank),
    ("matrix", matrix::rank),
    ("memory", memory::rank),
    ("messages", streams::messaging_rank),
    ("mixed", mixed::rank),
    ("repeat", failures::repeating_rank),
    ("stranger", strangers::rank),
    ("two", leftovers::two_groups),
    ("work", failures::working_rank),
];

/// One rank, when this program is started as one; nothing otherwise.
#[test]
fn a_rank() {
    if let Some(part) = processes::part() {
        let found = PARTS.iter().find(|(name, _)| *name == part);
        found.expect("a part").1();
    }
}
