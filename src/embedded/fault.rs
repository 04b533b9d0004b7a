//! What a test does to a voter and sees of it: what goes wrong, on purpose, between clients and the
//! voter, and which scripts run.

use std::{collections::BTreeMap, time::Duration};

use super::{
    commands::Reply,
    data::{Keyspace, Record},
};
use crate::voter::Call;

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
    pub(super) is_look: bool,
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

    /// Whether a client looks who the voter is, as it does now and then by itself.
    pub fn is_look(&self) -> bool {
        self.is_look
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

impl FaultRules {
    pub(super) fn add(&mut self, fault: Fault, left: Option<u64>) -> u64 {
        self.next += 1;
        self.in_force.insert(self.next, Rule { fault, left });
        self.next
    }

    pub(super) fn remove(&mut self, rule: u64) {
        self.in_force.remove(&rule);
    }

    /// The faults that act on what is sent now, a request or a message.
    pub(super) fn decide_fate(&mut self, sent: &Sent<'_>) -> Vec<Fault> {
        let mut faults = Vec::new();
        if sent.is_message || sent.is_look {
            // A message is no request: it uses none up, and is lost with the way back alone. Nor
            // does a look use up what is meant for a request that somebody makes.
            let lasting = self.in_force.values().filter(|rule| rule.left.is_none());
            let lasting = lasting.map(|rule| rule.fault);
            faults.extend(lasting.filter(|fault| sent.is_look || *fault != Fault::DropRequests));
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
        faults
    }
}

/// What the way to the voter takes, and the way back.
pub(super) fn delays(faults: &[Fault]) -> (Duration, Duration) {
    faults.iter().fold((Duration::ZERO, Duration::ZERO), |(to, from), fault| match fault {
        Fault::Delay { there, back } => (to + *there, from + *back),
        _ => (to, from),
    })
}

/// A request for which a script ran, as
/// [`EmbeddedVoter::observe`](super::EmbeddedVoter::observe) tells it.
#[derive(Debug)]
pub struct Ran<'a> {
    pub(super) client: &'a str,
    /// Of this request alone.
    pub(super) call: &'a Call,
    pub(super) reply: &'a Result<Reply, String>,
    pub(super) again: bool,
    pub(super) keyspace: &'a Keyspace,
}

impl Ran<'_> {
    /// Which client sent it: the label of its machine, or the number of its connection.
    pub fn client(&self) -> &str {
        self.client
    }

    /// The script's name, `mutex/acquire` for one.
    pub fn script(&self) -> &'static str {
        self.call.script.name
    }

    /// What `KEYS` had of it.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.call.keys()
    }

    /// What `ARGV` had of it, by the names in the script's header.
    pub fn args(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Call { script, shared, .. } = self.call;
        let names =
            script.shared.iter().filter(|name| **name != "publish").chain(script.args.iter());
        let args = shared.iter().map(|arg| &**arg).chain(self.call.args());
        names.copied().zip(args)
    }

    /// The argument with this name; `None` where the script takes no such one.
    pub fn arg(&self, name: &str) -> Option<&str> {
        self.args().find_map(|(named, arg)| (named == name).then_some(arg))
    }

    /// Its answer begins with `code, ms, id`. What they mean stands at the top of the script's
    /// file.
    ///
    /// # Errors
    ///
    /// The message with which the script failed as a whole, or that the reply is of another shape.
    pub fn answer(&self) -> Result<(i64, i64, &str), &str> {
        if let Reply::List(entries) = self.reply.as_ref().map_err(String::as_str)?
            && let [Reply::Int(code), Reply::Int(ms), Reply::Text(id), ..] = entries.as_slice()
        {
            return Ok((*code, *ms, id));
        }
        Err("the reply does not begin with code, ms, id")
    }

    /// The entries of its answer behind these three.
    pub fn more(&self) -> &[Reply] {
        match self.reply {
            Ok(Reply::List(entries)) => entries.get(3..).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Whether it is the second run of one request, by [`Fault::RunTwice`](super::Fault::RunTwice).
    pub fn again(&self) -> bool {
        self.again
    }

    /// The live keys after it, sorted.
    pub fn records(&self) -> Vec<Record> {
        self.keyspace.records().collect()
    }
}
