//! Operations over memory that somebody else lends: for bindings, whose buffers are not Rust's, and for simulations,
//! whose buffers may not exist.

use unisono_contract::{Piece, Revoked};
use unisono_core::{Collective, DType, Op, Rank};

use crate::check::{Checker, check_operator, check_root};
use crate::launch::Memory;
use crate::plans::Spec;
use crate::{Error, Group, Handle};

/// An operation over pieces, for [`Group::start_pieces`].
///
/// ```
/// use unisono::{Collective, DType, Op, PieceCall};
///
/// let call = PieceCall::new(Collective::Reduce, 1000, DType::F32).op(Op::Sum).root(3);
/// assert_eq!(call.count, 1000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "an operation does nothing until it is started by Group::start_pieces"]
pub struct PieceCall {
    /// The exchange.
    pub collective: Collective,
    /// Elements of the vector, or of one row of the table: n in the table at [`Group`].
    pub count: u64,
    /// Their type.
    pub dtype: DType,
    /// The operator; needed where the collective reduces, and without meaning elsewhere.
    pub op: Option<Op>,
    /// The root, or the peer of a point-to-point message.
    pub root: Rank,
}

impl PieceCall {
    /// An exchange of `count` elements, without operator, root 0.
    pub fn new(collective: Collective, count: u64, dtype: DType) -> PieceCall {
        PieceCall {
            collective,
            count,
            dtype,
            op: None,
            root: 0,
        }
    }

    /// With this operator.
    pub fn op(mut self, op: Op) -> PieceCall {
        self.op = Some(op);
        self
    }

    /// With this root or peer.
    pub fn root(mut self, root: Rank) -> PieceCall {
        self.root = root;
        self
    }
}

impl Group {
    /// Starts an operation over lent memory, input and output as in the table at [`Group`]. Errors come out of the handle.
    ///
    /// A piece that a rank has no use for (the input of a broadcast elsewhere than at its root, the output of a reduce)
    /// is ignored; give [`Piece::EMPTY`]. In place: the same piece twice, or the smaller one the row of this rank in the
    /// larger one; not for `all_to_all`. The root of a broadcast may leave the input out.
    ///
    /// The memory must stay lent until the operation is done, also when its handle is dropped, and is not to be used
    /// meanwhile. Nothing touches memory that is no longer lent, but the group fails when a lease ends too early. Phantom
    /// pieces need an environment that knows of them: [`Parts::compute`](crate::Parts::compute), and endpoints that take
    /// them.
    ///
    /// ```
    /// use unisono::{Collective, DType, Op, PieceCall, parts::Lease};
    ///
    /// # std::thread::scope(|s| for group in unisono::inproc(2) { s.spawn(move || {
    /// let x = Lease::new(vec![group.rank() + 1; 4]);
    /// let call = PieceCall::new(Collective::AllReduce, 4, DType::U32).op(Op::Sum);
    /// group.start_pieces(call, x.piece(), x.piece()).wait()?;
    /// assert_eq!(x.into_inner(), [3; 4]);
    /// # Ok::<(), unisono::Error>(()) }); });
    /// ```
    pub fn start_pieces(&self, call: PieceCall, input: Piece, output: Piece) -> Handle<()> {
        let checked = call.check(self, input, output);
        let state = checked.and_then(|(spec, memory)| self.launch(spec, false, memory));
        Handle::over_pieces(self, state)
    }
}

impl PieceCall {
    /// What is wrong with it, or else what to launch.
    fn check(&self, group: &Group, input: Piece, output: Piece) -> Result<(Spec, Memory), Error> {
        let (collective, rank) = (self.collective, group.rank());
        check_root(group, collective, self.root)?;
        let op = self.op.filter(|_| collective.reduces());
        check_operator(rank, collective, op, self.dtype)?;
        let (reads, writes) = self.rows(group);
        let left_out = collective == Collective::Broadcast && input.is_empty();
        let input = match reads {
            None => Piece::EMPTY,
            Some(_) if left_out => output,
            Some(_) => input,
        };
        let output = writes.map_or(Piece::EMPTY, |_| output);
        let checker = Checker {
            rank,
            collective,
            size: group.size(),
        };
        self.check_piece(&checker, input, reads, "input")?;
        self.check_piece(&checker, output, writes, "output")?;
        let unusable = |what, revoked| Error::Piece {
            rank,
            collective,
            what,
            revoked,
        };
        for (piece, what) in [(input, "input"), (output, "output")] {
            if piece.is_empty() {
                continue;
            }
            if piece.is_phantom() && !group.shared.lock().has_compute() {
                return Err(unusable(what, Revoked::Phantom));
            }
            if !piece.is_phantom() && !piece.is_live() {
                return Err(unusable(what, Revoked::Ended));
            }
        }
        if output.is_read_only() {
            return Err(unusable("output", Revoked::ReadOnly));
        }
        if !self.is_apart(input, output) && !self.is_in_place(rank, input, output) {
            return Err(unusable("output", Revoked::Overlap));
        }
        let spec = Spec {
            collective,
            count: self.count,
            dtype: self.dtype,
            op,
            root: self.root,
        };
        Ok((spec, Memory { input, output }))
    }

    /// Rows of `count` elements that this rank reads and writes; `None`: it has no such buffer.
    fn rows(&self, group: &Group) -> (Option<Rank>, Option<Rank>) {
        use Collective as C;
        let (one, all) = (Some(1), Some(group.size()));
        let at_root = group.rank() == self.root;
        let there = |rows: Option<Rank>| rows.filter(|_| at_root);
        match self.collective {
            C::AllReduce => (one, one),
            C::ReduceScatter => (all, one),
            C::AllGather => (one, all),
            C::AllToAll => (all, all),
            C::Broadcast => (there(one), one),
            C::Reduce => (one, there(one)),
            C::Gather => (one, there(all)),
            C::Scatter => (there(all), one),
            C::Send => (one, None),
            C::Recv => (None, one),
            _ => (None, None),
        }
    }

    fn check_piece(
        &self,
        checker: &Checker,
        piece: Piece,
        rows: Option<Rank>,
        what: &'static str,
    ) -> Result<(), Error> {
        let (bytes, size) = (piece.len(), self.dtype.size());
        if !bytes.is_multiple_of(size) {
            return Err(Error::NotElements {
                rank: checker.rank,
                collective: checker.collective,
                what,
                bytes: bytes as u64,
                dtype: self.dtype,
            });
        }
        let needed = self.count.saturating_mul(rows.unwrap_or(0).into());
        checker.exactly(Some(bytes / size), needed, what)
    }

    fn is_apart(&self, input: Piece, output: Piece) -> bool {
        let (a, b) = (input.addr(), output.addr());
        input.is_empty() || output.is_empty() || a + input.len() <= b || b + output.len() <= a
    }

    /// Whether the smaller piece is the row of this rank in the larger one.
    fn is_in_place(&self, rank: Rank, input: Piece, output: Piece) -> bool {
        let (large, small) = if input.len() < output.len() {
            (output, input)
        } else {
            (input, output)
        };
        let row = match large.len() == small.len() {
            true => 0,
            false => rank as usize,
        };
        self.collective != Collective::AllToAll && small.addr() == large.addr() + row * small.len()
    }
}
