//! What has to be true in every state.

use stateright::Property;

use crate::{
    check::Explored,
    hold_model::{
        moves::Move,
        rules::Rules,
        state::{Hold, Line, Phase, State, VOTERS},
    },
};

pub(crate) const EXCLUSION: &str = "no two holds are inside their validity";
pub(crate) const UNINTERRUPTED: &str = "no hold is trusted after another was won";
pub(crate) const TOKENS: &str = "a hold that is handed out later has a higher token";
pub(crate) const BACKED: &str = "a trusted hold has a majority, counting voters that forgot";
pub(crate) const NO_LEAK: &str = "a vote without an owner has its undo under way";
pub(crate) const FREE: &str = "what nobody has or asks for is won at once";
pub(crate) const HEALS: &str = "one lease after the last fault everything is won at once";

pub(crate) fn all() -> Vec<Property<Explored<Rules>>> {
    vec![
        Property::always(EXCLUSION, |_, state| holders(state) <= 1),
        Property::always(UNINTERRUPTED, |_, state| !is_interrupted(state)),
        Property::always(TOKENS, |_, state: &State| !state.fell),
        Property::always(BACKED, |model, state| is_backed(state, &model.rules)),
        Property::always(NO_LEAK, |model, state| has_no_leak(state, &model.rules)),
        Property::always(FREE, |model, state| is_free_at_once(state, &model.rules)),
        Property::always(HEALS, |model, state| heals(state, &model.rules)),
    ]
}

fn holders(state: &State) -> usize {
    state.clients.iter().filter(|client| client.trusts()).count()
}

fn is_interrupted(state: &State) -> bool {
    state
        .clients
        .iter()
        .any(|client| matches!(client.phase, Phase::Holding { left: 1.., interrupted: true, .. }))
}

/// The reason for exclusion. A voter in quarantine may be one that has forgotten the hold, and
/// counts for nobody else's.
fn is_backed(state: &State, rules: &Rules) -> bool {
    rules.clients().all(|client| {
        let it = state.client(client);
        let hold = it.hold(client, rules);
        let first = rules.voters_of(it.sets).start;
        let backs = |voter: usize| {
            let voter = &state.voters[first + voter];
            voter.is_held_by(hold) || voter.is_in_quarantine(rules)
        };
        !it.trusts() || rules.quorum_of(it.sets).reached(backs)
    })
}

/// Votes of clients that died, and those given to requests that were late, end with their lease.
fn has_no_leak(state: &State, rules: &Rules) -> bool {
    state.voters.iter().all(|voter| {
        let Some(record) = voter.record.filter(|record| !record.excused) else { return true };
        let Hold { client, number } = record.hold;
        let undone = |line: &Line| {
            line.way.queue.iter().any(|it| it.kind.gives_back() && it.number == number)
        };
        state.is_owned(record.hold, rules) || undone(voter.line(client))
    })
}

/// From a state at rest where no vote has to wait for the end of its lease.
fn is_free_at_once(state: &State, rules: &Rules) -> bool {
    let waits = state.voters.iter().any(|voter| {
        voter.is_in_quarantine(rules) || voter.record.is_some_and(|record| record.excused)
    });
    !state.is_at_rest() || waits || wins(state.clone(), rules)
}

/// From a state at rest. Every state comes to rest when its faults end: requests arrive, attempts
/// are given up, and holds released or lost.
fn heals(state: &State, rules: &Rules) -> bool {
    if !state.is_at_rest() {
        return true;
    }
    let mut later = state.clone();
    for _ in 0..rules.lease {
        later = later.after(Move::Tick, rules);
    }
    wins(later, rules)
}

/// A fresh attempt is won, whichever minority of the voters is silent.
fn wins(state: State, rules: &Rules) -> bool {
    let mut asking = state;
    asking.ask(0, rules);
    let sets = asking.client(0).sets;
    let (quorum, voters) = (rules.quorum_of(sets), rules.voters_of(sets));
    let may_be_spared = |silent: &usize| !quorum.missed(|voter| voters.start + voter == *silent);
    (0..=VOTERS).filter(may_be_spared).all(|silent| {
        let mut state = asking.clone();
        // The votes, and the token where it has to be stored.
        for _ in 0..2 {
            for voter in (0..VOTERS).filter(|voter| *voter != silent) {
                state = state.after(Move::Arrive(0, voter), rules);
                state = state.after(Move::Hear(0, voter), rules);
            }
        }
        state.client(0).trusts() && !state.fell
    })
}
