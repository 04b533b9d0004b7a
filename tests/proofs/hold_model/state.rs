//! What there is: voters, clients, and what is under way between them.

use crate::{
    change::Sets,
    hold_model::{
        requests::{Kind, Request},
        rules::{Broken, Budget, Rules, Start},
    },
    network::{Names, Request as _, Way, put_in_order},
};

pub(crate) const VOTERS: usize = 3;
const QUORUM: usize = VOTERS / 2 + 1;
/// A model may have fewer; the others never do anything.
pub(crate) const MOST_CLIENTS: usize = 3;

/// One moment. All times are what is left or has passed, never dates, so that equal situations at
/// different times are one state; and voters are in the order of what they contain, so that
/// situations that differ by the voters' names are one state as well.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct State {
    pub(crate) voters: [Voter; VOTERS],
    pub(crate) names: Names,
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
    /// How long ago it came back empty; as long as that matters to anybody.
    pub(crate) forgot: Option<u8>,
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

/// One acquisition by one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Hold {
    pub(crate) client: u8,
    pub(crate) number: u8,
}

/// What is between one client and one voter, and what the client knows of the voter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line {
    pub(crate) way: Way<Request>,
    /// The answer under way to the round that the client is in. One that is lost is one that is
    /// never heard; one to an earlier round changes nothing, so there is none.
    pub(crate) reply: Answer,
    /// The answer that the client has heard in this round.
    pub(crate) heard: Answer,
    /// That of the round before, where an attempt has asked again.
    pub(crate) before: Answer,
    /// How long ago the request was sent that got the last vote which the client heard and counted
    /// for this hold. Kept only as long as it may prove something.
    pub(crate) proof: Option<u8>,
    /// The voter turned out to have lost the vote of this hold, and no round was granted since.
    pub(crate) has_lost: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    #[default]
    None,
    Granted {
        /// That of the voter.
        counter: u8,
        /// Of a renewal: nobody had the vote.
        anew: bool,
    },
    /// Granted by a voter in quarantine, of which so much was left, and that does not count.
    Uncounted {
        counter: u8,
        left: u8,
    },
    Refused(Hold),
    /// Refused, but the token is stored: only where that rule is broken.
    Stored,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Client {
    /// Attempts so far.
    pub(crate) attempts: u8,
    pub(crate) phase: Phase,
    pub(crate) sets: Sets,
}

/// Ages are counted from before the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Asking {
        age: u8,
        /// It is the second round of a split.
        again: bool,
    },
    /// A majority has granted, and this token is not yet stored by one.
    Storing { age: u8, token: u8 },
    Holding {
        /// Until the deadline.
        left: u8,
        token: u8,
        /// The age of the round of renewal that is under way.
        round: Option<u8>,
        /// Another hold was won since this one was.
        interrupted: bool,
    },
}

impl State {
    pub(crate) fn first(rules: &Rules) -> Self {
        let mut state = Self {
            voters: [Voter::default(); VOTERS],
            names: Names::FIRST,
            clients: [Client { sets: rules.bounds.steps.0, ..Client::default() }; MOST_CLIENTS],
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
        state.put_in_order(rules);
        state
    }

    fn give_to_the_first(&mut self, by: usize, rules: &Rules) {
        self.ask(0, rules);
        for voter in 0..by {
            self.voters[voter].run_next(0, self.clients[0], rules);
        }
        (0..by).for_each(|voter| self.hear(0, voter, rules));
        for voter in &mut self.voters[..by] {
            // What it did not have to hear, for it had won, it heard all the same.
            voter.line_mut(0).proof = Some(0);
        }
        for voter in &mut self.voters[by..] {
            voter.line_mut(0).way.queue.pop();
        }
    }

    /// Takes away what changes nothing whenever it arrives: fewer orders to look at.
    pub(crate) fn drop_void(&mut self, rules: &Rules) {
        // Where nobody can ask again, a refusal that an attempt heard differs from one that it did
        // not hear only in an undo that finds nothing.
        let phases = self.clients.map(|client| client.phase);
        let deaf = |phase| match phase {
            Phase::Asking { again, .. } => self.budget.rounds == 0 && !again,
            phase => matches!(phase, Phase::Storing { .. }),
        };
        let deaf = phases.map(deaf);
        for voter in &mut self.voters {
            let refused = voter.lines.iter_mut().zip(deaf).filter(|(_, deaf)| *deaf);
            for (line, _) in refused.filter(|(line, _)| matches!(line.reply, Answer::Refused(_))) {
                line.reply = Answer::None;
            }
            if !rules.breaks(Broken::ReleaseOfAnybody) {
                voter.drop_void();
            }
            voter.forget_what_is_over(phases, rules);
        }
    }

    /// Puts voters of the same sets in order, each with its name.
    pub(crate) fn put_in_order(&mut self, rules: &Rules) {
        let are_alike = |left, right| rules.are_alike(left, right);
        put_in_order(&mut self.voters, &mut self.names, are_alike);
    }

    pub(crate) fn client(&self, client: u8) -> &Client {
        &self.clients[usize::from(client)]
    }

    pub(crate) fn client_mut(&mut self, client: u8) -> &mut Client {
        &mut self.clients[usize::from(client)]
    }

    /// Those to the voters that the client has now.
    pub(crate) fn lines(&self, client: u8, rules: &Rules) -> impl Iterator<Item = &Line> {
        let voters = &self.voters[rules.voters_of(self.client(client).sets)];
        voters.iter().map(move |voter| voter.line(client))
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
            && self.voters.iter().flat_map(|it| &it.lines).all(|line| line.way.queue.is_empty())
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

    /// It may have forgotten votes that somebody still builds on.
    pub(crate) fn is_in_quarantine(&self, rules: &Rules) -> bool {
        self.forgot.is_some_and(|ago| ago < rules.quarantine)
    }

    fn drop_void(&mut self) {
        let record = self.record.map(|record| record.hold);
        for (line, client) in self.lines.iter_mut().zip(0..) {
            if !line.way.is_quiet() {
                line.way.drop_void(|it| record != Some(Hold { client, number: it.number }));
            }
        }
    }

    /// That it forgot, where nobody asks who asked before its quarantine ended; and what proves
    /// nothing any more.
    fn forget_what_is_over(&mut self, phases: [Phase; MOST_CLIENTS], rules: &Rules) {
        let asked = phases.into_iter().filter_map(Phase::asked).chain([0]);
        let oldest = asked.max().unwrap_or(0);
        self.forgot = self.forgot.filter(|_| rules.is_kept_out(self.forgot, oldest));
        for line in self.lines.iter_mut().filter(|line| line.proof.is_some()) {
            if !rules.has_proof(line, self.forgot) {
                line.proof = None;
            }
        }
    }
}

impl Line {
    pub(crate) fn send(&mut self, kind: Kind, hold: Hold, token: u8) {
        let awaited = !kind.gives_back();
        self.way.queue.push(Request { kind, number: hold.number, token, awaited });
    }

    /// The client's round is over: it listens to no answer any more.
    pub(crate) fn forget_round(&mut self) {
        self.way.queue.each(Request::unheard);
        (self.reply, self.heard, self.before) = (Answer::None, Answer::None, Answer::None);
    }

    /// An answer to the client's round is under way, or its request is.
    pub(crate) fn is_awaited(&self) -> bool {
        self.reply != Answer::None || self.way.queue.iter().any(|request| request.awaited)
    }
}

impl Answer {
    pub(crate) fn counter(self) -> Option<u8> {
        match self {
            Self::Granted { counter, .. } => Some(counter),
            _ => None,
        }
    }

    pub(crate) fn is_grant(self) -> bool {
        matches!(self, Self::Granted { .. })
    }
}

impl Client {
    /// The hold that its last attempt is for.
    pub(crate) fn hold(self, client: u8, rules: &Rules) -> Hold {
        let reused = rules.breaks(Broken::NumbersReused);
        Hold { client, number: if reused { 1 } else { self.attempts } }
    }

    pub(crate) fn trusts(self) -> bool {
        matches!(self.phase, Phase::Holding { left: 1.., .. })
    }
}

impl Phase {
    /// How long ago it asked for what it waits for.
    pub(crate) fn asked(self) -> Option<u8> {
        match self {
            Self::Asking { age, .. } | Self::Storing { age, .. } => Some(age),
            Self::Holding { round, .. } => round,
            Self::Idle => None,
        }
    }
}
