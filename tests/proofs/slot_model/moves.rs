//! What can happen next, and what has to be true in every state.

use std::{collections::BTreeSet, sync::Arc};

use stateright::{Model, Property};

use crate::{
    check::{Passed, Protocol},
    mutant,
    slot_model::{
        rules::{CLIENTS, Landmark, Rules},
        state::{Phase, State, pairs},
    },
};

pub(crate) const ONE_HOLDER: &str = "each slot is held once";
pub(crate) const BACKED: &str = "a majority has given a holder its slots";
pub(crate) const AT_MOST: &str = "no more permits are held than there are";
pub(crate) const NOTHING_LEFT: &str = "when all have given back, no voter has given anything";
pub(crate) const FREE_IS_HAD: &str = "at rest, whoever asks for a permit that is free has it";

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Ask(usize),
    GiveUp(usize),
    Renew(usize),
    Release(usize),
    Arrive(usize, usize),
    Lose(usize, usize),
    RunAgain(usize, usize),
    Hear(usize, usize),
    /// The first voter forgets all that it gave.
    Forget,
    /// It counts again.
    CountAgain,
    /// The lease of a holder ends.
    Lapse(usize),
    /// And what a voter has given it.
    Expire(usize, usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Permits {
    rules: Rules,
    /// The one property that is looked at, if not all are.
    only: Option<&'static str>,
    /// What some path came by.
    passed: Arc<Passed>,
}

impl Model for Permits {
    type State = State;
    type Action = Move;

    fn init_states(&self) -> Vec<State> {
        mutant::wake(self.rules.alive());
        vec![State::default()]
    }

    fn actions(&self, state: &State, moves: &mut Vec<Move>) {
        mutant::wake(self.rules.alive());
        let rules = &self.rules;
        for client in (0..CLIENTS).filter(|client| rules.wanted[*client] > 0) {
            let most = if rules.again && client == 0 { 2 } else { 1 };
            let it = &state.clients[client];
            match it.phase {
                Phase::Idle if it.begun < most => moves.push(Move::Ask(client)),
                Phase::Idle => {}
                Phase::Asking if rules.steadfast => {}
                Phase::Asking => moves.push(Move::GiveUp(client)),
                Phase::Holding(_) => {
                    // The others hold on: what they give back is given back like this.
                    if client == 0 && !rules.steadfast {
                        moves.push(Move::Release(client));
                    }
                    // A renewal that is not needed changes nothing.
                    let is_apart = state.voters.iter().any(|voter| {
                        let given = &voter.given[client];
                        !matches!(&it.phase, Phase::Holding(slots) if slots == given)
                    });
                    let idle = state.ways[client].iter().all(|way| way.requests.is_empty());
                    if is_apart && idle {
                        moves.push(Move::Renew(client));
                    }
                }
            }
        }
        if state.forgets < rules.forgets {
            moves.push(Move::Forget);
        }
        if state.may_count_again() {
            moves.push(Move::CountAgain);
        }
        for (client, it) in state.clients.iter().enumerate() {
            if state.lapses < rules.lapses && matches!(it.phase, Phase::Holding(_)) {
                moves.push(Move::Lapse(client));
            }
        }
        for (client, voter) in pairs() {
            if state.clients[client].lapsed && !state.voters[voter].given[client].is_empty() {
                moves.push(Move::Expire(client, voter));
            }
            let way = &state.ways[client][voter];
            if !way.requests.is_empty() {
                moves.push(Move::Arrive(client, voter));
                if state.losses < rules.losses && voter == 0 {
                    moves.push(Move::Lose(client, voter));
                }
            }
            if way.copy.is_some() && state.copies < rules.copies {
                moves.push(Move::RunAgain(client, voter));
            }
            if way.reply.is_some() {
                moves.push(Move::Hear(client, voter));
            }
        }
    }

    fn next_state(&self, state: &State, step: Move) -> Option<State> {
        mutant::wake(self.rules.alive());
        let (mut next, rules, passed) = (state.clone(), &self.rules, &self.passed);
        match step {
            Move::Ask(client) => next.ask(client),
            Move::GiveUp(client) | Move::Release(client) => next.give_up(client, rules),
            Move::Renew(client) => next.renew(client),
            Move::Arrive(client, voter) => next.arrive(client, voter, false, rules),
            Move::Lose(client, voter) => next.arrive(client, voter, true, rules),
            Move::RunAgain(client, voter) => next.run_copy(client, voter, rules),
            Move::Hear(client, voter) => next.hear(client, voter, rules, passed),
            Move::Forget => next.forget(passed),
            Move::CountAgain => next.quarantined = false,
            Move::Lapse(client) => next.lapse(client, passed),
            Move::Expire(client, voter) => next.voters[voter].given[client].clear(),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let all = [
            Property::always(ONE_HOLDER, |_, state: &State| {
                let held = state.slots_held();
                held.iter().collect::<BTreeSet<_>>().len() == held.len()
            }),
            Property::always(AT_MOST, |model: &Self, state| {
                state.slots_held().len() <= usize::from(model.rules.permits)
            }),
            Property::always(BACKED, |_, state: &State| {
                (0..CLIENTS).all(|client| state.is_backed(client))
            }),
            Property::always(NOTHING_LEFT, Self::nothing_is_left),
            Property::always(FREE_IS_HAD, Self::free_is_had),
        ];
        let is_wanted = |property: &Property<Self>| self.only.is_none_or(|it| it == property.name);
        all.into_iter().filter(is_wanted).collect()
    }
}

impl Permits {
    fn is_troubled(state: &State) -> bool {
        [state.losses, state.copies, state.forgets, state.lapses].iter().any(|count| *count > 0)
    }

    /// A copy that runs behind its undo leaves something until its lease ends; and so does what is
    /// lost, until it is sent again.
    fn nothing_is_left(&self, state: &State) -> bool {
        mutant::wake(self.rules.alive());
        let idle = state.clients.iter().all(|client| client.phase == Phase::Idle);
        if !idle || Self::is_troubled(state) {
            return true;
        }
        let mut left = state.clone();
        left.settle(&self.rules, &Passed::default());
        left.voters.iter().all(|voter| voter.given.iter().all(Vec::is_empty))
    }

    /// Holders alone, and all that they sent has arrived.
    fn free_is_had(&self, state: &State) -> bool {
        mutant::wake(self.rules.alive());
        let asking = state.clients.iter().any(|client| client.phase == Phase::Asking);
        let next = (0..CLIENTS).find(|client| {
            self.rules.wanted[*client] == 1 && state.clients[*client].phase == Phase::Idle
        });
        let Some(next) = next.filter(|_| !asking && !Self::is_troubled(state)) else {
            return true;
        };
        let mut after = state.clone();
        after.settle(&self.rules, &Passed::default());
        // Two that have each other's slots on a voter exchange them with the second renewal.
        for client in [0, 1, 2, 0, 1, 2] {
            after.renew(client);
            after.settle(&self.rules, &Passed::default());
        }
        if after.slots_held().len() >= usize::from(self.rules.permits) {
            return true;
        }
        // One voter of three may be away: the others must do.
        (0..3).all(|away| {
            let mut after = after.clone();
            after.ask(next);
            after.ways[next][away].requests.clear();
            after.settle(&self.rules, &Passed::default());
            matches!(after.clients[next].phase, Phase::Holding(_))
        })
    }
}

impl Protocol for Rules {
    type Model = Permits;
    type Landmark = Landmark;

    fn model(self, only: Option<&'static str>) -> Permits {
        Permits { rules: self, only, passed: Arc::default() }
    }

    fn missing(model: &Permits, landmarks: &[Landmark]) -> Vec<Landmark> {
        model.passed.missing(landmarks)
    }

    fn tell(self, state: &State, step: Move) -> String {
        let name = |client: usize| ["Ada", "Ben", "Cleo"][client];
        let at = |voter: usize| format!("voter {}", voter + 1);
        match step {
            Move::Ask(client) => format!("{} asks", name(client)),
            Move::GiveUp(client) => format!("{} gives up", name(client)),
            Move::Renew(client) => format!("{} renews", name(client)),
            Move::Release(client) => format!("{} releases", name(client)),
            Move::Arrive(client, voter) => {
                let (_, request) = &state.ways[client][voter].requests[0];
                let mut after = state.clone();
                after.arrive(client, voter, false, &self);
                let given = &after.voters[voter].given[client];
                format!("{request:?} of {} arrives at {}: {given:?}", name(client), at(voter))
            }
            Move::Lose(client, voter) => {
                format!("a request of {} to {} is lost", name(client), at(voter))
            }
            Move::RunAgain(client, voter) => {
                format!("a request of {} runs again at {}", name(client), at(voter))
            }
            Move::Hear(client, voter) => format!("{} hears {}", name(client), at(voter)),
            Move::Forget => format!("{} forgets", at(0)),
            Move::CountAgain => format!("{} counts again", at(0)),
            Move::Lapse(client) => format!("the lease of {} ends", name(client)),
            Move::Expire(client, voter) => format!("{} of {} ends", at(voter), name(client)),
        }
    }
}
