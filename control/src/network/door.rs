//! Where ranks knock: accepts, listens to each for a few seconds, and lets in who speaks our language.
//!
//! Strangers are closed and forgotten: connect-and-close, other protocols, half a hello held open. Each has a task of
//! its own, so none keeps another waiting, and there are only so many at a time.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use unisono_core::Rank;

use super::link::{LinkFault, Wire};
use crate::wire::{Frame, Hello, VERSION, WireError, put_preamble};

/// How long somebody may take to say hello.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// How many may be saying hello at a time, per listener; beyond that the oldest is sent away.
const GREETINGS: usize = 1024;

/// Somebody who has said hello.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) wire: Wire,
    pub(super) rank: Rank,
    /// Or the version that it speaks instead of ours.
    pub(super) hello: Result<Hello, u16>,
}

/// The open door; dropping it closes the listeners and whoever has not finished his hello.
#[derive(Debug)]
pub(super) struct Door {
    _listeners: JoinSet<()>,
    guests: mpsc::Receiver<Guest>,
}

impl Door {
    pub(super) fn open(listeners: Vec<TcpListener>) -> Self {
        let (welcome, guests) = mpsc::channel(16);
        let mut tasks = JoinSet::new();
        for listener in listeners {
            tasks.spawn(accept(listener, welcome.clone()));
        }
        Self {
            _listeners: tasks,
            guests,
        }
    }

    /// The next who has said hello.
    pub(super) async fn guest(&mut self) -> Option<Guest> {
        self.guests.recv().await
    }
}

async fn accept(listener: TcpListener, welcome: mpsc::Sender<Guest>) {
    let mut greetings = JoinSet::new();
    let mut order: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = greetings.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, or the peer was gone before it was here.
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        order.retain(|greeting| !greeting.is_finished());
        if order.len() >= GREETINGS
            && let Some(oldest) = order.pop_front()
        {
            oldest.abort();
        }
        let welcome = welcome.clone();
        order.push_back(greetings.spawn(async move {
            match timeout(HELLO_TIME, greet(stream)).await {
                Ok(Ok(guest)) => {
                    let _ = welcome.send(guest).await;
                }
                Ok(Err(fault)) => {
                    tracing::debug!(target: "unisono", "a stranger at the rendezvous: {fault}");
                }
                Err(_) => {
                    tracing::debug!(target: "unisono", "a stranger at the rendezvous: no hello");
                }
            }
        }));
    }
}

async fn greet(stream: TcpStream) -> Result<Guest, LinkFault> {
    let mut wire = Wire::new(stream);
    let preamble = wire.read_preamble().await?;
    let hello = if preamble.version == VERSION {
        match wire.read().await? {
            Frame::Hello(hello) => Ok(*hello),
            _ => return Err(WireError::Magic.into()),
        }
    } else {
        // What follows cannot be read; that it is another version can be said.
        Err(preamble.version)
    };
    // Strangers hear nothing at all, members who they have reached.
    let mut answer = BytesMut::new();
    put_preamble(&mut answer, 0);
    wire.put(&answer).await?;
    Ok(Guest {
        wire,
        rank: preamble.rank,
        hello,
    })
}
