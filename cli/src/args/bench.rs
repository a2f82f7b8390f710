//! bench args placeholder
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
