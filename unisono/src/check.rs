//! What is wrong with a call, found before anything is sent.

use unisono_core::{Collective, DType, Op, Rank};

use crate::plans::Spec;
use crate::{Error, Group};

/// The lengths of a call's buffers at this rank, in elements; `None`: not given.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lengths {
    pub(crate) input: Option<usize>,
    pub(crate) output: Option<usize>,
}

/// A call before it is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) collective: Collective,
    pub(crate) dtype: DType,
    pub(crate) op: Option<Op>,
    /// Root or peer.
    pub(crate) root: Rank,
    /// One buffer serves as input and output: its length is `output`.
    pub(crate) in_place: bool,
}

impl Call {
    /// Checks the lengths at this rank and finds the count that all ranks must share.
    pub(crate) fn spec(&self, group: &Group, lengths: Lengths) -> Result<Spec, Error> {
        self.check_root(group)?;
        let checker = Checker {
            rank: group.rank(),
            collective: self.collective,
            size: group.size(),
        };
        if let Some(op) = self.op
            && !op.accepts(self.dtype)
        {
            return Err(Error::NoSuchOperator {
                rank: group.rank(),
                collective: self.collective,
                op,
                dtype: self.dtype,
            });
        }
        Ok(Spec {
            collective: self.collective,
            count: self.count(&checker, lengths, group.rank() == self.root)?,
            dtype: self.dtype,
            op: self.op,
            root: self.root,
        })
    }

    fn count(&self, check: &Checker, lengths: Lengths, at_root: bool) -> Result<u64, Error> {
        use Collective as C;
        let Lengths { input, output } = lengths;
        let p = u64::from(check.size);
        match self.collective {
            C::AllReduce | C::Broadcast | C::Reduce if self.in_place => {
                check.given(output, "buffer")
            }
            C::ReduceScatter | C::AllGather | C::AllToAll if self.in_place => {
                check.row(output, "buffer")
            }
            C::AllReduce => {
                let n = check.given(input, "input")?;
                check.exactly(output, n, "output").map(|()| n)
            }
            C::Reduce | C::Gather => {
                let n = check.given(input, "input")?;
                let rows = if self.collective == C::Gather { p } else { 1 };
                if at_root {
                    check.exactly(output, n * rows, "output")?;
                }
                Ok(n)
            }
            C::ReduceScatter => {
                let n = check.given(output, "output")?;
                check.exactly(input, n * p, "input").map(|()| n)
            }
            C::AllGather => {
                let n = check.given(input, "input")?;
                check.exactly(output, n * p, "output").map(|()| n)
            }
            C::Scatter => {
                let n = check.given(output, "output")?;
                if at_root {
                    check.exactly(input, n * p, "input")?;
                }
                Ok(n)
            }
            C::AllToAll => {
                let n = check.row(input, "input")?;
                check.exactly(output, n * p, "output").map(|()| n)
            }
            C::Send => check.given(input, "message"),
            C::Recv | C::Broadcast => check.given(output, "message"),
            _ => Ok(0),
        }
    }

    fn check_root(&self, group: &Group) -> Result<(), Error> {
        let point_to_point = self.collective.is_point_to_point();
        if !point_to_point && !self.collective.is_rooted() {
            return Ok(());
        }
        if self.root >= group.size() {
            return Err(Error::NoSuchRank {
                rank: group.rank(),
                collective: self.collective,
                what: if point_to_point { "peer" } else { "root" },
                named: self.root,
                size: group.size(),
            });
        }
        if point_to_point && self.root == group.rank() {
            return Err(Error::ToSelf {
                rank: group.rank(),
                collective: self.collective,
            });
        }
        Ok(())
    }
}

struct Checker {
    rank: Rank,
    collective: Collective,
    size: Rank,
}

impl Checker {
    fn given(&self, len: Option<usize>, what: &'static str) -> Result<u64, Error> {
        len.map(|l| l as u64).ok_or(Error::Missing {
            rank: self.rank,
            collective: self.collective,
            what,
        })
    }

    fn exactly(&self, len: Option<usize>, needed: u64, what: &'static str) -> Result<(), Error> {
        let got = self.given(len, what)?;
        if got == needed {
            return Ok(());
        }
        Err(Error::WrongLength {
            rank: self.rank,
            collective: self.collective,
            what,
            got,
            needed,
        })
    }

    /// The length of one row of a table that has one per rank.
    fn row(&self, len: Option<usize>, what: &'static str) -> Result<u64, Error> {
        let got = self.given(len, what)?;
        let size = self.size;
        if got.is_multiple_of(u64::from(size)) {
            return Ok(got / u64::from(size));
        }
        Err(Error::NotRows {
            rank: self.rank,
            collective: self.collective,
            what,
            got,
            size,
        })
    }
}
