//! What a user does who holds: renew, read under the own write, downgrade, lose, release.

use crate::queue_model::{
    judge::is_proven,
    requests::{Kind, Request},
    rules::{Broken, Rules},
    state::{Answer, MOST_PLACES, Phase, Place, Read, Round, State},
};

impl State {
    /// Wins, and knows by which votes.
    pub(crate) fn come_in(&mut self, place: usize, rules: &Rules) {
        if rules.bounds.budget.amnesias > 0 {
            for voter in &mut self.voters {
                let granted = voter.answers[place].filter(|answer| answer.counts());
                voter.known[place] = granted.map(|_| 0);
            }
        }
        self.win(place);
        for other in rules.places().filter(|other| rules.writes(place) && *other != place) {
            if let Read::Asked { parted } = &mut self.places[other].read {
                *parted = true;
            }
        }
    }

    pub(crate) fn may_renew(&self, place: usize) -> bool {
        let it = &self.places[place];
        let reads = it.phase == Phase::Reading && matches!(it.read, Read::Held(_));
        self.budget.renewals > 0 && !it.open && (it.phase == Phase::Holding || reads)
    }

    /// A round of renewal of the hold, or of what it became.
    pub(crate) fn renew(&mut self, place: usize, rules: &Rules) {
        self.budget.renewals -= 1;
        let reads = self.places[place].phase == Phase::Reading;
        self.start_round(place, if reads { Kind::RenewRead } else { Kind::Renew }, rules);
    }

    pub(crate) fn may_read(&self, place: usize, rules: &Rules) -> bool {
        let it = &self.places[place];
        let writes = it.phase == Phase::Holding && rules.writes(place);
        self.budget.reads > 0 && writes && it.read == Read::None
    }

    /// Asks to read under the own write. A round of renewal that is under way has failed.
    pub(crate) fn read(&mut self, place: usize, rules: &Rules) {
        self.budget.reads -= 1;
        if rules.breaks(Broken::ReleasedFirst) {
            self.send(place, Kind::Leave, 0, rules);
            self.places[place].phase = Phase::Reading;
        }
        self.places[place].read = Read::Asked { parted: false };
        self.start_round(place, Kind::Read, rules);
    }

    fn start_round(&mut self, place: usize, kind: Kind, rules: &Rules) {
        self.forget_answers(place);
        let it = &mut self.places[place];
        it.rounds += 1;
        it.open = true;
        let round = it.rounds;
        self.send(place, kind, round, rules);
    }

    fn send(&mut self, place: usize, kind: Kind, round: u8, rules: &Rules) {
        let bid = self.places[place].bids;
        let request = Request { kind, place, bid, ticket: round };
        self.queues(place, rules).for_each(|(_, queue)| queue.push(request));
    }

    /// It listens for the answer to this request.
    pub(crate) fn is_open(&self, request: Request) -> bool {
        let it = &self.places[request.place];
        let Request { kind, bid, ticket, .. } = request;
        let asks = it.phase == Phase::Bidding && matches!(kind, Kind::Bid | Kind::Try);
        let in_round = it.open && kind.is_round() && it.rounds == ticket;
        it.bids == bid && (asks || in_round)
    }

    /// An answer to a renewal. A voter in quarantine counts for a hold that had its vote before, as
    /// its client knows by its own clock: then the voter cannot have given it to anybody else.
    pub(crate) fn hear(&mut self, request: Request, voter: usize, answer: Answer, rules: &Rules) {
        let Request { kind, place, ticket: round, .. } = request;
        let passed = self.places[place].passed;
        let at = &mut self.voters[voter];
        let proven = kind == Kind::Renew && is_proven(at.known[place], passed);
        let answer = Answer { uncounted: answer.uncounted && !proven, ..answer };
        at.answers[place] = Some(answer);
        if rules.bounds.budget.amnesias > 0 && kind == Kind::Renew && answer.counts() {
            at.known[place] = Some(round);
        }
        if round >= passed && self.is_granted(place, rules) {
            self.end_round(place);
        }
    }

    /// A majority granted before the deadline of the round.
    fn end_round(&mut self, place: usize) {
        self.forget_answers(place);
        let it = &mut self.places[place];
        it.open = false;
        let round = it.rounds;
        match it.read {
            Read::Asked { parted } => {
                it.read = Read::Held(round);
                self.parted |= parted;
            }
            Read::Held(_) if it.phase == Phase::Reading => it.read = Read::Held(round),
            _ => it.trusted = round,
        }
    }

    pub(crate) fn may_pass(&self, place: usize) -> bool {
        let it = &self.places[place];
        self.budget.passes > 0 && self.holds(place) && it.passed <= it.rounds
    }

    /// The deadline of the user's oldest round passes; what is trusted until then has ended.
    pub(crate) fn pass(&mut self, place: usize, rules: &Rules) {
        self.budget.passes -= 1;
        let it = &mut self.places[place];
        let last = it.passed;
        it.passed += 1;
        if it.read == Read::Held(last) || it.rounds == last && matches!(it.read, Read::Asked { .. })
        {
            self.end_read(place, rules);
        }
        if self.places[place].phase == Phase::Holding && self.places[place].trusted == last {
            let asks = matches!(self.places[place].read, Read::Asked { .. });
            if asks && !rules.breaks(Broken::ReadOutlivesLoss) {
                self.end_read(place, rules);
            }
            self.end_write(place, rules);
        }
    }

    pub(crate) fn may_release(&self, place: usize) -> bool {
        let asks = matches!(self.places[place].read, Read::Asked { .. });
        self.holds(place) && !asks
    }

    /// What was won ends; a read under it goes on.
    pub(crate) fn release(&mut self, place: usize, rules: &Rules) {
        if self.places[place].phase == Phase::Reading {
            self.end_read(place, rules);
        } else {
            self.end_write(place, rules);
        }
    }

    fn end_write(&mut self, place: usize, rules: &Rules) {
        if !matches!(self.places[place].read, Read::Asked { .. } | Read::Held(_)) {
            self.leave(place, rules);
            return;
        }
        self.send(place, Kind::Leave, 0, rules);
        if matches!(self.places[place].read, Read::Held(_)) {
            self.forget_answers(place);
            self.places[place].open = false;
        }
        self.places[place].phase = Phase::Reading;
        self.voters.iter_mut().for_each(|voter| voter.known[place] = None);
    }

    /// Gives up the read under the own write, be it held or asked for.
    pub(crate) fn end_read(&mut self, place: usize, rules: &Rules) {
        self.send(place, Kind::EndRead, 0, rules);
        if self.places[place].phase == Phase::Reading {
            self.end(place);
            return;
        }
        let it = &mut self.places[place];
        if matches!(it.read, Read::Asked { .. }) {
            it.open = false;
            self.forget_answers(place);
        }
        self.places[place].read = Read::Ended;
    }

    /// What each user has asked for so far, whose deadlines are to pass before a voter that may
    /// have granted it and forgot it counts again.
    pub(crate) fn asked(&self) -> [Option<Round>; MOST_PLACES] {
        std::array::from_fn(|place| {
            let Place { bids: bid, rounds: number, .. } = self.places[place];
            let round = Round::of(place, bid, number);
            Some(round).filter(|round| self.is_present(*round))
        })
    }

    /// All that the voter may have forgotten has ended.
    pub(crate) fn may_count_again(&self, voter: usize) -> bool {
        let has_ended = |round: Round| !self.is_present(round) || self.has_passed(round);
        let it = &self.voters[voter];
        it.is_in_quarantine() && it.forgot.into_iter().flatten().all(has_ended)
    }
}
