//! What the voters say about a read/write lock.

use std::{fmt, time::Duration};

use super::{
    Access, Holder, Waiting,
    mutex::{majority, reached, standing},
};
use crate::{
    proto::{Cause, HoldId, Quarantined, Quorum, Side, Sided, Token, Verdict, VoterReport},
    scripts::{ListEntry, RwSeen},
};

/// What each voter says about one read/write lock, at about the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RwInspection {
    /// Every voter's view, in the order in which they were configured.
    pub voters: Vec<RwView>,
}

/// One voter's view of a read/write lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RwView {
    /// The voter's address, without credentials.
    pub voter: String,
    /// In which set the voter is, where the client has two: while its voters are being
    /// [replaced](crate::Builder::replacing).
    pub side: Option<Side>,
    /// Who has its vote and who waits for it; or why it did not say.
    pub state: Result<RwState, Cause>,
    /// Whether its vote does not count for new holds now.
    pub quarantine: Option<Quarantined>,
}

/// Who has one voter's vote, and who waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RwState {
    /// Who writes.
    pub writer: Option<Holder>,
    /// Who reads, the first to end first. Under a writer only its own reads.
    pub readers: Vec<Reader>,
    /// Who waits to write, the first first.
    pub waiting_writers: Vec<Waiting>,
    /// Who waits to read, the first first.
    pub waiting_readers: Vec<Waiting>,
    /// The highest token that it has stored, which is that of the latest write.
    pub token: Option<Token>,
}

/// A hold that reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reader {
    /// The hold.
    pub hold: HoldId,
    /// What is left of its lease, which is its own.
    pub ttl: Duration,
}

impl From<RwSeen> for RwState {
    fn from(seen: RwSeen) -> Self {
        let waiting = |places: Vec<ListEntry>| places.into_iter().map(Waiting::from).collect();
        let reader = |ListEntry { id, left, .. }| Reader { hold: id, ttl: left };
        Self {
            writer: seen.writer.map(Holder::from),
            readers: seen.readers.into_iter().map(reader).collect(),
            waiting_writers: waiting(seen.waiting_writers),
            waiting_readers: waiting(seen.waiting_readers),
            token: seen.token,
        }
    }
}

impl RwInspection {
    fn states(&self) -> impl Iterator<Item = (usize, &RwState)> {
        let views = self.voters.iter().enumerate();
        views.filter_map(|(voter, view)| Some((voter, view.state.as_ref().ok()?)))
    }

    fn quorum(&self) -> Quorum {
        Quorum::of_sides(self.voters.iter().map(|view| view.side))
    }

    fn waiting(&self, which: impl Fn(&RwState) -> &[Waiting]) -> Vec<Waiting> {
        let places = self
            .states()
            .flat_map(|(voter, state)| which(state).iter().map(move |waiting| (voter, waiting)));
        Waiting::standing(places, self.quorum())
    }

    /// The hold that writes: that has a majority of the voters; as
    /// [`Inspection::holder`](super::Inspection::holder).
    pub fn writer(&self) -> Option<Holder> {
        let states = self.states();
        let writers = states.filter_map(|(voter, state)| Some((voter, state.writer.as_ref()?)));
        majority(writers, self.quorum())
    }

    /// The holds that read: each that has a majority of the voters, with the time for which it
    /// keeps one unless it is renewed.
    pub fn readers(&self) -> Vec<Reader> {
        let readers = self
            .states()
            .flat_map(|(voter, state)| state.readers.iter().map(move |reader| (voter, reader)));
        let readers = readers.map(|(voter, reader)| (voter, &reader.hold, reader.ttl));
        let reader = |(hold, ttl): (&HoldId, Duration)| Reader { hold: hold.clone(), ttl };
        standing(readers, self.quorum()).map(reader).collect()
    }

    /// How the lock is held by a majority: to write, with or without reads of the writer's own, or
    /// to read; `None` where nobody is known to have one.
    pub fn mode(&self) -> Option<Access> {
        if self.writer().is_some() {
            return Some(Access::Write);
        }
        (!self.readers().is_empty()).then_some(Access::Read)
    }

    /// True where a majority of the voters has given its vote to nobody.
    pub fn is_free(&self) -> bool {
        let free = |state: &RwState| state.writer.is_none() && state.readers.is_empty();
        self.quorum().reached(|voter| self.voters[voter].state.as_ref().is_ok_and(free))
    }

    /// Those who wait to write: the places that stand on a majority with the same ticket, the first
    /// first.
    pub fn waiting_writers(&self) -> Vec<Waiting> {
        self.waiting(|state| &state.waiting_writers)
    }

    /// Those who wait to read, likewise. Readers that come behind all writers have one ticket.
    pub fn waiting_readers(&self) -> Vec<Waiting> {
        self.waiting(|state| &state.waiting_readers)
    }

    /// The token of the hold that writes, or of the latest that wrote: as
    /// [`Inspection::token`](super::Inspection::token).
    pub fn token(&self) -> Option<Token> {
        let tokens = self.states().filter_map(|(voter, state)| Some((voter, state.token?)));
        reached(tokens, self.quorum())
    }

    /// Who has each voter's vote, for an error: of several readers the last to end.
    pub(in crate::locks) fn report(&self) -> Vec<VoterReport> {
        let report = |view: &RwView| {
            let verdict = match &view.state {
                Ok(RwState { writer: Some(Holder { hold, ttl, .. }), .. }) => {
                    Verdict::Refused { by: hold.clone(), ttl: *ttl }
                }
                Ok(RwState { readers, .. }) => match readers.last() {
                    Some(Reader { hold, ttl }) => {
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

    /// Every hold that has a vote of this sort, each once, with the longest time left anywhere
    /// (`None`: a record without expiry).
    pub(in crate::locks) fn holds(&self, access: Access) -> Vec<(HoldId, Option<Duration>)> {
        let mut holds: Vec<_> = match access {
            Access::Write => {
                let writers = self.states().filter_map(|(_, state)| state.writer.as_ref());
                writers.map(|writer| (writer.hold.clone(), writer.ttl)).collect()
            }
            Access::Read => {
                let readers = self.states().flat_map(|(_, state)| &state.readers);
                readers.map(|reader| (reader.hold.clone(), Some(reader.ttl))).collect()
            }
        };
        let longest_first = |(hold, ttl): &(HoldId, Option<Duration>)| {
            (hold.clone(), std::cmp::Reverse(ttl.unwrap_or(Duration::MAX)))
        };
        holds.sort_by_key(longest_first);
        holds.dedup_by(|(later, _), (first, _)| later == first);
        holds
    }
}

impl fmt::Display for RwInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, view) in self.voters.iter().enumerate() {
            let RwView { voter, side, state, quarantine } = view;
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

impl fmt::Display for RwState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.writer {
            Some(writer) => write!(f, "written by {writer}")?,
            None if self.readers.is_empty() => f.write_str("free")?,
            None => f.write_str("read")?,
        }
        for Reader { hold, ttl } in &self.readers {
            write!(f, ", {hold} reads for {ttl:?} more")?;
        }
        for waiting in &self.waiting_writers {
            write!(f, ", to write {waiting}")?;
        }
        for waiting in &self.waiting_readers {
            write!(f, ", to read {waiting}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn reader(hold: &str, left: u64) -> Reader {
        Reader { hold: HoldId::parse(hold), ttl: MS(left) }
    }

    fn of(states: Vec<RwState>) -> RwInspection {
        let view =
            |state| RwView { voter: "v".into(), side: None, state: Ok(state), quarantine: None };
        RwInspection { voters: states.into_iter().map(view).collect() }
    }

    fn read_by(readers: Vec<Reader>) -> RwState {
        RwState { readers, ..RwState::default() }
    }

    #[test]
    fn a_read_counts_on_a_majority_for_as_long_as_it_keeps_one() {
        let inspection = of(vec![
            read_by(vec![reader("a", 10), reader("b", 30)]),
            read_by(vec![reader("b", 20), reader("c", 40)]),
            read_by(vec![reader("b", 10)]),
        ]);
        assert_eq!(inspection.readers(), [reader("b", 20)]);
        assert_eq!((inspection.mode(), inspection.is_free()), (Some(Access::Read), false));
        let holds = [("a", 10), ("b", 30), ("c", 40)];
        let holds = holds.map(|(hold, left)| (HoldId::parse(hold), Some(MS(left))));
        assert_eq!(inspection.holds(Access::Read), holds);
    }

    #[test]
    fn a_writer_with_a_read_of_its_own_writes() {
        let writer = Holder { hold: HoldId::parse("w"), count: 1, ttl: Some(MS(5)) };
        let written =
            || RwState { writer: Some(writer.clone()), ..read_by(vec![reader("w/2", 9)]) };
        let inspection = of(vec![written(), written(), RwState::default()]);
        assert_eq!(inspection.mode(), Some(Access::Write));
        assert_eq!(inspection.writer(), Some(writer.clone()));
        assert_eq!(inspection.holds(Access::Write), [(HoldId::parse("w"), Some(MS(5)))]);
    }

    #[test]
    fn two_of_three_that_give_their_vote_to_nobody_make_it_free() {
        let inspection =
            of(vec![RwState::default(), read_by(vec![reader("a", 1)]), RwState::default()]);
        assert!(inspection.is_free());
        assert_eq!((inspection.mode(), inspection.writer()), (None, None));
    }
}
