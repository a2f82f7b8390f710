//! `unisono`: measure, launch, prove, draw and simulate collectives.
//!
//! | verb | file | what it does |
//! |---|---|---|
//! | `bench` | [`mod@bench`] | runs collectives on real data, times them, checks every element |
//! | `launch` | [`launch`] | starts any program as the ranks of a group on this machine |
//! | `verify` | [`verify`] | proves the programs of algorithms and says what they cost beside the least possible |
//! | `draw` | [`draw`] | writes programs as text or as a picture |
//! | `sim` | [`sim`] | runs collectives in virtual time, on clusters that need not exist |
//! | `explain` | [`mod@explain`] | says what a call would use on given links, and why |
//! | `topo` | [`topo`] | shows the cabling that a file describes, and what is missing in it |
//!
//! Rules for every verb: exit status 0 done, 1 refused or failed, 2 usage; the last line on stderr is the cause; with
//! `--json`, stdout carries nothing but JSON, one object per line. [`exit`] and [`output`] keep them, so that a verb is
//! a function from its arguments to a `Result`.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod catalogue;
mod draw;
mod exit;
mod explain;
mod launch;
mod output;
mod parallel;
mod processes;
mod progress;
mod sim;
mod topo;
mod verify;

use args::Command;
use std::process::ExitCode;

fn main() -> ExitCode {
    exit::guarded(|| {
        let mut out = output::Output::stdout();
        let done = match args::parse()? {
            Command::Bench(args) => bench::run(&args, &mut out),
            Command::Launch(args) => launch::run(&args),
            Command::Verify(args) => verify::run(&args, &mut out),
            Command::Draw(args) => draw::run(&args, &mut out),
            Command::Sim(args) => sim::run(&args, &mut out),
            Command::Explain(args) => explain::run(&args, &mut out),
            Command::Topo(args) => topo::run(&args, &mut out),
        };
        // What was said before a failure is worth having; its own failure is the lesser one.
        let flushed = out.flush();
        done.and(flushed)
    })
}
