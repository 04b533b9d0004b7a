//! Clients and voters, and what is on its way between them.

use std::time::Duration;

use crate::slot_model::{
    rules::{Broken, CLIENTS, Rules},
    voter::{Request, Voter},
};
use quorate::proto::{
    Cause, Drift, FixedSlots, Grant, GrantNext, Granted, Moment, Quorum, Rules as Measures, Slots,
    Terms, Verdict, Vote, Votes,
};

pub(crate) const VOTERS: usize = 3;

/// Time stands still: who is waited for is a move of its own.
const NOW: Moment = Moment::BEGINNING;

fn measures() -> Measures {
    let long = Duration::from_secs(1);
    Measures {
        terms: Terms::new(long, Drift { ppm: 0, fixed: Duration::ZERO }),
        minimum_validity: Duration::ZERO,
        voter_deadline: long,
        longest_deadline: long,
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) voters: [Voter; VOTERS],
    pub(crate) clients: [Client; CLIENTS],
    /// What is on its way between each client and each voter.
    pub(crate) ways: [[Way; VOTERS]; CLIENTS],
    pub(crate) losses: u8,
    pub(crate) copies: u8,
    pub(crate) forgets: u8,
    pub(crate) lapses: u8,
    /// The first voter is in quarantine.
    pub(crate) quarantined: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    /// What the first voter gives to this attempt does not count.
    suspects: bool,
    /// The first voter may have given it something, and has forgotten that.
    pub(crate) forgotten: bool,
    /// Its lease has ended.
    pub(crate) lapsed: bool,
    /// What it has made of what it heard so far.
    heard: Vec<Event>,
    /// How often it has begun.
    pub(crate) begun: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Asking,
    Holding(Vec<u16>),
}

/// What moves on `proto`'s count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Event {
    Gave(usize, Vec<u16>),
    Refused(usize),
    Silent(usize),
    /// It was looked at what to do next, and voters were asked again.
    AskedOn,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Way {
    /// In order, and whether the answer is waited for.
    pub(crate) requests: Vec<(bool, Request)>,
    /// One that may still run once more.
    pub(crate) copy: Option<Request>,
    /// The answer to the latest question.
    pub(crate) reply: Option<Gave>,
}

/// The slots that a voter gave, if any.
pub(crate) type Gave = Option<Vec<u16>>;

impl Way {
    /// What was asked before is waited for no more.
    fn forget(&mut self) {
        self.reply = None;
        self.requests.iter_mut().for_each(|(is_waited_for, _)| *is_waited_for = false);
    }
}

impl State {
    fn send(&mut self, client: usize, voter: usize, request: Request) {
        let (way, asks) = (&mut self.ways[client][voter], request != Request::GiveBack);
        if asks {
            way.forget();
        }
        way.requests.push((asks, request));
    }

    pub(crate) fn ask(&mut self, client: usize) {
        let Client { phase, heard, begun, suspects, .. } = &mut self.clients[client];
        *phase = Phase::Asking;
        *suspects = self.quarantined;
        heard.clear();
        *begun += 1;
        for voter in 0..VOTERS {
            self.send(client, voter, Request::Ask(Vec::new()));
        }
    }

    /// Gives back all that it has, or may have.
    pub(crate) fn give_up(&mut self, client: usize, rules: &Rules) {
        let known = |voter: usize| {
            let heard = &self.clients[client].heard;
            heard.iter().any(|event| matches!(event, Event::Gave(one, _) if *one == voter))
        };
        let all = !rules.is_broken(Broken::KeepsOnGivingUp);
        let owed: Vec<usize> = (0..VOTERS).filter(|voter| all || known(*voter)).collect();
        for voter in 0..VOTERS {
            self.ways[client][voter].forget();
        }
        for voter in owed {
            self.send(client, voter, Request::GiveBack);
        }
        let client = &mut self.clients[client];
        (client.phase, client.heard) = (Phase::Idle, Vec::new());
        client.forgotten = false;
    }

    /// The first voter forgets all that it gave, and is in quarantine.
    pub(crate) fn forget(&mut self) {
        (self.forgets, self.quarantined) = (self.forgets + 1, true);
        for (client, given) in self.clients.iter_mut().zip(&mut self.voters[0].given) {
            given.clear();
            client.suspects |= client.phase == Phase::Asking;
            client.forgotten |= client.phase != Phase::Idle;
        }
    }

    /// The quarantine lasts until all leases that the voter may have forgotten have ended.
    pub(crate) fn may_count_again(&self) -> bool {
        self.quarantined && self.clients.iter().all(|client| !client.forgotten)
    }

    /// A holder trusts its lease no more.
    pub(crate) fn lapse(&mut self, client: usize) {
        self.lapses += 1;
        let client = &mut self.clients[client];
        client.phase = Phase::Idle;
        (client.forgotten, client.lapsed) = (false, true);
    }

    pub(crate) fn renew(&mut self, client: usize) {
        let Phase::Holding(slots) = self.clients[client].phase.clone() else { return };
        for voter in 0..VOTERS {
            self.send(client, voter, Request::Renew(slots.clone()));
        }
    }

    /// The next request runs, or is lost.
    pub(crate) fn arrive(&mut self, client: usize, voter: usize, is_lost: bool, rules: &Rules) {
        let way = &mut self.ways[client][voter];
        let (asked, request) = way.requests.remove(0);
        if is_lost {
            self.losses += 1;
            if asked {
                self.note(client, Event::Silent(voter));
            }
            return;
        }
        let given = self.voters[voter].run(client, &request, rules);
        let way = &mut self.ways[client][voter];
        if asked {
            way.reply = Some(given);
        }
        // Voters and clients are alike: one of each is enough.
        let is_ones = (client, voter) == (0, 0);
        if is_ones && self.copies < rules.copies && matches!(request, Request::Ask(_)) {
            way.copy = Some(request);
        }
    }

    /// A request runs once more.
    pub(crate) fn run_copy(&mut self, client: usize, voter: usize, rules: &Rules) {
        let Some(request) = self.ways[client][voter].copy.take() else { return };
        self.copies += 1;
        self.voters[voter].run(client, &request, rules);
    }

    /// An answer is heard, and what follows from it done.
    pub(crate) fn hear(&mut self, client: usize, voter: usize, rules: &Rules) {
        let Some(given) = self.ways[client][voter].reply.take() else { return };
        if let Phase::Holding(slots) = self.clients[client].phase.clone() {
            if given.is_some_and(|given| given != slots) {
                self.send(client, voter, Request::Renew(slots));
            }
            return;
        }
        let counts = rules.is_broken(Broken::QuarantinedSlotCounts)
            || voter > 0
            || !self.clients[client].suspects;
        let event = match given {
            Some(given) if counts => Event::Gave(voter, given),
            Some(_) => Event::Silent(voter),
            None => Event::Refused(voter),
        };
        self.note(client, event);
        self.decide(client, rules);
    }

    fn note(&mut self, client: usize, event: Event) {
        if self.clients[client].phase == Phase::Asking {
            let heard = &mut self.clients[client].heard;
            heard.push(event);
            // In which order answers came between two looks changes nothing.
            let last = heard.iter().rposition(|event| *event == Event::AskedOn);
            heard[last.map_or(0, |last| last + 1)..].sort_unstable();
        }
    }

    fn decide(&mut self, client: usize, rules: &Rules) {
        let (mut grant, votes) = self.count(client, rules);
        let agrees = self.clients[client].heard.contains(&Event::AskedOn);
        if !agrees && !votes.is_won() {
            if votes.is_hopeless() {
                self.give_up(client, rules);
            }
            return;
        }
        match grant.next(NOW) {
            GrantNext::Done(Granted { slots, .. }) => {
                let FixedSlots { slots, elsewhere, .. } = slots.expect("it is of a semaphore");
                let held = slots.list().to_vec();
                let it = &mut self.clients[client];
                (it.phase, it.heard) = (Phase::Holding(held.clone()), Vec::new());
                for voter in elsewhere {
                    self.send(client, voter, Request::Renew(held.clone()));
                }
            }
            GrantNext::AskForSlots { floors, voters } => {
                self.note(client, Event::AskedOn);
                for voter in voters {
                    self.send(client, voter, Request::Ask(floors.list().to_vec()));
                }
            }
            GrantNext::Wait(_) => {}
            GrantNext::Lost(..) => self.give_up(client, rules),
            GrantNext::Store(..) => unreachable!("a semaphore has no tokens"),
        }
    }

    /// What `proto` makes of all that was heard.
    fn count(&self, client: usize, rules: &Rules) -> (Grant, Votes) {
        let quorum = Quorum::of(VOTERS);
        let mut grant = Grant::new(quorum, Some(rules.slot_order()), measures(), NOW, None);
        let mut votes = Votes::new(quorum);
        for event in &self.clients[client].heard {
            let (voter, verdict, slots) = match event {
                Event::Gave(voter, given) => {
                    (*voter, Verdict::Granted, Some(Slots::new(given.iter().copied())))
                }
                Event::Refused(voter) => (*voter, Verdict::Absent, None),
                Event::Silent(voter) => (*voter, Verdict::Unknown(Cause::Unheard), None),
                Event::AskedOn => {
                    grant.next(NOW);
                    continue;
                }
            };
            let mut vote = Vote { verdict, token: None, ticket: None, slots, fewer: None };
            grant.heard(voter, &mut vote);
            votes.record(voter, vote.verdict);
        }
        (grant, votes)
    }

    /// Everything that is on its way arrives and is heard, until nothing is.
    pub(crate) fn settle(&mut self, rules: &Rules) {
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for (client, voter) in pairs() {
                while !self.ways[client][voter].requests.is_empty() {
                    self.arrive(client, voter, false, rules);
                    goes_on = true;
                }
                if self.ways[client][voter].reply.is_some() {
                    self.hear(client, voter, rules);
                    goes_on = true;
                }
            }
        }
    }

    /// Whoever holds has its slots of a majority, but for what a voter has forgotten.
    pub(crate) fn is_backed(&self, client: usize) -> bool {
        let Client { phase, forgotten, .. } = &self.clients[client];
        let Phase::Holding(slots) = phase else { return true };
        Quorum::of(VOTERS)
            .reached(|voter| self.voters[voter].given[client] == *slots || voter == 0 && *forgotten)
    }

    pub(crate) fn slots_held(&self) -> Vec<u16> {
        let held = self.clients.iter().filter_map(|client| match &client.phase {
            Phase::Holding(slots) => Some(slots),
            Phase::Idle | Phase::Asking => None,
        });
        held.flatten().copied().collect()
    }
}

pub(crate) fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..CLIENTS).flat_map(|client| (0..VOTERS).map(move |voter| (client, voter)))
}
