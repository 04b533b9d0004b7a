//! The value of a key that holds a sorted set.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeBounds,
    sync::Arc,
};

use super::score::Score;

/// Members with their scores, ordered by score and then by the bytes of the member.
#[derive(Clone, Debug, Default)]
pub(super) struct SortedSet {
    order: BTreeSet<(Score, Arc<str>)>,
    scores: BTreeMap<Arc<str>, Score>,
}

impl SortedSet {
    pub(super) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    pub(super) fn score(&self, member: &str) -> Option<Score> {
        self.scores.get(member).copied()
    }

    /// Gives a member its score; it need not have been there.
    pub(super) fn put(&mut self, member: &str, score: Score) {
        self.remove(member);
        let member: Arc<str> = member.into();
        self.order.insert((score, Arc::clone(&member)));
        self.scores.insert(member, score);
    }

    /// Tells whether there was such a member.
    pub(super) fn remove(&mut self, member: &str) -> bool {
        let Some((member, score)) = self.scores.remove_entry(member) else { return false };
        self.order.remove(&(score, member))
    }

    /// How many members stand before this one. Counts them: a set of waiters is small.
    pub(super) fn rank(&self, member: &str) -> Option<usize> {
        self.scores.get(member)?;
        self.entries().position(|(other, _)| other == member)
    }

    /// The members in their order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, Score)> {
        self.order.iter().map(|(score, member)| (&**member, *score))
    }

    /// The members whose scores lie in the range, which may be empty or reversed.
    pub(super) fn within(
        &self,
        range: impl RangeBounds<Score>,
    ) -> impl Iterator<Item = (&str, Score)> {
        self.entries().filter(move |(_, score)| range.contains(score))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(text: &str) -> Score {
        Score::parse(text).unwrap()
    }

    fn members(set: &SortedSet) -> Vec<&str> {
        set.entries().map(|(member, _)| member).collect()
    }

    #[test]
    fn members_stand_by_score_and_then_by_bytes() {
        let mut set = SortedSet::default();
        for (member, number) in
            [("ä", "2"), ("b", "2"), ("B", "2"), ("a", "10"), ("c", "-inf"), ("", "2")]
        {
            set.put(member, score(number));
        }
        assert_eq!(members(&set), ["c", "", "B", "b", "ä", "a"]);
        assert_eq!((set.rank("ä"), set.rank("x")), (Some(4), None));
    }

    #[test]
    fn a_member_has_one_place_and_leaves_none_behind() {
        let mut set = SortedSet::default();
        set.put("a", score("1"));
        set.put("b", score("2"));
        set.put("a", score("3"));
        assert_eq!((members(&set), set.len()), (vec!["b", "a"], 2));
        assert!(set.remove("a") && !set.remove("a") && set.remove("b"));
        assert!(set.is_empty() && members(&set).is_empty());
    }

    #[test]
    fn a_reversed_range_has_no_members() {
        let mut set = SortedSet::default();
        set.put("a", score("1"));
        assert_eq!(set.within(score("2")..=score("0")).count(), 0);
        assert_eq!(set.within(score("0")..=score("1")).count(), 1);
    }
}
