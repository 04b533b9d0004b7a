//! What the voters say about a semaphore.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{Waiting, mutex::standing};
use crate::{
    proto::{Cause, HoldId, Quarantined, Quorum, Side, Sided, Verdict, VoterReport},
    scripts::{ListEntry, SemaphoreSeen},
};

/// What each voter says about one semaphore, at about the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SemaphoreInspection {
    /// The number of permits with which this client asks.
    pub asked: u32,
    /// Every voter's view, in the order in which they were configured.
    pub voters: Vec<SemaphoreView>,
}

/// One voter's view of a semaphore.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SemaphoreView {
    /// The voter's address, without credentials.
    pub voter: String,
    /// In which set the voter is, where the client has two: while its voters are being
    /// [replaced](crate::Builder::replacing).
    pub side: Option<Side>,
    /// Who has its permits and who waits for them; or why it did not say.
    pub state: Result<SemaphoreState, Cause>,
    /// Whether its vote does not count for new holds now.
    pub quarantine: Option<Quarantined>,
}

/// Who has one voter's permits, and who waits for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SemaphoreState {
    /// The smallest number of permits with which somebody who holds or waits has asked of late.
    pub permits: Option<u32>,
    /// Who has permits, by the first of their slots.
    pub holders: Vec<PermitHolder>,
    /// Who waits, the first first.
    pub queue: Vec<Waiting>,
}

/// A hold that has permits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermitHolder {
    /// The hold.
    pub hold: HoldId,
    /// The numbers of its permits, in ascending order.
    pub slots: Vec<u32>,
    /// What is left of its lease, which is its own.
    pub ttl: Duration,
}

impl From<SemaphoreSeen> for SemaphoreState {
    fn from(seen: SemaphoreSeen) -> Self {
        let mut holders: Vec<PermitHolder> = Vec::new();
        let mut places: BTreeMap<HoldId, usize> = BTreeMap::new();
        for ListEntry { id, ticket: slot, left } in seen.holders {
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            if let Some(place) = places.get(&id) {
                holders[*place].slots.push(slot);
                continue;
            }
            places.insert(id.clone(), holders.len());
            holders.push(PermitHolder { hold: id, slots: vec![slot], ttl: left });
        }
        let queue = seen.waiting.into_iter().map(Waiting::from).collect();
        Self { permits: seen.permits, holders, queue }
    }
}

impl SemaphoreInspection {
    fn states(&self) -> impl Iterator<Item = (usize, &SemaphoreState)> {
        let voters = self.voters.iter().enumerate();
        voters.filter_map(|(voter, view)| Some((voter, view.state.as_ref().ok()?)))
    }

    fn quorum(&self) -> Quorum {
        Quorum::of_sides(self.voters.iter().map(|view| view.side))
    }

    /// The holds that have permits: each that has the same on a majority of the voters, with the
    /// time for which it keeps them unless it is renewed. By the first of their slots.
    pub fn holders(&self) -> Vec<PermitHolder> {
        let holders = self.states().flat_map(|(voter, state)| {
            let holders = state.holders.iter();
            holders.map(move |held| (voter, (&held.slots, &held.hold), held.ttl))
        });
        let holder = |((slots, hold), ttl): ((&Vec<u32>, &HoldId), _)| PermitHolder {
            hold: hold.clone(),
            slots: slots.clone(),
            ttl,
        };
        standing(holders, self.quorum()).map(holder).collect()
    }

    /// Of how many permits the semaphore is for whoever asks now: what this client asks with, or
    /// the smallest number with which a voter has heard others ask of late.
    pub fn permits(&self) -> u32 {
        self.states().filter_map(|(_, state)| state.permits).fold(self.asked, u32::min)
    }

    /// How many permits are nobody's, by what a majority says. Waiters may come before the next who
    /// asks.
    pub fn free(&self) -> u32 {
        let taken = self.holders().iter().map(|held| held.slots.len()).sum::<usize>();
        self.permits().saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX))
    }

    /// Those who wait: the places that stand on a majority of the voters with the same ticket, the
    /// first first.
    pub fn queue(&self) -> Vec<Waiting> {
        let places = self
            .states()
            .flat_map(|(voter, state)| state.queue.iter().map(move |waiting| (voter, waiting)));
        Waiting::standing(places, self.quorum())
    }

    /// Who has permits of each voter, for an error: the last to end.
    pub(in crate::locks) fn report(&self) -> Vec<VoterReport> {
        let report = |view: &SemaphoreView| {
            let verdict = match &view.state {
                Ok(state) => match state.holders.iter().max_by_key(|held| held.ttl) {
                    Some(PermitHolder { hold, ttl, .. }) => {
                        Verdict::Refused { by: hold.clone(), ttl: Some(*ttl) }
                    }
                    None => Verdict::Absent,
                },
                Err(cause) => Verdict::Unknown(cause.clone()),
            };
            VoterReport { side: view.side, ..VoterReport::new(&*view.voter, verdict) }
        };
        self.voters.iter().map(report).collect()
    }

    /// Every hold that has a permit anywhere, each once, with the most permits and the longest time
    /// left.
    pub(in crate::locks) fn holds(&self) -> Vec<(HoldId, u16, Duration)> {
        let mut holds: BTreeMap<&HoldId, (u16, Duration)> = BTreeMap::new();
        for held in self.states().flat_map(|(_, state)| &state.holders) {
            let (permits, left) = holds.entry(&held.hold).or_default();
            let slots = u16::try_from(held.slots.len()).unwrap_or(u16::MAX);
            (*permits, *left) = (slots.max(*permits), held.ttl.max(*left));
        }
        let hold = |(hold, (permits, left)): (&HoldId, _)| (hold.clone(), permits, left);
        holds.into_iter().map(hold).collect()
    }
}

impl fmt::Display for SemaphoreInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, view) in self.voters.iter().enumerate() {
            let SemaphoreView { voter, side, state, quarantine } = view;
            let voter = Sided { voter, side: *side };
            write!(f, "{}{voter}: ", if place > 0 { "; " } else { "" })?;
            match state {
                Ok(state) => state.fmt(f)?,
                Err(cause) => cause.fmt(f)?,
            }
            if let Some(quarantined) = quarantine {
                write!(f, ", {quarantined}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for SemaphoreState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.holders.iter().map(|held| held.slots.len()).sum::<usize>();
        write!(f, "{taken} taken")?;
        if let Some(permits) = self.permits {
            write!(f, " of {permits}")?;
        }
        for PermitHolder { hold, slots, ttl } in &self.holders {
            write!(f, ", {hold} has {slots:?} for {ttl:?} more")?;
        }
        self.queue.iter().try_for_each(|waiting| write!(f, ", {waiting}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn state(permits: Option<u32>, held: &[(&str, u64, u64)]) -> SemaphoreState {
        let entry = |(hold, slot, ms): &(&str, u64, u64)| ListEntry {
            id: HoldId::parse(hold),
            ticket: *slot,
            left: MS(*ms),
        };
        let holders = held.iter().map(entry).collect();
        SemaphoreState::from(SemaphoreSeen { holders, waiting: Vec::new(), permits, next: None })
    }

    fn of(states: [SemaphoreState; 3]) -> SemaphoreInspection {
        let view = |state| SemaphoreView {
            voter: "v".into(),
            side: None,
            state: Ok(state),
            quarantine: None,
        };
        SemaphoreInspection { asked: 5, voters: states.map(view).into() }
    }

    #[test]
    fn who_has_the_same_permits_on_a_majority_holds_them() {
        let seen = of([
            state(None, &[("a", 0, 10), ("b", 1, 30), ("a", 2, 10)]),
            state(Some(4), &[("a", 0, 20), ("b", 3, 30), ("a", 2, 20)]),
            state(Some(7), &[("c", 1, 40)]),
        ]);
        let holders = seen.holders();
        assert_eq!(holders.len(), 1);
        assert_eq!((holders[0].hold.as_str(), holders[0].ttl), ("a", MS(10)));
        assert_eq!(holders[0].slots, [0, 2]);
        assert_eq!((seen.permits(), seen.free()), (4, 2), "the smallest that anybody said");
        let holds = [("a", 2, 20), ("b", 1, 30), ("c", 1, 40)];
        assert_eq!(
            seen.holds(),
            holds.map(|(hold, permits, ms)| (HoldId::parse(hold), permits, MS(ms)))
        );
    }
}
