//! When to look for messages that nobody here expects: once nothing has moved for [`PATIENCE`].
//!
//! Such a message tells of a peer that calls something else, or of one that is merely ahead. In the midst of small operations
//! peers often are, and looking for what they send would cost wake-ups and system calls for nothing: so whoever waits a short
//! time looks and sleeps as if there were no such messages.
//!
//! Time is that of the host, as whoever minds the deadlines tells it.

use std::time::Duration;

use unisono_contract::Time;

/// How long nothing moves before unexpected messages are looked for.
pub(super) const PATIENCE: Duration = Duration::from_millis(10);

/// How long nothing has moved, while operations are under way.
#[derive(Debug)]
pub(super) struct Patience {
    quiet: Quiet,
    /// When to look, as told last.
    look: Option<Time>,
    /// When the alarm that is set for a look goes off.
    alarm: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quiet {
    /// As far as the clock has been looked at, not at all.
    No,
    /// Since then, and not for long.
    Since(Time),
    /// Long enough.
    Long,
    /// No matter: no transport can tell.
    Never,
}

impl Patience {
    /// `can_tell`: whether any transport tells of unexpected messages.
    pub(super) fn new(can_tell: bool) -> Patience {
        Patience {
            quiet: if can_tell { Quiet::No } else { Quiet::Never },
            look: None,
            alarm: None,
        }
    }

    /// Something moved.
    #[inline]
    pub(super) fn moved(&mut self) {
        if self.quiet != Quiet::Never {
            self.quiet = Quiet::No;
        }
    }

    /// Whether unexpected messages are to be looked for before sleeping.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.quiet == Quiet::Long
    }

    /// Nothing moved up to now: when not to sleep beyond. That is at once when patience has just ended.
    pub(super) fn until(&mut self, now: Time) -> Option<Time> {
        let since = match self.quiet {
            Quiet::Long | Quiet::Never => return None,
            Quiet::No => now,
            Quiet::Since(since) => since,
        };
        let look = since + PATIENCE;
        self.quiet = if now < look {
            Quiet::Since(since)
        } else {
            Quiet::Long
        };
        self.look = Some(look.max(now));
        self.look
    }

    /// Where the alarm for `at` is noted, if it is one for a look. Apart from others: a look comes often, and would push
    /// the note of a deadline far ahead aside, whose alarm goes off all the same.
    pub(super) fn alarm(&mut self, at: Time) -> Option<&mut Option<Time>> {
        (self.look == Some(at)).then_some(&mut self.alarm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::default() + Duration::from_millis(millis)
    }

    #[test]
    fn patience_ends_once_and_begins_anew_when_something_moves() {
        let mut patience = Patience::new(true);
        for began in [0, 100] {
            assert_eq!(patience.until(at(began)), Some(at(began + 10)));
            assert_eq!(patience.until(at(began + 9)), Some(at(began + 10)));
            assert!(!patience.is_over());
            assert_eq!(patience.until(at(began + 12)), Some(at(began + 12)));
            assert!(patience.is_over());
            assert_eq!(patience.until(at(began + 13)), None);
            patience.moved();
            assert!(!patience.is_over());
        }
    }

    #[test]
    fn where_no_transport_can_tell_there_is_nothing_to_wake_for() {
        let mut patience = Patience::new(false);
        for millis in [0, 100] {
            assert_eq!(patience.until(at(millis)), None);
            patience.moved();
            assert!(!patience.is_over());
        }
    }

    #[test]
    fn alarms_of_looks_are_not_those_of_deadlines() {
        let mut patience = Patience::new(true);
        let look = patience.until(at(0)).expect("a time");
        assert_eq!(patience.alarm(look), Some(&mut None));
        assert_eq!(patience.alarm(at(300_000)), None);
    }
}
