//! Who holds the locks of a name.

use std::{fmt, time::Duration};

use futures::future::try_join_all;
use quorate::{Error, Holder, HolderKind, LockKind, Quorate, Token};

use crate::{
    clock,
    frame::{Short, long, quoted},
    lock,
};

/// The locks that a name has.
pub(crate) const KINDS: [LockKind; 4] =
    [LockKind::Mutex, LockKind::RwLock, LockKind::Semaphore, LockKind::Election];

/// A hold that has votes.
#[derive(Debug)]
pub(crate) struct FoundHold {
    kind: LockKind,
    /// With the longest time that is left on any voter.
    pub(crate) held: Holder,
    /// None where the hold has no token, or one of Redisson, which does not tell the time.
    since: Option<Duration>,
    votes: usize,
    voters: usize,
}

impl FoundHold {
    /// Says whose hold was ended, and how many voters have confirmed it.
    pub(crate) async fn end(&self, quorum: &Quorate, name: &str) -> Result<String, Error> {
        let confirmed = quorum.admin().end(self.kind, name, &self.held.hold).await?;
        Ok(format!("{}, confirmed by {confirmed} of {} voters", self.whose(), self.voters))
    }

    /// The hold, and its client where that is known.
    pub(crate) fn whose(&self) -> String {
        let client = self.held.client_name.as_ref().map(|name| format!(" of {}", quoted(name)));
        format!("{}{}", quoted(self.held.hold.as_str()), client.unwrap_or_default())
    }

    /// Whether it has a majority, and so keeps others from a lock of this kind.
    pub(crate) fn keeps_from(&self, kind: lock::LockKind<'_>) -> bool {
        let of = match kind {
            lock::LockKind::Mutex | lock::LockKind::Fair => LockKind::Mutex,
            lock::LockKind::Read | lock::LockKind::Write => LockKind::RwLock,
            lock::LockKind::Permit(_) => LockKind::Semaphore,
            lock::LockKind::Lead(_) => LockKind::Election,
        };
        self.kind == of && self.votes > self.voters / 2
    }
}

impl fmt::Display for FoundHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = match self.held.kind {
            HolderKind::Write => "written",
            HolderKind::Read => "read",
            HolderKind::Permit => "held, with permits,",
            HolderKind::Leader => "led",
            _ => "held",
        };
        let hold = quoted(self.held.hold.as_str());
        let client = self.held.client_name.as_ref().map_or_else(|| hold.clone(), |it| quoted(it));
        write!(f, "{held} by {client}")?;
        if let Some(since) = self.since {
            write!(f, " for {}", long(since))?;
        }
        match self.held.ttl {
            Some(left) => write!(f, ", {} left unless renewed", Short(left))?,
            None => f.write_str(", without an end")?,
        }
        write!(f, "; {} of {} votes, hold {hold}", self.votes, self.voters)
    }
}

/// All holds of all locks of the name, also of a minority of the voters.
pub(crate) async fn find(quorum: &Quorate, name: &str) -> Result<Vec<FoundHold>, Error> {
    let admin = quorum.admin();
    let mut holds = Vec::new();
    for seen in try_join_all(KINDS.map(|kind| admin.look(kind, name))).await? {
        for held in seen.all_holders() {
            let has_token = !matches!(held.kind, HolderKind::Read | HolderKind::Permit);
            holds.push(FoundHold {
                kind: seen.kind,
                since: seen.token.filter(|_| has_token).and_then(age),
                votes: seen.votes(&held.hold),
                voters: seen.voters.len(),
                held,
            });
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
