//! Faults that a test plants between clients and a voter, and what a test sees of the scripts that
//! run.

use std::{collections::BTreeMap, time::Duration};

use super::{
    commands::Reply,
    data::{Keyspace, Record},
};
use crate::voter::Call;

/// Something that goes wrong with the requests to one voter.
///
/// Faults in force together add up: delays are added, and of the others the worst happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Requests and answers take longer. Messages of channels take the way `back` too. As on any
    /// connection, what was sent later arrives later, however short its own delay.
    Delay {
        /// How long a request takes to arrive.
        there: Duration,
        /// How long its answer takes to arrive.
        back: Duration,
    },
    /// A request never arrives: its caller has no answer by its deadline.
    DropRequests,
    /// A request runs, but its answer never arrives. If the fault is in force for an unlimited
    /// number of requests, messages of channels do not arrive either.
    DropReplies,
    /// A request breaks its connection and does not run. The client is connected again at once, but
    /// everything else that was under way on the connection is lost.
    CutBeforeRun,
    /// A request runs, and then breaks its connection as [`CutBeforeRun`](Self::CutBeforeRun) does.
    CutAfterRun,
    /// A script runs twice in a row, as if the request had been sent twice. The answer is the one
    /// of the first run.
    RunTwice,
    /// The voter has no room: a script fails if its first write could take memory, as on a server
    /// that has reached its `maxmemory`.
    NoRoom,
}

/// What happens to the requests that are under way when their connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InFlight {
    /// They never run.
    Lost,
    /// Scripts run when they would have arrived, and nobody hears the answers. They may run after
    /// requests that were sent later on the new connection, as a server may read the old connection
    /// later.
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
    /// The client that sends the request, or that the message is for, as in
    /// [`Ran::client`](super::Ran::client).
    pub fn client(&self) -> &str {
        self.client
    }

    /// The script's name, such as `mutex/acquire`; `None` if it is no request for a script.
    pub fn script(&self) -> Option<&'static str> {
        self.script
    }

    /// Whether it is a message of a channel to a listener, and no request.
    pub fn is_message(&self) -> bool {
        self.is_message
    }

    /// Whether it is a client's regular look at who the voter is.
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
    /// For how many more requests it is in force; `None`: until the rule is removed.
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

    /// The faults of a request or a message that is sent now.
    pub(super) fn faults_of(&mut self, sent: &Sent<'_>) -> Vec<Fault> {
        let mut faults = Vec::new();
        if sent.is_message || sent.is_look {
            // `fault_next(1, ..)` is meant for a request that the test makes. A message, or a look
            // of a client by itself, would use it up at a moment that no test can see.
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

/// The delay of the way to the voter, and of the way back.
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
    /// Has this request alone.
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

    /// The script's name, such as `mutex/acquire`.
    pub fn script(&self) -> &'static str {
        self.call.script.name
    }

    /// Its part of `KEYS`.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.call.keys()
    }

    /// Its part of `ARGV`, with the names in the script's header.
    pub fn args(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Call { script, shared, .. } = self.call;
        // The node adds the argument `publish`, so a call does not have it.
        let names =
            script.shared.iter().filter(|name| **name != "publish").chain(script.args.iter());
        let args = shared.iter().map(|arg| &**arg).chain(self.call.args());
        names.copied().zip(args)
    }

    /// The argument with this name; `None` if the script takes none of this name.
    pub fn arg(&self, name: &str) -> Option<&str> {
        self.args().find_map(|(label, arg)| (label == name).then_some(arg))
    }

    /// The beginning of its answer: `code, ms, id`. The header of the script says what they mean.
    ///
    /// # Errors
    ///
    /// The message with which the script failed as a whole, or that the reply has another shape.
    pub fn answer(&self) -> Result<(i64, i64, &str), &str> {
        if let Reply::List(entries) = self.reply.as_ref().map_err(String::as_str)?
            && let [Reply::Int(code), Reply::Int(ms), Reply::Text(id), ..] = entries.as_slice()
        {
            return Ok((*code, *ms, id));
        }
        Err("the reply does not begin with code, ms, id")
    }

    /// The rest of its answer, after these three.
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

    /// The live keys after this request, sorted.
    pub fn records(&self) -> Vec<Record> {
        self.keyspace.records().collect()
    }
}
