//! Law 4: who stands on a majority when another first asks, wins before it.

use crate::queue_model::{
    rules::{Broken, Rules},
    state::{MOST_PLACES, State},
};

impl State {
    /// Each voter remembers, for the place that asks, which others stand on it.
    pub(crate) fn remember_who_stands_before(&mut self, place: usize, rules: &Rules) {
        for other in rules.rivals(place) {
            if !self.waits(other) {
                continue;
            }
            let ticket = self.places[other].ticket;
            for voter in &mut self.voters {
                voter.stood[place] |= u8::from(voter.has(other, ticket)) << other;
            }
        }
    }

    /// One that does not wait any more is before nobody, and nobody is before it.
    pub(crate) fn forget_order_of(&mut self, place: usize) {
        for voter in &mut self.voters {
            voter.stood[place] = 0;
            voter.stood.iter_mut().for_each(|others| *others &= !(1 << place));
        }
    }

    /// Who does not stand on a majority any more has no claim.
    pub(crate) fn drop_lost_claims(&mut self, rules: &Rules) {
        for place in 0..MOST_PLACES {
            let any = self.voters.iter().fold(0, |any, voter| any | voter.stood[place]);
            for other in (0..MOST_PLACES).filter(|other| any >> other & 1 > 0) {
                self.drop_lost_claim(place, other, rules);
            }
        }
    }

    fn drop_lost_claim(&mut self, place: usize, other: usize, rules: &Rules) {
        let stands = |voter: usize| self.voters[voter].stood[place] >> other & 1 > 0;
        let keeps = rules.decide(other, stands);
        // Where nothing can be lost any more it is all the same on which voters.
        let is_safe = self.budget.amnesias + self.budget.lapses == 0;
        let any = rules.breaks(Broken::AnyMajority);
        let ticket = self.places[other].ticket;
        for voter in &mut self.voters {
            if !keeps {
                voter.stood[place] &= !(1 << other);
            } else if is_safe || any && voter.has(other, ticket) {
                voter.stood[place] |= 1 << other;
            }
        }
    }
}
