//! Collectives that this rank waits for in vain: when to tell the control plane, which knows whether others call the same.
//!
//! What counts is how long a collective has been the oldest one under way, whatever else moves meanwhile: messages point to
//! point and later collectives do not excuse it. One that merely takes long is told too, once, and nothing comes of it.
//!
//! Time is that of the host, as whoever minds the deadlines tells it.

use std::collections::VecDeque;
use std::time::Duration;

use unisono_contract::{Field, Time};
use unisono_control::{Operation, Stalled};
use unisono_engine::Ticket;

use super::value;
use crate::plans::Spec;

/// How long a collective may be the oldest one before it is told.
pub(super) const LONG: Duration = Duration::from_secs(1);

/// Collectives under way, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    calls: VecDeque<Call>,
    /// The oldest one, as of the last look at the clock.
    watched: Option<Ticket>,
    since: Time,
    told: bool,
    /// When to tell, as said last.
    look: Option<Time>,
    /// When the alarm that is set for it goes off.
    alarm: Option<Time>,
}

#[derive(Debug)]
struct Call {
    ticket: Ticket,
    sequence: u64,
    spec: Spec,
}

impl Stalls {
    /// A collective starts; `is_done` tells of earlier ones.
    pub(super) fn start(
        &mut self,
        ticket: Ticket,
        sequence: u64,
        spec: Spec,
        is_done: impl Fn(Ticket) -> bool,
    ) {
        self.forget(is_done);
        if !spec.collective.is_point_to_point() {
            self.calls.push_back(Call {
                ticket,
                sequence,
                spec,
            });
        }
    }

    /// When not to sleep beyond, or what is to be told now.
    pub(super) fn until(
        &mut self,
        now: Time,
        is_done: impl Fn(Ticket) -> bool,
    ) -> Result<Option<Time>, Stalled> {
        self.forget(is_done);
        let Some(oldest) = self.calls.front() else {
            return Ok(None);
        };
        if self.watched != Some(oldest.ticket) {
            self.watched = Some(oldest.ticket);
            self.since = now;
            self.told = false;
        }
        if self.told {
            return Ok(None);
        }
        let look = self.since + LONG;
        if now < look {
            self.look = Some(look);
            return Ok(self.look);
        }
        self.told = true;
        Err(oldest.report())
    }

    /// Where the alarm for `at` is noted, if it is one for a look here: see [`Patience`](super::Patience).
    pub(super) fn alarm(&mut self, at: Time) -> Option<&mut Option<Time>> {
        (self.look == Some(at)).then_some(&mut self.alarm)
    }

    /// Operations of the middle that are done are forgotten once they are the oldest.
    #[inline]
    fn forget(&mut self, is_done: impl Fn(Ticket) -> bool) {
        while self.calls.front().is_some_and(|call| is_done(call.ticket)) {
            self.calls.pop_front();
        }
    }
}

impl Call {
    #[cold]
    fn report(&self) -> Stalled {
        let Spec {
            collective,
            count,
            dtype,
            op,
            root,
        } = self.spec;
        let root = if collective.is_rooted() { root } else { 0 };
        // In the order in which frames are compared.
        let call = [
            (Field::Collective, collective.code().into()),
            (Field::Dtype, dtype.code().into()),
            (Field::Op, op.map_or(0, |op| op.code().into())),
            (Field::Root, root.into()),
            (Field::Count, count),
        ];
        Stalled {
            operation: Operation {
                name: collective.name(),
                sequence: self.sequence,
            },
            call: call
                .map(|(field, code)| (field.to_string(), value(field, code)))
                .to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_core::{Collective, DType};

    fn at(millis: u64) -> Time {
        Time::default() + Duration::from_millis(millis)
    }

    fn spec(collective: Collective) -> Spec {
        Spec {
            collective,
            count: 5,
            dtype: DType::F32,
            op: None,
            root: 2,
        }
    }

    /// One operation for each of `collectives`, nothing done.
    fn stalls<const N: usize>(collectives: [Collective; N]) -> Stalls {
        let mut stalls = Stalls::default();
        for (collective, n) in collectives.into_iter().zip(0..) {
            stalls.start(Ticket(n), 10 + n, spec(collective), |_| false);
        }
        stalls
    }

    #[test]
    fn each_oldest_collective_is_told_once_after_a_second() {
        let mut stalls = stalls([Collective::Broadcast, Collective::AllReduce]);
        let (mut done, mut began) = (0, 0);
        for (name, root) in [("broadcast", "2"), ("all_reduce", "0")] {
            let is_done = |ticket: Ticket| ticket.0 < done;
            assert_eq!(stalls.until(at(began), is_done), Ok(Some(at(began + 1000))));
            let later = stalls.until(at(began + 999), is_done);
            assert_eq!(later, Ok(Some(at(began + 1000))));
            let told = stalls.until(at(began + 1000), is_done).unwrap_err();
            assert_eq!(
                (told.operation.name, told.operation.sequence),
                (name, 10 + done)
            );
            let call = [name, "f32", "none", root, "5"];
            assert!(told.call.iter().map(|(_, value)| value).eq(&call));
            assert_eq!(stalls.until(at(began + 5000), is_done), Ok(None));
            (done, began) = (done + 1, began + 6000);
        }
        assert_eq!(stalls.until(at(began), |_| true), Ok(None));
    }

    #[test]
    fn messages_are_not_told_of_and_do_not_stand_in_front() {
        let mut only = stalls([Collective::Recv, Collective::Send]);
        assert_eq!(only.until(at(0), |_| false), Ok(None));
        let mut stalls = stalls([Collective::Recv, Collective::Barrier]);
        assert_eq!(stalls.until(at(0), |_| false), Ok(Some(at(1000))));
        assert!(stalls.until(at(1001), |_| false).is_err());
    }

    #[test]
    fn operations_that_are_done_in_time_are_forgotten() {
        let mut stalls = Stalls::default();
        for n in 0..1000 {
            stalls.start(Ticket(n), n, spec(Collective::Barrier), |t| t.0 < n);
            assert!(stalls.calls.len() == 1 && stalls.until(at(n * 10), |t| t.0 < n).is_ok());
        }
    }
}
