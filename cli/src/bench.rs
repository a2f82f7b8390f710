//! placeholder
use crate::{args::bench::Args, output::Output};
pub(crate) fn run(_: &Args, _: &mut Output) -> anyhow::Result<()> {
    Ok(())
}
