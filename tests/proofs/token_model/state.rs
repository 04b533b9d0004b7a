//! What there is: voters, clients, and what is under way between them.

use std::hash::{Hash, Hasher};

use crate::token_model::{
    requests::{Kind, Request, Requests},
    rules::{Broken, Budget, Rules, Start},
};

pub(crate) const VOTERS: usize = 3;
pub(crate) const QUORUM: usize = VOTERS / 2 + 1;
/// A model may have fewer; the others never do anything.
pub(crate) const MOST_CLIENTS: usize = 3;

/// One moment. All times are what is left or has passed, never dates, so that equal situations at
/// different times are one state; and voters are in the order of what they contain, so that
/// situations that differ by the voters' names are one state as well.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) voters: [Voter; VOTERS],
    /// What a path calls the voters. No part of the situation.
    pub(crate) names: [u8; VOTERS],
    pub(crate) clients: [Client; MOST_CLIENTS],
    pub(crate) budget: Budget,
    /// The highest token that was handed out.
    pub(crate) highest: u8,
    /// One was handed out that was not higher.
    pub(crate) fell: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Voter {
    pub(crate) record: Option<Record>,
    pub(crate) counter: u8,
    /// For how long its votes do not count towards a new hold.
    pub(crate) quarantine: u8,
    pub(crate) lines: [Line; MOST_CLIENTS],
}

/// Who has a voter's vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Record {
    pub(crate) hold: Hold,
    pub(crate) left: u8,
}

/// One acquisition by one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Hold {
    pub(crate) client: u8,
    pub(crate) number: u8,
}

/// What is between one client and one voter, and what the client knows of the voter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line {
    /// Requests under way; the voter gets them in this order.
    pub(crate) requests: Requests,
    /// The answer under way to the round that the client is in, if it may count: a refusal, or an
    /// answer that is lost, is one that is never heard. A later one comes in its place.
    pub(crate) reply: Answer,
    /// The answer that the client has heard in this round.
    pub(crate) heard: Answer,
    /// How long ago the request was sent that got the last vote which the client heard and counted
    /// for this hold. Kept only as long as it may prove something.
    pub(crate) proof: Option<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    #[default]
    None,
    /// With the voter's counter.
    Granted(u8),
    /// Granted by a voter in quarantine, of which so much was left: does not count.
    Uncounted { counter: u8, left: u8 },
    /// Refused, but the token is stored: only where that rule is broken.
    Stored,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Client {
    /// Attempts so far.
    pub(crate) attempts: u8,
    pub(crate) phase: Phase,
}

/// Ages are counted from before the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Asking {
        age: u8,
    },
    /// A majority has granted, and this token is not yet stored by one.
    Storing {
        age: u8,
        token: u8,
    },
    Holding {
        /// Until the deadline.
        left: u8,
        token: u8,
        /// The age of the round of renewal that is under way.
        round: Option<u8>,
    },
}

impl State {
    pub(crate) fn first(rules: &Rules) -> Self {
        let mut state = Self {
            voters: [Voter::default(); VOTERS],
            names: [1, 2, 3],
            clients: [Client::default(); MOST_CLIENTS],
            budget: rules.bounds.budget,
            highest: 0,
            fell: false,
        };
        match rules.bounds.start {
            Start::Free(counters) => {
                let mut ordered = counters;
                ordered.sort_unstable();
                state.highest = ordered[VOTERS - QUORUM];
                for (voter, counter) in state.voters.iter_mut().zip(counters) {
                    voter.counter = counter;
                }
            }
            Start::Held(by) => state.give_to_the_first(by, rules),
        }
        state.put_in_order();
        state
    }

    fn give_to_the_first(&mut self, by: usize, rules: &Rules) {
        self.ask(0, rules);
        for voter in 0..by {
            self.voters[voter].run_next(0, self.client(0), rules);
        }
        (0..by).for_each(|voter| self.hear(0, voter, rules));
        for voter in &mut self.voters[..by] {
            // What it did not have to hear, for it had won, it heard all the same.
            voter.line_mut(0).proof = Some(0);
        }
        for voter in &mut self.voters[by..] {
            voter.line_mut(0).requests.pop();
        }
    }

    /// Everything that tells two situations apart.
    fn situation(&self) -> (&[Voter; VOTERS], &[Client; MOST_CLIENTS], &Budget, u8, bool) {
        (&self.voters, &self.clients, &self.budget, self.highest, self.fell)
    }

    /// Takes away what changes nothing whenever it arrives, and what proves nothing any more.
    pub(crate) fn drop_void(&mut self, rules: &Rules) {
        for voter in &mut self.voters {
            let record = voter.record.map(|record| record.hold);
            let since = voter.since_it_forgot(rules);
            for (line, client) in voter.lines.iter_mut().zip(0..) {
                let is_void = |it: Request| {
                    it.kind == Kind::Release && record != Some(Hold { client, number: it.number })
                };
                while line.requests.first().is_some_and(is_void) {
                    line.requests.pop();
                }
                line.proof = line.proof.filter(|sent| rules.proves(*sent, since));
            }
        }
    }

    /// Puts the voters in order, each with its name.
    pub(crate) fn put_in_order(&mut self) {
        for (left, right) in [(0, 1), (1, 2), (0, 1)] {
            if self.voters[left] > self.voters[right] {
                self.voters.swap(left, right);
                self.names.swap(left, right);
            }
        }
    }

    pub(crate) fn client(&self, client: u8) -> Client {
        self.clients[usize::from(client)]
    }

    pub(crate) fn client_mut(&mut self, client: u8) -> &mut Client {
        &mut self.clients[usize::from(client)]
    }

    pub(crate) fn lines(&self, client: u8) -> impl Iterator<Item = &Line> {
        self.voters.iter().map(move |voter| voter.line(client))
    }

    pub(crate) fn lines_mut(&mut self, client: u8) -> impl Iterator<Item = &mut Line> {
        self.voters.iter_mut().map(move |voter| voter.line_mut(client))
    }

    /// Nobody asks, holds or waits for anything to arrive.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.clients.iter().all(|client| client.phase == Phase::Idle)
            && self.voters.iter().flat_map(|it| &it.lines).all(|line| line.requests.is_empty())
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.situation() == other.situation()
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.situation().hash(hasher);
    }
}

impl Rules {
    /// A vote asked for so long ago was there when the voter forgot; or it will be, if the voter
    /// forgets now.
    pub(crate) fn proves(&self, sent: u8, forgot: u8) -> bool {
        let to_the_last = u8::from(self.breaks(Broken::ProofToTheLastTick));
        sent < forgot + self.lease + to_the_last
    }
}

impl Voter {
    pub(crate) fn line(&self, client: u8) -> &Line {
        &self.lines[usize::from(client)]
    }

    pub(crate) fn line_mut(&mut self, client: u8) -> &mut Line {
        &mut self.lines[usize::from(client)]
    }

    pub(crate) fn is_held_by(&self, hold: Hold) -> bool {
        self.record.is_some_and(|record| record.hold == hold)
    }

    /// Zero where it did not, or no quarantine tells of it any more.
    pub(crate) fn since_it_forgot(&self, rules: &Rules) -> u8 {
        if self.quarantine > 0 { rules.quarantine - self.quarantine } else { 0 }
    }
}

impl Line {
    pub(crate) fn send(&mut self, kind: Kind, hold: Hold, token: u8) {
        let awaited = kind != Kind::Release;
        self.requests.push(Request { kind, number: hold.number, token, awaited });
    }

    /// The client's round is over: it listens to no answer any more.
    pub(crate) fn forget_round(&mut self) {
        self.requests = self.requests.unawaited();
        (self.reply, self.heard) = (Answer::None, Answer::None);
    }
}

impl Answer {
    pub(crate) fn counter(self) -> Option<u8> {
        match self {
            Self::Granted(counter) => Some(counter),
            _ => None,
        }
    }
}

impl Client {
    /// The hold that its last attempt is for.
    pub(crate) fn hold(self, client: u8) -> Hold {
        Hold { client, number: self.attempts }
    }

    pub(crate) fn holds(self) -> bool {
        matches!(self.phase, Phase::Holding { left: 1.., .. })
    }
}
