//! From the votes of a majority to a hold: a majority stores its token and, for a semaphore, gives
//! the same slots.

use super::{
    Cause, Loss, Moment, Quorum, Rules, SlotNext, SlotOrder, SlotVotes, Slots, Ticket, Token,
    Verdict, Votes,
};

/// The answer of a voter to a request for its vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    pub verdict: Verdict,
    /// The number in its grant.
    pub token: Option<Token>,
    /// The ticket of the place in the queue, if there is one.
    pub ticket: Option<Ticket>,
    /// The slots that it gave.
    pub slots: Option<Slots>,
    /// How many permits other clients use the semaphore with, if these are fewer.
    pub fewer: Option<u16>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantNext {
    /// Wait until this moment for the voters that were asked last.
    Wait(Moment),
    /// Send the token to these voters, with a renewal of the hold.
    Store(Token, Vec<usize>),
    /// Ask these voters for other slots, none before its floor.
    AskForSlots { floors: Slots, voters: Vec<usize> },
    /// A majority stores the token, and gives the same slots.
    Done(Granted),
    /// The lock is lost. With the votes for the token, if too few voters store it.
    Lost(Loss, Option<Votes>),
}

/// The token and the slots of a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    pub token: Option<Token>,
    /// For a semaphore.
    pub slots: Option<FixedSlots>,
}

/// The slots of a hold, on which a majority agrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedSlots {
    pub slots: Slots,
    /// The votes for them.
    pub votes: Votes,
    /// The voters that gave other slots.
    pub elsewhere: Vec<usize>,
}

/// The numbers and slots that came with the votes for one hold, and what is left to do once a
/// majority has granted.
#[derive(Clone, Debug)]
pub struct Grant {
    rules: Rules,
    started: Moment,
    /// When the caller gives up.
    limit: Option<Moment>,
    quorum: Quorum,
    /// The number in each vote that counts.
    numbers: Vec<Option<Token>>,
    slots: Option<SlotVotes>,
    fewer: Option<u16>,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// Nothing has been sent since the votes.
    Granted,
    /// The token was sent to the voters that did not answer it.
    Storing { token: Token, stored: Votes, asked: Moment, due: Moment },
    /// The token is stored, or there is none. Voters that were asked for slots have until `due`.
    Placing { token: Option<Token>, due: Option<Moment> },
}

impl Grant {
    /// `slot_order`: for a semaphore.
    pub fn new(
        quorum: Quorum,
        slot_order: Option<SlotOrder>,
        rules: Rules,
        started: Moment,
        limit: Option<Moment>,
    ) -> Self {
        let slots = slot_order.map(|slot_order| SlotVotes::new(quorum, slot_order));
        let (numbers, stage) = (vec![None; quorum.voters()], Stage::Granted);
        Self { rules, started, limit, quorum, numbers, slots, fewer: None, stage }
    }

    /// Whether it is of a semaphore.
    pub fn has_slots(&self) -> bool {
        self.slots.is_some()
    }

    pub fn started(&self) -> Moment {
        self.started
    }

    /// How many permits other clients use the semaphore with, if these are fewer.
    pub fn fewer(&self) -> Option<u16> {
        self.fewer
    }

    /// Notes what came with a voter's vote. A vote for a slot beyond the permits becomes unknown.
    pub fn heard(&mut self, voter: usize, vote: &mut Vote) {
        // Seen once and never explained (`docs/record.md`): two permits, and a holder of slot 2.
        let stranger = |slots: &SlotVotes| slots.stranger(vote.slots.as_ref()?);
        if let Some(slot) = self.slots.as_ref().and_then(stranger) {
            let why = format!("it gave slot {slot}, which the semaphore does not have");
            vote.verdict = Verdict::Unknown(Cause::Rejected(why.into()));
        }
        let granted = vote.verdict == Verdict::Granted;
        if vote.token.is_some() && granted {
            self.numbers[voter] = vote.token;
        }
        let Some(slots) = &mut self.slots else { return };
        match vote.slots.take().filter(|_| granted) {
            Some(gave) => slots.note_slots(voter, gave),
            None => slots.note_none(voter, !matches!(vote.verdict, Verdict::Unknown(_))),
        }
        self.fewer = self.fewer.into_iter().chain(vote.fewer).min();
    }

    /// The token of the hold, if votes came with numbers, and the voters that store it.
    fn token(&self) -> Option<(Token, Votes)> {
        // The highest, and a majority must store it. Voters 1 and 2 count to 7, voter 3 to 9. 1 and
        // 3 grant Ada the lock: token 10. If 1 does not store 10 before she has the lock, 1 and 2
        // give Ben 9 after her (design 7).
        let highest = self.numbers.iter().flatten().max().copied()?;
        let stored = Votes::granted_by(self.quorum, |at| self.numbers[at] == Some(highest));
        Some((highest, stored))
    }

    /// The answer of a voter to the token.
    pub fn heard_of_token(&mut self, voter: usize, verdict: Verdict) {
        if let Stage::Storing { stored, .. } = &mut self.stage {
            stored.record(voter, verdict);
        }
    }

    /// To be called once a majority has granted.
    pub fn next(&mut self, now: Moment) -> GrantNext {
        let due = now + self.rules.voter_deadline;
        // A limit that has passed cuts nothing off: a majority has granted, and the lock is near.
        let due = self.limit.filter(|limit| *limit > now).map_or(due, |limit| limit.min(due));
        if let Stage::Granted = self.stage {
            let fixed = self.token();
            if let Some((token, stored)) = &fixed
                && !(stored.is_won() || crate::mutant!("token_is_not_stored"))
            {
                let (token, stored, voters) = (*token, stored.clone(), stored.unheard());
                self.stage = Stage::Storing { token, stored, asked: now, due };
                return GrantNext::Store(token, voters);
            }
            self.stage = Stage::Placing { token: fixed.map(|(token, _)| token), due: None };
        }
        let in_time = self.rules.is_in_time(self.started, now);
        if let Stage::Storing { token, stored, asked, due } = &mut self.stage {
            if now >= *due {
                stored.close(due.since(*asked));
            }
            if !stored.is_won() && !stored.is_hopeless() {
                return GrantNext::Wait(*due);
            }
            // Storing takes from the validity, which runs since the first request. A guard that is
            // trusted for a moment only is of no use.
            if !stored.is_won() || !in_time {
                // A voter that refuses the token has given its vote to another hold, which may have
                // the old number. So it is a split, as if it had refused the vote.
                let is_contended = in_time && !stored.lacks_quorum();
                let loss = if is_contended { Loss::Split } else { Loss::NoQuorum };
                return GrantNext::Lost(loss, Some(stored.clone()));
            }
            self.stage = Stage::Placing { token: Some(*token), due: None };
        }
        self.place(now, in_time, due)
    }

    /// Agrees on the slots. `by`: until when voters that are asked now may answer.
    fn place(&mut self, now: Moment, in_time: bool, by: Moment) -> GrantNext {
        let Stage::Placing { token, due } = &mut self.stage else {
            unreachable!("the token is stored")
        };
        let Some(slots) = &mut self.slots else {
            return GrantNext::Done(Granted { token: *token, slots: None });
        };
        if due.is_some() && !in_time {
            return GrantNext::Lost(Loss::NoQuorum, None);
        }
        match slots.advance() {
            SlotNext::Fixed(fixed, votes) => {
                let elsewhere = slots.elsewhere(&fixed);
                let slots = Some(FixedSlots { slots: fixed, votes, elsewhere });
                GrantNext::Done(Granted { token: *token, slots })
            }
            SlotNext::Ask { floors, voters } => {
                // One deadline for all rounds: voters keep these slots from others meanwhile.
                due.get_or_insert(by);
                GrantNext::AskForSlots { floors, voters }
            }
            SlotNext::Wait => match *due.get_or_insert(by) {
                due if now < due => GrantNext::Wait(due),
                _ => GrantNext::Lost(slots.loss(), None),
            },
            SlotNext::Apart => GrantNext::Lost(Loss::Split, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::proto::{Drift, Terms, at};

    fn fixed(said: [Option<u64>; 5]) -> Option<(u64, Vec<usize>, bool)> {
        let mut grant = Grant::new(Quorum::of(5), None, rules(), at(0), None);
        grant.numbers = said.map(|number| Token::new(number?)).to_vec();
        let (token, stored) = grant.token()?;
        Some((token.into(), stored.unheard(), stored.is_won()))
    }

    #[test]
    fn the_highest_is_the_token_and_those_with_a_lower_one_are_to_be_told_until_a_majority_has_it()
    {
        for (said, token) in [
            ([None; 5], None),
            ([Some(7), Some(7), None, Some(7), None], Some((7, vec![2, 4], true))),
            ([Some(7), Some(9), None, Some(7), None], Some((9, vec![0, 2, 3, 4], false))),
            ([Some(9), Some(8), Some(9), Some(9), None], Some((9, vec![1, 4], true))),
        ] {
            assert_eq!(fixed(said), token);
        }
    }

    /// A validity of 100 ms.
    fn rules() -> Rules {
        let terms = Terms::new(at(100).since(at(0)), Drift { ppm: 0, fixed: Duration::ZERO });
        let voter_deadline = Duration::from_millis(50);
        let (minimum_validity, longest_deadline) = (Duration::ZERO, voter_deadline);
        Rules { terms, minimum_validity, voter_deadline, longest_deadline }
    }

    /// Asked for at 0, and granted by two of three voters, with different
    /// tokens or, of a semaphore, slots. The others are asked at 10 ms.
    fn unsettled(limit: Option<u64>, has_slots: bool) -> Grant {
        let slot_order = has_slots.then_some(SlotOrder { start: 0, permits: 9 });
        let mut grant = Grant::new(Quorum::of(3), slot_order, rules(), at(0), limit.map(at));
        for (voter, gave) in [(0, 1), (1, 2)] {
            let token = Token::new(gave.into()).filter(|_| !has_slots);
            let slots = has_slots.then(|| Slots::new([gave]));
            let (verdict, ticket, fewer) = (Verdict::Granted, None, None);
            grant.heard(voter, &mut Vote { verdict, token, ticket, slots, fewer });
        }
        let asked = grant.next(at(10));
        assert!(matches!(asked, GrantNext::Store(..) | GrantNext::AskForSlots { .. }), "{asked:?}");
        grant
    }

    #[test]
    fn voters_have_until_their_deadline_or_the_limit_to_agree_and_never_longer_than_it_is_valid() {
        for (limit, due) in [(None, 60), (Some(5), 60), (Some(30), 30)] {
            for has_slots in [false, true] {
                let (mut early, mut late) = (unsettled(limit, has_slots), unsettled(limit, false));
                assert_eq!(early.next(at(11)), GrantNext::Wait(at(due)));
                assert!(matches!(early.next(at(due)), GrantNext::Lost(Loss::NoQuorum, _)));
                late.heard_of_token(0, Verdict::Granted);
                assert!(matches!(late.next(at(100)), GrantNext::Lost(Loss::NoQuorum, _)));
            }
        }
    }
}
