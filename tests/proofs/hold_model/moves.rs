//! What can happen next.

use stateright::Property;

use crate::{
    check::{Explored, Protocol},
    hold_model::{
        properties,
        rules::{Broken, Rules},
        state::{Answer, Phase, State, VOTERS},
    },
};

/// One step. Voters are told by their place in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Tick,
    Ask(u8),
    AskAgain(u8),
    GiveUp(u8),
    Renew(u8),
    Release(u8),
    Arrive(u8, usize),
    ArriveLate(u8, usize),
    Hear(u8, usize),
    ExpireEarly(usize),
    Cut(u8, usize),
    Crash {
        voter: usize,
        keeps_data: bool,
    },
    Die(u8),
    /// The client starts again with the voters of the next step.
    Step(u8),
}

impl Protocol for Rules {
    type State = State;
    type Move = Move;

    fn alive(&self) -> Option<&'static str> {
        match self.broken {
            Some(Broken::Mutant(name)) => Some(name),
            _ => None,
        }
    }

    fn first(&self) -> State {
        State::first(self)
    }

    fn moves(&self, state: &State, moves: &mut Vec<Move>) {
        moves.push(Move::Tick);
        for client in self.clients() {
            state.moves_of_client(client, self, moves);
        }
        for voter in 0..VOTERS {
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
        after.drop_void(self);
        after.put_in_order(self);
        // Where no time is left to run out, time changes nothing. Everything else does.
        (step != Move::Tick || after != *before).then_some(after)
    }

    fn properties() -> Vec<Property<Explored<Self>>> {
        properties::all()
    }

    /// With the names of the voters, what is under way to them, and what clients make of it.
    fn tell(&self, state: &State, step: Move) -> String {
        let after = state.after(step, self);
        let (request, answer) = match step {
            Move::Arrive(client, voter) => {
                let line = |state: &State| *state.voters[voter].line(client);
                (line(state).way.queue.first(), line(&after).reply)
            }
            _ => (None, Answer::None),
        };
        let phases = after.clients.map(|client| client.phase);
        format!("{step:?} of voters {:?}: {request:?}, {answer:?}; {phases:?}", state.names)
    }
}

impl State {
    fn moves_of_client(&self, client: u8, rules: &Rules, moves: &mut Vec<Move>) {
        if self.may_ask(client, rules) {
            moves.push(Move::Ask(client));
        }
        match self.client(client).phase {
            _ if rules.bounds.patient => {}
            Phase::Idle => {}
            Phase::Asking { .. } | Phase::Storing { .. } => moves.push(Move::GiveUp(client)),
            Phase::Holding { .. } => moves.push(Move::Release(client)),
        }
        if self.may_ask_again(client, rules) {
            moves.push(Move::AskAgain(client));
        }
        if self.may_renew(client, rules) {
            moves.push(Move::Renew(client));
        }
        if self.budget.deaths > 0 && self.client(client).attempts > 0 {
            moves.push(Move::Die(client));
        }
        if self.next_sets(client, rules).is_some() {
            moves.push(Move::Step(client));
        }
    }

    fn moves_of_voter(&self, voter: usize, rules: &Rules, moves: &mut Vec<Move>) {
        let it = &self.voters[voter];
        for client in rules.clients() {
            let line = it.line(client);
            if !line.way.queue.is_empty() {
                moves.push(Move::Arrive(client, voter));
                if self.budget.cuts > 0 && client < rules.bounds.busy {
                    moves.push(Move::Cut(client, voter));
                }
            }
            if !line.way.late.is_empty() {
                moves.push(Move::ArriveLate(client, voter));
            }
            if line.reply != Answer::None {
                moves.push(Move::Hear(client, voter));
            }
        }
        if it.may_expire_early(rules) {
            moves.push(Move::ExpireEarly(voter));
        }
        if self.budget.restarts > 0 {
            moves.push(Move::Crash { voter, keeps_data: true });
        }
        if self.budget.amnesias > 0 {
            moves.push(Move::Crash { voter, keeps_data: false });
        }
    }

    /// The state after a step, its voters not yet in order.
    pub(crate) fn after(&self, step: Move, rules: &Rules) -> Self {
        let mut next = self.clone();
        match step {
            Move::Tick => next.tick(rules),
            Move::Ask(client) => next.ask(client, rules),
            Move::AskAgain(client) => next.ask_again(client, rules),
            Move::GiveUp(client) => next.give_up(client, rules),
            Move::Renew(client) => next.renew(client, rules),
            Move::Release(client) => next.release(client, rules),
            Move::Arrive(client, voter) => {
                next.voters[voter].run_next(client, *self.client(client), rules);
            }
            Move::ArriveLate(client, voter) => next.voters[voter].run_late(client, rules),
            Move::Hear(client, voter) => next.hear(client, voter, rules),
            Move::ExpireEarly(voter) => next.voters[voter].record = None,
            Move::Cut(client, voter) => {
                next.budget.cuts -= 1;
                let repeats = !rules.breaks(Broken::UndoNotRepeated);
                next.voters[voter].line_mut(client).way.cut(repeats);
            }
            Move::Crash { voter, keeps_data } => {
                let budget = &mut next.budget;
                let left = if keeps_data { &mut budget.restarts } else { &mut budget.amnesias };
                *left -= 1;
                next.voters[voter].crash(keeps_data, rules);
            }
            Move::Die(client) => next.die(client),
            Move::Step(client) => {
                if let Some(sets) = self.next_sets(client, rules) {
                    next.client_mut(client).sets = sets;
                }
            }
        }
        next
    }

    fn tick(&mut self, rules: &Rules) {
        self.voters.iter_mut().for_each(|voter| voter.tick(rules));
        rules.clients().for_each(|client| self.grow_older(client, rules));
        self.highest = self.highest.saturating_sub(rules.clock.step);
    }
}
