//! What has to be true in every state.

use stateright::Property;

use crate::fair_model::{
    moves::Queues,
    rest::{head, wins_at_once, wins_with_next_bid},
    rules::{Broken, Rules},
    state::{Phase, State, VOTERS},
};

pub(crate) const ORDER: &str = "who stood on a majority before another asked wins before it";
pub(crate) const EXCLUSION: &str = "no two places hold the lock";
pub(crate) const NOTHING_LEFT: &str = "when all have left, nothing is left but what ends by itself";
pub(crate) const HEAD_WINS: &str = "at rest, the first of two that wait wins with its next bid";
pub(crate) const PROGRESS: &str = "at rest, somebody wins once every place has bid again";

pub(crate) fn all() -> Vec<Property<Queues>> {
    vec![
        Property::always(ORDER, |_, state: &State| !state.overtaken),
        Property::always(EXCLUSION, |model, state| {
            // A voter that forgets may vote twice; the other model has the rule against that.
            holders(state) <= 1 || model.rules.bounds.budget.amnesias > 0
        }),
        Property::always(NOTHING_LEFT, |model, state| nothing_is_left(state, &model.rules)),
        Property::always(HEAD_WINS, |model, state| head_wins(state, &model.rules)),
        Property::always(PROGRESS, |model, state| progresses(state, &model.rules)),
    ]
}

fn holders(state: &State) -> usize {
    state.places.iter().filter(|place| place.phase == Phase::Holding).count()
}

fn nothing_is_left(state: &State, rules: &Rules) -> bool {
    if !state.is_at_rest() {
        return true;
    }
    let mut left = state.clone();
    for place in rules.places().filter(|place| state.waits(*place)) {
        left.leave(place, rules);
    }
    left.deliver(None, rules);
    let vote_ends =
        |voter: usize| left.voters[voter].vote.is_none_or(|vote| left.is_excused(vote, rules));
    let entry_ends = |voter: usize, place: usize| {
        let dead = left.dead[rules.client_of(place)];
        left.voters[voter].queue[place].is_none_or(|entry| entry.excused || dead)
    };
    (0..VOTERS)
        .all(|voter| vote_ends(voter) && rules.places().all(|place| entry_ends(voter, place)))
}

/// Of more it need not: see `the_first_of_three_may_need_the_bids_of_the_others`.
fn head_wins(state: &State, rules: &Rules) -> bool {
    let waiting = rules.places().filter(|place| state.waits(*place)).count();
    waiting > 2 || wins_at_once(state, rules)
}

/// Whichever minority is silent.
pub(crate) fn progresses(state: &State, rules: &Rules) -> bool {
    let Some(head) = head(state, rules) else { return true };
    let silent = (0..VOTERS).map(Some).chain([None]);
    silent.into_iter().all(|silent| {
        let mut state = state.past_deadlines(rules);
        let others = rules.places().filter(|place| state.waits(*place) && *place != head);
        let all: Vec<usize> = others.chain([head]).collect();
        all.into_iter().any(|place| wins_with_next_bid(&mut state, place, silent, rules))
    })
}

impl State {
    /// What ends by itself has ended.
    pub(crate) fn past_deadlines(&self, rules: &Rules) -> Self {
        let mut state = self.clone();
        for voter in &mut state.voters {
            voter.vote = voter.vote.filter(|vote| !self.is_excused(*vote, rules));
            for place in rules.places().filter(|place| !self.waits(*place)) {
                let dead = self.dead[rules.client_of(place)];
                let ends = |excused| (excused || dead) && !rules.breaks(Broken::NeverSwept);
                voter.queue[place] = voter.queue[place].filter(|entry| !ends(entry.excused));
            }
        }
        state
    }
}
