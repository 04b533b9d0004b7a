//! What goes wrong, on purpose, between connections and a voter.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::sent::Sent;

/// Something that goes wrong with the requests to one voter.
///
/// Faults in force together add up: delays are added, and the worst of the others wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The way takes longer; messages of channels take the way `back` too. As on any connection
    /// what was sent later arrives later, however short its own delay.
    Delay {
        /// What a request takes to arrive.
        there: Duration,
        /// What its answer takes to arrive.
        back: Duration,
    },
    /// A request never arrives: no answer by the caller's deadline.
    DropRequests,
    /// A request runs, its answer never arrives. Nor do messages of channels, while the fault is
    /// in force for an unlimited number of requests.
    DropReplies,
    /// A request breaks its connection and does not run. The connection stands again at once;
    /// whatever else was under way on it is lost.
    CutBeforeRun,
    /// A request runs, then breaks its connection, likewise.
    CutAfterRun,
    /// A script runs twice, back to back, as if the request had been sent again on its way; the
    /// answer is that of the first run.
    RunTwice,
    /// The voter has no room: a script fails if its first write could take memory, as on a server
    /// that has reached its `maxmemory`.
    NoRoom,
}

/// The faults in force.
#[derive(Debug, Default)]
pub(super) struct FaultRules {
    in_force: BTreeMap<u64, Rule>,
    next: u64,
    /// Who decides about each request and message besides.
    pub(super) each: Option<Each>,
}

#[derive(Debug)]
struct Rule {
    fault: Fault,
    /// How many requests it is still for; `None`: all until the rule is taken away.
    left: Option<u64>,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) there: Duration,
    pub(super) back: Duration,
    pub(super) twice: bool,
    pub(super) no_room: bool,
    pub(super) trouble: FaultTrouble,
}

/// What keeps a request from being answered; the worst comes last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FaultTrouble {
    #[default]
    None,
    ReplyLost,
    CutAfterRun,
    CutBeforeRun,
    RequestLost,
}

impl FaultRules {
    pub(super) fn add(&mut self, fault: Fault, left: Option<u64>) -> u64 {
        self.next += 1;
        self.in_force.insert(self.next, Rule { fault, left });
        self.next
    }

    pub(super) fn remove(&mut self, rule: u64) {
        self.in_force.remove(&rule);
    }

    /// The fate of the request that is sent now.
    pub(super) fn fate(&mut self, sent: &Sent<'_>) -> Fate {
        let mut fate = Fate::default();
        self.in_force.retain(|_, rule| {
            if rule.left != Some(0) {
                fate.suffer(rule.fault);
            }
            rule.left = rule.left.map(|left| left.saturating_sub(1));
            rule.left != Some(0)
        });
        self.decided(sent).into_iter().for_each(|fault| fate.suffer(fault));
        fate
    }

    /// How long a channel's message takes to its listener; `None`: it never arrives. It counts as
    /// no request.
    pub(super) fn way_of_message(&mut self, sent: &Sent<'_>) -> Option<Duration> {
        let decided = self.decided(sent);
        let lasting = self.in_force.values().filter(|rule| rule.left.is_none());
        let (mut back, mut arrives) = (Duration::ZERO, !decided.contains(&Fault::DropRequests));
        for fault in lasting.map(|rule| rule.fault).chain(decided) {
            match fault {
                Fault::Delay { back: more, .. } => back += more,
                Fault::DropReplies => arrives = false,
                Fault::DropRequests
                | Fault::CutBeforeRun
                | Fault::CutAfterRun
                | Fault::RunTwice
                | Fault::NoRoom => {}
            }
        }
        arrives.then_some(back)
    }

    fn decided(&mut self, sent: &Sent<'_>) -> Vec<Fault> {
        self.each.as_mut().map_or_else(Vec::new, |each| each.decide(sent))
    }
}

impl Fate {
    fn suffer(&mut self, fault: Fault) {
        let trouble = match fault {
            Fault::Delay { there, back } => {
                self.there += there;
                self.back += back;
                FaultTrouble::None
            }
            Fault::RunTwice => {
                self.twice = true;
                FaultTrouble::None
            }
            Fault::NoRoom => {
                self.no_room = true;
                FaultTrouble::None
            }
            Fault::DropRequests => FaultTrouble::RequestLost,
            Fault::DropReplies => FaultTrouble::ReplyLost,
            Fault::CutBeforeRun => FaultTrouble::CutBeforeRun,
            Fault::CutAfterRun => FaultTrouble::CutAfterRun,
        };
        self.trouble = self.trouble.max(trouble);
    }
}

/// Whom [`EmbeddedVoter::fault_each`] put there.
pub(super) struct Each(Box<Decide>);

type Decide = dyn FnMut(&Sent<'_>) -> Vec<Fault> + Send;

impl Each {
    pub(super) fn new(decide: impl FnMut(&Sent<'_>) -> Vec<Fault> + Send + 'static) -> Self {
        Self(Box::new(decide))
    }

    pub(super) fn decide(&mut self, sent: &Sent<'_>) -> Vec<Fault> {
        self.0(sent)
    }
}

impl fmt::Debug for Each {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Each")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Fault =
        Fault::Delay { there: Duration::from_millis(2), back: Duration::from_millis(3) };

    fn request() -> Sent<'static> {
        Sent::of("1", None, false)
    }

    fn message() -> Sent<'static> {
        Sent::of("1", None, true)
    }

    #[test]
    fn delays_add_up_and_the_worst_trouble_wins() {
        let mut rules = FaultRules::default();
        for fault in [DELAY, Fault::CutAfterRun, Fault::RunTwice, DELAY, Fault::DropReplies] {
            rules.add(fault, None);
        }
        rules.add(Fault::NoRoom, Some(1));
        let (there, back) = (Duration::from_millis(4), Duration::from_millis(6));
        let fate =
            Fate { there, back, twice: true, no_room: true, trouble: FaultTrouble::CutAfterRun };
        assert_eq!(rules.fate(&request()), fate);
        assert_eq!(rules.way_of_message(&message()), None, "cuts do not save a message");
    }

    #[test]
    fn a_message_takes_all_delays_and_is_lost_by_what_loses_replies_and_by_what_was_decided() {
        let mut rules = FaultRules::default();
        for fault in [DELAY, Fault::DropRequests] {
            rules.add(fault, None);
        }
        for (decided, way) in [
            (vec![], Some(Duration::from_millis(3))),
            (vec![DELAY, Fault::CutBeforeRun], Some(Duration::from_millis(6))),
            (vec![DELAY, Fault::DropReplies], None),
            (vec![Fault::DropRequests], None),
        ] {
            rules.each = Some(Each::new(move |_| decided.clone()));
            assert_eq!(rules.way_of_message(&message()), way);
        }
    }

    #[test]
    fn a_limited_fault_is_for_requests_alone_and_ends_by_itself() {
        let mut rules = FaultRules::default();
        rules.add(Fault::DropReplies, Some(2));
        assert_eq!(rules.way_of_message(&message()), Some(Duration::ZERO));
        let troubles = [(); 3].map(|()| rules.fate(&request()).trouble);
        assert_eq!(
            troubles,
            [FaultTrouble::ReplyLost, FaultTrouble::ReplyLost, FaultTrouble::None]
        );
        assert!(rules.in_force.is_empty());
    }
}
