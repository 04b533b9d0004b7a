//! What comes next where nobody bids or holds and all that was under way has arrived.

use crate::queue_model::{
    rules::Rules,
    state::{Phase, State},
    waiter::Loss,
};

pub(crate) fn wins_at_once(state: &State, rules: &Rules) -> bool {
    let Some(head) = head(state, rules) else { return true };
    wins_with_next_bid(&mut state.past_deadlines(rules), head, None, rules)
}

/// The first of those that wait, in a state at rest in which all have their tickets.
pub(crate) fn head(state: &State, rules: &Rules) -> Option<usize> {
    let waiting = || rules.places().filter(|place| state.waits(*place));
    let all_fixed = waiting().all(|place| state.places[place].ticket > 0);
    let head = waiting().min_by_key(|place| (state.places[*place].ticket, *place));
    head.filter(|_| all_fixed && state.is_at_rest())
}

pub(crate) fn wins_with_next_bid(
    state: &mut State,
    place: usize,
    silent: Option<usize>,
    rules: &Rules,
) -> bool {
    state.bid(place, rules);
    // Twice where its ticket was open, which is then told at once.
    while state.places[place].phase == Phase::Bidding {
        state.deliver(silent, rules);
        if state.may_win(place, rules) {
            return true;
        }
        state.budget.timeouts = 1;
        state.lose(place, Loss { heard: 0b111, undo_last: false }, rules);
    }
    state.deliver(silent, rules);
    false
}

impl State {
    /// All that is under way arrives, but at a voter that is silent.
    pub(crate) fn deliver(&mut self, silent: Option<usize>, rules: &Rules) {
        for voter in (0..rules.voters()).filter(|voter| Some(*voter) != silent) {
            for client in rules.clients() {
                while !self.voters[voter].lines[client].queue.is_empty() {
                    self.arrive(client, voter, rules);
                }
            }
        }
    }
}
