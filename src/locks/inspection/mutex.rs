//! What the voters say about a lock.

use std::{cmp::Reverse, collections::BTreeMap, fmt, time::Duration};

use crate::{
    proto::{Cause, HoldId, Quarantined, Quorum, Side, Sided, Token, Verdict, VoterReport},
    scripts::{Holding, ListEntry},
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
    /// In which set the voter is, where the client has two: while its voters are being
    /// [replaced](crate::Builder::replacing).
    pub side: Option<Side>,
    /// Who has its vote, if anybody has; or why it did not say.
    pub holder: Result<Option<Holder>, Cause>,
    /// Who waits for the lock in its queue, the first first; nobody if it did not say.
    pub queue: Vec<Waiting>,
    /// The highest token that it has stored, which is that of the latest hold; `None` where it
    /// knows none, or did not say.
    pub token: Option<Token>,
    /// Whether its vote does not count for new holds now.
    pub quarantine: Option<Quarantined>,
}

/// A place in the queue of a lock.
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
    /// Those that stand on a majority with the same ticket, in order.
    pub(super) fn standing<'a>(
        seen: impl Iterator<Item = (usize, &'a Self)>,
        quorum: Quorum,
    ) -> Vec<Self> {
        let key = |seen: &'a Self| (seen.ticket, &seen.place);
        let seen = seen.map(|(voter, seen)| (voter, key(seen), seen.ttl));
        let waiting = |((ticket, place), ttl): ((u64, &HoldId), _)| Self {
            place: place.clone(),
            ticket,
            ttl,
        };
        standing(seen, quorum).map(waiting).collect()
    }
}

/// What stands on a majority of a set of voters, in order, with the time for which it keeps one.
/// Each is seen by a voter. Where there are two sets, a client may have one of them alone.
pub(super) fn standing<K: Ord>(
    seen: impl Iterator<Item = (usize, K, Duration)>,
    quorum: Quorum,
) -> impl Iterator<Item = (K, Duration)> {
    let mut times: BTreeMap<K, BTreeMap<usize, Duration>> = BTreeMap::new();
    for (voter, what, ttl) in seen {
        times.entry(what).or_default().insert(voter, ttl);
    }
    let kept = move |times: BTreeMap<usize, Duration>| {
        let longest_first = quorum.lowest_of_each(|voter| times.get(&voter).map(Reverse));
        longest_first.flatten().max().map(|Reverse(ttl)| *ttl)
    };
    times.into_iter().filter_map(move |(what, times)| Some((what, kept(times)?)))
}

/// The highest number that a majority of a set of voters has reached.
pub(super) fn reached(
    tokens: impl Iterator<Item = (usize, Token)>,
    quorum: Quorum,
) -> Option<Token> {
    let tokens: BTreeMap<usize, Token> = tokens.collect();
    let highest_first = quorum.lowest_of_each(|voter| tokens.get(&voter).map(Reverse));
    highest_first.flatten().min().map(|Reverse(token)| *token)
}

/// The hold that has a majority, with the count that a majority has heard of. Where there are two
/// sets and nobody has a majority of each, a hold with a majority of one: its client may have this
/// set alone.
pub(super) fn majority<'a>(
    holders: impl Iterator<Item = (usize, &'a Holder)>,
    quorum: Quorum,
) -> Option<Holder> {
    let mut holds: BTreeMap<&HoldId, BTreeMap<usize, &Holder>> = BTreeMap::new();
    for (voter, holder) in holders {
        holds.entry(&holder.hold).or_default().insert(voter, holder);
    }
    let mut holds: Vec<_> = holds.into_iter().collect();
    let has = |seen: &BTreeMap<usize, &Holder>| quorum.reached(|voter| seen.contains_key(&voter));
    holds.sort_by_key(|(_, seen)| !has(seen));
    holds.into_iter().find_map(|(hold, seen)| {
        // The highest first: what the last says that the majority needs, a majority says at least.
        let counts = quorum.lowest_of_each(|voter| Some(Reverse(seen.get(&voter)?.count)));
        let Reverse(count) = counts.flatten().max()?;
        // No expiry is the longest.
        let left = |holder: &Holder| Reverse(holder.ttl.unwrap_or(Duration::MAX));
        let times = quorum.lowest_of_each(|voter| Some(left(seen.get(&voter)?)));
        let ttl = times.flatten().max().map(|Reverse(ttl)| ttl);
        let (hold, ttl) = (hold.clone(), ttl.filter(|ttl| *ttl < Duration::MAX));
        Some(Holder { hold, count, ttl })
    })
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
    fn quorum(&self) -> Quorum {
        Quorum::of_sides(self.voters.iter().map(|view| view.side))
    }

    /// The hold that has a majority of the voters, with the time for which it keeps one unless it
    /// is renewed, and the count that a majority has heard of. `None` where nobody is known to have
    /// one: also where a `RedissonRedLock` has one, which has another owner on each voter.
    ///
    /// Of a client whose voters are being [replaced](crate::Builder::replacing): the hold that has
    /// a majority of both sets, or else of one. That may be the hold of a client with this set
    /// alone.
    pub fn holder(&self) -> Option<Holder> {
        let seen = self.voters.iter().enumerate();
        let holders =
            seen.filter_map(|(voter, view)| Some((voter, view.holder.as_ref().ok()?.as_ref()?)));
        majority(holders, self.quorum())
    }

    /// True where a majority of the voters has given its vote to nobody.
    pub fn is_free(&self) -> bool {
        self.quorum().reached(|voter| matches!(self.voters[voter].holder, Ok(None)))
    }

    /// Those who wait in order: the places that stand on a majority of the voters with the same
    /// ticket, the first first, with the time for which they keep standing on one.
    pub fn queue(&self) -> Vec<Waiting> {
        let queues = self.voters.iter().enumerate();
        let places =
            queues.flat_map(|(voter, view)| view.queue.iter().map(move |waiting| (voter, waiting)));
        Waiting::standing(places, self.quorum())
    }

    /// The token of the hold that has a majority of the voters, or of the latest that had one: the
    /// highest that a majority has reached. `None` where no majority knows any.
    pub fn token(&self) -> Option<Token> {
        let views = self.voters.iter().enumerate();
        reached(views.filter_map(|(voter, view)| Some((voter, view.token?))), self.quorum())
    }

    /// Who has each voter's vote, for an error.
    pub(in crate::locks) fn report(&self) -> Vec<VoterReport> {
        let verdict = |view: &VoterView| match &view.holder {
            Ok(None) => Verdict::Absent,
            Ok(Some(Holder { hold, ttl, .. })) => Verdict::Refused { by: hold.clone(), ttl: *ttl },
            Err(cause) => Verdict::Unknown(cause.clone()),
        };
        let report = |view: &VoterView| VoterReport {
            side: view.side,
            ..VoterReport::new(&*view.voter, verdict(view))
        };
        self.voters.iter().map(report).collect()
    }

    /// Every hold that has a vote, each once.
    pub(in crate::locks) fn holds(&self) -> Vec<Holder> {
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
            write!(f, "{}: ", Sided { voter: &view.voter, side: view.side })?;
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
        VoterView {
            voter: format!("v{voter}"),
            side: None,
            holder,
            queue: Vec::new(),
            token: None,
            quarantine: None,
        }
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
        let waiting = |place, ticket, left| {
            Waiting::from(ListEntry { id: HoldId::parse(place), ticket, left: ms(left) })
        };
        let mut voters: Vec<_> = (1..=3).map(|voter| view(voter, Ok(None))).collect();
        voters[0].queue = vec![waiting("b", 1, 30), waiting("c", 1, 30), waiting("a", 2, 10)];
        voters[1].queue = vec![waiting("a", 2, 20), waiting("d", 3, 30)];
        voters[2].queue = vec![waiting("b", 1, 20), waiting("a", 2, 30), waiting("d", 4, 30)];
        let queue = Inspection { voters }.queue();
        assert_eq!(queue, [waiting("b", 1, 20), waiting("a", 2, 20)]);
    }

    // Attempts that failed leave higher numbers on a minority; a voter that forgot has none.
    #[test]
    fn the_token_is_the_highest_that_a_majority_has_reached() {
        let token = |tokens: [Option<u64>; 5]| {
            let voters = tokens.into_iter().enumerate().map(|(voter, token)| VoterView {
                token: token.and_then(Token::new),
                ..view(voter, Ok(None))
            });
            Inspection { voters: voters.collect() }.token().map(u64::from)
        };
        assert_eq!(token([Some(10), Some(12), Some(10), Some(12), Some(10)]), Some(10));
        assert_eq!(token([Some(10), None, Some(12), None, Some(11)]), Some(10));
        assert_eq!(token([Some(10), None, None, None, Some(11)]), None);
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
