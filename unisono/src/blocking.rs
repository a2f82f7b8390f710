//! The operations, blocking, on borrowed memory.
//!
//! Each returns when its memory is the caller's again. A wrong length, root or operator is an error before anything is
//! sent. In a world of one, and for nothing to move, no transport is touched.

use unisono_contract::Piece;
use unisono_contract::memory::{lend, lend_shared};
use unisono_core::{Collective, Element, Op, Rank};

use crate::check::{Call, Lengths};
use crate::launch::Memory;
use crate::plans::Spec;
use crate::{Error, Group, Source, Target};

impl Group {
    /// Everyone's `x` becomes the reduction of everyone's `x`, the same bits on every rank.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn all_reduce<X: Target + ?Sized>(&self, x: &mut X, op: Op) -> Result<(), Error> {
        self.in_place_call(Collective::AllReduce, x, Some(op), 0)
    }

    /// Everyone's `y` becomes the reduction of everyone's `x`, the same bits on every rank.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn all_reduce_into<X, Y>(&self, x: &X, y: &mut Y, op: Op) -> Result<(), Error>
    where
        X: Source + ?Sized,
        Y: Target<Elem = X::Elem> + ?Sized,
    {
        self.call(Collective::AllReduce, x, y, Some(op))
    }

    /// `y` of rank r becomes row r of the reduction of everyone's table `x`.
    ///
    /// # Errors
    /// See [`Error`]; `x` must have size times as many elements as `y`.
    pub fn reduce_scatter<X, Y>(&self, x: &X, y: &mut Y, op: Op) -> Result<(), Error>
    where
        X: Source + ?Sized,
        Y: Target<Elem = X::Elem> + ?Sized,
    {
        self.call(Collective::ReduceScatter, x, y, Some(op))
    }

    /// Row r of `x` at rank r becomes row r of the reduction of everyone's table `x`; other rows stay as they are.
    ///
    /// # Errors
    /// See [`Error`]; the size must divide the length.
    pub fn reduce_scatter_in_place<X: Target + ?Sized>(
        &self,
        x: &mut X,
        op: Op,
    ) -> Result<(), Error> {
        self.in_place_call(Collective::ReduceScatter, x, Some(op), 0)
    }

    /// Everyone's `y` becomes the table of everyone's `x`, in rank order.
    ///
    /// # Errors
    /// See [`Error`]; `y` must have size times as many elements as `x`.
    pub fn all_gather<X, Y>(&self, x: &X, y: &mut Y) -> Result<(), Error>
    where
        X: Source + ?Sized,
        Y: Target<Elem = X::Elem> + ?Sized,
    {
        self.call(Collective::AllGather, x, y, None)
    }

    /// Row r of everyone's `y` becomes rank r's row r.
    ///
    /// # Errors
    /// See [`Error`]; the size must divide the length.
    pub fn all_gather_in_place<Y: Target + ?Sized>(&self, y: &mut Y) -> Result<(), Error> {
        self.in_place_call(Collective::AllGather, y, None, 0)
    }

    /// Everyone's `x` becomes the root's, whose own stays as it is.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn broadcast<X: Target + ?Sized>(&self, x: &mut X, root: Rank) -> Result<(), Error> {
        self.in_place_call(Collective::Broadcast, x, None, root)
    }

    /// The root's `y` becomes the reduction of everyone's `x`. Elsewhere `y` is not needed, and not touched.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn reduce<X: Source + ?Sized>(
        &self,
        x: &X,
        y: Option<&mut [X::Elem]>,
        op: Op,
        root: Rank,
    ) -> Result<(), Error> {
        self.to_root(Collective::Reduce, x, y, Some(op), root)
    }

    /// The root's `x` becomes the reduction of everyone's `x`; elsewhere it stays as it is.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn reduce_in_place<X: Target + ?Sized>(
        &self,
        x: &mut X,
        op: Op,
        root: Rank,
    ) -> Result<(), Error> {
        self.in_place_call(Collective::Reduce, x, Some(op), root)
    }

    /// The root's `y` becomes the table of everyone's `x`, in rank order. Elsewhere `y` is not needed, and not touched.
    ///
    /// # Errors
    /// See [`Error`]; at the root `y` must have size times as many elements as `x`.
    pub fn gather<X: Source + ?Sized>(
        &self,
        x: &X,
        y: Option<&mut [X::Elem]>,
        root: Rank,
    ) -> Result<(), Error> {
        self.to_root(Collective::Gather, x, y, None, root)
    }

    /// `y` of rank r becomes row r of the root's table `x`. Elsewhere `x` is not needed.
    ///
    /// # Errors
    /// See [`Error`]; at the root `x` must have size times as many elements as `y`.
    pub fn scatter<Y: Target + ?Sized>(
        &self,
        x: Option<&[Y::Elem]>,
        y: &mut Y,
        root: Rank,
    ) -> Result<(), Error> {
        let lengths = Lengths {
            input: x.map(<[_]>::len),
            output: Some(y.elements()),
        };
        let spec = call::<Y::Elem>(Collective::Scatter, None, root, false).spec(self, lengths)?;
        let x = x.filter(|_| self.rank() == root).unwrap_or(&[]);
        lend_shared(x, |input| {
            y.lend(|output| self.run(spec, false, Memory { input, output }))
        })
    }

    /// Row s of `y` at rank t becomes row t of `x` at rank s.
    ///
    /// # Errors
    /// See [`Error`]; the size must divide the length, and both must be equally long.
    pub fn all_to_all<X, Y>(&self, x: &X, y: &mut Y) -> Result<(), Error>
    where
        X: Source + ?Sized,
        Y: Target<Elem = X::Elem> + ?Sized,
    {
        self.call(Collective::AllToAll, x, y, None)
    }

    /// The same with one table. Needs a copy of it.
    ///
    /// # Errors
    /// See [`Error`]; the size must divide the length.
    pub fn all_to_all_in_place<X: Target + ?Sized>(&self, x: &mut X) -> Result<(), Error> {
        let lengths = Lengths {
            input: None,
            output: Some(x.elements()),
        };
        let spec = call::<X::Elem>(Collective::AllToAll, None, 0, true).spec(self, lengths)?;
        x.lend(|output| {
            // Every row is both sent and overwritten: the input has to be somewhere else.
            let mut copy = vec![0u8; output.len()];
            let copied = output.read(|bytes| copy.copy_from_slice(bytes));
            debug_assert_eq!(copied, Ok(()));
            lend_shared(&copy, |input| {
                self.run(spec, false, Memory { input, output })
            })
        })
    }

    /// Returns when every rank has called it.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn barrier(&self) -> Result<(), Error> {
        let call = call::<u8>(Collective::Barrier, None, 0, false);
        let spec = call.spec(self, Lengths::default())?;
        self.run(spec, false, Memory::default())
    }

    /// Sends `x` to rank `to`, which must receive as many elements of the same type.
    ///
    /// Messages between two ranks arrive in the order in which they were sent, and do not mix with collectives. May
    /// return before the message has arrived; may wait for its receive.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::ToSelf`] for a message to oneself.
    pub fn send<X: Source + ?Sized>(&self, x: &X, to: Rank) -> Result<(), Error> {
        let lengths = Lengths {
            input: Some(x.elements()),
            output: None,
        };
        let spec = call::<X::Elem>(Collective::Send, None, to, false).spec(self, lengths)?;
        x.lend(|input| {
            let output = Piece::EMPTY;
            self.run(spec, false, Memory { input, output })
        })
    }

    /// Receives the next message from rank `from` into `y`.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::ToSelf`] for a message from oneself.
    pub fn recv<Y: Target + ?Sized>(&self, y: &mut Y, from: Rank) -> Result<(), Error> {
        let lengths = Lengths {
            input: None,
            output: Some(y.elements()),
        };
        let spec = call::<Y::Elem>(Collective::Recv, None, from, false).spec(self, lengths)?;
        y.lend(|output| {
            let input = Piece::EMPTY;
            self.run(spec, false, Memory { input, output })
        })
    }

    /// Sends `x` to rank `to` and receives `y` from rank `from` at the same time. Both may be this rank.
    ///
    /// # Errors
    /// See [`Error`]. One of the two being this rank and the other not is [`Error::ToSelf`].
    pub fn send_recv<X, Y>(&self, x: &X, to: Rank, y: &mut Y, from: Rank) -> Result<(), Error>
    where
        X: Source + ?Sized,
        Y: Target<Elem = X::Elem> + ?Sized,
    {
        if to == self.rank() && from == self.rank() {
            return self.to_self(x, y);
        }
        let lengths = Lengths {
            input: Some(x.elements()),
            output: Some(y.elements()),
        };
        let send = call::<X::Elem>(Collective::Send, None, to, false).spec(self, lengths)?;
        let recv = call::<X::Elem>(Collective::Recv, None, from, false).spec(self, lengths)?;
        x.lend(|input| {
            y.lend(|output| {
                let memory = Memory { input, output };
                let recv = self.launch(recv, false, memory)?;
                let send = self.launch(send, false, memory)?;
                self.finish_both([recv, send])
            })
        })
    }

    fn to_self<X, Y>(&self, x: &X, y: &mut Y) -> Result<(), Error>
    where
        X: Source + ?Sized,
        Y: Target<Elem = X::Elem> + ?Sized,
    {
        let (needed, got) = (x.elements() as u64, y.elements() as u64);
        if needed != got {
            return Err(Error::WrongLength {
                rank: self.rank(),
                collective: Collective::Recv,
                what: "message",
                got,
                needed,
            });
        }
        let copied = x.lend(|x| y.lend(|y| unisono_contract::memory::copy(y, x)));
        debug_assert_eq!(copied, Ok(()));
        Ok(())
    }

    fn call<X, Y>(
        &self,
        collective: Collective,
        x: &X,
        y: &mut Y,
        op: Option<Op>,
    ) -> Result<(), Error>
    where
        X: Source + ?Sized,
        Y: Target<Elem = X::Elem> + ?Sized,
    {
        let lengths = Lengths {
            input: Some(x.elements()),
            output: Some(y.elements()),
        };
        let spec = call::<X::Elem>(collective, op, 0, false).spec(self, lengths)?;
        x.lend(|input| y.lend(|output| self.run(spec, false, Memory { input, output })))
    }

    fn in_place_call<X: Target + ?Sized>(
        &self,
        collective: Collective,
        x: &mut X,
        op: Option<Op>,
        root: Rank,
    ) -> Result<(), Error> {
        let lengths = Lengths {
            input: None,
            output: Some(x.elements()),
        };
        let spec = call::<X::Elem>(collective, op, root, true).spec(self, lengths)?;
        x.lend(|output| {
            let input = Piece::EMPTY;
            self.run(spec, true, Memory { input, output })
        })
    }

    fn to_root<X: Source + ?Sized>(
        &self,
        collective: Collective,
        x: &X,
        y: Option<&mut [X::Elem]>,
        op: Option<Op>,
        root: Rank,
    ) -> Result<(), Error> {
        let lengths = Lengths {
            input: Some(x.elements()),
            output: y.as_ref().map(|y| y.len()),
        };
        let spec = call::<X::Elem>(collective, op, root, false).spec(self, lengths)?;
        let y = y.filter(|_| self.rank() == root).unwrap_or_default();
        x.lend(|input| lend(y, |output| self.run(spec, false, Memory { input, output })))
    }

    fn run(&self, spec: Spec, in_place: bool, memory: Memory) -> Result<(), Error> {
        let ticket = self.launch(spec, in_place, memory)?;
        self.finish(ticket)
    }
}

fn call<T: Element>(collective: Collective, op: Option<Op>, root: Rank, in_place: bool) -> Call {
    Call {
        collective,
        dtype: T::DTYPE,
        op,
        root,
        in_place,
    }
}
