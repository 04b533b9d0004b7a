//! The locks that tasks share, their keys on the voters, and who has a vote.

use std::{collections::BTreeMap, sync::LazyLock};

use quorate::{embedded::Record, inspection::Access};

/// What the keys of the numbers end with that tokens are counted by.
pub(crate) const FENCE: &str = ":fence";

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lock {
    /// A mutex, whether it is asked for in order or not.
    Mutex(usize),
    /// A read/write lock: another one than the mutex of its name.
    Rw(usize),
}

/// How a lock and its keys are called. They are looked for after every script.
struct Keys {
    name: String,
    records: Vec<String>,
    readers: String,
    queue: String,
    alive: String,
    writers: String,
    fence: String,
    claims: Vec<String>,
}

impl Keys {
    fn of(lock: Lock) -> Self {
        let (Lock::Mutex(number) | Lock::Rw(number)) = lock;
        let name = format!("lock-{number}");
        let stem = match lock {
            Lock::Mutex(_) => format!("quorate:{{{name}}}"),
            Lock::Rw(_) => format!("quorate:{{{name}}}:rw"),
        };
        let key = |part| format!("{stem}:{part}");
        let records = match lock {
            Lock::Mutex(_) => vec![stem.clone()],
            Lock::Rw(_) => vec![key("writer"), key("readers")],
        };
        Self {
            claims: [records.clone(), vec![key("queue"), key("writers")]].concat(),
            records,
            readers: key("readers"),
            queue: key("queue"),
            alive: key("alive"),
            writers: key("writers"),
            fence: format!("{stem}{FENCE}"),
            name,
        }
    }
}

impl Lock {
    /// So many of each kind there may be.
    pub(crate) const MOST: usize = 2;

    fn keys(self) -> &'static Keys {
        static ALL: LazyLock<BTreeMap<Lock, Keys>> = LazyLock::new(|| {
            let locks = (0..Lock::MOST).flat_map(|number| [Lock::Mutex(number), Lock::Rw(number)]);
            locks.map(|lock| (lock, Keys::of(lock))).collect()
        });
        &ALL[&self]
    }

    pub(crate) fn name(self) -> &'static str {
        &self.keys().name
    }

    /// The keys of the records of who holds.
    pub(crate) fn records(self) -> &'static [String] {
        &self.keys().records
    }

    /// The key of the holds that read.
    pub(crate) fn readers(self) -> &'static str {
        &self.keys().readers
    }

    /// The key of the places that wait, with their tickets.
    pub(crate) fn queue(self) -> &'static str {
        &self.keys().queue
    }

    /// The key of the deadlines of these places.
    pub(crate) fn alive(self) -> &'static str {
        &self.keys().alive
    }

    /// The key of those of them that wait to write among readers.
    pub(crate) fn writers(self) -> &'static str {
        &self.keys().writers
    }

    /// The key of the number of the latest exclusive hold.
    pub(crate) fn fence(self) -> &'static str {
        &self.keys().fence
    }

    /// The keys of all that names a hold or a place that keeps others out.
    pub(crate) fn claims(self) -> &'static [String] {
        &self.keys().claims
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
}

/// The votes that are in the records with these keys.
pub(crate) fn votes<'a>(records: &'a [Record], keys: &[impl AsRef<str>]) -> Vec<Vote<'a>> {
    let is_asked_for = |record: &&Record| keys.iter().any(|key| record.key == key.as_ref());
    let mut votes = Vec::new();
    for record in records.iter().filter(is_asked_for) {
        let reads = record.key.ends_with(":rw:readers");
        let deadline = |score: &str| score.parse::<i64>().ok().filter(|_| reads);
        let last_ms = record.fields.last().and_then(|(_, score)| deadline(score));
        votes.extend(record.fields.iter().map(|(hold, score)| {
            let ends_ms = deadline(score);
            // The key ends with the last of them.
            let before_ms = last_ms.zip(ends_ms).map_or(0, |(last, ends)| last - ends);
            Vote {
                hold,
                access: if reads { Access::Read } else { Access::Write },
                left_ms: record.left_ms.map(|ms| ms - before_ms),
                ends_ms,
            }
        }));
    }
    votes
}

/// Whether `read` reads under the hold `write` of its own owner.
pub(crate) fn is_under(read: &str, write: &str) -> bool {
    read.strip_prefix(write).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether only one of two different holds of a lock may be held at one moment.
pub(crate) fn excludes(one: (&str, Access), other: (&str, Access)) -> bool {
    let both_read = one.1 == Access::Read && other.1 == Access::Read;
    let own = is_under(one.0, other.0) || is_under(other.0, one.0);
    one.0 != other.0 && !both_read && !own
}
