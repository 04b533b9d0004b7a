//! Voters that are one server.

use super::{Life, Place, Register};
use crate::{
    clock::Moment,
    engine::nanos::since_beginning,
    words::{Quarantine, Side},
};

impl Register {
    /// Whose server this voter has come to, if that is another's: it has no vote of its own there.
    pub(crate) fn twin(&self, place: Place) -> Option<usize> {
        self.twins.iter().find(|(twin, _)| *twin == place).map(|(_, other)| *other)
    }

    /// Whether two voters are parts of one cluster in different sets: other keys, and so other
    /// votes, though they may be on one server.
    pub(crate) fn are_apart(&self, one: usize, other: usize) -> bool {
        let sides = [one, other].map(|voter| self.quorum.side(voter));
        let share_a_set = matches!(sides, [Some(one), Some(other)] if one == other)
            || sides.iter().any(|side| matches!(side, None | Some(Side::Both)));
        self.clusters[one] == self.clusters[other] && !share_a_set
    }

    /// Looks for voters that are one server. Who comes to another's or leaves it, or has it alone
    /// from then on, counts as one that has forgotten: the server does not know the votes that the
    /// voter gave before, and what it granted to the other is not to be counted a second time.
    pub(super) fn compare_servers(&mut self, now: Moment) {
        let after = self.find_twins();
        let before = std::mem::replace(&mut self.twins, after.clone());
        for (place, _) in before.iter().filter(|twin| !after.contains(twin)) {
            self.forgot(*place, since_beginning(now), Quarantine::Restarted);
        }
        for (place, _) in after.iter().filter(|twin| !before.contains(twin)) {
            self.forgot(*place, since_beginning(now), Quarantine::Restarted);
        }
    }

    fn find_twins(&self) -> Vec<(Place, usize)> {
        let shards = self.voters.iter().enumerate().flat_map(|(voter, shards)| {
            shards.iter().enumerate().map(move |(shard, standing)| (voter, shard, standing))
        });
        let lives: Vec<(Place, &Life)> = shards
            .filter_map(|(voter, shard, standing)| {
                Some((Place { voter, shard }, standing.life.as_ref()?))
            })
            .collect();
        let first = |(place, life): &(Place, &Life)| {
            let is_other = |other: &Place| self.clusters[other.voter] != self.clusters[place.voter];
            let came = |place: Place, life: &Life| (life.since, place);
            let same = lives.iter().filter(|(other, theirs)| {
                is_other(other)
                    && theirs.server() == life.server()
                    && came(*other, theirs) < came(*place, life)
            });
            let first = same.min_by_key(|(other, theirs)| came(*other, theirs));
            first.map(|(other, _)| (*place, other.voter))
        };
        lives.iter().filter_map(first).collect()
    }
}
