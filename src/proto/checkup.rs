//! When a renewal has the voters look at all that they know of a hold, and when at its vote alone.

use std::time::Duration;

use crate::proto::Moment;

/// Which voters have nothing to be put right with one hold. Voters behind the first 64 never count
/// as such.
#[derive(Clone, Copy, Debug)]
pub struct Checkup {
    voters: usize,
    /// A bit for each voter that granted a round in full, and every round since that it answered,
    /// and was not in quarantine.
    settled: u64,
    due: Moment,
}

impl Checkup {
    /// From one round in full to the next, at most.
    const EVERY: Duration = Duration::from_secs(150);

    pub fn of(voters: usize) -> Self {
        Self { voters, settled: 0, due: Moment::BEGINNING }
    }

    /// A round begins. Whether it is in full: where some voter is not settled, and after a while,
    /// but several times while voters remember the token.
    pub fn begins(&mut self, now: Moment, fence_memory: Duration) -> bool {
        let are_settled = (0..self.voters).all(|voter| self.settled & bit(voter) > 0);
        let in_full = !are_settled || now >= self.due;
        if in_full {
            (self.settled, self.due) = (0, now + Self::EVERY.min(fence_memory / 4));
        }
        in_full
    }

    /// A voter answered a round. `is_sound`: it granted, and was not in quarantine.
    pub fn heard(&mut self, voter: usize, is_sound: bool, in_full: bool) {
        if !is_sound {
            self.settled &= !bit(voter);
        } else if in_full {
            self.settled |= bit(voter);
        }
    }
}

/// None for those who have no bit.
fn bit(voter: usize) -> u64 {
    u32::try_from(voter).map_or(0, |voter| 1_u64.checked_shl(voter).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Duration = Duration::from_secs(1_000);

    fn at(secs: u64) -> Moment {
        Moment::BEGINNING + Duration::from_secs(secs)
    }

    fn grant(checkup: &mut Checkup, voters: std::ops::Range<usize>, in_full: bool) {
        voters.for_each(|voter| checkup.heard(voter, true, in_full));
    }

    #[test]
    fn a_round_is_in_full_until_all_have_granted_one_and_again_after_a_while() {
        let mut checkup = Checkup::of(3);
        assert!(checkup.begins(at(10), MEMORY), "nobody has granted one in full");
        grant(&mut checkup, 0..2, true);
        assert!(checkup.begins(at(20), MEMORY), "one was silent");
        grant(&mut checkup, 0..3, true);
        for now in [30, 169] {
            assert!(!checkup.begins(at(now), MEMORY));
            grant(&mut checkup, 0..2, false);
        }
        assert!(checkup.begins(at(170), MEMORY), "it was long ago");
        grant(&mut checkup, 0..3, false);
        assert!(checkup.begins(at(180), MEMORY), "those were answers to the round before");
    }

    #[test]
    fn it_is_due_four_times_while_a_token_is_remembered_and_no_later_than_by_default() {
        for (memory, due) in [(400, 110), (600, 160), (90_000, 160)] {
            let mut checkup = Checkup::of(1);
            let memory = Duration::from_secs(memory);
            assert!(checkup.begins(at(10), memory));
            grant(&mut checkup, 0..1, true);
            assert!(!checkup.begins(at(due - 1), memory));
            assert!(checkup.begins(at(due), memory));
        }
    }

    // And a grant of the same round that comes late heals nothing.
    #[test]
    fn a_voter_that_fails_is_asked_in_full_again() {
        let mut checkup = Checkup::of(3);
        checkup.begins(at(10), MEMORY);
        grant(&mut checkup, 0..3, true);
        assert!(!checkup.begins(at(20), MEMORY));
        checkup.heard(2, false, false);
        checkup.heard(2, true, false);
        assert!(checkup.begins(at(30), MEMORY));
    }

    #[test]
    fn with_more_voters_than_it_has_bits_each_round_is_in_full() {
        for (voters, in_full) in [(64, false), (65, true)] {
            let mut checkup = Checkup::of(voters);
            checkup.begins(at(10), MEMORY);
            grant(&mut checkup, 0..voters, true);
            assert_eq!(checkup.begins(at(20), MEMORY), in_full, "{voters}");
        }
    }
}
