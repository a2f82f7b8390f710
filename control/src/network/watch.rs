//! Waits on descriptors for asynchronous callers, in the control thread's runtime.
//!
//! The runtime tells changes, a caller asks for states: each wake-up of the runtime is compared with what `poll(2)` says
//! now, and if it says nothing, the runtime's memory of readiness is cleared before waiting on. What comes in between is
//! a new change, so it is not missed.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest as TokioInterest, Ready as TokioReady};
use tokio::task::AbortHandle;
use unisono_contract::Event;
use unisono_contract::descriptor::{Descriptor, Interest, Source};

/// What is watched, for whom.
#[derive(Default)]
pub(super) struct Watches {
    /// Descriptors the runtime knows: it takes each only once.
    files: Vec<Arc<AsyncFd<Descriptor>>>,
    /// One per event.
    watches: Vec<Watch>,
}

struct Watch {
    event: Event,
    sources: Vec<Source>,
    task: AbortHandle,
}

impl Watches {
    /// Notifies `event` once one of `sources` is ready. Replaces what was watched for this event before.
    pub(super) fn watch(&mut self, sources: Vec<Source>, event: Event) {
        self.watches.retain(|watch| {
            let other = !watch.event.is(&event);
            if !other {
                watch.task.abort();
            }
            other && !watch.task.is_finished()
        });
        let mut files = Vec::new();
        for source in &sources {
            match self.file(&source.descriptor) {
                Ok(file) => files.push((file, source.interest)),
                // Nothing to wait on: whoever looks will find out why.
                Err(_) => return event.notify(),
            }
        }
        let notified = event.clone();
        let task = tokio::spawn(async move {
            any_ready(files).await;
            notified.notify();
        });
        let task = task.abort_handle();
        self.watches.push(Watch {
            event,
            sources,
            task,
        });
        self.forget_unwatched();
    }

    fn file(&mut self, descriptor: &Descriptor) -> io::Result<Arc<AsyncFd<Descriptor>>> {
        if let Some(known) = self.files.iter().find(|f| f.get_ref().is(descriptor)) {
            return Ok(known.clone());
        }
        // Deprecated for an `unsafe` function that asks for a file which stays open: a descriptor does.
        #[allow(deprecated)]
        let file = Arc::new(AsyncFd::new(descriptor.clone())?);
        self.files.push(file.clone());
        Ok(file)
    }

    /// Descriptors that nobody asks for any more may close.
    fn forget_unwatched(&mut self) {
        let watches = &self.watches;
        self.files.retain(|file| {
            let is_it = |source: &Source| source.descriptor.is(file.get_ref());
            watches.iter().any(|watch| watch.sources.iter().any(is_it))
        });
    }
}

async fn any_ready(files: Vec<(Arc<AsyncFd<Descriptor>>, Interest)>) {
    let mut waits: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
    for (file, interest) in files {
        waits.push(Box::pin(async move { ready(&file, interest).await }));
    }
    poll_fn(|context| {
        // Until one is ready each is polled, so that each can wake us.
        let mut any = false;
        for wait in &mut waits {
            any = any || wait.as_mut().poll(context).is_ready();
        }
        if any { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

async fn ready(file: &AsyncFd<Descriptor>, interest: Interest) {
    let (asked, told) = match (interest.read, interest.write) {
        (true, true) => (
            TokioInterest::READABLE | TokioInterest::WRITABLE,
            TokioReady::ALL,
        ),
        (false, true) => (
            TokioInterest::WRITABLE,
            TokioReady::WRITABLE | TokioReady::WRITE_CLOSED,
        ),
        _ => (
            TokioInterest::READABLE,
            TokioReady::READABLE | TokioReady::READ_CLOSED,
        ),
    };
    // An error here is the end of the runtime: whoever looks will find out.
    while let Ok(mut guard) = file.ready(asked).await {
        if is_ready(file.get_ref(), interest) {
            return;
        }
        // Only what was asked about: others may wait for the rest.
        guard.clear_ready_matching(told);
    }
}

fn is_ready(descriptor: &Descriptor, interest: Interest) -> bool {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, interest.read);
    flags.set(PollFlags::OUT, interest.write);
    let mut files = [PollFd::new(descriptor, flags)];
    // Errors are for whoever looks.
    !matches!(poll(&mut files, Some(&Timespec::default())), Ok(0))
}
