//! Drives one endpoint as an engine would, and loses patience.

use std::{
    any::Any,
    collections::{HashMap, HashSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use unisono_core::Rank;

use super::Make;
use crate::{
    endpoint::{
        Completions, Direction, Drain, Endpoint, LinkCause, LinkError, Port, PostError, Token,
        Unclaimed,
    },
    frame::{Frame, Opening, mix},
    host::{Host, Ready, SystemHost, Time, WaitSet},
    memory::{Lease, Piece, total},
};

/// The longest any one thing is waited for.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How the ranks of one run know of each other's end.
#[derive(Default)]
struct World {
    finished: AtomicUsize,
    failed: AtomicBool,
}

/// One rank of a run.
pub(super) struct Pilot<'a> {
    pub(super) rank: Rank,
    endpoint: Option<Box<dyn Endpoint>>,
    host: SystemHost,
    set: WaitSet,
    fresh: Completions,
    /// Posted and not completed, in order.
    posted: HashMap<(Port, Direction), VecDeque<Token>>,
    done: HashSet<Token>,
    next: u64,
    world: &'a World,
}

/// Runs `play` on each of `ranks` endpoints, each on its own thread.
///
/// Endpoints stay alive, and are polled, until all ranks have played; who wants to go earlier calls
/// [`Pilot::leave`].
///
/// # Panics
/// If a rank does, naming `property` and the rank.
pub(super) fn run(
    property: &str,
    make: Make<'_>,
    ranks: usize,
    play: &(dyn Fn(&mut Pilot<'_>) + Sync),
) {
    let endpoints = make(ranks);
    assert_eq!(endpoints.len(), ranks, "{property}: one endpoint per rank");
    let world = World::default();
    let failures = thread::scope(|scope| {
        let threads: Vec<_> = endpoints
            .into_iter()
            .zip(0..)
            .map(|(endpoint, rank)| {
                let world = &world;
                scope.spawn(move || {
                    let mut pilot = Pilot::new(rank, endpoint, ranks, world);
                    let played = catch_unwind(AssertUnwindSafe(|| play(&mut pilot)));
                    if played.is_err() {
                        world.failed.store(true, Ordering::Release);
                        pilot.leave();
                    }
                    world.finished.fetch_add(1, Ordering::AcqRel);
                    pilot.linger(ranks);
                    played.err().map(|panic| (rank, text(&*panic)))
                })
            })
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap_or_else(|p| Some((0, text(&*p)))))
            .collect::<Vec<_>>()
    });
    // Who only stopped, or lost a link, because another rank failed is not the reason.
    let far_from_the_reason = |text: &str| match text {
        _ if text.starts_with(STOPPED) => 2,
        _ if text.contains("closed by the peer") => 1,
        _ => 0,
    };
    let reason = failures
        .iter()
        .min_by_key(|(_, text)| far_from_the_reason(text));
    if let Some((rank, text)) = reason {
        panic!("{property}: rank {rank}: {text}");
    }
}

const STOPPED: &str = "stopped";

fn text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_else(|| "panicked".into())
}

impl<'a> Pilot<'a> {
    fn new(rank: Rank, endpoint: Box<dyn Endpoint>, ranks: usize, world: &'a World) -> Self {
        Self {
            rank,
            endpoint: Some(endpoint),
            host: SystemHost::new(ranks),
            set: WaitSet::new(),
            fresh: Completions::new(),
            posted: HashMap::new(),
            done: HashSet::new(),
            next: 0,
            world,
        }
    }

    /// The endpoint itself.
    pub(super) fn endpoint(&mut self) -> &mut dyn Endpoint {
        match &mut self.endpoint {
            Some(endpoint) => &mut **endpoint,
            None => panic!("this rank has left"),
        }
    }

    pub(super) fn port(&mut self, peer: Rank, channel: u16) -> Port {
        self.endpoint()
            .port(peer, channel)
            .unwrap_or_else(|| panic!("no port to rank {peer} on channel {channel}"))
    }

    /// Drops the endpoint.
    pub(super) fn leave(&mut self) {
        self.endpoint = None;
    }

    /// Posts once.
    pub(super) fn offer(
        &mut self,
        direction: Direction,
        port: Port,
        frame: &Frame,
        pieces: &[Piece],
    ) -> Result<Token, PostError> {
        assert_eq!(
            frame.length,
            total(pieces) as u64,
            "the suite's own lengths"
        );
        // Spread over the bits, so that a transport which cuts tokens short is found out.
        let token = Token(mix(u64::from(self.rank) << 32 | self.next));
        let endpoint = self.endpoint();
        match direction {
            Direction::Send => endpoint.post_send(port, frame, pieces, token)?,
            Direction::Recv => endpoint.post_recv(port, frame, pieces, token)?,
        }
        self.next += 1;
        self.posted
            .entry((port, direction))
            .or_default()
            .push_back(token);
        Ok(token)
    }

    /// Posts, waiting for room.
    pub(super) fn post(
        &mut self,
        direction: Direction,
        port: Port,
        frame: &Frame,
        pieces: &[Piece],
    ) -> Token {
        let began = self.host.now();
        loop {
            match self.offer(direction, port, frame, pieces) {
                Ok(token) => return token,
                Err(PostError::Full) => {
                    let waiting = self.posted.get(&(port, direction));
                    assert!(
                        waiting.is_some_and(|posts| !posts.is_empty()),
                        "{direction} on {port:?} refused as full with nothing outstanding"
                    );
                    self.turn(began, "room for a post");
                }
                Err(PostError::Link(error)) => panic!("{direction} refused: {error}"),
            }
        }
    }

    pub(super) fn send(&mut self, port: Port, frame: &Frame, data: &[Piece]) -> Token {
        self.post(Direction::Send, port, frame, data)
    }

    pub(super) fn recv(&mut self, port: Port, expect: &Frame, into: &[Piece]) -> Token {
        self.post(Direction::Recv, port, expect, into)
    }

    /// Waits for the completion of `token`.
    pub(super) fn finish(&mut self, token: Token, what: &str) {
        let began = self.host.now();
        while !self.done.remove(&token) {
            self.turn(began, what);
        }
        self.host.waited(self.host.now().since(began));
    }

    /// Waits for all of `tokens`.
    pub(super) fn finish_all(&mut self, tokens: &[Token], what: &str) {
        for token in tokens {
            self.finish(*token, what);
        }
    }

    /// Waits until a port breaks.
    pub(super) fn failure(&mut self, what: &str) -> LinkError {
        let began = self.host.now();
        loop {
            if let Err(error) = self.try_turn(began, what) {
                return error;
            }
        }
    }

    /// Waits for the completion of `token` or until a port breaks.
    pub(super) fn outcome(&mut self, token: Token, what: &str) -> Result<(), LinkError> {
        let began = self.host.now();
        while !self.done.remove(&token) {
            self.try_turn(began, what)?;
        }
        Ok(())
    }

    /// Polls until `ready` says so, which no event announces.
    pub(super) fn until(&mut self, what: &str, ready: impl Fn(&Self) -> bool) {
        let began = self.host.now();
        while !ready(self) {
            if let Err(error) = self.poll() {
                panic!("{error} while waiting for {what}");
            }
            self.check(began, what);
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// Polls for `duration`; errors may come.
    pub(super) fn poll_for(&mut self, duration: Duration) -> Vec<LinkError> {
        let began = self.host.now();
        let mut errors = Vec::new();
        while self.host.now().since(began) < duration {
            errors.extend(self.poll().err());
            thread::sleep(Duration::from_micros(100));
        }
        errors
    }

    /// Sleeps until a message lies there that no receive is posted for. `None`: the transport cannot tell.
    pub(super) fn unclaimed(&mut self, what: &str) -> Option<Vec<Unclaimed>> {
        let began = self.host.now();
        let (mut set, mut found) = (WaitSet::new(), Vec::new());
        loop {
            self.check(began, what);
            set.clear();
            let ready = match self.endpoint().wait_on(&mut set) {
                Ok(ready) => ready,
                Err(error) => panic!("{error} while waiting for {what}"),
            };
            if !self.endpoint().unclaimed(&mut set, &mut found) {
                return None;
            }
            if !found.is_empty() {
                return Some(found);
            }
            if ready == Ready::Wait {
                self.host.park(&mut set, began + PATIENCE);
            }
        }
    }

    /// Quiesces until quiet.
    pub(super) fn calm(&mut self) {
        let began = self.host.now();
        while self.endpoint().quiesce() == Drain::Busy {
            self.check(began, "quiesce");
            thread::yield_now();
        }
    }

    /// One step of waiting; an error is a failure of the property.
    fn turn(&mut self, began: Time, what: &str) {
        if let Err(error) = self.try_turn(began, what) {
            panic!("{error} while waiting for {what}");
        }
    }

    /// One step of waiting: polls, and parks once spinning has had its time.
    fn try_turn(&mut self, began: Time, what: &str) -> Result<(), LinkError> {
        self.check(began, what);
        if self.poll()? || self.host.now().since(began) <= self.host.spin_budget() {
            return Ok(());
        }
        let mut set = std::mem::take(&mut self.set);
        set.clear();
        let ready = self.endpoint().wait_on(&mut set);
        let result = match ready {
            Ok(Ready::Now) => {
                thread::yield_now();
                Ok(())
            }
            Ok(Ready::Wait) => self.poll().map(|progress| {
                if !progress {
                    // Until patience ends: a lost wake-up is a failure, not a delay.
                    self.host.park(&mut set, began + PATIENCE);
                }
            }),
            Err(error) => Err(error),
        };
        self.set = set;
        result
    }

    /// Polls once; says whether something completed.
    fn poll(&mut self) -> Result<bool, LinkError> {
        let mut fresh = std::mem::take(&mut self.fresh);
        let result = self.endpoint().poll(&mut fresh);
        let progress = !fresh.is_empty();
        for completion in fresh.drain(..) {
            let lane = (completion.port, completion.direction);
            let expected = self.posted.get_mut(&lane).and_then(VecDeque::pop_front);
            assert_eq!(
                Some(completion.token),
                expected,
                "completion out of order (left) on {:?}, {}",
                completion.port,
                completion.direction
            );
            self.done.insert(completion.token);
        }
        self.fresh = fresh;
        result.map(|()| progress)
    }

    fn check(&self, began: Time, what: &str) {
        let waited = self.host.now().since(began);
        assert!(waited < PATIENCE, "waited {waited:?} for {what}");
        let stopped = self.world.failed.load(Ordering::Acquire);
        assert!(
            !stopped,
            "{STOPPED} waiting for {what}: another rank failed"
        );
    }

    /// Stays polled until all ranks have played: some transports need both ends alive.
    fn linger(&mut self, ranks: usize) {
        let began = self.host.now();
        while self.endpoint.is_some()
            && self.world.finished.load(Ordering::Acquire) < ranks
            && self.host.now().since(began) < PATIENCE
        {
            let _ = self.endpoint().poll(&mut Completions::new());
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Asserts that `error` is what a peer's departure looks like.
pub(super) fn assert_closed(error: &LinkError, port: Port, peer: Rank) {
    assert_eq!((error.port, error.peer), (port, peer), "{error}");
    assert!(
        matches!(error.cause, LinkCause::Closed | LinkCause::Io(_)),
        "closed was expected, not: {error}"
    );
}

/// The frame of a message of `length` bytes.
pub(super) fn frame(sequence: u64, message: u32, length: usize) -> Frame {
    let opening = Opening {
        collective: 1,
        dtype: 2,
        op: 3,
        root: 4,
        count: 5,
        plan: 6,
    };
    Frame {
        length: length as u64,
        sequence,
        message,
        group: 0,
        epoch: 0,
        check: opening.check(),
        opening: (message == 0).then_some(opening),
    }
}

/// `length` bytes that tell `seed` and their position.
pub(super) fn pattern(seed: u64, length: usize) -> Vec<u8> {
    (0..length.div_ceil(8) as u64)
        .flat_map(|word| mix(mix(seed) ^ word).to_le_bytes())
        .take(length)
        .collect()
}

/// Memory with a margin on both sides that must stay as it was.
pub(super) struct Slab {
    lease: Lease<Vec<u8>>,
    length: usize,
}

/// Bytes of margin; odd, so that the memory in between is unaligned.
const MARGIN: usize = 67;
const UNTOUCHED: u8 = 0xa5;

impl Slab {
    pub(super) fn new(length: usize) -> Self {
        Self {
            lease: Lease::new(vec![UNTOUCHED; length + 2 * MARGIN]),
            length,
        }
    }

    pub(super) fn filled(seed: u64, length: usize) -> Self {
        let slab = Self::new(length);
        slab.fill(seed);
        slab
    }

    pub(super) fn piece(&self) -> Piece {
        self.lease.piece().slice(MARGIN..MARGIN + self.length)
    }

    pub(super) fn fill(&self, seed: u64) {
        let bytes = pattern(seed, self.length);
        let filled = self.piece().write(|to| to.copy_from_slice(&bytes));
        assert_eq!(filled, Ok(()));
    }

    fn bytes(&self) -> Vec<u8> {
        match self.lease.piece().read(<[u8]>::to_vec) {
            Ok(bytes) => bytes,
            Err(revoked) => panic!("{revoked}"),
        }
    }

    /// Asserts that the pattern of `seed` has landed here, and nothing beside it.
    pub(super) fn assert_holds(&self, seed: u64, what: &str) {
        let bytes = self.bytes();
        let (before, rest) = bytes.split_at(MARGIN);
        let (body, after) = rest.split_at(self.length);
        let expected = pattern(seed, self.length);
        if let Some(at) = (0..self.length).find(|at| body[*at] != expected[*at]) {
            panic!("{what}: byte {at} of {} is wrong", self.length);
        }
        assert!(
            before.iter().chain(after).all(|byte| *byte == UNTOUCHED),
            "{what}: bytes beside the memory were written"
        );
    }

    /// Asserts that nothing was ever written here.
    pub(super) fn assert_untouched(&self, what: &str) {
        let clean = self.bytes().iter().all(|byte| *byte == UNTOUCHED);
        assert!(clean, "{what}: memory was touched");
    }
}
