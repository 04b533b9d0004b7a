//! Who holds the locks of a name.

use std::{fmt, time::Duration};

use quorate::{Error, HoldId, Quorate, Token};

use crate::{
    clock,
    frame::{Short, long, quoted},
    lock::{LockKind, any_semaphore},
};

/// Of which lock of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Mutex,
    Write,
    Read,
    Permits,
    Lead,
}

/// A hold that has votes.
#[derive(Debug)]
pub(crate) struct FoundHold {
    held: Held,
    pub(crate) hold: HoldId,
    /// The longest that is left on any voter; none where the record has no expiry.
    left: Option<Duration>,
    /// None where the lock has no tokens, or those of Redisson, which do not tell the time.
    since: Option<Duration>,
    votes: usize,
    voters: usize,
}

impl FoundHold {
    pub(crate) async fn end(&self, quorum: &Quorate, name: &str) -> Result<(), Error> {
        match self.held {
            Held::Mutex => quorum.mutex(name).force_release_hold(&self.hold).await,
            Held::Write | Held::Read => quorum.rw_lock(name).force_release_hold(&self.hold).await,
            Held::Permits => any_semaphore(quorum, name).force_release_hold(&self.hold).await,
            Held::Lead => quorum.election(name).force_release_hold(&self.hold).await,
        }
    }

    /// The hold, and its client where that is known.
    pub(crate) fn whose(&self) -> String {
        let client = self.hold.client_name().map(|name| format!(" of {}", quoted(name)));
        format!("{}{}", quoted(self.hold.as_str()), client.unwrap_or_default())
    }

    /// Whether it has a majority, and so keeps others from a lock of this kind.
    pub(crate) fn keeps_from(&self, kind: LockKind<'_>) -> bool {
        let is_in_the_way = match kind {
            LockKind::Mutex | LockKind::Fair => self.held == Held::Mutex,
            LockKind::Read | LockKind::Write => matches!(self.held, Held::Read | Held::Write),
            LockKind::Permit(_) => self.held == Held::Permits,
            LockKind::Lead(_) => self.held == Held::Lead,
        };
        is_in_the_way && self.votes > self.voters / 2
    }
}

impl fmt::Display for FoundHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = match self.held {
            Held::Mutex => "held",
            Held::Write => "written",
            Held::Read => "read",
            Held::Permits => "held, with permits,",
            Held::Lead => "led",
        };
        let hold = quoted(self.hold.as_str());
        let client = self.hold.client_name().map_or_else(|| hold.clone(), quoted);
        write!(f, "{held} by {client}")?;
        if let Some(since) = self.since {
            write!(f, " for {}", long(since))?;
        }
        match self.left {
            Some(left) => write!(f, ", {} left unless renewed", Short(left))?,
            None => f.write_str(", without an end")?,
        }
        write!(f, "; {} of {} votes, hold {hold}", self.votes, self.voters)
    }
}

/// All holds of all locks of the name, also of a minority of the voters.
pub(crate) async fn find(quorum: &Quorate, name: &str) -> Result<Vec<FoundHold>, Error> {
    let (mutex, rw_lock) = (quorum.mutex(name), quorum.rw_lock(name));
    let (semaphore, election) = (any_semaphore(quorum, name), quorum.election(name));
    let (in_mutex, in_rw_lock, in_semaphore, in_election) = tokio::try_join!(
        mutex.inspect(),
        rw_lock.inspect(),
        semaphore.inspect(),
        election.inspect()
    )?;
    let mut holds: Vec<FoundHold> = Vec::new();
    let voters = in_mutex.voters.len();
    let mut note = |held, hold: &HoldId, left, since| {
        let longer = |one: Option<Duration>, other: Option<Duration>| Some(one?.max(other?));
        match holds.iter_mut().find(|found| found.held == held && found.hold == *hold) {
            Some(found) => {
                (found.votes, found.left) = (found.votes + 1, longer(found.left, left));
            }
            None => {
                holds.push(FoundHold { held, hold: hold.clone(), left, since, votes: 1, voters });
            }
        }
    };
    for (held, seen) in [(Held::Mutex, &in_mutex), (Held::Lead, &in_election)] {
        let since = seen.token().and_then(age);
        for holder in seen.voters.iter().filter_map(|view| view.holder.as_ref().ok()?.as_ref()) {
            note(held, &holder.hold, holder.ttl, since);
        }
    }
    let written = in_rw_lock.token().and_then(age);
    for state in in_rw_lock.voters.iter().filter_map(|view| view.state.as_ref().ok()) {
        if let Some(writer) = &state.writer {
            note(Held::Write, &writer.hold, writer.ttl, written);
        }
        for reader in &state.readers {
            note(Held::Read, &reader.hold, Some(reader.ttl), None);
        }
    }
    for state in in_semaphore.voters.iter().filter_map(|view| view.state.as_ref().ok()) {
        for held in &state.holders {
            note(Held::Permits, &held.hold, Some(held.ttl), None);
        }
    }
    Ok(holds)
}

/// How long ago a hold with this token began: a token is about that time, in microseconds. One of
/// Redisson is a small number.
fn age(token: Token) -> Option<Duration> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let age = clock::wall().saturating_sub(Duration::from_micros(token.into()));
    Some(age).filter(|age| !age.is_zero() && *age < YEAR)
}
