//! What can happen next.

use std::sync::Arc;

use stateright::{Model, Property};

use crate::{
    check::{Passed, Protocol},
    token_model::{
        landmarks::{self, Landmark},
        properties,
        rules::Rules,
        state::{Answer, Phase, State, VOTERS},
        tell::tell,
    },
};

/// One step. Voters are told by their place in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Tick,
    Ask(u8),
    AskAgain(u8),
    Renew(u8),
    /// Gives up or releases.
    GiveBack(u8),
    Arrive(u8, usize),
    Hear(u8, usize),
    Cut(u8, usize),
    Forget(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    pub(crate) rules: Rules,
    /// The one property that is looked at, if not all are.
    pub(crate) only: Option<&'static str>,
    /// What some path came by.
    pub(crate) landmarks: Arc<Passed>,
}

impl Model for Tokens {
    type State = State;
    type Action = Move;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(&self.rules)]
    }

    fn actions(&self, state: &State, moves: &mut Vec<Move>) {
        moves.push(Move::Tick);
        for client in self.rules.clients() {
            state.moves_of_client(client, &self.rules, moves);
        }
        for voter in 0..VOTERS {
            // What happens to one of two equal voters leads to the same situation as what happens
            // to the other, and equal ones are neighbours.
            if voter == 0 || state.voters[voter] != state.voters[voter - 1] {
                state.moves_of_voter(voter, &self.rules, moves);
            }
        }
    }

    fn next_state(&self, before: &State, step: Move) -> Option<State> {
        let mut after = before.after(step, &self.rules);
        landmarks::pass(&self.landmarks, before, step, &after);
        after.drop_void(&self.rules);
        after.put_in_order();
        // Where no time is left to run out, time changes nothing.
        (step != Move::Tick || after != *before).then_some(after)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = properties::all();
        properties.retain(|property| self.only.is_none_or(|only| only == property.name));
        properties
    }
}

impl Protocol for Rules {
    type Model = Tokens;
    type Landmark = Landmark;

    fn model(self, only: Option<&'static str>) -> Tokens {
        Tokens { rules: self, only, landmarks: Arc::default() }
    }

    fn missing(model: &Tokens, landmarks: &[Landmark]) -> Vec<Landmark> {
        model.landmarks.missing(landmarks)
    }

    fn tell(self, state: &State, step: Move) -> String {
        tell(state, step, &self)
    }
}

impl State {
    fn moves_of_client(&self, client: u8, rules: &Rules, moves: &mut Vec<Move>) {
        if self.may_ask(client, rules) {
            moves.push(Move::Ask(client));
        }
        if self.client(client).phase != Phase::Idle && !rules.bounds.patient {
            moves.push(Move::GiveBack(client));
        }
        if self.may_ask_again(client) {
            moves.push(Move::AskAgain(client));
        }
        if self.may_renew(client) {
            moves.push(Move::Renew(client));
        }
    }

    fn moves_of_voter(&self, voter: usize, rules: &Rules, moves: &mut Vec<Move>) {
        let it = &self.voters[voter];
        for client in rules.clients() {
            let line = it.line(client);
            if !line.requests.is_empty() {
                moves.push(Move::Arrive(client, voter));
                if self.budget.cuts > 0 {
                    moves.push(Move::Cut(client, voter));
                }
            }
            if line.reply != Answer::None {
                moves.push(Move::Hear(client, voter));
            }
        }
        if self.budget.amnesias > 0 {
            moves.push(Move::Forget(voter));
        }
    }

    /// The state after a step, its voters not yet in order.
    pub(crate) fn after(&self, step: Move, rules: &Rules) -> Self {
        let mut next = self.clone();
        match step {
            Move::Tick => {
                next.voters.iter_mut().for_each(|voter| voter.tick(rules));
                rules.clients().for_each(|client| next.grow_older(client, rules));
                next.highest = next.highest.saturating_sub(rules.clock.step);
            }
            Move::Ask(client) => next.ask(client, rules),
            Move::AskAgain(client) => next.ask_again(client, rules),
            Move::Renew(client) => next.renew(client),
            Move::GiveBack(client) => next.give_back(client),
            Move::Arrive(client, voter) => {
                next.voters[voter].run_next(client, self.client(client), rules);
            }
            Move::Hear(client, voter) => next.hear(client, voter, rules),
            Move::Cut(client, voter) => {
                next.budget.cuts -= 1;
                let requests = &mut next.voters[voter].line_mut(client).requests;
                *requests = requests.debts();
            }
            Move::Forget(voter) => {
                next.budget.amnesias -= 1;
                next.voters[voter].forget(rules);
            }
        }
        next
    }
}
