//! What the voters say about a lock.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    ops::Deref,
    time::{Duration, SystemTime},
};

use crate::{
    proto::{
        Cause, Done, HoldId, HolderKind, Leader, LockKind, Quarantined, Quorum, Side, Token,
        Verdict, VoterReport,
    },
    scripts::{Holding, ListEntry, LockSeen},
};

/// What the voters say about one lock, at about the same time: first what a majority of them says,
/// then what each says.
///
/// [`Admin::look`](crate::Admin::look) gives it for every lock, and `inspect` of each kind for its
/// own. With the feature `serde` it can be written as JSON, for instance. It cannot be read back:
/// what voters said at one moment is for people and dashboards, and may get further fields.
///
/// While the voters of the client are being [replaced](crate::Builder::replacing), a majority of
/// either set is enough here. Holds with a majority of both come first. The others may be holds of
/// clients that have one set alone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LockView {
    /// The name of the lock.
    pub name: String,
    /// Which lock of that name it is.
    pub kind: LockKind,
    /// True where a majority of the voters says that nobody holds it, or any permit of it.
    pub is_free: bool,
    /// The holds that have a majority, with the time for which they keep one unless they are
    /// renewed. Empty also if too few voters answered, and if a `RedissonRedLock` has the lock: it
    /// has another owner on each voter. A writer comes before its own reads. Holds with permits
    /// stand in the order of their first permits.
    pub holders: Vec<Holder>,
    /// Who waits, in order: the places that a majority stores with the same ticket, with the time
    /// for which a majority keeps them.
    pub waiting: Vec<Waiting>,
    /// The token of the exclusive hold, or of the latest there was: the highest that a majority has
    /// reached. Of a mutex that is handed on from task to task, the last token of the hold. `None`
    /// where no majority knows any, and of a semaphore.
    pub token: Option<Token>,
    /// The number of permits of a semaphore, if a voter knows it: the smallest number with which
    /// anybody has asked of late.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub permits: Option<u32>,
    /// The leader of an election, with its value. `None` also if nobody can say who leads.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub leader: Option<Leader>,
    /// The latest firing of a [`Once`](crate::Once) of which a voter knows that it is done.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub done: Option<FiringDone>,
    /// What each voter says, in the order in which they were configured.
    pub voters: Vec<VoterView>,
}

/// What the voters say about a semaphore: a [`LockView`] that always has the number of permits, as
/// the caller names one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct SemaphoreView {
    seen: LockView,
}

impl SemaphoreView {
    /// `named`: the number of permits with which it was asked.
    pub(super) fn new(seen: LockView, named: u32) -> Self {
        // The smallest number applies, so that nobody counts on a permit that voters do not give.
        let permits = seen.permits.map_or(named, |known| known.min(named));
        Self { seen: LockView { permits: Some(permits), ..seen } }
    }

    /// How many permits there are: the smallest number with which anybody has asked of late, or
    /// this caller asks.
    pub fn permits(&self) -> u32 {
        self.seen.permits.unwrap_or_default()
    }

    /// How many permits are free, by what a majority says. Waiters come first.
    pub fn free(&self) -> u32 {
        self.seen.free().unwrap_or_default()
    }
}

impl Deref for SemaphoreView {
    type Target = LockView;

    fn deref(&self) -> &LockView {
        &self.seen
    }
}

/// What one voter says about a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct VoterView {
    /// The voter's address, without credentials.
    pub voter: String,
    /// In which set the voter is, where the client has two: while its voters are being
    /// [replaced](crate::Builder::replacing).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub side: Option<Side>,
    /// Who has its vote and who waits for it; or why it did not say.
    #[cfg_attr(feature = "serde", serde(flatten, serialize_with = "crate::proto::or_error"))]
    pub state: Result<LockState, Cause>,
    /// Why its vote does not count for new holds now. `None`: it does.
    pub quarantine: Option<Quarantined>,
}

/// Who has one voter's vote, and who waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LockState {
    /// Who has its vote, or permits of it: a writer before its own reads, readers by when they end,
    /// and holds with permits by the first of these.
    pub holders: Vec<Holder>,
    /// Who waits, the first first.
    pub waiting: Vec<Waiting>,
    /// The highest token that it has stored, which is that of the latest hold.
    pub token: Option<Token>,
    /// The smallest number of permits with which somebody who holds or waits has asked of late.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub permits: Option<u32>,
    /// The latest firing of a [`Once`](crate::Once) of which it knows that it is done.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub done: Option<FiringDone>,
}

/// A firing of a [`Once`](crate::Once) that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FiringDone {
    /// Its number.
    pub firing: u64,
    /// When that was, by the clock of a voter.
    #[cfg_attr(feature = "serde", serde(rename = "when_ms", serialize_with = "since_1970"))]
    pub when: SystemTime,
}

/// In milliseconds.
#[cfg(feature = "serde")]
fn since_1970<S: serde::Serializer>(moment: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    crate::proto::millis(&moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(), to)
}

impl From<Done> for FiringDone {
    fn from(done: Done) -> Self {
        let when = Duration::from_millis(done.when_ms.unwrap_or_default());
        Self { firing: done.firing, when: SystemTime::UNIX_EPOCH + when }
    }
}

/// A hold that has votes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Holder {
    /// The hold.
    pub hold: HoldId,
    /// The name of its client, if it has one.
    pub client_name: Option<String>,
    /// Its [note](crate::Mutex::note), if it has one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub note: Option<String>,
    /// What it does with the lock.
    pub kind: HolderKind,
    /// How many entries of its owner the voters have: of a mutex and of a write all of them; one of
    /// a read, a permit and a leader.
    pub count: u32,
    /// The numbers of its permits, in ascending order.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub slots: Vec<u32>,
    /// What is left of its lease; `None` where the record has no expiry.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "ttl_ms", serialize_with = "crate::proto::millis")
    )]
    pub ttl: Option<Duration>,
}

/// A place in the queue of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Waiting {
    /// The place. The holds of its attempts are called `<place>.<attempt>`.
    pub place: HoldId,
    /// The name of its client, if it has one.
    pub client_name: Option<String>,
    /// Its [note](crate::Mutex::note), if it has one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub note: Option<String>,
    /// What it waits for.
    pub kind: HolderKind,
    /// Its number. Of two with the same number the smaller place is first. Readers that come behind
    /// all writers have one number.
    pub ticket: u64,
    /// For how long the place is kept if its waiter does not ask again.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "ttl_ms", serialize_with = "crate::proto::millis")
    )]
    pub ttl: Duration,
}

impl LockView {
    pub(super) fn new(name: &str, kind: LockKind, voters: Vec<VoterView>) -> Self {
        let quorum = Quorum::of_sides(voters.iter().map(|view| view.side));
        let is_free = |state: &LockState| state.holders.is_empty();
        let permits = states(&voters).filter_map(|(_, state)| state.permits).min();
        let done = states(&voters).filter_map(|(_, state)| state.done).max();
        Self {
            name: name.to_owned(),
            kind,
            is_free: quorum.reached(|voter| voters[voter].state.as_ref().is_ok_and(is_free)),
            holders: holders(&voters, quorum),
            waiting: waiting(&voters, quorum),
            token: token(&voters, quorum),
            permits,
            leader: None,
            done,
            voters,
        }
    }

    /// The first of the [holders](Self::holders), which is the holder of an exclusive lock.
    pub fn holder(&self) -> Option<Holder> {
        self.holders.first().cloned()
    }

    /// The writer among the [holders](Self::holders) of a read/write lock.
    pub fn writer(&self) -> Option<Holder> {
        self.holders.iter().find(|held| held.kind == HolderKind::Write).cloned()
    }

    /// The readers among the [holders](Self::holders) of a read/write lock.
    pub fn readers(&self) -> Vec<Holder> {
        self.holders.iter().filter(|held| held.kind == HolderKind::Read).cloned().collect()
    }

    /// How many wait: as many as are listed in [`waiting`](Self#structfield.waiting).
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Every hold that has the vote of any voter, each once, with the longest time that is left of
    /// it anywhere, and the most permits.
    pub fn all_holders(&self) -> Vec<Holder> {
        let mut holders: Vec<&Holder> = Vec::new();
        for (_, state) in states(&self.voters) {
            holders.extend(&state.holders);
        }
        let last_first = |held: &&Holder| (held.hold.clone(), Reverse(held.left()));
        holders.sort_by_key(last_first);
        let mut all: Vec<Holder> = Vec::new();
        for held in holders {
            match all.last_mut().filter(|last| last.hold == held.hold) {
                Some(last) if last.slots.len() < held.slots.len() => {
                    last.slots.clone_from(&held.slots);
                }
                Some(_) => {}
                None => all.push(held.clone()),
            }
        }
        all
    }

    /// How many voters say that this hold has their vote.
    pub fn votes(&self, hold: &HoldId) -> usize {
        let gave = |state: &LockState| state.holders.iter().any(|held| held.hold == *hold);
        states(&self.voters).filter(|(_, state)| gave(state)).count()
    }

    /// Whether a majority of the voters, of each set where there are two, knows of the firing that
    /// is [done](Self#structfield.done): otherwise it may be forgotten.
    pub fn is_done_stored(&self) -> bool {
        let quorum = Quorum::of_sides(self.voters.iter().map(|view| view.side));
        let number = |done: Option<FiringDone>| done.map(|done| done.firing);
        let stores = |state: &LockState| number(state.done) >= number(self.done);
        quorum.reached(|voter| self.voters[voter].state.as_ref().is_ok_and(stores))
    }

    /// How many permits of a semaphore are free, by what a majority says; `None` where the number
    /// of all [permits](Self::permits) is not known. Waiters come first.
    pub fn free(&self) -> Option<u32> {
        let taken = self.holders.iter().map(|held| held.slots.len()).sum::<usize>();
        Some(self.permits?.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX)))
    }

    /// Who has each voter's vote, for an error: of several the last to end.
    pub(super) fn report(&self) -> Vec<VoterReport> {
        let excludes = |held: &&Holder| (held.kind != HolderKind::Read, held.left());
        let report = |view: &VoterView| {
            let verdict = match &view.state {
                Ok(state) => match state.holders.iter().max_by_key(excludes) {
                    Some(held) => Verdict::Refused { by: held.hold.clone(), ttl: held.ttl },
                    None => Verdict::Absent,
                },
                Err(cause) => Verdict::Unknown(cause.clone()),
            };
            VoterReport { side: view.side, ..VoterReport::new(&*view.voter, verdict) }
        };
        self.voters.iter().map(report).collect()
    }
}

fn states(voters: &[VoterView]) -> impl Iterator<Item = (usize, &LockState)> {
    voters.iter().enumerate().filter_map(|(voter, view)| Some((voter, view.state.as_ref().ok()?)))
}

/// The holds that have a majority of a set with the same permits.
// With the count that a majority has: a voter that has not got a release or an entry yet does not
// decide.
fn holders(voters: &[VoterView], quorum: Quorum) -> Vec<Holder> {
    let mut holds: BTreeMap<_, BTreeMap<usize, &Holder>> = BTreeMap::new();
    for (voter, state) in states(voters) {
        for held in &state.holders {
            let key = (held.kind == HolderKind::Read, &held.slots, &held.hold);
            holds.entry(key).or_default().insert(voter, held);
        }
    }
    let mut holds: Vec<_> = holds.into_values().collect();
    // Holds with a majority of both sets first: the others may be of clients that have one set
    // alone.
    holds.sort_by_key(|votes| !quorum.reached(|voter| votes.contains_key(&voter)));
    let with_majority = |votes: BTreeMap<usize, &Holder>| {
        let count = least(&votes, quorum, |held| held.count)?;
        let ttl = least(&votes, quorum, Holder::left).filter(|left| *left < Duration::MAX);
        let held = votes.into_values().next()?.clone();
        Some(Holder { count, ttl, ..held })
    };
    holds.into_iter().filter_map(with_majority).collect()
}

/// The places that a majority of a set stores with the same ticket, in order.
fn waiting(voters: &[VoterView], quorum: Quorum) -> Vec<Waiting> {
    let mut places: BTreeMap<_, BTreeMap<usize, &Waiting>> = BTreeMap::new();
    for (voter, state) in states(voters) {
        for waiting in &state.waiting {
            places.entry((waiting.ticket, &waiting.place)).or_default().insert(voter, waiting);
        }
    }
    let with_majority = |votes: BTreeMap<usize, &Waiting>| {
        let ttl = least(&votes, quorum, |waiting| waiting.ttl)?;
        Some(Waiting { ttl, ..votes.into_values().next()?.clone() })
    };
    places.into_values().filter_map(with_majority).collect()
}

/// The highest number that a majority of a set of voters has reached.
// Not the highest of all: attempts that failed leave higher ones on a minority.
fn token(voters: &[VoterView], quorum: Quorum) -> Option<Token> {
    let token = |voter: usize| voters[voter].state.as_ref().ok()?.token;
    let highest_first = quorum.lowest_of_each(|voter| token(voter).map(Reverse));
    highest_first.flatten().min().map(|Reverse(token)| token)
}

/// The highest value that each voter of some majority reaches. Of two sets the lower one. `None`:
/// no majority of either set says anything.
fn least<V, T: Ord>(
    votes: &BTreeMap<usize, &V>,
    quorum: Quorum,
    what: impl Fn(&V) -> T,
) -> Option<T> {
    let said = |voter: usize| votes.get(&voter).map(|vote| Reverse(what(vote)));
    let highest_first = quorum.lowest_of_each(said);
    highest_first.flatten().max().map(|Reverse(least)| least)
}

impl LockState {
    /// The answer of a voter about a lock of this kind.
    pub(super) fn read(kind: LockKind, seen: LockSeen) -> Self {
        let LockSeen { holder, lists, number, .. } = seen;
        let mut lists = lists.into_iter();
        let mut list = || lists.next().unwrap_or_default();
        match kind {
            LockKind::Mutex | LockKind::Election | LockKind::Once => {
                let leads = kind == LockKind::Election;
                let kind = if leads { HolderKind::Leader } else { HolderKind::Mutex };
                let holds = |held: Holding| {
                    let is_parked = held.hold.is_parked();
                    Holder::record(if is_parked { HolderKind::Parked } else { kind }, held)
                };
                let holders = holder.map(holds).into_iter().collect();
                let waiting = Waiting::all(kind, list()).collect();
                Self { holders, waiting, token: number, ..Self::default() }
            }
            LockKind::RwLock => {
                let writer = holder.map(|holder| Holder::record(HolderKind::Write, holder));
                let readers = list().into_iter().map(|held| Holder::listed(HolderKind::Read, held));
                let to_write = Waiting::all(HolderKind::Write, list());
                let mut waiting: Vec<_> =
                    to_write.chain(Waiting::all(HolderKind::Read, list())).collect();
                waiting.sort_by(|one, other| one.order().cmp(&other.order()));
                let holders = writer.into_iter().chain(readers).collect();
                Self { holders, waiting, token: number, ..Self::default() }
            }
            LockKind::Semaphore => {
                let mut holds: BTreeMap<HoldId, Holder> = BTreeMap::new();
                for entry in list() {
                    let slot = u32::try_from(entry.ticket).unwrap_or(u32::MAX);
                    let held = holds.entry(entry.id.clone());
                    let held = held.or_insert_with(|| Holder::listed(HolderKind::Permit, entry));
                    held.slots.push(slot);
                }
                let mut holders: Vec<_> = holds.into_values().collect();
                holders.sort_by(|one, other| one.slots.cmp(&other.slots));
                let waiting = Waiting::all(HolderKind::Permit, list()).collect();
                let permits = number.and_then(|number| u32::try_from(u64::from(number)).ok());
                Self { holders, waiting, permits, ..Self::default() }
            }
        }
    }
}

impl Holder {
    /// The hold in a record.
    fn record(kind: HolderKind, Holding { hold, count, left }: Holding) -> Self {
        // The record of a leader has its value in place of a count: nobody leads twice.
        let count = if kind == HolderKind::Leader { 1 } else { count };
        let (client_name, note) = (hold.client_name(), hold.note());
        Self { hold, client_name, note, kind, count, slots: Vec::new(), ttl: left }
    }

    /// A hold beside which there may be others.
    fn listed(kind: HolderKind, ListEntry { id: hold, left, .. }: ListEntry) -> Self {
        Self::record(kind, Holding { hold, count: 1, left: Some(left) })
    }

    /// What is left of its lease.
    // A record without an expiry keeps the lock for the longest.
    fn left(&self) -> Duration {
        self.ttl.unwrap_or(Duration::MAX)
    }
}

impl Waiting {
    fn all(kind: HolderKind, places: Vec<ListEntry>) -> impl Iterator<Item = Self> {
        places.into_iter().map(move |ListEntry { id: place, ticket, left: ttl }| {
            let (client_name, note) = (place.client_name(), place.note());
            Self { place, client_name, note, kind, ticket, ttl }
        })
    }

    fn order(&self) -> (u64, &HoldId) {
        (self.ticket, &self.place)
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
