//! The suite finds endpoints that break the rules.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use unisono_contract::{
    Completion, Completions, Direction, Drain, Endpoint, Frame, Lease, Limits, LinkCause,
    LinkError, Piece, Port, PostError, Ready, Token, Unclaimed, WaitSet,
    conformance::{self, Property},
    null,
};

/// A way to break the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// None: the wrapper itself is fine.
    None,
    /// Every second message overtakes the one before it.
    Reorders,
    /// Sender and receiver do not compare what the message is.
    DropsFrameCheck,
    /// Writes to the receiver's memory before the comparison.
    TouchesFirst,
    /// Receives complete when posted.
    ReceivesTooEarly,
    /// Sends complete when posted.
    SendsTooEarly,
    /// Completions come newest first.
    CompletesBackwards,
    /// Empty messages are not exchanged.
    SkipsEmptyMessages,
    /// Takes fewer posts than it promises.
    TakesFewer,
    /// All channels to a peer are one.
    OneChannel,
    /// Says that it is quiet and is not.
    LiesAboutQuiet,
    /// Complains of peers that leave when all is done.
    Nervous,
    /// Sleeps without anything that would wake it.
    Sleepy,
    /// Tells only once of a message that nobody claims.
    TellsOnce,
    /// Tells of such a message when it is asked, and wakes nobody.
    TellsNobody,
}

struct Broken {
    inner: null::Endpoint,
    fault: Fault,
    /// A send held back.
    held: Option<(Port, Frame, Vec<Piece>, Token)>,
    /// Copies of what was sent. The sender hears too early that it has its memory again; it may end the loan then, and
    /// that would be another fault.
    kept: Vec<Lease<Vec<u8>>>,
    /// Messages told of.
    told: Vec<Unclaimed>,
    /// Completions made up, and the true ones to swallow.
    early: Vec<Completion>,
    swallow: Vec<Completion>,
    posts: usize,
    ports: Vec<(Port, u32)>,
    /// Bits of the ranks that were dropped.
    gone: Arc<AtomicU64>,
}

fn make(ranks: usize, fault: Fault) -> Vec<Box<dyn Endpoint>> {
    let gone = Arc::new(AtomicU64::new(0));
    null::Net::new(ranks, null::Policy::instant())
        .into_iter()
        .map(|inner| {
            Box::new(Broken {
                inner,
                fault,
                held: None,
                kept: Vec::new(),
                told: Vec::new(),
                early: Vec::new(),
                swallow: Vec::new(),
                posts: 0,
                ports: Vec::new(),
                gone: gone.clone(),
            }) as Box<dyn Endpoint>
        })
        .collect()
}

impl Broken {
    fn flush(&mut self) {
        if let Some((port, frame, data, token)) = self.held.take() {
            let _ = self.inner.post_send(port, &frame, &data, token);
        }
    }

    fn keep(&mut self, data: &[Piece]) -> Piece {
        let bytes = data.iter().map(|piece| piece.read(<[u8]>::to_vec));
        let bytes: Result<Vec<_>, _> = bytes.collect();
        let lease = Lease::new(bytes.expect("lent").concat());
        let piece = lease.piece();
        self.kept.push(lease);
        piece
    }

    fn invent(&mut self, completion: Completion, swallow: bool) {
        self.early.push(completion);
        if swallow {
            self.swallow.push(completion);
        }
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        self.gone.fetch_or(1 << self.inner.rank(), Ordering::AcqRel);
    }
}

fn anonymous(frame: &Frame) -> Frame {
    Frame {
        length: frame.length,
        ..Frame::default()
    }
}

impl Endpoint for Broken {
    fn limits(&self) -> &Limits {
        self.inner.limits()
    }

    fn port(&mut self, peer: u32, channel: u16) -> Option<Port> {
        let channel = if self.fault == Fault::OneChannel {
            0
        } else {
            channel
        };
        let port = self.inner.port(peer, channel)?;
        self.ports.push((port, peer));
        Some(port)
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        self.posts += 1;
        let completion = Completion {
            port,
            direction: Direction::Send,
            token,
        };
        match self.fault {
            Fault::Reorders => {
                let copy = self.keep(data);
                match self.held.take() {
                    None => {
                        self.held = Some((port, *frame, vec![copy], token));
                        Ok(())
                    }
                    Some((before, earlier, held, first)) => {
                        // The tokens keep their order, only the bytes do not.
                        self.inner.post_send(port, frame, &[copy], first)?;
                        self.inner.post_send(before, &earlier, &held, token)
                    }
                }
            }
            Fault::DropsFrameCheck => self.inner.post_send(port, &anonymous(frame), data, token),
            Fault::SendsTooEarly => {
                self.inner.post_send(port, frame, data, token)?;
                self.invent(completion, true);
                Ok(())
            }
            Fault::SkipsEmptyMessages if frame.length == 0 => {
                self.invent(completion, false);
                Ok(())
            }
            Fault::TakesFewer if self.posts.is_multiple_of(3) => Err(PostError::Full),
            _ => self.inner.post_send(port, frame, data, token),
        }
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let completion = Completion {
            port,
            direction: Direction::Recv,
            token,
        };
        match self.fault {
            Fault::DropsFrameCheck => self.inner.post_recv(port, &anonymous(expect), into, token),
            Fault::TouchesFirst => {
                for piece in into {
                    let _ = piece.write(|bytes| bytes.fill(0));
                }
                self.inner.post_recv(port, expect, into, token)
            }
            Fault::ReceivesTooEarly => {
                self.inner.post_recv(port, expect, into, token)?;
                self.invent(completion, true);
                Ok(())
            }
            Fault::SkipsEmptyMessages if expect.length == 0 => {
                self.invent(completion, false);
                Ok(())
            }
            _ => self.inner.post_recv(port, expect, into, token),
        }
    }

    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        self.flush();
        let before = done.len();
        let result = self.inner.poll(done);
        let swallow = &mut self.swallow;
        done.retain(|completion| {
            let known = swallow.iter().position(|early| early == completion);
            known.map(|index| swallow.remove(index)).is_none()
        });
        done.append(&mut self.early);
        if self.fault == Fault::CompletesBackwards {
            done[before..].reverse();
        }
        if self.fault == Fault::Nervous {
            let gone = self.gone.load(Ordering::Acquire);
            if let Some((port, peer)) = self.ports.iter().find(|(_, peer)| gone >> peer & 1 == 1) {
                return Err(LinkError {
                    port: *port,
                    peer: *peer,
                    cause: LinkCause::Closed,
                });
            }
        }
        result
    }

    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        if !self.early.is_empty() || self.held.is_some() {
            return Ok(Ready::Now);
        }
        if self.fault == Fault::Sleepy {
            let _ = self.inner.wait_on(&mut WaitSet::new())?;
            return Ok(Ready::Wait);
        }
        self.inner.wait_on(set)
    }

    fn unclaimed(&mut self, set: &mut WaitSet, found: &mut Vec<Unclaimed>) -> bool {
        let mut nobody = WaitSet::new();
        let set = match self.fault {
            Fault::TellsNobody => &mut nobody,
            _ => set,
        };
        let tells = self.inner.unclaimed(set, found);
        if self.fault == Fault::TellsNobody {
            // Whom the network would wake next.
            let _ = self.inner.wait_on(&mut WaitSet::new());
        }
        if self.fault == Fault::TellsOnce {
            found.retain(|unclaimed| !self.told.contains(unclaimed));
            self.told.extend_from_slice(found);
        }
        tells
    }

    fn quiesce(&mut self) -> Drain {
        match self.fault {
            Fault::LiesAboutQuiet => Drain::Quiet,
            _ => self.inner.quiesce(),
        }
    }
}

/// Asserts that `property` fails under `fault`, and says what it must.
fn fails(name: &str, property: Property, fault: Fault, saying: &str) {
    let result = catch_unwind(AssertUnwindSafe(|| property(&|ranks| make(ranks, fault))));
    let panic = result.expect_err("the suite did not notice");
    let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(
        text.starts_with(name) && text.contains(saying),
        "found for another reason: {text}"
    );
}

#[test]
fn the_wrapper_without_a_fault_conforms() {
    conformance::run_all(&|ranks| make(ranks, Fault::None));
}

#[test]
fn reordering_is_found() {
    fails("order", conformance::order, Fault::Reorders, "is wrong");
}

#[test]
fn a_dropped_frame_check_is_found() {
    let saying = "a message with another collective was accepted";
    fails(
        "mismatch",
        conformance::mismatch,
        Fault::DropsFrameCheck,
        saying,
    );
}

#[test]
fn memory_touched_before_the_check_is_found() {
    let saying = "memory was touched";
    fails(
        "mismatch",
        conformance::mismatch,
        Fault::TouchesFirst,
        saying,
    );
}

#[test]
fn receives_that_complete_too_early_are_found() {
    fails(
        "sizes",
        conformance::sizes,
        Fault::ReceivesTooEarly,
        "is wrong",
    );
    fails(
        "late_sends",
        conformance::late_sends,
        Fault::ReceivesTooEarly,
        "before they were sent",
    );
}

#[test]
fn sends_that_complete_too_early_are_found() {
    let saying = "a message whose send had completed";
    fails(
        "send_completion",
        conformance::send_completion,
        Fault::SendsTooEarly,
        saying,
    );
}

#[test]
fn completions_out_of_order_are_found() {
    let saying = "completion out of order";
    fails(
        "back_pressure",
        conformance::back_pressure,
        Fault::CompletesBackwards,
        saying,
    );
}

#[test]
fn skipped_empty_messages_are_found() {
    let saying = "before they were sent";
    fails(
        "late_sends",
        conformance::late_sends,
        Fault::SkipsEmptyMessages,
        saying,
    );
}

#[test]
fn a_broken_promise_of_depth_is_found() {
    fails(
        "back_pressure",
        conformance::back_pressure,
        Fault::TakesFewer,
        "sends fit, depth",
    );
}

#[test]
fn channels_that_are_one_are_found() {
    let saying = "every peer and channel its own port";
    fails("limits", conformance::limits, Fault::OneChannel, saying);
}

#[test]
fn a_lie_about_quiet_is_found() {
    fails("quiesce", conformance::quiesce, Fault::LiesAboutQuiet, "");
}

#[test]
fn complaints_about_a_quiet_departure_are_found() {
    fails(
        "quiet_departure",
        conformance::quiet_departure,
        Fault::Nervous,
        "closed by the peer",
    );
}

#[test]
#[ignore = "waits until the suite's patience ends"]
fn a_message_that_is_told_of_only_once_is_found() {
    let saying = "waited";
    fails(
        "unclaimed",
        conformance::unclaimed,
        Fault::TellsOnce,
        saying,
    );
}

#[test]
#[ignore = "waits until the suite's patience ends"]
fn a_sleeper_who_is_not_told_of_a_message_is_found() {
    let saying = "waited";
    fails(
        "unclaimed",
        conformance::unclaimed,
        Fault::TellsNobody,
        saying,
    );
}

#[test]
#[ignore = "waits until the suite's patience ends"]
fn a_lost_wake_up_is_found() {
    fails(
        "late_sends",
        conformance::late_sends,
        Fault::Sleepy,
        "waited",
    );
}
