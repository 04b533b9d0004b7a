//! The locks that tasks share, their keys on the voters, and who has a vote.

use quorate::{Access, embedded::Record};

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lock {
    /// A mutex, whether it is asked for in order or not.
    Mutex(usize),
    /// A read/write lock: another one than the mutex of its name.
    Rw(usize),
}

impl Lock {
    pub(crate) fn name(self) -> String {
        let (Self::Mutex(number) | Self::Rw(number)) = self;
        format!("lock-{number}")
    }

    /// What the keys begin with that other kinds of locks have not.
    fn stem(self) -> String {
        match self {
            Self::Mutex(_) => format!("quorate:{{{}}}", self.name()),
            Self::Rw(_) => format!("quorate:{{{}}}:rw", self.name()),
        }
    }

    /// The keys of the records of who holds.
    pub(crate) fn records(self) -> Vec<String> {
        match self {
            Self::Mutex(_) => vec![self.stem()],
            Self::Rw(_) => vec![format!("{}:writer", self.stem()), self.readers()],
        }
    }

    /// The key of the holds that read.
    pub(crate) fn readers(self) -> String {
        format!("{}:readers", self.stem())
    }

    /// The key of the places that wait, with their tickets.
    pub(crate) fn queue(self) -> String {
        format!("{}:queue", self.stem())
    }

    /// The key of the deadlines of these places.
    pub(crate) fn alive(self) -> String {
        format!("{}:alive", self.stem())
    }

    /// The key of those of them that wait to write among readers.
    pub(crate) fn writers(self) -> String {
        format!("{}:writers", self.stem())
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
