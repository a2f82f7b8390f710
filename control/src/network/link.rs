//! One control connection: a task that reads frames into an inbox and writes what it is given.
//!
//! Dropping a [`Link`] says that nothing more will be sent: the task writes what is left, shuts its side down, and reads
//! to the end, so that the last words are not lost with the connection.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use unisono_core::Rank;

use super::roster::LinkId;
use crate::wire::{Decoder, Frame, Preamble, WireError, put_frame, put_preamble};

/// How long a peer may take to say goodbye.
pub(super) const FAREWELL: Duration = Duration::from_secs(1);
/// How long a peer may leave a write waiting.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// Frames read and not looked at yet, of all connections together.
pub(super) const INBOX: usize = 64;

/// What a connection tells.
#[derive(Debug)]
pub(super) enum Inbound {
    Frame(Frame),
    Closed,
}

pub(super) type Inbox = mpsc::Receiver<(LinkId, Inbound)>;
pub(super) type Outbox = mpsc::Sender<(LinkId, Inbound)>;

/// The sending end of a connection.
#[derive(Debug)]
pub(super) struct Link {
    frames: mpsc::UnboundedSender<Frame>,
}

impl Link {
    /// Starts the task of a connection whose greeting is over.
    pub(super) fn start(tasks: &mut JoinSet<()>, id: LinkId, wire: Wire, inbox: Outbox) -> Self {
        let (frames, outgoing) = mpsc::unbounded_channel();
        tasks.spawn(carry(id, wire, inbox, outgoing));
        Self { frames }
    }

    /// Sends, some time; never waits.
    pub(super) fn send(&self, frame: Frame) {
        // An ended connection has told so in the inbox.
        let _ = self.frames.send(frame);
    }
}

async fn carry(
    id: LinkId,
    mut wire: Wire,
    inbox: Outbox,
    mut outgoing: mpsc::UnboundedReceiver<Frame>,
) {
    loop {
        let frame = tokio::select! {
            biased;
            frame = outgoing.recv() => frame,
            frame = wire.read() => {
                let Ok(frame) = frame else {
                    break;
                };
                if inbox.send((id, Inbound::Frame(frame))).await.is_err() {
                    return;
                }
                continue;
            }
        };
        match frame {
            None => return wire.finish().await,
            Some(frame) if wire.write(&frame).await.is_err() => break,
            Some(_) => {}
        }
    }
    let _ = inbox.send((id, Inbound::Closed)).await;
}

/// A connection with what was read of it.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    decoder: Decoder,
}

/// Why a connection is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkFault {
    #[error("it closed the connection")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Wire(#[from] WireError),
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        // Small and rare, and somebody waits for each.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            decoder: Decoder::new(),
        }
    }

    /// This end, as the peer reached or saw it. The port is of no use to anybody else.
    pub(super) fn own_address(&self) -> Option<SocketAddr> {
        let mut address = unmapped(self.stream.local_addr().ok()?);
        address.set_port(0);
        Some(address)
    }

    /// The other end, for messages to people.
    pub(super) fn peer_address(&self) -> String {
        match self.stream.peer_addr() {
            Ok(address) => unmapped(address).to_string(),
            Err(_) => "an unknown address".to_owned(),
        }
    }

    /// Frames may be as long as this from now on.
    pub(super) fn allow(&mut self, limit: usize) {
        self.decoder.allow(limit);
    }

    /// Sends the preamble and `frame`.
    pub(super) async fn greet(&mut self, rank: Rank, frame: &Frame) -> Result<(), LinkFault> {
        let mut bytes = BytesMut::new();
        put_preamble(&mut bytes, rank);
        put_frame(&mut bytes, frame);
        self.put(&bytes).await
    }

    pub(super) async fn write(&mut self, frame: &Frame) -> Result<(), LinkFault> {
        let mut bytes = BytesMut::new();
        put_frame(&mut bytes, frame);
        self.put(&bytes).await
    }

    /// Reads the preamble; may be dropped and called again.
    pub(super) async fn read_preamble(&mut self) -> Result<Preamble, LinkFault> {
        loop {
            if let Some(preamble) = self.decoder.preamble()? {
                return Ok(preamble);
            }
            self.fill().await?;
        }
    }

    /// Reads one frame; may be dropped and called again.
    pub(super) async fn read(&mut self) -> Result<Frame, LinkFault> {
        loop {
            if let Some(frame) = self.decoder.frame()? {
                return Ok(frame);
            }
            self.fill().await?;
        }
    }

    /// Closes after the peer has read everything, or some time.
    pub(super) async fn finish(mut self) {
        let goodbye = async {
            self.stream.shutdown().await?;
            let mut rest = [0; 512];
            while self.stream.read(&mut rest).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = timeout(FAREWELL, goodbye).await;
    }

    pub(super) async fn put(&mut self, bytes: &[u8]) -> Result<(), LinkFault> {
        let written = timeout(WRITE_TIME, self.stream.write_all(bytes)).await;
        Ok(written.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??)
    }

    async fn fill(&mut self) -> Result<(), LinkFault> {
        self.decoder.buffer.reserve(512);
        match self.stream.read_buf(&mut self.decoder.buffer).await? {
            0 => Err(LinkFault::Closed),
            _ => Ok(()),
        }
    }
}

/// An IPv4 address that came through an IPv6 socket, as IPv4.
fn unmapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::from((v4, v6.port())),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}
