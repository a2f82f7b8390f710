//! Giving the core away before sleeping, where ranks share cores.
//!
//! A rank that sleeps has to be woken: that costs its peer an interrupt and itself a switch, as much as all the rest of a
//! small exchange. A rank that yields instead lets the others run, and finds their messages when its turn comes again. Beside
//! *other* busy programs the turn comes milliseconds later, so whoever has to wait long for it does not try again for some
//! time, and the next time for longer.

use std::time::Duration;

use crate::host::Time;

/// Turns given away in one wait. With nobody else to run a turn comes back in less than a microsecond, so they bound the
/// spinning too.
const TURNS: u32 = 10;
/// A turn that comes back later was taken by another program: ranks of a group need less between two waits.
const LATE: Duration = Duration::from_micros(500);
/// How long not to try after a late turn: at first, and at most.
const HOLD: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Whether to yield or to sleep.
#[derive(Debug, Default)]
pub(crate) struct Yielding {
    left: u32,
    hold: Duration,
    until: Time,
}

impl Yielding {
    /// The wait was for something: the next one begins.
    pub(crate) fn progressed(&mut self) {
        self.left = TURNS;
    }

    /// Gives one turn away, if that is a good idea now; else it is time to sleep.
    pub(crate) fn instead_of_sleep(
        &mut self,
        clock: impl Fn() -> Time,
        give: impl FnOnce(),
    ) -> bool {
        if self.left == 0 {
            return false;
        }
        let now = clock();
        if now < self.until {
            return false;
        }
        self.left -= 1;
        give();
        let back = clock();
        self.took(back, back.since(now));
        true
    }

    fn took(&mut self, now: Time, turn: Duration) {
        if turn > LATE {
            self.hold = (self.hold * 2).clamp(HOLD.0, HOLD.1);
            self.until = now + self.hold;
            self.left = 0;
        } else {
            self.hold -= self.hold / 1024; // Forgiven slowly: most turns are good even beside others.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::default() + Duration::from_millis(millis)
    }

    #[test]
    fn a_wait_sleeps_after_its_turns() {
        let mut yielding = Yielding::default();
        for _ in 0..2 {
            yielding.progressed();
            let turns = (0..100).filter(|_| yielding.instead_of_sleep(|| at(0), || ()));
            assert_eq!(turns.count(), TURNS as usize);
        }
    }

    #[test]
    fn who_waits_long_for_its_turn_holds_back_twice_as_long_each_time() {
        let mut yielding = Yielding::default();
        for hold in [10, 20, 40, 80, 160, 320, 640, 1000, 1000] {
            yielding.progressed();
            yielding.took(at(0), LATE * 2);
            yielding.progressed();
            assert!(
                !yielding.instead_of_sleep(|| at(hold * 9 / 10), || ()),
                "{hold} ms"
            );
            assert!(yielding.instead_of_sleep(|| at(hold), || ()), "{hold} ms");
        }
        for _ in 0..10_000 {
            yielding.took(at(0), Duration::ZERO);
        }
        yielding.took(at(0), LATE * 2);
        yielding.progressed();
        assert!(yielding.instead_of_sleep(|| at(10), || ()), "forgiven");
    }
}
