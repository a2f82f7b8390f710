//! [`Tcp`]: listening, and connecting to all peers.
//!
//! The higher rank of a pair dials, once per channel. Both ends say [`Hello`] before a connection
//! counts; everybody else who comes to the port is closed without a word, and holds up nobody.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use socket2::{Domain, Protocol, SockRef, TcpKeepalive, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use unisono_contract::{ConnectError, Endpoint, Listening, Local, Transport};
use unisono_core::Rank;

use crate::card::{Card, as_seen_from};
use crate::endpoint::TcpEndpoint;
use crate::hello::{self, Hello};
use crate::socket::Socket;

/// Connections that may wait to be accepted; systems cap it.
const BACKLOG: i32 = 4096;
/// Connections that have not said hello yet. Beyond that no more are accepted for the moment.
const UNKNOWN: usize = 1024;
/// The longest that somebody may take to say hello.
const SHY: Duration = Duration::from_secs(10);
/// Between tries to reach a peer that refuses, which its listener does only for a moment, if at
/// all.
const RETRIES: [Duration; 3] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(300),
];

/// TCP as a [`Transport`].
///
/// `listen` and `connect` need a tokio runtime with I/O and time enabled around them; the endpoint
/// does not.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tcp {
    _private: (),
}

impl Tcp {
    /// TCP with the system's settings for buffers and congestion control.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Transport for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    async fn listen(&self, local: &Local) -> Result<Box<dyn Listening>, ConnectError> {
        if local.rank >= local.size || local.channels == 0 {
            return Err(unsupported(format!(
                "rank {} of {} with {} channels",
                local.rank, local.size, local.channels
            )));
        }
        let listener = match local.address {
            Some(address) if address.ip().is_unspecified() => {
                return Err(unsupported(format!(
                    "{} is no address that peers can reach",
                    address.ip()
                )));
            }
            Some(mut address) => {
                address.set_port(0);
                open(address)?
            }
            // Only this machine: whichever family it has.
            None => open(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0))
                .or_else(|_| open(SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0)))?,
        };
        let address = listener
            .local_addr()
            .map_err(|error| failed("listen", local.address, error))?;
        Ok(Box::new(Door {
            local: local.clone(),
            listener,
            card: Card {
                addresses: vec![address],
            },
        }))
    }
}

/// Listens at `address`, on a port of the system's choice. The port is never shared
/// (`SO_REUSEPORT`), and need not be reused.
fn open(address: SocketAddr) -> Result<TcpListener, ConnectError> {
    let open = || {
        let domain = Domain::for_address(address);
        let socket = socket2::Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        TcpListener::from_std(socket.into())
    };
    open().map_err(|error| failed("listen", Some(address), error))
}

/// A rank that listens.
#[derive(Debug)]
struct Door {
    local: Local,
    listener: TcpListener,
    card: Card,
}

#[async_trait]
impl Listening for Door {
    fn card(&self) -> Vec<u8> {
        self.card.encode()
    }

    async fn connect(
        self: Box<Self>,
        cards: &[Vec<u8>],
    ) -> Result<Box<dyn Endpoint>, ConnectError> {
        let cards = read_cards(cards, self.local.size)?;
        let mut links = Links::new(&self.local);
        let connected = timeout(
            self.local.deadline,
            assemble(&self.local, &self.listener, &cards, &mut links),
        )
        .await;
        match connected {
            Ok(result) => result?,
            Err(_) => {
                return Err(ConnectError::Timeout {
                    rank: links.first_missing().unwrap_or(self.local.rank),
                    after: self.local.deadline,
                });
            }
        }
        let (rank, size, channels) = (self.local.rank, self.local.size, self.local.channels);
        let sockets = links.into_sockets()?;
        Ok(Box::new(TcpEndpoint::new(rank, size, channels, sockets)))
    }
}

fn read_cards(cards: &[Vec<u8>], size: Rank) -> Result<Vec<Card>, ConnectError> {
    if cards.len() != size as usize {
        let reason = format!("there are {} cards for {size} ranks", cards.len());
        return Err(unsupported(reason));
    }
    cards
        .iter()
        .zip(0..)
        .map(|(bytes, rank)| {
            Card::decode(bytes).map_err(|reason| ConnectError::Card { rank, reason })
        })
        .collect()
}

/// The links of a rank, as they come to stand.
struct Links {
    rank: Rank,
    channels: u16,
    /// By peer, without this rank, then by channel.
    streams: Vec<Option<TcpStream>>,
}

impl Links {
    fn new(local: &Local) -> Self {
        let count = (local.size as usize - 1) * usize::from(local.channels);
        Self {
            rank: local.rank,
            channels: local.channels,
            streams: (0..count).map(|_| None).collect(),
        }
    }

    /// A connection that this link has already is not replaced.
    fn place(&mut self, peer: Rank, channel: u16, stream: TcpStream) {
        let place = (peer - Rank::from(peer > self.rank)) as usize;
        let index = place * usize::from(self.channels) + usize::from(channel);
        if let Some(free @ None) = self.streams.get_mut(index) {
            *free = Some(stream);
        }
    }

    fn first_missing(&self) -> Option<Rank> {
        let index = self.streams.iter().position(Option::is_none)?;
        let place = (index / usize::from(self.channels)) as Rank;
        Some(place + Rank::from(place >= self.rank))
    }

    fn into_sockets(self) -> Result<Vec<Socket>, ConnectError> {
        self.streams
            .into_iter()
            .flatten()
            .map(|stream| {
                // Out of the runtime, and still non-blocking.
                let stream = stream.into_std()?;
                prepare(&stream)?;
                Ok(Socket::new(stream))
            })
            .collect::<io::Result<_>>()
            .map_err(|error| failed("prepare a connection", None, error))
    }
}

/// The options of a connection. Buffer sizes stay the system's: setting them gains nothing and turns its own tuning off.
///
/// So does congestion control, but between processes of one machine: no network is there to be spared, and bbr, which is many
/// systems' default, paces what it sends with timers. That made messages around 64 KiB cost twice the time, and large ones a
/// quarter more; reno, which every system has and permits, sends at once.
fn prepare(stream: &std::net::TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(30))
        .with_interval(Duration::from_secs(10));
    socket.set_tcp_nodelay(true)?;
    #[cfg(target_vendor = "apple")]
    socket.set_nosigpipe(true)?;
    #[cfg(target_os = "linux")]
    if stream.peer_addr()?.ip() == stream.local_addr()?.ip() {
        let _ = socket.set_tcp_congestion(b"reno"); // Only slower without.
    }
    socket.set_tcp_keepalive(&keepalive)
}

/// What happened while links were being made.
enum News {
    Accepted(io::Result<TcpStream>),
    /// Somebody at the door is a member, or not.
    Greeted(Option<(Rank, u16, TcpStream)>),
    Dialed(Result<(Rank, u16, TcpStream), ConnectError>),
}

/// Makes all links: dials lower ranks, and lets higher ones in.
async fn assemble(
    local: &Local,
    listener: &TcpListener,
    cards: &[Card],
    links: &mut Links,
) -> Result<(), ConnectError> {
    let mut dials = JoinSet::new();
    for (peer, card) in (0..local.rank).zip(cards) {
        for channel in 0..local.channels {
            let addresses: Vec<_> = card
                .addresses
                .iter()
                .map(|address| as_seen_from(local.address, *address))
                .collect();
            let hello = Hello {
                nonce: local.nonce,
                from: local.rank,
                to: peer,
                channel,
            };
            dials.spawn(dial(addresses, hello));
        }
    }
    let mut greetings = JoinSet::new();
    while links.first_missing().is_some() {
        match next(listener, &mut greetings, &mut dials).await {
            News::Accepted(Ok(stream)) => {
                greetings.spawn(greet(stream, local.clone()));
            }
            News::Accepted(Err(error)) => match error.kind() {
                // Whoever it was has gone.
                io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => {}
                _ => {
                    let address = listener.local_addr().ok();
                    return Err(failed("accept a connection", address, error));
                }
            },
            News::Greeted(None) => {}
            News::Greeted(Some((peer, channel, stream))) => links.place(peer, channel, stream),
            News::Dialed(dialed) => {
                let (peer, channel, stream) = dialed?;
                links.place(peer, channel, stream);
            }
        }
    }
    Ok(())
}

type Greetings = JoinSet<Option<(Rank, u16, TcpStream)>>;
type Dials = JoinSet<Result<(Rank, u16, TcpStream), ConnectError>>;

/// Waits for the next of all that may happen.
async fn next(listener: &TcpListener, greetings: &mut Greetings, dials: &mut Dials) -> News {
    poll_fn(|cx| {
        if let Poll::Ready(Some(Ok(dialed))) = dials.poll_join_next(cx) {
            return Poll::Ready(News::Dialed(dialed));
        }
        if let Poll::Ready(Some(greeted)) = greetings.poll_join_next(cx) {
            return Poll::Ready(News::Greeted(greeted.ok().flatten()));
        }
        if greetings.len() < UNKNOWN
            && let Poll::Ready(accepted) = listener.poll_accept(cx)
        {
            return Poll::Ready(News::Accepted(accepted.map(|(stream, _)| stream)));
        }
        Poll::Pending
    })
    .await
}

/// Hears who is at the door, and answers if it is a member that should come.
async fn greet(mut stream: TcpStream, local: Local) -> Option<(Rank, u16, TcpStream)> {
    let mut bytes = [0; hello::BYTES];
    timeout(SHY, stream.read_exact(&mut bytes))
        .await
        .ok()?
        .ok()?;
    let hello = Hello::decode(&bytes)?;
    let is_member = hello.nonce == local.nonce
        && hello.to == local.rank
        && hello.from > local.rank
        && hello.from < local.size
        && hello.channel < local.channels;
    if !is_member {
        return None;
    }
    stream.write_all(&hello.answer().encode()).await.ok()?;
    Some((hello.from, hello.channel, stream))
}

/// Connects to a peer, at the first of its addresses that works.
async fn dial(
    addresses: Vec<SocketAddr>,
    hello: Hello,
) -> Result<(Rank, u16, TcpStream), ConnectError> {
    let mut pauses = RETRIES.into_iter();
    loop {
        let mut last = None;
        for address in &addresses {
            match dial_one(*address, hello).await {
                Ok(stream) => return Ok((hello.to, hello.channel, stream)),
                Err(error) => last = Some((*address, error)),
            }
        }
        let Some((address, error)) = last else {
            let error = io::Error::other("its card has no address");
            return Err(failed(format!("connect to rank {}", hello.to), None, error));
        };
        match pauses.next() {
            Some(pause) if is_passing(&error) => sleep(pause).await,
            _ => {
                let what = format!("connect to rank {}", hello.to);
                return Err(failed(what, Some(address), error));
            }
        }
    }
}

/// Whether trying again may help: a full backlog looks like this.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::UnexpectedEof
    )
}

async fn dial_one(address: SocketAddr, hello: Hello) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    stream.write_all(&hello.encode()).await?;
    let mut bytes = [0; hello::BYTES];
    stream.read_exact(&mut bytes).await?;
    if Hello::decode(&bytes) == Some(hello.answer()) {
        Ok(stream)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "who answers there is no member of this group",
        ))
    }
}

fn failed(what: impl Into<String>, address: Option<SocketAddr>, error: io::Error) -> ConnectError {
    ConnectError::Io {
        what: what.into(),
        address,
        error: Arc::new(error),
    }
}

fn unsupported(reason: String) -> ConnectError {
    ConnectError::Unsupported {
        transport: "tcp",
        reason,
    }
}
