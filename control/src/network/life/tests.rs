//! Whole lives of groups, message by message.

use super::*;

/// A group whose messages are carried at once, in order.
struct Star {
    ranks: Vec<Life>,
    /// Ranks whose processes are gone.
    gone: Vec<Rank>,
    causes: Vec<Option<Cause>>,
}

impl Star {
    fn new(size: Rank) -> Self {
        let spokes = (1..size).map(|rank| Life::new(rank, [0]));
        Self {
            ranks: [Life::new(0, 1..size)].into_iter().chain(spokes).collect(),
            gone: Vec::new(),
            causes: vec![None; size as usize],
        }
    }

    fn rank(&mut self, rank: Rank) -> &mut Life {
        &mut self.ranks[rank as usize]
    }

    /// Carries messages until there are none.
    fn settle(&mut self) {
        while let Some((from, act)) = self.next_act() {
            match act {
                Act::Failed(cause) => {
                    let known = self.causes[from as usize].replace(cause);
                    assert_eq!(known, None, "rank {from} failed twice");
                }
                Act::Send(to, frame) if !self.gone.contains(&to) => {
                    self.rank(to).heard(from, frame)
                }
                Act::Close(to) if !self.gone.contains(&to) => self.rank(to).closed(from),
                _ => {}
            }
        }
    }

    fn next_act(&mut self) -> Option<(Rank, Act)> {
        let gone = self.gone.clone();
        let alive = (0..)
            .zip(&mut self.ranks)
            .filter(|(r, _)| !gone.contains(r));
        alive
            .into_iter()
            .find_map(|(rank, life)| Some((rank, life.act()?)))
    }

    /// The process of `rank` ends: its connections close.
    fn kill(&mut self, rank: Rank) {
        self.gone.push(rank);
        for other in 0..self.ranks.len() as Rank {
            self.rank(other).closed(rank);
        }
        self.settle();
    }

    /// The cause, which all who live have.
    fn cause(&self) -> Option<&Cause> {
        let alive = (0..)
            .zip(&self.causes)
            .filter(|(r, _)| !self.gone.contains(r));
        let mut causes = alive.map(|(_, cause)| cause.as_ref());
        let first = causes.next()?;
        assert!(causes.all(|cause| cause == first), "{:?}", self.causes);
        first
    }
}

fn other(rank: Rank) -> Cause {
    let text = format!("words of rank {rank}");
    Cause::new(rank, None, Kind::Other { text })
}

#[test]
fn an_abort_from_any_rank_reaches_all() {
    for origin in 0..4 {
        let mut star = Star::new(4);
        star.rank(origin).abort(other(origin));
        star.settle();
        assert_eq!(star.cause(), Some(&other(origin)));
    }
}

#[test]
fn of_two_aborts_the_first_at_rank_0_is_everybodys() {
    for (first, second) in [(1, 2), (0, 2), (2, 1), (3, 0)] {
        let mut star = Star::new(4);
        star.rank(first).abort(other(first));
        star.rank(second).abort(other(second));
        star.settle();
        let cause = star.cause().cloned();
        assert!(cause == Some(other(first)) || cause == Some(other(second)));
        star.rank(1).abort(other(1));
        star.kill(3);
        assert_eq!(star.cause().cloned(), cause, "later causes are dropped");
    }
}

#[test]
fn any_two_ranks_that_wait_for_different_things_are_told_to_all() {
    let report = crate::cause::stalled::tests::report;
    for (one, two) in [(0, 1), (2, 0), (3, 1)] {
        let mut star = Star::new(4);
        star.rank(one).stalled(report(5, "1"));
        star.rank(two).stalled(report(4, "0"));
        star.settle();
        assert_eq!(star.cause(), None, "one is behind");
        star.rank(two).stalled(report(5, "0"));
        star.settle();
        let cause = star.cause().expect("a cause");
        let (origin, Kind::Mismatch { rank, .. }) = (cause.origin, &cause.kind) else {
            panic!("{cause}");
        };
        assert_eq!((origin, *rank), (one.min(two), one.max(two)));
    }
}

#[test]
fn a_killed_rank_is_lost_to_all_others() {
    for rank in 1..4 {
        let mut star = Star::new(4);
        star.kill(rank);
        let cause = star.cause().unwrap();
        assert_eq!(cause.kind, Kind::Lost { rank });
    }
}

#[test]
fn a_killed_rank_0_is_lost_to_each() {
    let mut star = Star::new(3);
    star.kill(0);
    for cause in &star.causes[1..] {
        assert_eq!(cause.as_ref().unwrap().kind, Kind::Lost { rank: 0 });
    }
}

#[test]
fn leaving_in_any_order_is_no_failure() {
    for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0]] {
        let mut star = Star::new(3);
        for rank in order {
            star.rank(rank).leave();
            star.settle();
        }
        assert_eq!(star.cause(), None, "{order:?}");
    }
}

#[test]
fn an_abort_after_rank_0_has_left_is_known_here_at_least() {
    let mut star = Star::new(3);
    star.rank(0).leave();
    star.settle();
    star.rank(1).abort(other(1));
    star.settle();
    assert_eq!(star.causes, [None, Some(other(1)), None]);
}

#[test]
fn a_report_that_rank_0_cannot_answer_counts() {
    let mut life = Life::new(1, [0]);
    life.abort(other(1));
    assert!(matches!(
        life.act(),
        Some(Act::Send(0, Frame::Abort { .. }))
    ));
    life.closed(0);
    let acts: Vec<Act> = std::iter::from_fn(|| life.act()).collect();
    assert_eq!(acts, [Act::Close(0), Act::Failed(other(1))]);
}

#[test]
fn silence_is_loss_and_any_word_is_none() {
    let mut life = Life::new(0, [1, 2]);
    for _ in 0..SILENT_TICKS {
        life.tick();
    }
    life.heard(2, Frame::Heartbeat);
    while let Some(act) = life.act() {
        assert!(matches!(act, Act::Send(_, Frame::Heartbeat)));
    }
    life.tick();
    let acts: Vec<Act> = std::iter::from_fn(|| life.act()).collect();
    let lost = Cause::new(0, None, Kind::Lost { rank: 1 });
    assert!(acts.contains(&Act::Failed(lost.clone())));
    assert!(acts.contains(&Act::Send(2, abort_of(&lost))));
}
