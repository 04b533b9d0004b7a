//! What can happen next.

use stateright::Property;

use crate::{
    check::{Explored, Protocol},
    queue_model::{
        properties,
        requests::Request,
        rules::{Broken, Rules},
        state::{MOST_PLACES, Phase, Read, State},
        voter::SLOTS,
        waiter::Loss,
    },
};

/// One step. Voters are told by their place in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Call(usize),
    Win(usize),
    Lose(usize, Loss),
    BidAgain(usize),
    GiveUp(usize),
    Renew(usize),
    Read(usize),
    EndRead(usize),
    Release(usize),
    Pass(usize),
    Arrive(usize, usize),
    ArriveLate(usize, usize),
    WriteEnds(usize),
    ReadEnds { voter: usize, place: usize, slot: usize },
    EntryEnds(usize, usize),
    CountsAgain(usize),
    Cut(usize, usize),
    Crash { voter: usize, keeps_data: bool },
    Die(usize),
}

impl Protocol for Rules {
    type State = State;
    type Move = Move;

    fn alive(&self) -> Option<&'static str> {
        self.breaks(Broken::TicketRaised).then_some("ticket_is_raised")
    }

    fn first(&self) -> State {
        State::first(self)
    }

    fn moves(&self, state: &State, moves: &mut Vec<Move>) {
        // What is sure to be won is won at once: what a place does that knows it, and what it does
        // that does not know it yet, is the same for all others, and it can only leave or die.
        let winner = self.places().find(|place| state.may_win(*place, self));
        if let Some(place) = winner.filter(|_| state.budget.timeouts == 0) {
            moves.push(Move::Win(place));
            return;
        }
        for place in self.places() {
            state.moves_of_user(place, self, moves);
        }
        for voter in 0..self.voters() {
            // What happens to one of two equal voters leads to the same situation as what happens
            // to the other, and equal ones are neighbours.
            let is_alike =
                |it: usize| self.are_alike(it, it - 1) && state.voters[it] == state.voters[it - 1];
            if voter == 0 || !is_alike(voter) {
                state.moves_of_voter(voter, self, moves);
            }
        }
    }

    fn next(&self, before: &State, step: Move) -> Option<State> {
        let mut after = before.after(step, self);
        after.drop_lost_claims(self);
        after.drop_void();
        after.put_in_order(self);
        Some(after)
    }

    fn properties() -> Vec<Property<Explored<Self>>> {
        properties::all()
    }

    /// With the names of the voters, what is under way to them, and what users make of it.
    fn tell(&self, state: &State, step: Move) -> String {
        let arrival = match step {
            Move::Arrive(client, voter) => state.voters[voter].clone().run_next(client, self),
            _ => None,
        };
        let places = state.after(step, self).places;
        format!("{step:?} of voters {:?}: {arrival:?}; {places:?}", state.names)
    }
}

impl State {
    fn moves_of_user(&self, place: usize, rules: &Rules, moves: &mut Vec<Move>) {
        let it = &self.places[place];
        if it.phase == Phase::Idle && !self.dead[place] {
            moves.push(Move::Call(place));
        }
        if self.may_win(place, rules) {
            moves.push(Move::Win(place));
        }
        moves.extend(self.losses(place, rules).into_iter().map(|loss| Move::Lose(place, loss)));
        let may_die =
            self.budget.deaths > 0 && !self.dead[place] && rules.is_first_of_its_client(place);
        let may = [
            (self.may_bid_again(place, rules), Move::BidAgain(place)),
            (self.waits(place) && self.budget.leaves > 0, Move::GiveUp(place)),
            (self.may_renew(place), Move::Renew(place)),
            (self.may_read(place, rules), Move::Read(place)),
            (matches!(it.read, Read::Asked { .. }), Move::EndRead(place)),
            (self.may_release(place), Move::Release(place)),
            (self.may_pass(place), Move::Pass(place)),
            (may_die, Move::Die(rules.client_of(place))),
        ];
        moves.extend(may.into_iter().filter(|(may, _)| *may).map(|(_, step)| step));
    }

    fn moves_of_voter(&self, voter: usize, rules: &Rules, moves: &mut Vec<Move>) {
        let it = &self.voters[voter];
        for client in rules.clients() {
            let line = it.lines[client];
            if !line.queue.is_empty() {
                moves.push(Move::Arrive(client, voter));
                if self.budget.cuts > 0 {
                    moves.push(Move::Cut(client, voter));
                }
            }
            if !line.late.is_empty() {
                moves.push(Move::ArriveLate(client, voter));
            }
        }
        if it.writer.is_some_and(|vote| self.may_lapse(vote.until.place(), vote)) {
            moves.push(Move::WriteEnds(voter));
        }
        for (place, slot) in self.lapsing_reads(voter) {
            moves.push(Move::ReadEnds { voter, place, slot });
        }
        for place in rules.places() {
            if it.queue[place].is_some_and(|entry| self.may_end(place, entry, rules)) {
                moves.push(Move::EntryEnds(place, voter));
            }
        }
        if self.may_count_again(voter) {
            moves.push(Move::CountsAgain(voter));
        }
        if self.budget.restarts > 0 {
            moves.push(Move::Crash { voter, keeps_data: true });
        }
        if self.budget.amnesias > 0 {
            moves.push(Move::Crash { voter, keeps_data: false });
        }
    }

    /// The votes of readers that may end now.
    pub(crate) fn lapsing_reads(&self, voter: usize) -> impl Iterator<Item = (usize, usize)> {
        let all = (0..MOST_PLACES).flat_map(|place| (0..SLOTS).map(move |slot| (place, slot)));
        let readers = self.voters[voter].readers;
        all.filter(move |(place, slot)| {
            readers[*place][*slot].is_some_and(|vote| self.may_lapse(Some(*place), vote))
        })
    }

    /// The state after a step, its voters not yet in order.
    pub(crate) fn after(&self, step: Move, rules: &Rules) -> Self {
        let mut next = self.clone();
        match step {
            Move::Call(place) => next.call(place, rules),
            Move::Win(place) => next.come_in(place, rules),
            Move::Lose(place, loss) => next.lose(place, loss, rules),
            Move::BidAgain(place) => next.bid(place, rules),
            Move::GiveUp(place) => {
                next.budget.leaves -= 1;
                next.leave(place, rules);
            }
            Move::Renew(place) => next.renew(place, rules),
            Move::Read(place) => next.read(place, rules),
            Move::EndRead(place) => next.end_read(place, rules),
            Move::Release(place) => next.release(place, rules),
            Move::Pass(place) => next.pass(place, rules),
            Move::Arrive(client, voter) => next.arrive(client, voter, rules),
            Move::ArriveLate(client, voter) => next.voters[voter].run_late(client, rules),
            Move::WriteEnds(voter) => next.voters[voter].writer = None,
            Move::ReadEnds { voter, place, slot } => {
                next.voters[voter].readers[place][slot] = None;
            }
            Move::EntryEnds(place, voter) => {
                if next.is_live(place) {
                    next.budget.lapses -= 1;
                }
                next.voters[voter].entry_ends(place);
            }
            Move::CountsAgain(voter) => next.voters[voter].forgot = Default::default(),
            Move::Cut(client, voter) => {
                next.budget.cuts -= 1;
                next.voters[voter].lines[client].cut(true);
            }
            Move::Crash { voter, keeps_data: true } => {
                next.budget.restarts -= 1;
                next.voters[voter].crash();
            }
            Move::Crash { voter, keeps_data: false } => {
                next.budget.amnesias -= 1;
                let asked = Some(self.asked()).filter(|_| !rules.breaks(Broken::NoQuarantine));
                next.voters[voter].forget(asked.unwrap_or_default());
            }
            Move::Die(client) => {
                next.budget.deaths -= 1;
                next.die(client, rules);
            }
        }
        next
    }

    /// An answer to a round that is over, or from a connection that is, is heard by nobody.
    pub(crate) fn arrive(&mut self, client: usize, voter: usize, rules: &Rules) {
        let Some((request, answer)) = self.voters[voter].run_next(client, rules) else { return };
        let Request { kind, place, .. } = request;
        let Some(answer) = answer.filter(|_| self.is_open(request)) else { return };
        if kind.is_round() {
            self.hear(request, voter, answer, rules);
        } else {
            self.voters[voter].answers[place] = Some(answer);
        }
    }
}
