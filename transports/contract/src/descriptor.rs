//! [`Descriptor`]: an open file that may be waited on, by `poll(2)` or a runtime.
//!
//! Clones are the same file, which stays open as long as one of them lives: who waits on a clone
//! never waits on a number that meanwhile names another file.

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    task::Wake,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use smallvec::SmallVec;

/// A shared, open file descriptor.
#[derive(Debug, Clone)]
pub struct Descriptor(Arc<OwnedFd>);

impl Descriptor {
    /// Shares `file`: a socket, a pipe.
    pub fn new(file: impl Into<OwnedFd>) -> Self {
        Self(Arc::new(file.into()))
    }

    /// Whether both are the same open file.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// What to wait for. Errors and hang-ups always end the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Interest {
    /// That it can be read.
    pub read: bool,
    /// That it can be written.
    pub write: bool,
}

impl Interest {
    /// That it can be read.
    pub const READ: Self = Self {
        read: true,
        write: false,
    };
    /// That it can be written.
    pub const WRITE: Self = Self {
        read: false,
        write: true,
    };

    /// Whether there is anything to wait for.
    pub fn is_none(self) -> bool {
        !(self.read || self.write)
    }
}

/// A descriptor and what to wait for on it.
#[derive(Debug, Clone)]
pub struct Source {
    /// The open file.
    pub descriptor: Descriptor,
    /// What to wait for.
    pub interest: Interest,
}

/// Ends a `poll(2)` when woken: the end of an event that lies beside descriptors.
#[derive(Debug)]
pub(crate) struct Doorbell {
    here: UnixStream,
    there: UnixStream,
}

impl Doorbell {
    /// Two descriptors, as long as it lives.
    pub(crate) fn new() -> io::Result<Self> {
        let (here, there) = UnixStream::pair()?;
        here.set_nonblocking(true)?;
        there.set_nonblocking(true)?;
        Ok(Self { here, there })
    }

    /// Sleeps until one of `sources` is as wanted, the bell rings, or `timeout` has passed; a
    /// signal ends it early.
    pub(crate) fn sleep(&self, sources: &[Source], timeout: Option<Duration>) -> io::Result<()> {
        let mut files: SmallVec<[PollFd<'_>; 128]> = SmallVec::new();
        files.push(PollFd::new(&self.here, PollFlags::IN));
        files.extend(sources.iter().map(|source| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, source.interest.read);
            flags.set(PollFlags::OUT, source.interest.write);
            PollFd::new(&source.descriptor, flags)
        }));
        // Beyond the kernel's range is as good as for ever.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !files[0].revents().is_empty() {
            self.silence();
        }
        Ok(())
    }

    /// Forgets all rings so far. A ring that comes in between is not missed: its event has passed
    /// already, and who sleeps next looks at that first.
    fn silence(&self) {
        while (&self.here).read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
    }
}

impl Wake for Doorbell {
    fn wake(self: Arc<Self>) {
        // Refused when many rings lie there unheard; one is enough.
        let _ = (&self.there).write(&[1]);
    }
}
