//! Rank 0 while the group forms: the [`Roster`] decides, this carries it out on sockets.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};
use unisono_contract::Endpoint;
use unisono_contract::transport::{Listening, Local, Transport};

use super::door::{Door, Guest};
use super::file::{Meeting, Published};
use super::link::{INBOX, Inbound, Inbox, Link, Outbox};
use super::roster::{Deed, LinkId, Roster, Visitor};
use super::{Joined, NOTICE, Settings, farewell, millis, notice, place, random};
use crate::address::Coordinator;
use crate::refusal::{JoinError, Ranks, Refusal, Seconds};
use crate::wire::{CARD_LIMIT, Cards};

/// How long, after the group has failed, ranks that are still on their way are waited for, to be told.
const LINGER: Duration = Duration::from_secs(2);

/// Forms the group, as rank 0.
pub(super) async fn join(
    settings: &Settings,
    transport: Arc<dyn Transport>,
    began: Instant,
) -> Result<Joined, JoinError> {
    place::own_address(0, settings.iface.as_deref(), None)?;
    let nonce = random();
    let mut door = None;
    let mut published = None;
    if settings.size > 1 {
        let (opened, file) = open(settings, nonce, began).await?;
        door = Some(opened);
        published = file;
    }
    let ticket = if published.is_some() { nonce } else { 0 };
    let hello = settings.hello(&*transport, random(), ticket, settings.timeout);
    let (outbox, inbox) = mpsc::channel(INBOX);
    let hub = Hub {
        settings,
        transport,
        began,
        nonce,
        roster: Roster::new(hello, nonce, settings.timeout),
        door,
        links: HashMap::new(),
        next: 1,
        seen: HashMap::new(),
        tasks: JoinSet::new(),
        outbox,
        own: None,
        listening: None,
        failed: None,
    };
    let joined = hub.run(inbox).await;
    drop(published);
    joined
}

async fn open(
    settings: &Settings,
    nonce: u64,
    began: Instant,
) -> Result<(Door, Option<Published>), JoinError> {
    let coordinator = &settings.coordinator;
    let late = |_| JoinError::Listen {
        coordinator: coordinator.to_string(),
        error: Arc::new(std::io::ErrorKind::TimedOut.into()),
    };
    let deadline = settings.deadline(began);
    let listeners = timeout_at(deadline, place::listen(coordinator));
    let listeners = listeners.await.map_err(late)??;
    let mut published = None;
    if let Coordinator::File(path) = coordinator {
        let port = listeners[0].local_addr().map_or(0, |a| a.port());
        let meeting = Meeting {
            job: settings.job.clone(),
            nonce,
            addresses: place::all_addresses(settings.iface.as_deref(), port),
        };
        let written = Published::write(path, meeting).map_err(|error| JoinError::File {
            rank: 0,
            path: path.clone(),
            error: Arc::new(error),
        });
        published = Some(written?);
    }
    Ok((Door::open(listeners), published))
}

struct Hub<'a> {
    settings: &'a Settings,
    transport: Arc<dyn Transport>,
    began: Instant,
    nonce: u64,
    roster: Roster,
    door: Option<Door>,
    links: HashMap<LinkId, Link>,
    next: LinkId,
    /// Our address as each member reached it.
    seen: HashMap<LinkId, SocketAddr>,
    tasks: JoinSet<()>,
    outbox: Outbox,
    /// What rank 0 does for itself meanwhile.
    own: Option<JoinHandle<Own>>,
    listening: Option<Box<dyn Listening>>,
    failed: Option<(Refusal, Instant)>,
}

/// What rank 0 has done for itself.
enum Own {
    Listening(Box<dyn Listening>),
    Connected(Box<dyn Endpoint>),
    Failed(String),
}

impl Hub<'_> {
    async fn run(mut self, mut inbox: Inbox) -> Result<Joined, JoinError> {
        let mut endpoint = None;
        let mut agreed = None;
        let mut next_notice = self.began + NOTICE;
        loop {
            while let Some(deed) = self.roster.deed() {
                match deed {
                    Deed::Send(id, frame) => {
                        if let Some(link) = self.links.get(&id) {
                            link.send(frame);
                        }
                    }
                    Deed::Close(id) => {
                        self.links.remove(&id);
                        self.seen.remove(&id);
                    }
                    Deed::Listen => self.listen(),
                    Deed::Connect(cards) => {
                        self.connect(cards.cards.clone());
                        agreed = Some(cards);
                    }
                    Deed::Joined(ranks) => {
                        let links = ranks
                            .into_iter()
                            .filter_map(|(rank, id)| Some((rank, (id, self.links.remove(&id)?))))
                            .collect();
                        if let (
                            Some(endpoint),
                            Some(Cards {
                                features, limits, ..
                            }),
                        ) = (endpoint.take(), agreed.take())
                        {
                            return Ok(Joined {
                                endpoint,
                                links,
                                inbox,
                                tasks: self.tasks,
                                nonce: self.nonce,
                                features,
                                limits,
                            });
                        }
                    }
                    Deed::Failed(refusal) => self.fail(refusal),
                }
            }
            if let Some((refusal, until)) = &self.failed
                && (self.roster.all_told() || Instant::now() >= *until)
            {
                let refusal = refusal.clone();
                self.links.clear();
                farewell(&mut self.tasks, &mut inbox).await;
                return Err(refusal.into());
            }
            while self.tasks.try_join_next().is_some() {}
            let wake = self.wake(next_notice);
            tokio::select! {
                Some(guest) = next_guest(&mut self.door) => self.welcome(guest),
                Some((id, inbound)) = inbox.recv() => match inbound {
                    Inbound::Frame(frame) => self.roster.frame(id, frame),
                    Inbound::Closed => self.roster.closed(id),
                },
                own = finished(&mut self.own) => {
                    self.own = None;
                    match own {
                        Own::Listening(listening) => {
                            let card = listening.card();
                            self.listening = Some(listening);
                            self.roster.own_card(card);
                        }
                        Own::Connected(connected) => {
                            endpoint = Some(connected);
                            self.roster.own_arrival();
                        }
                        Own::Failed(text) => self.roster.own_failure(text),
                    }
                }
                () = sleep_until(wake) => self.roster.tick(self.began.elapsed()),
            }
            if self.failed.is_none() && Instant::now() >= next_notice {
                next_notice = Instant::now() + NOTICE;
                self.name_the_missing();
            }
        }
    }

    fn wake(&self, next_notice: Instant) -> Instant {
        match &self.failed {
            Some((_, until)) => *until,
            None => next_notice.min(later(self.began, self.roster.deadline())),
        }
    }

    fn name_the_missing(&self) {
        let missing = self.roster.missing();
        let seconds = self.began.elapsed().as_secs();
        notice(&format!(
            "rank 0 waits for {} at {} ({seconds} of {} s)",
            Ranks(&missing),
            self.settings.coordinator,
            Seconds(&millis(self.roster.deadline())),
        ));
    }

    fn welcome(&mut self, guest: Guest) {
        let Guest { wire, rank, hello } = guest;
        let link = self.next;
        self.next += 1;
        if let Some(address) = wire.own_address() {
            self.seen.insert(link, address);
        }
        let address = wire.peer_address();
        let visitor = Visitor {
            link,
            rank,
            address,
        };
        let started = Link::start(&mut self.tasks, link, wire, self.outbox.clone());
        self.links.insert(link, started);
        self.roster.hello(self.began.elapsed(), visitor, hello);
    }

    fn left(&self) -> Duration {
        self.roster.deadline().saturating_sub(self.began.elapsed())
    }

    fn listen(&mut self) {
        // What others reached us by; one that all can reach, if there is one.
        let mut seen: Vec<SocketAddr> = self.seen.values().copied().collect();
        seen.sort_by_key(|address| (address.ip().is_loopback(), address.is_ipv6()));
        let seen = seen.first().copied();
        let iface = self.settings.iface.as_deref();
        let address = match place::own_address(0, iface, seen) {
            Ok(address) => address,
            Err(error) => return self.roster.own_failure(error.to_string()),
        };
        let local = self.settings.local(address, self.nonce, self.left());
        let transport = self.transport.clone();
        self.own = Some(tokio::spawn(async move {
            match transport.listen(&local).await {
                Ok(listening) if listening.card().len() > CARD_LIMIT => {
                    Own::Failed("the card of this transport is too long".to_owned())
                }
                Ok(listening) => Own::Listening(listening),
                Err(error) => Own::Failed(error.to_string()),
            }
        }));
    }

    fn connect(&mut self, cards: Vec<Vec<u8>>) {
        let Some(listening) = self.listening.take() else {
            return;
        };
        self.own = Some(tokio::spawn(async move {
            match listening.connect(&cards).await {
                Ok(endpoint) => Own::Connected(endpoint),
                Err(error) => Own::Failed(error.to_string()),
            }
        }));
    }

    fn fail(&mut self, refusal: Refusal) {
        // Whatever the transport had opened closes.
        if let Some(own) = self.own.take() {
            own.abort();
        }
        self.listening = None;
        self.failed = Some((refusal, Instant::now() + LINGER));
    }
}

async fn next_guest(door: &mut Option<Door>) -> Option<Guest> {
    match door {
        Some(door) => door.guest().await,
        None => None,
    }
}

async fn finished(own: &mut Option<JoinHandle<Own>>) -> Own {
    match own {
        Some(task) => {
            let text = "the transport panicked".to_owned();
            task.await.unwrap_or(Own::Failed(text))
        }
        None => std::future::pending().await,
    }
}

/// A time after `began`, within what the clock can tell.
pub(super) fn later(began: Instant, time: Duration) -> Instant {
    let far = Duration::from_secs(86400 * 365 * 30);
    began + time.min(far)
}

impl Settings {
    /// When the rendezvous is given up.
    pub(super) fn deadline(&self, began: Instant) -> Instant {
        later(began, self.timeout)
    }

    /// How long it has been going on, in milliseconds.
    pub(super) fn waited(&self, began: Instant) -> u64 {
        millis(began.elapsed().min(self.timeout))
    }

    pub(super) fn local(
        &self,
        address: Option<SocketAddr>,
        nonce: u64,
        deadline: Duration,
    ) -> Local {
        Local {
            rank: self.rank,
            size: self.size,
            address,
            channels: self.channels,
            nonce,
            deadline,
        }
    }
}
