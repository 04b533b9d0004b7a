//! What has to be true in every state.

use stateright::Property;

use crate::token_model::{
    moves::{Move, Tokens},
    rules::Rules,
    state::{Phase, State, VOTERS},
};

pub(crate) const EXCLUSION: &str = "no two holds are inside their validity";
pub(crate) const TOKENS: &str = "a hold that is handed out later has a higher token";
pub(crate) const FREE: &str = "a lease after all came to rest, who asks is handed the lock";

pub(crate) fn all() -> Vec<Property<Tokens>> {
    vec![
        Property::always(EXCLUSION, |_, state| holders(state) <= 1),
        Property::always(TOKENS, |_, state: &State| !state.fell),
        Property::always(FREE, |model, state| is_free_soon(state, &model.rules)),
    ]
}

fn holders(state: &State) -> usize {
    state.clients.iter().filter(|client| client.holds()).count()
}

/// Whichever minority of the voters is silent.
fn is_free_soon(state: &State, rules: &Rules) -> bool {
    if !state.is_at_rest() {
        return true;
    }
    let mut asking = state.clone();
    for _ in 0..rules.lease {
        asking = asking.after(Move::Tick, rules);
    }
    asking.ask(0, rules);
    (0..VOTERS).all(|silent| {
        let mut state = asking.clone();
        // The votes, and the token where it has to be stored.
        for _ in 0..2 {
            for voter in (0..VOTERS).filter(|voter| *voter != silent) {
                state = state.after(Move::Arrive(0, voter), rules);
                state = state.after(Move::Hear(0, voter), rules);
            }
        }
        matches!(state.client(0).phase, Phase::Holding { .. }) && !state.fell
    })
}
