//! The control thread of a group that stands: carries out what [`Life`] says and what the group asks for.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use unisono_contract::Event;
use unisono_contract::descriptor::Source;
use unisono_core::Rank;

use super::life::{Act, Life};
use super::link::{Inbound, Inbox, Link};
use super::roster::LinkId;
use super::watch::Watches;
use super::{Shared, farewell};
use crate::{Cause, Stalled};

/// How often a rank says that it lives.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// What a group asks of its control thread.
#[derive(Debug)]
pub(super) enum Command {
    /// This rank has noticed a failure.
    Abort(Cause),
    /// This rank waits in vain.
    Stalled(Stalled),
    /// Notify at this time.
    Wake(Instant, Event),
    /// Notify when one of these is ready.
    Watch(Vec<Source>, Event),
    /// Say goodbye and end.
    Leave,
    /// End without a word.
    Vanish,
}

pub(super) async fn live(
    rank: Rank,
    mut links: BTreeMap<Rank, (LinkId, Link)>,
    mut inbox: Inbox,
    mut tasks: JoinSet<()>,
    mut orders: mpsc::UnboundedReceiver<Command>,
    shared: &Shared,
) {
    let mut life = Life::new(rank, links.keys().copied());
    let ranks: HashMap<LinkId, Rank> = links.iter().map(|(rank, (id, _))| (*id, *rank)).collect();
    let mut watches = Watches::default();
    let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    // A process that was stopped has missed beats of others too: it starts anew.
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut leaving = false;
    while !leaving {
        tokio::select! {
            Some((id, inbound)) = inbox.recv() => {
                if let Some(rank) = ranks.get(&id) {
                    match inbound {
                        Inbound::Frame(frame) => life.heard(*rank, frame),
                        Inbound::Closed => life.closed(*rank),
                    }
                }
            }
            command = orders.recv() => match command {
                Some(Command::Abort(cause)) => life.abort(cause),
                Some(Command::Stalled(report)) => life.stalled(report),
                Some(Command::Wake(at, event)) => {
                    tokio::spawn(async move {
                        sleep_until(at).await;
                        event.notify();
                    });
                }
                Some(Command::Watch(sources, event)) => watches.watch(sources, event),
                Some(Command::Vanish) => return,
                Some(Command::Leave) | None => {
                    life.leave();
                    leaving = true;
                }
            },
            _ = heartbeat.tick(), if !links.is_empty() => life.tick(),
        }
        while let Some(act) = life.act() {
            match act {
                Act::Send(rank, frame) => {
                    if let Some((_, link)) = links.get(&rank) {
                        link.send(frame);
                    }
                }
                Act::Close(rank) => {
                    links.remove(&rank);
                }
                Act::Failed(cause) => shared.fail(cause),
            }
        }
        while tasks.try_join_next().is_some() {}
    }
    drop(watches);
    farewell(&mut tasks, &mut inbox).await;
}
