//! When whoever watches an election asks the voters, and what is new to it.

use std::time::Duration;

use super::{Backoff, Quorum, Votes, WhoLeads};
use crate::proto::{Leader, Moment, Verdict};

/// So long after the first call the others may come: mostly a change is told by all voters.
const GATHER: Duration = Duration::from_millis(5);

/// One who watches.
#[derive(Clone, Debug)]
pub struct LeaderWatch {
    quorum: Quorum,
    poll: Duration,
    /// When it asks next, if nobody calls.
    due: Moment,
    /// Where connections break again and again.
    after_loss: Backoff,
    /// Some voter has called since it last asked.
    is_called: bool,
    /// Calls may have been lost since then.
    has_missed: bool,
    told: Option<WhoLeads>,
    /// The latest that was heard of a leader, with its version.
    latest: Option<(Leader, u64)>,
}

/// What it does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchNext {
    Ask,
    /// Until then, or until a voter calls.
    Wait(Moment),
}

impl LeaderWatch {
    /// It asks at once.
    pub fn start(quorum: Quorum, poll: Duration, now: Moment) -> Self {
        let after_loss = Backoff::new(Duration::from_millis(1), Duration::from_millis(500));
        Self {
            quorum,
            poll,
            due: now,
            after_loss,
            is_called: false,
            has_missed: false,
            told: None,
            latest: None,
        }
    }

    /// `called`: the voters that have called since it last asked. A change that lasts is one at a
    /// majority, and some of them may still be about to tell it.
    pub fn next(&mut self, now: Moment, called: &[bool]) -> WatchNext {
        let mut votes = Votes::new(self.quorum);
        let hears = !crate::mutant!("observer_hears_nobody");
        let called = called.iter().enumerate().filter(|(_, called)| **called && hears);
        for (voter, _) in called {
            votes.record(voter, Verdict::Granted);
            if !std::mem::replace(&mut self.is_called, true) {
                self.due = self.due.min(now + GATHER);
            }
        }
        if votes.is_won() || now >= self.due { WatchNext::Ask } else { WatchNext::Wait(self.due) }
    }

    /// It asks now.
    pub fn ask(&mut self, now: Moment) {
        if !self.is_called && !self.has_missed {
            // Nothing was lost for as long as it waited.
            self.after_loss.reset();
        }
        (self.is_called, self.has_missed) = (false, false);
        self.due = now + self.poll;
    }

    /// It is known to hear the voters: what changed before was not heard.
    pub fn hears(&mut self, now: Moment) {
        self.due = now;
    }

    /// Calls may have been lost.
    pub fn miss(&mut self, now: Moment, chance: u32) {
        if !std::mem::replace(&mut self.has_missed, true) {
            self.due = self.due.min(now + self.after_loss.pause(chance));
        }
    }

    /// What the voters said, if it is new.
    pub fn tell(&mut self, finding: WhoLeads) -> Option<WhoLeads> {
        let finding = self.not_earlier(finding);
        let is_known = match (&self.told, &finding) {
            // Only the version is another.
            (Some(WhoLeads::Led { leader: told, .. }), WhoLeads::Led { leader, .. }) => {
                told == leader
            }
            (told, finding) => told.as_ref() == Some(finding),
        };
        if is_known {
            return None;
        }
        self.told = Some(finding.clone());
        Some(finding)
    }

    /// Those that were heard this time may not have stored yet what others have.
    fn not_earlier(&mut self, finding: WhoLeads) -> WhoLeads {
        let WhoLeads::Led { leader, version } = &finding else { return finding };
        match &self.latest {
            Some((latest, known)) if latest.hold() == leader.hold() && known > version => {
                WhoLeads::Led { leader: latest.clone(), version: *known }
            }
            _ => {
                self.latest = Some((leader.clone(), *version));
                finding
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{HoldId, LeaderValue, Token, at};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn watch() -> LeaderWatch {
        let mut watch = LeaderWatch::start(Quorum::of(3), MS(2_000), at(0));
        assert_eq!(watch.next(at(0), &[false; 3]), WatchNext::Ask);
        watch.ask(at(0));
        watch
    }

    fn led(hold: &str, version: u64, value: &str) -> WhoLeads {
        let value = LeaderValue::new(value.as_bytes()).unwrap();
        let leader = Leader::new(HoldId::parse(hold), Token::new(7).unwrap(), value);
        WhoLeads::Led { leader, version }
    }

    #[test]
    fn without_a_call_it_asks_by_the_poll_interval() {
        let mut watch = watch();
        assert_eq!(watch.next(at(1), &[false; 3]), WatchNext::Wait(at(2_000)));
        assert_eq!(watch.next(at(2_000), &[false; 3]), WatchNext::Ask);
    }

    #[test]
    fn it_asks_when_a_majority_has_called_or_soon_after_the_first() {
        let mut watch = watch();
        let one = [true, false, false];
        assert_eq!(watch.next(at(10), &one), WatchNext::Wait(at(15)));
        assert_eq!(watch.next(at(12), &one), WatchNext::Wait(at(15)), "from the first call");
        assert_eq!(watch.next(at(12), &[true, false, true]), WatchNext::Ask);
        assert_eq!(watch.next(at(15), &one), WatchNext::Ask);
        watch.ask(at(15));
        assert_eq!(watch.next(at(16), &[false; 3]), WatchNext::Wait(at(2_015)));
        assert_eq!(watch.next(at(16), &one), WatchNext::Wait(at(21)), "called while it asked");
    }

    #[test]
    fn it_asks_when_it_is_heard_and_after_a_loss_with_pauses_that_grow() {
        let mut watch = watch();
        watch.hears(at(3));
        assert_eq!(watch.next(at(3), &[false; 3]), WatchNext::Ask);
        for pause in [1, 2, 4] {
            watch.ask(at(10));
            watch.miss(at(10), 0);
            watch.miss(at(10), 0);
            assert_eq!(watch.next(at(10), &[false; 3]), WatchNext::Wait(at(10 + pause)));
        }
        watch.ask(at(10));
        watch.ask(at(2_010));
        watch.miss(at(2_020), 0);
        let again = WatchNext::Wait(at(2_021));
        assert_eq!(watch.next(at(2_020), &[false; 3]), again, "nothing was lost meanwhile");
    }

    #[test]
    fn what_is_known_is_told_once_and_a_value_never_goes_back() {
        let mut watch = watch();
        let mut tells = |finding: WhoLeads| watch.tell(finding.clone()) == Some(finding);
        assert!(tells(WhoLeads::Vacant) && !tells(WhoLeads::Vacant));
        assert!(tells(led("a", 1, "x")) && !tells(led("a", 1, "x")));
        assert!(!tells(led("a", 2, "x")), "a renewal says the same");
        assert!(tells(led("a", 3, "y")) && !tells(led("a", 1, "x")));
        assert!(tells(WhoLeads::Unclear));
        let after = watch.tell(led("a", 1, "x"));
        assert_eq!(after, Some(led("a", 3, "y")), "also after a silence");
        assert_eq!(watch.tell(led("b", 1, "x")), Some(led("b", 1, "x")));
    }
}
