//! What there is: voters, clients, and what is under way between them.

use std::hash::{Hash, Hasher};

use crate::model::{
    queue::{Kind, Queue, Request},
    rules::{Broken, Budget, Rules},
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
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Voter {
    pub(crate) record: Option<Record>,
    /// For how long its votes do not count towards a new hold.
    pub(crate) quarantine: u8,
    pub(crate) lines: [Line; MOST_CLIENTS],
}

/// Who has a voter's vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Record {
    pub(crate) hold: Hold,
    pub(crate) left: u8,
    /// The undo may have come too early, or will never come: given to a request that outlived its
    /// connection, or to a client that died.
    pub(crate) excused: bool,
}

/// One acquisition by one client. The smaller one wins a tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Hold {
    pub(crate) client: u8,
    pub(crate) number: u8,
}

/// What is between one client and one voter, and what the client knows of the voter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line {
    /// Requests under way; the voter gets them in this order.
    pub(crate) queue: Queue,
    /// Requests under way on connections that broke: each may yet run, unheard, or never.
    pub(crate) late: Queue,
    /// The answer under way to the round that the client is in. One that is lost is one that is
    /// never heard; one to an earlier round changes nothing, so there is none.
    pub(crate) reply: Answer,
    /// The answer that the client has heard in this round.
    pub(crate) heard: Answer,
    /// The voter may have granted in a round before this one.
    pub(crate) doubtful: bool,
    /// For how long the client knows that the hold has this vote, unless the voter forgets it.
    /// Kept only where the rules look at it.
    pub(crate) known: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    #[default]
    None,
    Granted,
    /// Granted by a voter in quarantine: counts for a renewal, not for a new hold.
    Uncounted,
    Refused(Hold),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Client {
    /// Attempts so far.
    pub(crate) attempts: u8,
    pub(crate) phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Asking {
        /// Since before the first request.
        age: u8,
    },
    Holding {
        /// Until the deadline.
        left: u8,
        /// The age of the round of renewal that is under way.
        round: Option<u8>,
        /// Another hold was won since this one was.
        interrupted: bool,
    },
}

impl State {
    pub(crate) fn first(rules: &Rules) -> Self {
        Self {
            voters: [Voter::default(); VOTERS],
            names: [1, 2, 3],
            clients: [Client::default(); MOST_CLIENTS],
            budget: rules.bounds.budget,
        }
    }

    /// Everything that tells two situations apart.
    fn situation(&self) -> (&[Voter; VOTERS], &[Client; MOST_CLIENTS], &Budget) {
        (&self.voters, &self.clients, &self.budget)
    }

    /// Takes away what changes nothing whenever it arrives: fewer orders to look at.
    pub(crate) fn drop_void(&mut self, rules: &Rules) {
        if rules.breaks(Broken::ReleaseOfAnybody) {
            return;
        }
        // Where nobody can ask again, a refusal that was heard differs from one that was not only
        // in an undo that finds nothing.
        if self.budget.rounds == 0 {
            let asking = self.clients.map(Client::is_asking);
            for line in self.voters.iter_mut().flat_map(|voter| voter.lines.iter_mut().zip(asking))
            {
                if let (Line { reply: reply @ Answer::Refused(_), .. }, true) = line {
                    *reply = Answer::None;
                }
            }
        }
        for voter in &mut self.voters {
            let record = voter.record.map(|record| record.hold);
            let lines = voter.lines.iter_mut().zip(0..);
            for (line, client) in lines.filter(|(line, _)| !line.is_quiet()) {
                line.drop_void(|number| record != Some(Hold { client, number }));
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

    pub(crate) fn client(&self, client: u8) -> &Client {
        &self.clients[usize::from(client)]
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

    /// The client asks for this hold or has it.
    pub(crate) fn is_owned(&self, hold: Hold, rules: &Rules) -> bool {
        let client = self.client(hold.client);
        client.phase != Phase::Idle && client.hold(hold.client, rules) == hold
    }

    /// Nobody asks, holds or waits for anything to arrive; what is late may be lost.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.clients.iter().all(|client| client.phase == Phase::Idle)
            && self.voters.iter().flat_map(|voter| &voter.lines).all(|line| line.queue.is_empty())
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
}

impl Line {
    pub(crate) fn send(&mut self, kind: Kind, hold: Hold) {
        let awaited = matches!(kind, Kind::Acquire | Kind::Renew);
        self.queue.push(Request { kind, number: hold.number, awaited });
    }

    /// The client's round is over: it listens to no answer any more.
    pub(crate) fn forget_round(&mut self) {
        self.queue = self.queue.unawaited();
        (self.reply, self.heard, self.doubtful) = (Answer::None, Answer::None, false);
    }

    /// The connection breaks. What was under way may yet arrive; what the voter is owed is sent
    /// again on the next connection.
    pub(crate) fn cut(&mut self, repeats: bool) {
        for request in self.queue.unawaited().iter() {
            self.late.push(request);
        }
        self.keep_debts(repeats);
    }

    fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.late.is_empty()
    }

    /// The first request gives back what is not there, and nothing before it on the other
    /// connection can bring it.
    fn drop_void(&mut self, is_absent: impl Fn(u8) -> bool) {
        while self.queue.first().is_some_and(|it| it.is_void(self.late, &is_absent)) {
            self.queue.pop();
        }
        while self.late.first().is_some_and(|it| it.is_void(self.queue, &is_absent)) {
            self.late.pop();
        }
    }

    pub(crate) fn keep_debts(&mut self, repeats: bool) {
        let debts = self.queue.iter().filter(|request| repeats && request.kind.gives_back());
        self.queue = debts.collect();
    }
}

impl Answer {
    pub(crate) fn is_grant(self) -> bool {
        matches!(self, Self::Granted | Self::Uncounted)
    }

    pub(crate) fn is_refusal(self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

impl Client {
    /// The hold that its last attempt is for.
    pub(crate) fn hold(self, client: u8, rules: &Rules) -> Hold {
        let reused = rules.breaks(Broken::NumbersReused);
        Hold { client, number: if reused { 1 } else { self.attempts } }
    }

    pub(crate) fn is_asking(self) -> bool {
        matches!(self.phase, Phase::Asking { .. })
    }

    pub(crate) fn trusts(self) -> bool {
        matches!(self.phase, Phase::Holding { left, .. } if left > 0)
    }
}
