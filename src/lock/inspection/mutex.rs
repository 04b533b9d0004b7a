//! What the voters say about a lock.

use std::{cmp::Reverse, collections::BTreeMap, fmt, time::Duration};

use crate::{
    scripts::{Holding, ListEntry},
    words::{Cause, HoldId, Quarantined},
};

/// What each voter says about one lock, at about the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// Every voter's view, in the order in which they were configured.
    pub voters: Vec<VoterView>,
}

/// One voter's view of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VoterView {
    /// The voter's address, without credentials.
    pub voter: String,
    /// Who has its vote, if anybody has; or why it did not say.
    pub holder: Result<Option<Holder>, Cause>,
    /// Who waits in its queue for a [`FairMutex`](crate::FairMutex), the first first; nobody where
    /// it did not say.
    pub queue: Vec<Waiting>,
    /// Whether its vote does not count for new holds now.
    pub quarantine: Option<Quarantined>,
}

/// A place in the queue of a [`FairMutex`](crate::FairMutex) or an [`RwLock`](crate::RwLock).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The place. The holds of its attempts are called `<place>.<attempt>`.
    pub place: HoldId,
    /// Its number. Of two with the same number the smaller place is first.
    pub ticket: u64,
    /// For how long the place is kept if its waiter does not ask again.
    pub ttl: Duration,
}

impl From<ListEntry> for Waiting {
    fn from(ListEntry { id, ticket, left }: ListEntry) -> Self {
        Self { place: id, ticket, ttl: left }
    }
}

impl Waiting {
    /// Those that stand on a majority of so many voters with the same ticket, in order.
    pub(super) fn standing<'a>(seen: impl Iterator<Item = &'a Self>, voters: usize) -> Vec<Self> {
        let seen = seen.map(|waiting| ((waiting.ticket, &waiting.place), waiting.ttl));
        let waiting = |((ticket, place), ttl): ((u64, &HoldId), _)| Self {
            place: place.clone(),
            ticket,
            ttl,
        };
        standing(seen, voters).map(waiting).collect()
    }
}

fn needed(voters: usize) -> usize {
    voters / 2 + 1
}

/// What stands on a majority of so many voters, in order, with the time for which it keeps one.
pub(super) fn standing<K: Ord>(
    seen: impl Iterator<Item = (K, Duration)>,
    voters: usize,
) -> impl Iterator<Item = (K, Duration)> {
    let mut times: BTreeMap<K, Vec<Duration>> = BTreeMap::new();
    for (what, ttl) in seen {
        times.entry(what).or_default().push(ttl);
    }
    times.into_iter().filter_map(move |(what, mut times)| {
        times.sort_by_key(|ttl| Reverse(*ttl));
        Some((what, *times.get(needed(voters) - 1)?))
    })
}

/// The hold that has a majority of so many voters, with the count that a majority has heard of.
pub(super) fn majority<'a>(
    holders: impl Iterator<Item = &'a Holder>,
    voters: usize,
) -> Option<Holder> {
    let mut holds: BTreeMap<&HoldId, Vec<&Holder>> = BTreeMap::new();
    for holder in holders {
        holds.entry(&holder.hold).or_default().push(holder);
    }
    let needed = needed(voters);
    let (hold, mut seen) = holds.into_iter().find(|(_, seen)| seen.len() >= needed)?;
    // The highest first: what the last says that the majority needs, a majority says at least.
    seen.sort_by_key(|holder| Reverse(holder.count));
    let count = seen[needed - 1].count;
    // No expiry is the longest.
    seen.sort_by_key(|holder| Reverse(holder.ttl.unwrap_or(Duration::MAX)));
    Some(Holder { hold: hold.clone(), count, ttl: seen[needed - 1].ttl })
}

/// A hold that has votes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The hold.
    pub hold: HoldId,
    /// How often its owner has entered.
    pub count: u32,
    /// What is left of its lease; `None` where the record has no expiry.
    pub ttl: Option<Duration>,
}

impl From<Holding> for Holder {
    fn from(Holding { hold, count, left }: Holding) -> Self {
        Self { hold, count, ttl: left }
    }
}

impl Inspection {
    /// The hold that has a majority of the voters, with the time for which it keeps one unless it
    /// is renewed, and the count that a majority has heard of. `None` where nobody is known to have
    /// one.
    pub fn holder(&self) -> Option<Holder> {
        let holders = self.voters.iter().filter_map(|view| view.holder.as_ref().ok()?.as_ref());
        majority(holders, self.voters.len())
    }

    /// True where a majority of the voters has given its vote to nobody.
    pub fn is_free(&self) -> bool {
        let free = self.voters.iter().filter(|view| matches!(view.holder, Ok(None))).count();
        free >= needed(self.voters.len())
    }

    /// Those who wait in order: the places that stand on a majority of the voters with the same
    /// ticket, the first first, with the time for which they keep standing on one.
    pub fn queue(&self) -> Vec<Waiting> {
        Waiting::standing(self.voters.iter().flat_map(|view| &view.queue), self.voters.len())
    }

    /// Every hold that has a vote, each once.
    pub(in crate::lock) fn holds(&self) -> Vec<Holder> {
        let mut holders: Vec<Holder> =
            self.voters.iter().filter_map(|view| view.holder.clone().ok().flatten()).collect();
        holders.sort_by(|one, other| one.hold.cmp(&other.hold).then(other.ttl.cmp(&one.ttl)));
        holders.dedup_by(|later, first| later.hold == first.hold);
        holders
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, view) in self.voters.iter().enumerate() {
            if place > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{}: ", view.voter)?;
            match &view.holder {
                Ok(None) => f.write_str("free")?,
                Ok(Some(holder)) => write!(f, "held by {holder}")?,
                Err(cause) => cause.fmt(f)?,
            }
            for waiting in &view.queue {
                write!(f, ", {waiting}")?;
            }
            if let Some(quarantined) = &view.quarantine {
                write!(f, ", {quarantined}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hold, count, ttl } = self;
        match ttl {
            Some(ttl) => write!(f, "{hold}, count {count}, for {ttl:?} more"),
            None => write!(f, "{hold}, count {count}, without expiry"),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, ticket, ttl } = self;
        write!(f, "{place} waits with ticket {ticket} for {ttl:?} more")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(voter: usize, holder: Result<Option<(&str, u64)>, Cause>) -> VoterView {
        let holder = holder.map(|holder| {
            holder.map(|(hold, ms)| Holder {
                hold: HoldId::parse(hold),
                count: 1,
                ttl: Some(Duration::from_millis(ms)),
            })
        });
        VoterView { voter: format!("v{voter}"), holder, queue: Vec::new(), quarantine: None }
    }

    #[test]
    fn a_holder_keeps_its_majority_until_the_last_voter_it_needs_expires() {
        let voters = vec![
            view(1, Ok(Some(("a", 100)))),
            view(2, Ok(Some(("a", 300)))),
            view(3, Ok(Some(("a", 200)))),
        ];
        let inspection = Inspection { voters };
        let holder = inspection.holder().unwrap();
        assert_eq!((holder.hold.as_str(), holder.ttl), ("a", Some(Duration::from_millis(200))));
        assert_eq!(inspection.holds().len(), 1);
    }

    #[test]
    fn a_voter_that_has_not_heard_of_a_release_or_an_entry_yet_does_not_decide_the_count() {
        for (late, told) in [(2, 1), (1, 2)] {
            let mut voters: Vec<_> = (1..=3).map(|voter| view(voter, Ok(Some(("a", 1))))).collect();
            for (view, count) in voters.iter_mut().zip([late, told, told]) {
                view.holder.as_mut().unwrap().as_mut().unwrap().count = count;
            }
            assert_eq!(Inspection { voters }.holder().unwrap().count, told);
        }
    }

    #[test]
    fn who_stands_on_a_majority_waits_and_is_in_the_order_of_tickets_and_places() {
        let ms = Duration::from_millis;
        let waiting =
            |place, ticket, left| Waiting { place: HoldId::parse(place), ticket, ttl: ms(left) };
        let mut voters: Vec<_> = (1..=3).map(|voter| view(voter, Ok(None))).collect();
        voters[0].queue = vec![waiting("b", 1, 30), waiting("c", 1, 30), waiting("a", 2, 10)];
        voters[1].queue = vec![waiting("a", 2, 20), waiting("d", 3, 30)];
        voters[2].queue = vec![waiting("b", 1, 20), waiting("a", 2, 30), waiting("d", 4, 30)];
        let queue = Inspection { voters }.queue();
        assert_eq!(queue, [waiting("b", 1, 20), waiting("a", 2, 20)]);
    }

    #[test]
    fn a_minority_or_silence_is_neither_held_nor_free() {
        let inspection = Inspection {
            voters: vec![
                view(1, Ok(Some(("a", 1)))),
                view(2, Err(Cause::Unheard)),
                view(3, Ok(None)),
            ],
        };
        assert_eq!(inspection.holder(), None);
        assert!(!inspection.is_free());
    }
}
