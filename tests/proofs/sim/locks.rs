//! The locks that tasks share, their keys on the voters, and who has a vote.

use std::{ops::Deref, sync::LazyLock};

use quorate::LockKind;

use crate::sim::prelude::*;

/// What the keys of the numbers end with that tokens are counted by.
pub(crate) const FENCE: &str = ":fence";
/// What the keys of the numbers end with that a semaphore is asked with.
pub(crate) const PERMITS: &str = ":permits";

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lock {
    /// A mutex, whether it is asked for in order or not.
    Mutex(usize),
    /// A read/write lock: another one than the mutex of its name.
    Rw(usize),
    /// A semaphore: another one again.
    Semaphore(usize),
    /// An election: another one again.
    Election(usize),
}

/// How a lock and its keys are called. They are looked for after every script.
pub(crate) struct Keys {
    pub(crate) name: String,
    /// Those of the records of who holds.
    pub(crate) records: Vec<String>,
    pub(crate) readers: String,
    /// That of the places that wait, with their tickets.
    pub(crate) queue: String,
    /// That of the deadlines of these places.
    pub(crate) alive: String,
    /// That of those of them that wait to write among readers.
    pub(crate) writers: String,
    /// That of the number of the latest exclusive hold.
    pub(crate) fence: String,
    /// Those of all that names a hold or a place that keeps others out.
    pub(crate) claims: Vec<String>,
}

impl Keys {
    fn of(lock: Lock) -> Self {
        let (Lock::Mutex(number)
        | Lock::Rw(number)
        | Lock::Semaphore(number)
        | Lock::Election(number)) = lock;
        let name = format!("lock-{number}");
        let stem = match lock {
            Lock::Mutex(_) => format!("quorate:{{{name}}}"),
            Lock::Rw(_) => format!("quorate:{{{name}}}:rw"),
            Lock::Semaphore(_) => format!("quorate:{{{name}}}:semaphore"),
            Lock::Election(_) => format!("quorate:{{{name}}}:election"),
        };
        let key = |part| format!("{stem}:{part}");
        let records = match lock {
            Lock::Mutex(_) | Lock::Election(_) => vec![stem.clone()],
            Lock::Rw(_) => vec![key("writer"), key("readers")],
            Lock::Semaphore(_) => vec![key("slots"), key("ends")],
        };
        Self {
            claims: [records.clone(), vec![key("queue"), key("writers"), key("served")]].concat(),
            records,
            readers: key("readers"),
            queue: key("queue"),
            alive: key("alive"),
            writers: key("writers"),
            fence: match lock {
                // It has no tokens.
                Lock::Semaphore(_) => format!("{stem}{PERMITS}"),
                Lock::Mutex(_) | Lock::Rw(_) | Lock::Election(_) => format!("{stem}{FENCE}"),
            },
            name,
        }
    }
}

impl Lock {
    /// So many of each kind there may be.
    pub(crate) const MOST: usize = 2;

    pub(crate) fn of(kind: Kind, number: usize) -> Self {
        match kind {
            Kind::Plain | Kind::Fair | Kind::All => Self::Mutex(number),
            Kind::Read(_) | Kind::Write => Self::Rw(number),
            Kind::Permits { .. } => Self::Semaphore(number),
            Kind::Election => Self::Election(number),
        }
    }

    pub(crate) fn kind(self) -> LockKind {
        match self {
            Self::Mutex(_) => LockKind::Mutex,
            Self::Rw(_) => LockKind::RwLock,
            Self::Semaphore(_) => LockKind::Semaphore,
            Self::Election(_) => LockKind::Election,
        }
    }
}

impl Deref for Lock {
    type Target = Keys;

    fn deref(&self) -> &Keys {
        static ALL: LazyLock<BTreeMap<Lock, Keys>> = LazyLock::new(|| {
            let of = |number| {
                let (semaphore, election) = (Lock::Semaphore(number), Lock::Election(number));
                [Lock::Mutex(number), Lock::Rw(number), semaphore, election]
            };
            let locks = (0..Lock::MOST).flat_map(of);
            locks.map(|lock| (lock, Keys::of(lock))).collect()
        });
        &ALL[self]
    }
}

/// A vote that a voter has given.
#[derive(Clone, Debug)]
pub(crate) struct Vote<'a> {
    pub(crate) hold: &'a str,
    pub(crate) access: Access,
    /// What is left of it; `None`: it does not end.
    pub(crate) left_ms: Option<i64>,
    /// A reader's deadline by the voter's clock.
    pub(crate) ends_ms: Option<i64>,
    /// Of a semaphore, in ascending order.
    pub(crate) slots: Vec<u32>,
}

/// A hold as it is a rival of others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rival<'a> {
    pub(crate) hold: &'a str,
    pub(crate) access: Access,
    pub(crate) slots: &'a [u32],
}

/// The votes that are in the records with these keys.
pub(crate) fn votes<'a>(records: &'a [Record], keys: &[impl AsRef<str>]) -> Vec<Vote<'a>> {
    let is_asked_for = |record: &&Record| keys.iter().any(|key| record.key == key.as_ref());
    let mut votes = Vec::new();
    for record in records.iter().filter(is_asked_for) {
        if record.key.ends_with(":semaphore:slots") {
            continue;
        }
        let has_slots = record.key.ends_with(":semaphore:ends");
        let reads = has_slots || record.key.ends_with(":rw:readers");
        let deadline = |score: &str| score.parse::<i64>().ok().filter(|_| reads);
        let last_ms = record.fields.last().and_then(|(_, score)| deadline(score));
        // Of several slots of a hold each has a member.
        let fields = record.fields.iter().filter(|(hold, _)| !hold.contains('+'));
        votes.extend(fields.map(|(hold, score)| {
            let ends_ms = deadline(score);
            // The key ends with the last of them.
            let before_ms = last_ms.zip(ends_ms).map_or(0, |(last, ends)| last - ends);
            Vote {
                hold,
                access: if reads { Access::Read } else { Access::Write },
                left_ms: record.left_ms.map(|ms| ms - before_ms),
                ends_ms,
                slots: if has_slots { slots(records, &record.key, hold) } else { Vec::new() },
            }
        }));
        // Where somebody deleted the slots alone, it is unknown who has which.
        votes.retain(|vote| !has_slots || !vote.slots.is_empty());
    }
    votes
}

/// Whether `read` reads under the hold `write` of its own owner.
pub(crate) fn is_under(read: &str, write: &str) -> bool {
    read.strip_prefix(write).is_some_and(|rest| rest.starts_with('/'))
}

/// The slots that a voter has given a hold of the semaphore with this key.
fn slots(records: &[Record], ends: &str, hold: &str) -> Vec<u32> {
    let is_of = |record: &&Record| {
        record.key.strip_suffix("slots").is_some_and(|stem| ends.strip_suffix("ends") == Some(stem))
    };
    let of_hold = |member: &str| member.split('+').next() == Some(hold);
    let fields = records.iter().find(is_of).map_or(&[][..], |record| &record.fields);
    let own = fields.iter().filter(|(member, _)| of_hold(member));
    let mut slots: Vec<u32> = own.filter_map(|(_, slot)| slot.parse().ok()).collect();
    slots.sort_unstable();
    slots
}

/// Whether only one of two different holds of a lock may be held at one moment.
pub(crate) fn excludes(one: Rival<'_>, other: Rival<'_>) -> bool {
    let both_read = one.access == Access::Read && other.access == Access::Read;
    let own = is_under(one.hold, other.hold) || is_under(other.hold, one.hold);
    let same_slot = one.slots.iter().any(|slot| other.slots.contains(slot));
    one.hold != other.hold && (same_slot || !both_read && !own)
}
