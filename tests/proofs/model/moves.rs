//! What can happen next.

use std::sync::Arc;

use stateright::{Model, Property};

use crate::{
    check::{Passed, Protocol},
    model::{
        landmarks::{self, Landmark},
        properties,
        queue::Kind,
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
    Crash { voter: usize, keeps_data: bool },
    Die(u8),
}

#[derive(Clone, Debug)]
pub(crate) struct Locks {
    pub(crate) rules: Rules,
    /// The one property that is looked at, if not all are.
    pub(crate) only: Option<&'static str>,
    /// What some path came by.
    pub(crate) landmarks: Arc<Passed>,
}

impl Model for Locks {
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
        // Where no time is left to run out, time changes nothing. Everything else does.
        if step == Move::Tick && after == *before {
            return None;
        }
        landmarks::pass(&self.landmarks, before, step, &after);
        after.drop_void(&self.rules);
        after.put_in_order();
        Some(after)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = properties::all();
        properties.retain(|property| self.only.is_none_or(|only| only == property.name));
        properties
    }
}

impl Protocol for Rules {
    type Model = Locks;
    type Landmark = Landmark;

    fn model(self, only: Option<&'static str>) -> Locks {
        Locks { rules: self, only, landmarks: Arc::default() }
    }

    fn missing(model: &Locks, landmarks: &[Landmark]) -> Vec<Landmark> {
        model.landmarks.missing(landmarks)
    }

    fn tell(self, state: &State, step: Move) -> String {
        state.tell(step, &self)
    }
}

impl State {
    fn moves_of_client(&self, client: u8, rules: &Rules, moves: &mut Vec<Move>) {
        if self.may_ask(client, rules) {
            moves.push(Move::Ask(client));
        }
        match self.client(client).phase {
            Phase::Idle => {}
            Phase::Asking { .. } => moves.push(Move::GiveUp(client)),
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
    }

    fn moves_of_voter(&self, voter: usize, rules: &Rules, moves: &mut Vec<Move>) {
        let it = &self.voters[voter];
        for client in rules.clients() {
            let line = it.line(client);
            if !line.queue.is_empty() {
                moves.push(Move::Arrive(client, voter));
                if self.budget.cuts > 0 && client < rules.bounds.busy {
                    moves.push(Move::Cut(client, voter));
                }
            }
            if !line.late.is_empty() {
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
            Move::Arrive(client, voter) => next.voters[voter].run_next(client, rules),
            Move::ArriveLate(client, voter) => next.voters[voter].run_late(client, rules),
            Move::Hear(client, voter) => next.hear(client, voter, rules),
            Move::ExpireEarly(voter) => next.voters[voter].record = None,
            Move::Cut(client, voter) => {
                next.budget.cuts -= 1;
                let repeats = !rules.breaks(Broken::UndoNotRepeated);
                next.voters[voter].line_mut(client).cut(repeats);
            }
            Move::Crash { voter, keeps_data } => {
                let budget = &mut next.budget;
                let left = if keeps_data { &mut budget.restarts } else { &mut budget.amnesias };
                *left -= 1;
                next.voters[voter].crash(keeps_data, rules);
            }
            Move::Die(client) => next.die(client),
        }
        next
    }

    fn tick(&mut self, rules: &Rules) {
        for voter in &mut self.voters {
            voter.tick();
        }
        for client in rules.clients() {
            self.grow_older(client, rules);
        }
    }

    /// The step from this state, in words.
    pub(crate) fn tell(&self, step: Move, rules: &Rules) -> String {
        let who = |client: u8| ["ada", "ben", "cleo"][usize::from(client)];
        let at = |voter: usize| format!("voter {}", self.names[voter]);
        let request = |client: u8, voter: usize, late: bool| {
            let line = self.voters[voter].line(client);
            let queue = if late { line.late } else { line.queue };
            let name = |kind: Kind| format!("{kind:?}").to_lowercase();
            queue.iter().next().map_or_else(String::new, |first| name(first.kind))
        };
        match step {
            Move::Tick => "a tick passes".into(),
            Move::Ask(client) => format!("{} asks", who(client)),
            Move::AskAgain(client) => format!("{} asks the others again", who(client)),
            Move::GiveUp(client) => format!("{} gives up", who(client)),
            Move::Renew(client) => format!("{} renews", who(client)),
            Move::Release(client) => format!("{} releases", who(client)),
            Move::Arrive(client, voter) => {
                let what = request(client, voter, false);
                let after = self.after(step, rules).voters[voter].line(client).reply;
                let answer = match after {
                    Answer::Granted => ": granted".into(),
                    Answer::Uncounted => ": granted, in quarantine".into(),
                    Answer::Refused(by) => format!(": refused for {}", who(by.client)),
                    Answer::None => String::new(),
                };
                format!("{} of {} arrives at {}{answer}", what, who(client), at(voter))
            }
            Move::ArriveLate(client, voter) => {
                let what = request(client, voter, true);
                format!("late, {} of {} arrives at {}", what, who(client), at(voter))
            }
            Move::Hear(client, voter) => format!("{} hears {}", who(client), at(voter)),
            Move::ExpireEarly(voter) => format!("the vote of {} expires early", at(voter)),
            Move::Cut(client, voter) => {
                format!("the connection of {} to {} breaks", who(client), at(voter))
            }
            Move::Crash { voter, keeps_data: true } => format!("{} restarts", at(voter)),
            Move::Crash { voter, keeps_data: false } => {
                format!("{} restarts and has forgotten everything", at(voter))
            }
            Move::Die(client) => format!("{} dies and starts again", who(client)),
        }
    }
}
