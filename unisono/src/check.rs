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
        check_root(group, self.collective, self.root)?;
        check_operator(group.rank(), self.collective, self.op, self.dtype)?;
        let checker = Checker {
            rank: group.rank(),
            collective: self.collective,
            size: group.size(),
        };
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
}

/// Checks the root or peer of a call that has one.
pub(crate) fn check_root(group: &Group, collective: Collective, root: Rank) -> Result<(), Error> {
    let point_to_point = collective.is_point_to_point();
    if !point_to_point && !collective.is_rooted() {
        return Ok(());
    }
    if root >= group.size() {
        return Err(Error::NoSuchRank {
            rank: group.rank(),
            collective,
            what: if point_to_point { "peer" } else { "root" },
            named: root,
            size: group.size(),
        });
    }
    if point_to_point && root == group.rank() {
        return Err(Error::ToSelf {
            rank: group.rank(),
            collective,
        });
    }
    Ok(())
}

/// Checks that the operator exists for the type.
pub(crate) fn check_operator(
    rank: Rank,
    collective: Collective,
    op: Option<Op>,
    dtype: DType,
) -> Result<(), Error> {
    match op {
        Some(op) if !op.accepts(dtype) => Err(Error::NoSuchOperator {
            rank,
            collective,
            op,
            dtype,
        }),
        _ => Ok(()),
    }
}

/// Whose call is checked.
pub(crate) struct Checker {
    pub(crate) rank: Rank,
    pub(crate) collective: Collective,
    pub(crate) size: Rank,
}

impl Checker {
    fn given(&self, len: Option<usize>, what: &'static str) -> Result<u64, Error> {
        len.map(|l| l as u64).ok_or(Error::Missing {
            rank: self.rank,
            collective: self.collective,
            what,
        })
    }

    pub(crate) fn exactly(
        &self,
        len: Option<usize>,
        needed: u64,
        what: &'static str,
    ) -> Result<(), Error> {
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
