//! What `proto` makes of what a place or a user has heard. Nothing of it is written here once
//! more: this tells the own values of `proto` what happened, and asks them.
//!
//! As in the model of holds a state has only facts, of which the values of `proto` are made for
//! each question. There are no ticks: what is asked at once is judged at one moment, and rounds
//! follow each other by a second.

use std::time::Duration;

use crate::queue_model::{
    rules::Rules,
    state::{Answer, Phase, State},
};
use quorate::proto::{
    Asked, Bid, BidNext, Drift, Limit, Moment, Next, Quarantine, Round, RoundEnd,
    Rules as Measures, ShardQuarantine, Support, Terms, Ticket, Verdict, Votes, Wait,
};

const SECOND: Duration = Duration::from_secs(1);
/// What voters have to answer, and until a lease ends.
const DUE: Duration = Duration::from_secs(10);
const LEASE: Duration = Duration::from_secs(1_000);

/// What a place does that hears no more of a bid which it has lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost {
    /// Gives the votes of these voters back.
    pub(crate) give_back: Vec<usize>,
    /// Its ticket, zero while it is open.
    pub(crate) ticket: u8,
    /// The next bid follows at once.
    pub(crate) again: bool,
}

fn now() -> Moment {
    Moment::BEGINNING + 10 * LEASE
}

fn terms() -> Terms {
    Terms::new(LEASE, Drift { ppm: 0, fixed: Duration::ZERO })
}

impl State {
    /// A bid of the place that has heard these voters. `refresh`: when the next one is due.
    fn bid_of(&self, place: usize, heard: u8, refresh: Duration, rules: &Rules) -> (Bid, Wait) {
        let minimum_validity = Duration::ZERO;
        let measures = Measures {
            terms: terms(),
            minimum_validity,
            voter_deadline: DUE,
            longest_deadline: DUE,
        };
        let mut wait = Wait::new(Limit::Never, LEASE, refresh);
        let number = |ticket: u8| Ticket(u64::from(ticket));
        let ticket = Some(self.places[place].ticket).filter(|ticket| *ticket > 0).map(number);
        let mut bid = Bid::start(rules.quorum_of(place), measures, ticket, &mut wait, now());
        for (voter, answer) in self.heard(place, heard, rules) {
            let told = Some(answer.ticket).filter(|ticket| *ticket > 0);
            bid.heard(voter, verdict(answer), told.map(number), now());
        }
        (bid, wait)
    }

    fn votes_of(&self, place: usize, heard: u8, rules: &Rules) -> Votes {
        let mut votes = Votes::new(rules.quorum_of(place));
        for (voter, answer) in self.heard(place, heard, rules) {
            votes.record(voter, verdict(answer));
        }
        votes
    }

    /// By the places of the voters among those that its user has.
    fn heard(
        &self,
        place: usize,
        heard: u8,
        rules: &Rules,
    ) -> impl Iterator<Item = (usize, Answer)> {
        let first = rules.voters_of(place).start;
        let is_heard = move |at: usize| heard >> at & 1 > 0;
        let answers = self.answers(place).enumerate();
        answers.filter_map(move |(at, it)| {
            let answer = it.filter(|_| is_heard(at))?;
            Some((at - first, answer))
        })
    }

    /// The bid is won if all is heard that has been answered.
    pub(crate) fn may_win(&self, place: usize, rules: &Rules) -> bool {
        if self.places[place].phase != Phase::Bidding {
            return false;
        }
        if rules.only_tries(place) {
            return self.votes_of(place, u8::MAX, rules).is_won();
        }
        let (mut bid, mut wait) = self.bid_of(place, u8::MAX, LEASE, rules);
        bid.next(now(), &[false; 3], &mut wait) == BidNext::Won
    }

    /// Among all voters.
    fn places_of(place: usize, voters: Vec<usize>, rules: &Rules) -> Vec<usize> {
        let first = rules.voters_of(place).start;
        voters.into_iter().map(|voter| first + voter).collect()
    }

    /// So much was heard that the bid is lost, though nobody has been late.
    pub(crate) fn is_refused(&self, place: usize, heard: u8, rules: &Rules) -> bool {
        if rules.only_tries(place) {
            return self.votes_of(place, heard, rules).is_hopeless();
        }
        // One that is lost waits for its next bid, and no other for as long as its answers.
        let (mut bid, mut wait) = self.bid_of(place, heard, SECOND, rules);
        let next = bid.next(now(), &[false; 3], &mut wait);
        next != BidNext::Won && next != BidNext::Wait(now() + DUE)
    }

    /// What becomes of a bid that is lost by what was heard, or for want of answers.
    pub(crate) fn lost_bid(&self, place: usize, heard: u8, rules: &Rules) -> Lost {
        if rules.only_tries(place) {
            let give_back =
                Self::places_of(place, self.votes_of(place, heard, rules).granting(), rules);
            return Lost { give_back, ..Lost::default() };
        }
        let (mut bid, mut wait) = self.bid_of(place, heard, LEASE, rules);
        let at = if self.is_refused(place, heard, rules) {
            now()
        } else if self.votes_of(place, heard, rules).is_won() {
            // The last answer that it needed came when the lease was over.
            now() + LEASE
        } else {
            now() + DUE
        };
        let mut give_back = Vec::new();
        let mut next = bid.next(at, &[false; 3], &mut wait);
        if let BidNext::GiveBack(voters) = next {
            give_back = Self::places_of(place, voters, rules);
            next = bid.next(at, &[false; 3], &mut wait);
        }
        // What was not heard is given back too, but not always so soon.
        give_back.retain(|voter| heard >> voter & 1 > 0);
        let ticket =
            bid.ticket().map_or(0, |Ticket(number)| u8::try_from(number).expect("tickets are low"));
        Lost { give_back, ticket, again: matches!(next, BidNext::End(_)) }
    }

    /// A majority has granted the round that was heard so.
    pub(crate) fn is_granted(&self, place: usize, rules: &Rules) -> bool {
        let mut round = Round::start(rules.quorum_of(place), now(), DUE);
        for (voter, answer) in self.heard(place, u8::MAX, rules) {
            round.heard(voter, verdict(answer), answer.uncounted);
        }
        round.next(now(), || 0) == Next::End(RoundEnd::Renewed)
    }
}

/// Whether a voter counts for a renewal that may have forgotten since. `known`: the last round in
/// which the hold had its vote; `passed`: so many deadlines of its rounds have passed.
pub(crate) fn is_proven(known: Option<u8>, passed: u8) -> bool {
    let sent = |round: u8| now() + u32::from(round) * SECOND;
    let mut support = Support::new(1, now(), Duration::ZERO, DUE);
    if let Some(known) = known {
        let (sent, terms) = (sent(known), terms());
        let (is_first, is_passed, heard, quarantine) = (true, false, sent, None);
        let asked = Asked { is_first, is_passed, sent, terms, heard, quarantine };
        support.heard(0, &Verdict::Granted, asked);
    }
    let forgot = terms().deadline(sent(passed)) - SECOND / 2;
    let quarantine = ShardQuarantine { forgot, ..quarantine() };
    support.verdict_that_counts(0, Verdict::Granted, Some(quarantine)) == Verdict::Granted
}

fn quarantine() -> ShardQuarantine {
    ShardQuarantine::new(Quarantine::Restarted, LEASE, now())
}

fn verdict(answer: Answer) -> Verdict {
    match answer {
        Answer { granted: true, uncounted: false, .. } => Verdict::Granted,
        Answer { granted: true, .. } => quarantine().verdict(),
        _ => Verdict::Refused { by: "another".parse().expect("it is an id"), ttl: Some(LEASE) },
    }
}
