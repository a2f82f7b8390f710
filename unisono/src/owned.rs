//! Operations that own their memory while they run, for asynchronous code.
//!
//! ```
//! use unisono::{Op, owned};
//!
//! # fn block_on<F: Future>(f: F) -> F::Output {
//! #     let mut f = std::pin::pin!(f);
//! #     struct T(std::thread::Thread);
//! #     impl std::task::Wake for T { fn wake(self: std::sync::Arc<Self>) { self.0.unpark(); } }
//! #     let w = std::sync::Arc::new(T(std::thread::current())).into();
//! #     let mut cx = std::task::Context::from_waker(&w);
//! #     loop { if let std::task::Poll::Ready(x) = f.as_mut().poll(&mut cx) { return x } std::thread::park() }
//! # }
//! # std::thread::scope(|s| for group in unisono::inproc(2) { s.spawn(move || block_on(async {
//! let first = group.start(owned::all_reduce(vec![1.0f32; 8], Op::Sum));
//! let second = group.start(owned::all_gather(vec![group.rank()], vec![0; 2]));
//! // ... compute something else ...
//! let summed = first.await?;
//! let (_, gathered) = second.await?;
//! assert_eq!((summed[0], gathered), (2.0, vec![0, 1]));
//! # Ok::<(), unisono::Error>(()) }).unwrap()); });
//! ```
//!
//! Operations run in the order in which they were started, the same on every rank. Polling any handle moves all of
//! them. A dropped handle cancels nothing: its operation goes on, driven by later calls, and keeps its memory until it
//! is done.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use unisono_contract::{Lease, Piece};
use unisono_core::{Collective, Element, Op, Rank};
use unisono_engine::Ticket;

use crate::check::{Call, Lengths};
use crate::launch::Memory;
use crate::{Error, Failure, Group, Owned, OwnedTarget};

/// An operation with its memory, not yet started. `R` is what comes back.
#[must_use = "an operation does nothing until it is started by Group::start"]
pub struct Start<I: Owned, O: Owned<Elem = I::Elem>, R> {
    call: Call,
    input: Option<I>,
    output: Option<O>,
    give: fn(Option<I>, Option<O>) -> Option<R>,
}

/// [`Group::all_reduce`]; gives `x` back.
pub fn all_reduce<X: OwnedTarget>(x: X, op: Op) -> Start<X, X, X> {
    in_place(Collective::AllReduce, Some(op), 0, x)
}

/// [`Group::all_reduce_into`]; gives both back.
pub fn all_reduce_into<X, Y>(x: X, y: Y, op: Op) -> Start<X, Y, (X, Y)>
where
    X: Owned,
    Y: OwnedTarget<Elem = X::Elem>,
{
    start(Collective::AllReduce, Some(op), 0, Some(x), Some(y), both)
}

/// [`Group::reduce_scatter`]; gives both back.
pub fn reduce_scatter<X, Y>(x: X, y: Y, op: Op) -> Start<X, Y, (X, Y)>
where
    X: Owned,
    Y: OwnedTarget<Elem = X::Elem>,
{
    start(
        Collective::ReduceScatter,
        Some(op),
        0,
        Some(x),
        Some(y),
        both,
    )
}

/// [`Group::reduce_scatter_in_place`]; gives `x` back.
pub fn reduce_scatter_in_place<X: OwnedTarget>(x: X, op: Op) -> Start<X, X, X> {
    in_place(Collective::ReduceScatter, Some(op), 0, x)
}

/// [`Group::all_gather`]; gives both back.
pub fn all_gather<X, Y>(x: X, y: Y) -> Start<X, Y, (X, Y)>
where
    X: Owned,
    Y: OwnedTarget<Elem = X::Elem>,
{
    start(Collective::AllGather, None, 0, Some(x), Some(y), both)
}

/// [`Group::all_gather_in_place`]; gives `y` back.
pub fn all_gather_in_place<Y: OwnedTarget>(y: Y) -> Start<Y, Y, Y> {
    in_place(Collective::AllGather, None, 0, y)
}

/// [`Group::broadcast`]; gives `x` back.
pub fn broadcast<X: OwnedTarget>(x: X, root: Rank) -> Start<X, X, X> {
    in_place(Collective::Broadcast, None, root, x)
}

/// [`Group::reduce`]; gives both back.
pub fn reduce<X, Y>(x: X, y: Option<Y>, op: Op, root: Rank) -> Start<X, Y, (X, Option<Y>)>
where
    X: Owned,
    Y: OwnedTarget<Elem = X::Elem>,
{
    start(Collective::Reduce, Some(op), root, Some(x), y, first)
}

/// [`Group::reduce_in_place`]; gives `x` back.
pub fn reduce_in_place<X: OwnedTarget>(x: X, op: Op, root: Rank) -> Start<X, X, X> {
    in_place(Collective::Reduce, Some(op), root, x)
}

/// [`Group::gather`]; gives both back.
pub fn gather<X, Y>(x: X, y: Option<Y>, root: Rank) -> Start<X, Y, (X, Option<Y>)>
where
    X: Owned,
    Y: OwnedTarget<Elem = X::Elem>,
{
    start(Collective::Gather, None, root, Some(x), y, first)
}

/// [`Group::scatter`]; gives both back.
pub fn scatter<X, Y>(x: Option<X>, y: Y, root: Rank) -> Start<X, Y, (Option<X>, Y)>
where
    X: Owned,
    Y: OwnedTarget<Elem = X::Elem>,
{
    let give = |x, y: Option<Y>| Some((x, y?));
    start(Collective::Scatter, None, root, x, Some(y), give)
}

/// [`Group::all_to_all`]; gives both back.
pub fn all_to_all<X, Y>(x: X, y: Y) -> Start<X, Y, (X, Y)>
where
    X: Owned,
    Y: OwnedTarget<Elem = X::Elem>,
{
    start(Collective::AllToAll, None, 0, Some(x), Some(y), both)
}

/// [`Group::barrier`].
pub fn barrier() -> Start<Vec<u8>, Vec<u8>, ()> {
    start(Collective::Barrier, None, 0, None, None, |_, _| Some(()))
}

/// [`Group::send`]; gives `x` back.
pub fn send<X: Owned>(x: X, to: Rank) -> Start<X, Vec<X::Elem>, X> {
    start(Collective::Send, None, to, Some(x), None, |x, _| x)
}

/// [`Group::recv`]; gives `y` back.
pub fn recv<Y: OwnedTarget>(y: Y, from: Rank) -> Start<Vec<Y::Elem>, Y, Y> {
    start(Collective::Recv, None, from, None, Some(y), |_, y| y)
}

fn start<I: Owned, O: Owned<Elem = I::Elem>, R>(
    collective: Collective,
    op: Option<Op>,
    root: Rank,
    input: Option<I>,
    output: Option<O>,
    give: fn(Option<I>, Option<O>) -> Option<R>,
) -> Start<I, O, R> {
    let dtype = <I::Elem as Element>::DTYPE;
    Start {
        call: Call {
            collective,
            dtype,
            op,
            root,
            in_place: false,
        },
        input,
        output,
        give,
    }
}

fn in_place<X: OwnedTarget>(
    collective: Collective,
    op: Option<Op>,
    root: Rank,
    x: X,
) -> Start<X, X, X> {
    let mut start = start(collective, op, root, None, Some(x), |_, x| x);
    start.call.in_place = true;
    start
}

fn both<X, Y>(x: Option<X>, y: Option<Y>) -> Option<(X, Y)> {
    x.zip(y)
}

fn first<X, Y>(x: Option<X>, y: Option<Y>) -> Option<(X, Option<Y>)> {
    Some((x?, y))
}

/// The memory of an operation in flight.
trait Held<R>: Send {
    fn give(self: Box<Self>) -> Option<R>;
}

struct Leases<I: Owned, O: Owned<Elem = I::Elem>, R> {
    input: Option<Lease<I>>,
    output: Option<Lease<O>>,
    give: fn(Option<I>, Option<O>) -> Option<R>,
}

impl<I, O, R> Held<R> for Leases<I, O, R>
where
    I: Owned,
    O: Owned<Elem = I::Elem>,
    Lease<I>: Send,
    Lease<O>: Send,
{
    fn give(self: Box<Self>) -> Option<R> {
        let input = self.input.map(Lease::into_inner);
        let output = self.output.map(Lease::into_inner);
        (self.give)(input, output)
    }
}

/// Memory that its caller keeps.
struct Nothing;

impl Held<()> for Nothing {
    fn give(self: Box<Self>) -> Option<()> {
        Some(())
    }
}

/// An operation in flight: a future that gives its memory back.
///
/// Fails with [`Failure`], which has the memory too, and becomes an [`Error`] by `?`.
#[must_use = "a handle does nothing unless polled; a dropped one leaves its operation to later calls"]
pub struct Handle<R: 'static> {
    group: Group,
    held: Option<Box<dyn Held<R>>>,
    state: Result<Option<Ticket>, Error>,
}

impl Group {
    /// Starts an operation that owns its memory. Errors come out of the handle.
    pub fn start<I, O, R>(&self, operation: Start<I, O, R>) -> Handle<R>
    where
        I: Owned,
        O: Owned<Elem = I::Elem>,
        Lease<I>: Send,
        Lease<O>: Send,
        R: 'static,
    {
        let call = operation.call;
        let lengths = Lengths {
            input: operation.input.as_ref().map(Owned::elements),
            output: operation.output.as_ref().map(Owned::elements),
        };
        let spec = call.spec(self, lengths);
        let leases = Leases {
            input: operation.input.map(Lease::new),
            output: operation.output.map(Lease::new),
            give: operation.give,
        };
        let memory = Memory {
            input: leases.input.as_ref().map_or(Piece::EMPTY, Lease::piece),
            output: leases.output.as_ref().map_or(Piece::EMPTY, Lease::piece),
        };
        let state = spec.and_then(|spec| self.launch(spec, call.in_place, memory));
        let handle = Handle {
            group: self.clone(),
            held: Some(Box::new(leases)),
            state,
        };
        handle.set_off();
        handle
    }
}

impl Handle<()> {
    /// Of an operation over memory that its caller keeps.
    pub(crate) fn over_pieces(group: &Group, state: Result<Option<Ticket>, Error>) -> Handle<()> {
        let handle = Handle {
            group: group.clone(),
            held: Some(Box::new(Nothing) as Box<dyn Held<()>>),
            state,
        };
        handle.set_off();
        handle
    }
}

impl<R> Handle<R> {
    /// Sees to it that it leaves.
    fn set_off(&self) {
        if self.state.as_ref().is_ok_and(Option::is_some) {
            self.group.shared.nudge();
        }
    }

    /// Waits for it by blocking this thread.
    ///
    /// # Errors
    /// As the future.
    pub fn wait(mut self) -> Result<R, Failure<R>> {
        let result = match &self.state {
            Ok(ticket) => self.group.finish(*ticket),
            Err(error) => Err(error.clone()),
        };
        self.collect(result)
    }

    fn collect(&mut self, result: Result<(), Error>) -> Result<R, Failure<R>> {
        // `give` finds every buffer that its constructor put there.
        let Some(buffers) = self.held.take().and_then(Held::give) else {
            unreachable!("a handle is not polled again after it is done");
        };
        match result {
            Ok(()) => Ok(buffers),
            Err(error) => Err(Failure { error, buffers }),
        }
    }
}

impl<R> Unpin for Handle<R> {}

impl<R> Future for Handle<R> {
    type Output = Result<R, Failure<R>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let ticket = match &this.state {
            Ok(Some(ticket)) => *ticket,
            Ok(None) => return Poll::Ready(this.collect(Ok(()))),
            Err(error) => {
                let error = error.clone();
                return Poll::Ready(this.collect(Err(error)));
            }
        };
        let timeout = this.group.timeout;
        match this.group.shared.poll(ticket, cx.waker(), timeout) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => Poll::Ready(this.collect(result)),
        }
    }
}

impl<R> Drop for Handle<R> {
    fn drop(&mut self) {
        if let (Some(held), Ok(Some(ticket))) = (self.held.take(), &self.state) {
            self.group.shared.adopt(*ticket, Box::new(held));
        }
    }
}

impl<R> std::fmt::Debug for Handle<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("rank", &self.group.rank())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
