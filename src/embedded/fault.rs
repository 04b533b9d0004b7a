//! What goes wrong, on purpose, between clients and a voter.

use std::{collections::BTreeMap, time::Duration};

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

/// What becomes of the requests that are on their way as their connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InFlight {
    /// They never run.
    Lost,
    /// Scripts run when they would have arrived, and nobody hears the answers: possibly after what
    /// was sent later, on the new connection, as a server may read the old one later.
    Arrives,
}

/// Something on its way between a client and an embedded voter, as
/// [`EmbeddedVoter::fault_each`](super::EmbeddedVoter::fault_each) tells it.
#[derive(Debug)]
pub struct Sent<'a> {
    pub(super) client: &'a str,
    pub(super) script: Option<&'static str>,
    pub(super) is_message: bool,
}

impl Sent<'_> {
    /// Which client sends it, or is to hear the message; as in [`Ran::client`](super::Ran::client).
    pub fn client(&self) -> &str {
        self.client
    }

    /// The script's name, `mutex/acquire` for one; `None` where no script is asked for.
    pub fn script(&self) -> Option<&'static str> {
        self.script
    }

    /// Whether it is a message on a channel to one that listens, and no request.
    pub fn is_message(&self) -> bool {
        self.is_message
    }
}

/// Decides about each request and message; see [`super::EmbeddedVoter::fault_each`].
pub(super) type Decide = dyn FnMut(&Sent<'_>) -> Vec<Fault> + Send;

/// The faults in force.
#[derive(Default)]
pub(super) struct FaultRules {
    in_force: BTreeMap<u64, Rule>,
    next: u64,
    pub(super) each: Option<Box<Decide>>,
}

struct Rule {
    fault: Fault,
    /// How many requests it is still for; `None`: all until the rule is taken away.
    left: Option<u64>,
}

/// The faults that act on one request, or on one message.
#[derive(Debug)]
pub(super) struct Fate(Vec<Fault>);

impl FaultRules {
    pub(super) fn add(&mut self, fault: Fault, left: Option<u64>) -> u64 {
        self.next += 1;
        self.in_force.insert(self.next, Rule { fault, left });
        self.next
    }

    pub(super) fn remove(&mut self, rule: u64) {
        self.in_force.remove(&rule);
    }

    /// The fate of what is sent now.
    pub(super) fn decide_fate(&mut self, sent: &Sent<'_>) -> Fate {
        let mut faults = Vec::new();
        if sent.is_message {
            // It is no request: it uses none up, and is lost with the way back alone.
            let lasting = self.in_force.values().filter(|rule| rule.left.is_none());
            let lasting = lasting.map(|rule| rule.fault);
            faults.extend(lasting.filter(|fault| *fault != Fault::DropRequests));
        } else {
            self.in_force.retain(|_, rule| {
                if rule.left != Some(0) {
                    faults.push(rule.fault);
                }
                rule.left = rule.left.map(|left| left.saturating_sub(1));
                rule.left != Some(0)
            });
        }
        if let Some(decide) = &mut self.each {
            faults.extend(decide(sent));
        }
        Fate(faults)
    }
}

impl Fate {
    pub(super) fn has(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }

    /// What the way to the voter takes.
    pub(super) fn there(&self) -> Duration {
        self.delays().map(|(there, _)| there).sum()
    }

    /// What the way back takes.
    pub(super) fn back(&self) -> Duration {
        self.delays().map(|(_, back)| back).sum()
    }

    fn delays(&self) -> impl Iterator<Item = (Duration, Duration)> {
        self.0.iter().filter_map(|fault| match fault {
            Fault::Delay { there, back } => Some((*there, *back)),
            _ => None,
        })
    }
}
