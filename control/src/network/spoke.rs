//! Every rank but 0 while the group forms: finds rank 0, shows its card, connects, waits for the others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use unisono_contract::transport::Transport;

use super::hub::later;
use super::link::{INBOX, Link, LinkFault, Wire};
use super::roster::CONNECTED;
use super::{Joined, NOTICE, Settings, file, notice, place, random};
use crate::address::Coordinator;
use crate::refusal::{JoinError, Refusal};
use crate::wire::{CARD_LIMIT, Frame, VERSION, cards_limit};

/// How long an address may take to answer before the next is tried.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long somebody who accepted may take to prove that it is rank 0.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Pauses between attempts: from, to.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));
/// How much longer than its own deadline a rank waits for rank 0, whose verdict is everybody's.
const VERDICT_TIME: Duration = Duration::from_secs(2);

/// Why an attempt failed.
enum Setback {
    /// Try again.
    Again(String),
    /// Give up.
    Final(JoinError),
}

impl From<LinkFault> for Setback {
    fn from(fault: LinkFault) -> Self {
        Self::Again(fault.to_string())
    }
}

impl From<Refusal> for Setback {
    fn from(refusal: Refusal) -> Self {
        Self::Final(refusal.into())
    }
}

impl From<JoinError> for Setback {
    fn from(error: JoinError) -> Self {
        Self::Final(error)
    }
}

/// Becomes part of the group, as any rank but 0.
pub(super) async fn join(
    settings: &Settings,
    transport: Arc<dyn Transport>,
    began: Instant,
) -> Result<Joined, JoinError> {
    place::own_address(settings.rank, settings.iface.as_deref(), None)?;
    let deadline = settings.deadline(began);
    let spoke = Spoke {
        settings,
        transport,
        began,
        deadline,
        verdict: later(deadline, VERDICT_TIME),
        instance: random(),
    };
    let mut pause = PAUSES.0;
    let mut next_notice = began + NOTICE;
    loop {
        let last = match spoke.attempt().await {
            Ok(joined) => return Ok(joined),
            Err(Setback::Final(error)) => return Err(error),
            Err(Setback::Again(last)) => last,
        };
        if Instant::now() + pause >= deadline {
            sleep_until(deadline).await;
            return Err(spoke.unreachable(last));
        }
        sleep_until(Instant::now() + pause).await;
        pause = (pause * 2).min(PAUSES.1);
        if Instant::now() >= next_notice {
            next_notice = Instant::now() + NOTICE;
            let (rank, coordinator) = (settings.rank, &settings.coordinator);
            notice(&format!(
                "rank {rank} still looks for rank 0 at {coordinator}: {last}"
            ));
        }
    }
}

struct Spoke<'a> {
    settings: &'a Settings,
    transport: Arc<dyn Transport>,
    began: Instant,
    deadline: Instant,
    verdict: Instant,
    instance: u64,
}

impl Spoke<'_> {
    async fn attempt(&self) -> Result<Joined, Setback> {
        let (wire, nonce) = self.find().await?;
        self.take_part(wire, nonce).await
    }

    /// Finds rank 0 of this group, and is accepted.
    async fn find(&self) -> Result<(Wire, u64), Setback> {
        let (addresses, ticket) = match &self.settings.coordinator {
            Coordinator::Address { host, port } => {
                let found = timeout_at(self.deadline, place::resolve(host, *port)).await;
                let found = found.map_err(|_| Setback::Again("the name was not found".into()))?;
                (found.map_err(|e| Setback::Again(e.to_string()))?, 0)
            }
            Coordinator::File(path) => {
                let again = |text: &str| Setback::Again(text.to_owned());
                let meeting = file::read(path).map_err(|e| Setback::Again(e.to_string()))?;
                let meeting = meeting.ok_or_else(|| again("the file is of another kind"))?;
                if meeting.job != self.settings.job {
                    return Err(again("the file is of another job"));
                }
                (meeting.addresses, meeting.nonce)
            }
        };
        let mut last = Setback::Again("it has no address".to_owned());
        for address in addresses {
            match self.knock(address, ticket).await {
                Err(Setback::Again(text)) => last = Setback::Again(text),
                answer => return answer,
            }
        }
        Err(last)
    }

    async fn knock(&self, address: SocketAddr, ticket: u64) -> Result<(Wire, u64), Setback> {
        let connect_time = CONNECT_TIME.min(self.left());
        let stream = timeout(connect_time, TcpStream::connect(address)).await;
        let stream = stream.map_err(|_| Setback::Again("it does not answer".to_owned()))?;
        let stream = stream.map_err(|error| Setback::Again(error.to_string()))?;
        if stream.local_addr().ok() == stream.peer_addr().ok() {
            // A port of the ephemeral range that nobody listens at can be given to its own caller.
            return Err(Setback::Again("nobody listens there".to_owned()));
        }
        let answer = timeout(ANSWER_TIME, self.introduce(Wire::new(stream), ticket)).await;
        answer.map_err(|_| Setback::Again("it does not say who it is".to_owned()))?
    }

    async fn introduce(&self, mut wire: Wire, ticket: u64) -> Result<(Wire, u64), Setback> {
        let rank = self.settings.rank;
        let hello = self
            .settings
            .hello(&*self.transport, self.instance, ticket, self.left());
        wire.greet(rank, &Frame::Hello(Box::new(hello))).await?;
        let preamble = wire.read_preamble().await?;
        if preamble.version != VERSION {
            return Err(Setback::from(Refusal::Differs {
                rank,
                what: "wire version".to_owned(),
                ours: preamble.version.to_string(),
                theirs: VERSION.to_string(),
            }));
        }
        match wire.read().await? {
            Frame::Accepted { nonce } => Ok((wire, nonce)),
            Frame::Refuse(refusal) => Err(Setback::from(*refusal)),
            Frame::Retry => Err(Setback::Again("another group meets there".to_owned())),
            _ => Err(Setback::Again("it is not rank 0".to_owned())),
        }
    }

    async fn take_part(&self, mut wire: Wire, nonce: u64) -> Result<Joined, Setback> {
        let iface = self.settings.iface.as_deref();
        let rank = self.settings.rank;
        let address = place::own_address(rank, iface, wire.own_address())?;
        let local = self.settings.local(address, nonce, self.left());
        let listening = match timeout_at(self.deadline, self.transport.listen(&local)).await {
            Ok(Ok(listening)) => listening,
            Ok(Err(error)) => return Err(self.report(wire, error.to_string()).await),
            Err(_) => {
                return Err(self
                    .report(wire, "listening took too long".to_owned())
                    .await);
            }
        };
        let card = listening.card();
        if card.len() > CARD_LIMIT {
            let text = "the card of this transport is too long";
            return Err(self.report(wire, text.to_owned()).await);
        }
        wire.write(&Frame::Card(card)).await?;
        wire.allow(cards_limit(self.settings.size));
        let cards = match self.hear(&mut wire).await? {
            // Rank 0 went before all had met: it may come again.
            Err(fault) => return Err(Setback::Again(format!("rank 0 went away: {fault}"))),
            Ok(Frame::Cards(cards)) => cards,
            Ok(_) => return Err(Setback::Again("rank 0 cannot be understood".to_owned())),
        };
        let endpoint = tokio::select! {
            connected = timeout_at(self.deadline, listening.connect(&cards.cards)) => match connected {
                Ok(Ok(endpoint)) => endpoint,
                Ok(Err(error)) => return Err(self.report(wire, error.to_string()).await),
                Err(_) => return Err(self.report(wire, "connecting took too long".to_owned()).await),
            },
            // Nothing but a refusal comes now.
            heard = self.hear(&mut wire) => {
                let _ = heard?;
                return Err(Refusal::Lost { rank: 0 }.into());
            }
        };
        let lost = |_| Setback::from(Refusal::Lost { rank: 0 });
        wire.write(&Frame::Barrier(CONNECTED)).await.map_err(lost)?;
        match self.hear(&mut wire).await? {
            Ok(Frame::Barrier(CONNECTED)) => {}
            _ => return Err(Refusal::Lost { rank: 0 }.into()),
        }
        let (outbox, inbox) = mpsc::channel(INBOX);
        let mut tasks = JoinSet::new();
        let link = Link::start(&mut tasks, 0, wire, outbox);
        Ok(Joined {
            endpoint,
            links: [(0, (0, link))].into(),
            inbox,
            tasks,
            nonce,
            features: cards.features,
            limits: cards.limits,
        })
    }

    /// What rank 0 says next; a refusal, or silence, is the end.
    async fn hear(&self, wire: &mut Wire) -> Result<Result<Frame, LinkFault>, Setback> {
        match timeout_at(self.verdict, wire.read()).await {
            Ok(Ok(Frame::Refuse(refusal))) => Err(Setback::from(*refusal)),
            Ok(heard) => Ok(heard),
            Err(_) => Err(Setback::Final(
                self.unreachable("rank 0 fell silent".to_owned()),
            )),
        }
    }

    /// Tells rank 0 why this rank cannot be part of the group, and gives what everybody is told.
    async fn report(&self, mut wire: Wire, text: String) -> Setback {
        let rank = self.settings.rank;
        let refusal = Refusal::Connect { rank, text };
        let told = wire.write(&Frame::Refuse(Box::new(refusal.clone()))).await;
        let answer = async {
            loop {
                match self.hear(&mut wire).await {
                    Ok(Ok(_)) => {} // Sent before it heard of this.
                    Ok(Err(_)) => return None,
                    Err(verdict) => return Some(verdict),
                }
            }
        };
        match timeout(VERDICT_TIME, answer).await {
            Ok(Some(verdict)) if told.is_ok() => verdict,
            _ => refusal.into(),
        }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn unreachable(&self, last: String) -> JoinError {
        JoinError::Unreachable {
            rank: self.settings.rank,
            coordinator: self.settings.coordinator.to_string(),
            millis: self.settings.waited(self.began),
            last,
        }
    }
}
