//! The command line: what clap reads, and how its refusals look.
//!
//! Each verb has its own arguments in the module of its name; [`sizes`], [`ranks`] and [`names`] read the values that several
//! of them share.

pub(crate) mod bench;
pub(crate) mod draw;
pub(crate) mod explain;
pub(crate) mod launch;
pub(crate) mod names;
pub(crate) mod ranks;
pub(crate) mod sim;
pub(crate) mod sizes;
pub(crate) mod topo;
pub(crate) mod verify;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::Stopped;
use crate::output::Output;

/// Collectives that do not care how bytes move: measure, prove, draw and simulate them.
///
/// Exit status: 0 done; 1 refused or failed; 2 wrong usage. The last line on stderr is the cause.
#[derive(Debug, Parser)]
#[command(name = "unisono", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  unisono bench                                        all_reduce between four processes, 4 B to 64 MiB, checked
  unisono bench --op all_gather --bytes 1K..1M --json  one JSON object per size
  unisono launch -n 4 -- ./program                     four processes with the environment of a group
  unisono verify --algorithm all --op all --ranks 2..9 prove every algorithm
  unisono draw --algorithm ring --op all_reduce --ranks 4 -o ring.svg
  unisono sim --ring 8 --bytes 1G --algorithm all      how long it would take on eight machines in a ring
  unisono explain --topology cluster.json --op all_reduce --bytes 64M
  unisono topo cluster.json --svg cabling.svg";

/// What to do. The words of the help are with the arguments of each.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Box<bench::Args>),
    Launch(Box<launch::Args>),
    Verify(verify::Args),
    Draw(draw::Args),
    Sim(Box<sim::Args>),
    Explain(Box<explain::Args>),
    Topo(topo::Args),
}

/// Reads the command line. Help and version are printed here, and end the program.
///
/// # Errors
/// [`Stopped`] with status 2 and the usage; or stdout cannot be written to.
pub(crate) fn parse() -> Result<Command> {
    match Cli::try_parse() {
        Ok(cli) => Ok(cli.command),
        Err(e) => refuse(&e),
    }
}

fn refuse(error: &clap::Error) -> Result<Command> {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let mut out = Output::stdout();
            out.text(text)?;
            out.flush()?;
            // A reader that has gone is no failure either way; this ends with status 0 through the same door.
            Err(crate::output::Closed.into())
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Stopped::usage(format!("say what to do: {}", verbs()), text).into())
        }
        kind => {
            // Clap says the cause first and how to call the program after it; here the cause comes last.
            let (cause, usage) = text.split_once("\n\n").unwrap_or((&text, ""));
            let cause = cause.trim_start_matches("error: ");
            let cause = match kind {
                ErrorKind::InvalidSubcommand => format!("{cause}; known: {}", verbs()),
                _ => cause.to_owned(),
            };
            Err(Stopped::usage(cause, usage).into())
        }
    }
}

fn verbs() -> String {
    let cli = Cli::command();
    let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
