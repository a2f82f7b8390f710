//! [`Verdict`]: whether all results were right, or wrong where they should be.

use anyhow::{Result, bail};
use unisono_core::Rank;

use super::case::Case;

/// The first row with wrong elements.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    wrong: Option<String>,
}

impl Verdict {
    /// A row has so many wrong elements.
    pub(super) fn note(&mut self, case: &Case, wrong: u64) {
        let count = match wrong {
            0 => return,
            1 => "1 element is wrong".to_owned(),
            n => format!("{n} elements are wrong"),
        };
        self.wrong.get_or_insert_with(|| format!("{case}: {count}"));
    }

    /// After all rows.
    ///
    /// # Errors
    /// Elements were wrong; or none was although a byte of a rank was changed.
    pub(super) fn end(self, corrupt: Option<Rank>) -> Result<()> {
        match (self.wrong, corrupt) {
            (None, None) => Ok(()),
            (None, Some(rank)) => {
                bail!("a byte of rank {rank} was changed, and the check did not see it")
            }
            (Some(wrong), None) => bail!("{wrong}"),
            (Some(wrong), Some(rank)) => {
                bail!("{wrong} (a byte of rank {rank} was changed on purpose)")
            }
        }
    }
}
