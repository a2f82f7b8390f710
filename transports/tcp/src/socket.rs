//! One connection: raw non-blocking system calls on it, and a close that loses nothing.

use std::io::{IoSlice, IoSliceMut};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, send, sendmsg, shutdown,
};
use unisono_contract::{Descriptor, LinkCause};

/// How long a dropped endpoint reads what its peers still send.
const LINGER: Duration = Duration::from_millis(20);
/// The most that is read of it, per connection and attempt.
const LINGER_BYTES: usize = 16 << 20;

/// `SIGPIPE` must not end the host's program.
#[cfg(not(target_vendor = "apple"))]
const QUIET: SendFlags = SendFlags::NOSIGNAL;
/// There the socket is told so when it is made.
#[cfg(target_vendor = "apple")]
const QUIET: SendFlags = SendFlags::empty();

/// What came of an attempt to move bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// So many, at least one.
    Bytes(usize),
    /// None: the kernel's buffer is full, or empty.
    Blocked,
    /// None, and none will come any more.
    End,
}

/// A connected, non-blocking socket.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: Descriptor,
    /// System calls made to move data, for those who count them.
    pub(crate) sends: u64,
    pub(crate) receives: u64,
}

impl Socket {
    /// `stream` must be non-blocking already.
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            descriptor: Descriptor::new(stream),
            sends: 0,
            receives: 0,
        }
    }

    /// What to wait on.
    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Sends from one buffer.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<Moved, LinkCause> {
        self.sends += 1;
        moved(send(&self.descriptor, bytes, QUIET))
    }

    /// Sends from several.
    pub(crate) fn send_vectored(&mut self, slices: &[IoSlice<'_>]) -> Result<Moved, LinkCause> {
        self.sends += 1;
        let mut control = SendAncillaryBuffer::default();
        moved(sendmsg(&self.descriptor, slices, &mut control, QUIET))
    }

    /// Receives into one buffer.
    #[inline]
    pub(crate) fn receive(&mut self, room: &mut [u8]) -> Result<Moved, LinkCause> {
        debug_assert!(!room.is_empty());
        self.receives += 1;
        moved(recv(&self.descriptor, room, RecvFlags::empty()).map(|(_, bytes)| bytes))
    }

    /// Receives into several.
    pub(crate) fn receive_vectored(
        &mut self,
        slices: &mut [IoSliceMut<'_>],
    ) -> Result<Moved, LinkCause> {
        self.receives += 1;
        moved(rustix::io::readv(&self.descriptor, slices))
    }

    /// Says that nothing more will be sent. What was sent before still arrives.
    pub(crate) fn finish(&self) {
        // It may be broken already; then there is nobody to tell.
        let _ = shutdown(&self.descriptor, Shutdown::Write);
    }
}

#[inline]
fn moved(result: Result<usize, Errno>) -> Result<Moved, LinkCause> {
    match result {
        Ok(0) => Ok(Moved::End),
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Blocked),
        Err(error) => Err(cause(error)),
    }
}

#[cold]
fn cause(error: Errno) -> LinkCause {
    match error {
        Errno::PIPE | Errno::CONNRESET | Errno::CONNABORTED | Errno::NOTCONN => LinkCause::Closed,
        error => std::io::Error::from(error).into(),
    }
}

/// Those of `asked` that have something to read, or have ended: one system call for all.
pub(crate) fn readable(sockets: &[Socket], mut asked: Vec<usize>) -> Vec<usize> {
    let mut files: Vec<_> = asked
        .iter()
        .map(|index| PollFd::new(sockets[*index].descriptor(), PollFlags::IN))
        .collect();
    if !matches!(poll(&mut files, Some(&Timespec::default())), Ok(1..)) {
        return Vec::new();
    }
    let mut answers = files.iter().map(|file| !file.revents().is_empty());
    asked.retain(|_| answers.next().unwrap_or(false));
    asked
}

/// Closes connections so that what was sent on them arrives.
///
/// A socket that is closed with something unread, or that gets more afterwards, answers with a
/// reset, and a reset discards what the kernel has not delivered yet. So each is shut down for
/// writing first, and what has come is read. Where there was something, the peer may be in the
/// middle of a message: that one is read on to its end, for at most [`LINGER`] in all.
pub(crate) fn close(sockets: &mut [Socket]) {
    for socket in &*sockets {
        socket.finish();
    }
    let mut scratch = vec![0; 64 << 10];
    let mut open: Vec<&mut Socket> = sockets
        .iter_mut()
        .filter_map(|socket| match discard(socket, &mut scratch) {
            Discarded::Nothing | Discarded::End => None,
            Discarded::Something => Some(socket),
        })
        .collect();
    let until = Instant::now() + LINGER;
    while !open.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        let (false, Ok(timeout)) = (left.is_zero(), Timespec::try_from(left)) else {
            return;
        };
        let mut files: Vec<_> = open
            .iter()
            .map(|socket| PollFd::new(socket.descriptor(), PollFlags::IN))
            .collect();
        if !matches!(poll(&mut files, Some(&timeout)), Ok(1..)) {
            return;
        }
        open.retain_mut(|socket| discard(socket, &mut scratch) != Discarded::End);
    }
}

#[derive(PartialEq, Eq)]
enum Discarded {
    Nothing,
    Something,
    End,
}

fn discard(socket: &mut Socket, scratch: &mut [u8]) -> Discarded {
    let mut discarded = 0;
    while discarded < LINGER_BYTES {
        match socket.receive(scratch) {
            Ok(Moved::Bytes(bytes)) => discarded += bytes,
            Ok(Moved::Blocked) if discarded == 0 => return Discarded::Nothing,
            Ok(Moved::Blocked) => break,
            Ok(Moved::End) | Err(_) => return Discarded::End,
        }
    }
    Discarded::Something
}
