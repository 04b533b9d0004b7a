//! What has to be true in every state.

use stateright::Property;

use crate::{
    check::Explored,
    queue_model::{
        rest::{wins_at_once, wins_with_next_bid},
        rules::Rules,
        state::{MOST_PLACES, Phase, Read, State},
    },
};

pub(crate) const EXCLUSION: &str = "nobody else reads or writes while somebody writes";
pub(crate) const OWN_DEADLINE: &str = "a reader's deadline is moved by its own requests only";
pub(crate) const UNPARTED: &str = "nobody writes between a write and the read under it";
pub(crate) const ORDER: &str = "who stood on a majority before another asked wins before it";
pub(crate) const NOTHING_LEFT: &str = "when all have left, nothing is left but what ends by itself";
pub(crate) const HEAD_WINS: &str = "at rest, the first of two that wait wins with its next bid";
pub(crate) const ALL_ENTER: &str = "at rest, everybody who waits comes in, one after the other";

pub(crate) fn all() -> Vec<Property<Explored<Rules>>> {
    vec![
        Property::always(EXCLUSION, |model, state| excludes(state, &model.rules)),
        Property::always(OWN_DEADLINE, |_, state| has_own_deadlines(state)),
        Property::always(UNPARTED, |_, state: &State| !state.parted),
        Property::always(ORDER, |_, state: &State| !state.overtaken),
        Property::always(NOTHING_LEFT, |model, state| nothing_is_left(state, &model.rules)),
        Property::always(HEAD_WINS, |model, state| head_wins(state, &model.rules)),
        Property::always(ALL_ENTER, |model, state| all_enter(state, &model.rules)),
    ]
}

/// What one user reads under its own write is no other's.
fn excludes(state: &State, rules: &Rules) -> bool {
    let writes = |place: usize| state.places[place].phase == Phase::Holding && rules.writes(place);
    let has_any = |place: usize| {
        let it = &state.places[place];
        it.phase == Phase::Holding || matches!(it.read, Read::Held(_))
    };
    let others = |place: usize| rules.places().filter(move |other| *other != place);
    !rules.places().any(|place| writes(place) && others(place).any(has_any))
}

fn has_own_deadlines(state: &State) -> bool {
    state
        .voters
        .iter()
        .flat_map(|voter| voter.readers.iter().enumerate())
        .all(|(place, votes)| votes.iter().flatten().all(|vote| vote.until.place() == Some(place)))
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
    left.voters.iter().all(|voter| {
        let write = voter.writer.is_none_or(|vote| left.is_excused(vote.until.place(), vote));
        let of_place = |place: usize| {
            let dead = left.dead[place];
            let mut votes = voter.readers[place].iter().flatten();
            votes.all(|vote| left.is_excused(Some(place), *vote))
                && voter.queue[place].is_none_or(|entry| entry.excused || dead)
        };
        write && (0..MOST_PLACES).all(of_place)
    })
}

/// Of more it need not: see `the_first_of_three_may_need_the_bids_of_the_others`. Nor need it where
/// one of two sets has no majority without a voter that has the other with a lower ticket still:
/// the other tells that voter with its next bid.
fn head_wins(state: &State, rules: &Rules) -> bool {
    let waiting = rules.places().filter(|place| state.waits(*place)).count();
    waiting > 2 || rules.bounds.change.is_some() || wins_at_once(state, rules)
}

/// Whichever minority is silent.
pub(crate) fn all_enter(state: &State, rules: &Rules) -> bool {
    let waiting = || rules.places().filter(|place| state.waits(*place));
    if !state.is_at_rest() || waiting().next().is_none() {
        return true;
    }
    let minorities = (0..rules.voters()).filter(|voter| rules.may_be_spared(*voter));
    minorities.map(Some).chain([None]).all(|silent| {
        let mut later = state.past_deadlines(rules);
        // The first of three may have to wait for a bid of each of the others.
        for _ in 0..=waiting().count() {
            let still = rules.places().filter(|place| later.waits(*place));
            for place in still.collect::<Vec<_>>() {
                if wins_with_next_bid(&mut later, place, silent, rules) {
                    later.come_in(place, rules);
                    later.release(place, rules);
                    later.deliver(silent, rules);
                }
            }
        }
        !rules.places().any(|place| later.waits(place))
    })
}

impl State {
    /// What ends by itself has ended.
    pub(crate) fn past_deadlines(&self, rules: &Rules) -> Self {
        let mut state = self.clone();
        for (at, voter) in state.voters.iter_mut().enumerate() {
            voter.writer = voter.writer.filter(|vote| !self.may_lapse(vote.until.place(), *vote));
            for (place, slot) in self.lapsing_reads(at) {
                voter.readers[place][slot] = None;
            }
            for place in rules.places().filter(|place| !self.waits(*place)) {
                let ends = |entry: &_| self.may_end(place, *entry, rules);
                voter.queue[place] = voter.queue[place].filter(|entry| !ends(entry));
            }
            voter.forgot = Default::default();
        }
        state
    }
}
