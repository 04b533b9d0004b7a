//! What can happen next, and what has to be true in every state.

use std::collections::BTreeSet;

use stateright::Property;

use crate::{
    check::{Explored, Protocol},
    slot_model::{
        rules::{Broken, CLIENTS, Rules},
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

impl Protocol for Rules {
    type State = State;
    type Move = Move;

    fn alive(&self) -> Option<&'static str> {
        self.is_broken(Broken::AnySlotIsAVote).then_some("any_slot_is_a_vote")
    }

    fn first(&self) -> State {
        State::default()
    }

    fn moves(&self, state: &State, moves: &mut Vec<Move>) {
        let rules = self;
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

    fn next(&self, state: &State, step: Move) -> Option<State> {
        let (mut next, rules) = (state.clone(), self);
        match step {
            Move::Ask(client) => next.ask(client),
            Move::GiveUp(client) | Move::Release(client) => next.give_up(client, rules),
            Move::Renew(client) => next.renew(client),
            Move::Arrive(client, voter) => next.arrive(client, voter, false, rules),
            Move::Lose(client, voter) => next.arrive(client, voter, true, rules),
            Move::RunAgain(client, voter) => next.run_copy(client, voter, rules),
            Move::Hear(client, voter) => next.hear(client, voter, rules),
            Move::Forget => next.forget(),
            Move::CountAgain => next.quarantined = false,
            Move::Lapse(client) => next.lapse(client),
            Move::Expire(client, voter) => next.voters[voter].given[client].clear(),
        }
        Some(next)
    }

    fn properties() -> Vec<Property<Explored<Self>>> {
        vec![
            Property::always(ONE_HOLDER, |_, state: &State| {
                let held = state.slots_held();
                held.iter().collect::<BTreeSet<_>>().len() == held.len()
            }),
            Property::always(AT_MOST, |model: &Explored<Self>, state: &State| {
                state.slots_held().len() <= usize::from(model.rules.permits)
            }),
            Property::always(BACKED, |_, state: &State| {
                (0..CLIENTS).all(|client| state.is_backed(client))
            }),
            Property::always(NOTHING_LEFT, |model, state| model.rules.nothing_is_left(state)),
            Property::always(FREE_IS_HAD, |model, state| model.rules.free_is_had(state)),
        ]
    }
}

impl Rules {
    fn is_troubled(state: &State) -> bool {
        [state.losses, state.copies, state.forgets, state.lapses].iter().any(|count| *count > 0)
    }

    /// A copy that runs behind its undo leaves something until its lease ends; and so does what is
    /// lost, until it is sent again.
    fn nothing_is_left(&self, state: &State) -> bool {
        let idle = state.clients.iter().all(|client| client.phase == Phase::Idle);
        if !idle || Self::is_troubled(state) {
            return true;
        }
        let mut left = state.clone();
        left.settle(self);
        left.voters.iter().all(|voter| voter.given.iter().all(Vec::is_empty))
    }

    /// Holders alone, and all that they sent has arrived.
    fn free_is_had(&self, state: &State) -> bool {
        let asking = state.clients.iter().any(|client| client.phase == Phase::Asking);
        let next = (0..CLIENTS).find(|client| {
            self.wanted[*client] == 1 && state.clients[*client].phase == Phase::Idle
        });
        let Some(next) = next.filter(|_| !asking && !Self::is_troubled(state)) else {
            return true;
        };
        let mut after = state.clone();
        after.settle(self);
        // Two that have each other's slots on a voter exchange them with the second renewal.
        for client in [0, 1, 2, 0, 1, 2] {
            after.renew(client);
            after.settle(self);
        }
        if after.slots_held().len() >= usize::from(self.permits) {
            return true;
        }
        // One voter of three may be away: the others must do.
        (0..3).all(|away| {
            let mut after = after.clone();
            after.ask(next);
            after.ways[next][away].requests.clear();
            after.settle(self);
            matches!(after.clients[next].phase, Phase::Holding(_))
        })
    }
}
