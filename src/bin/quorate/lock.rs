//! Locks of any kind: asking for one, its guard, and who holds the locks of a name.

use std::{fmt, time::Duration};

use clap::Args;
use futures::future::try_join_all;
use quorate::{
    Error, Firing, HoldId, HoldTicket, Holder, HolderKind, Leadership, LockKind as Kind, Lost,
    MutexGuard, OnceGuard, PermitGuard, Quorate, ReadGuard, Token, WriteGuard,
};

use crate::{
    clock,
    screen::{Short, long, noted, quoted},
};

/// What is asked for under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockKind<'a> {
    Mutex,
    Fair,
    Read,
    Write,
    /// One of so many permits.
    Permit(u32),
    /// The lead, with the value of the leader.
    Lead(&'a str),
    /// A firing of a job, and for how long servers remember that it is done.
    Once(Firing, Option<Duration>),
    /// The hold that is parked for this ticket.
    Parked(&'a HoldTicket),
}

/// The options that name a kind of lock; without one it is a mutex.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct KindOptions {
    /// Take the lock in the order of asking
    #[arg(long)]
    fair: bool,

    /// Take a read/write lock, to read
    #[arg(long)]
    read: bool,

    /// Take a read/write lock, to write
    #[arg(long)]
    write: bool,

    /// Take a permit of a semaphore that has so many
    #[arg(long, value_name = "N")]
    permits: Option<u32>,
}

/// How a lock is asked for. By default, as the settings of the client say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request<'a> {
    /// How long to wait; `None`: as long as it takes.
    pub(crate) wait: Option<Duration>,
    pub(crate) lease: Option<Duration>,
    pub(crate) hold_at_most: Option<Duration>,
    pub(crate) note: Option<&'a str>,
}

/// A guard.
pub(crate) enum LockHeld {
    Exclusive(MutexGuard),
    Reads(ReadGuard),
    Writes(WriteGuard),
    Permit(PermitGuard),
    Leads(Leadership),
    Once(OnceGuard),
}

impl KindOptions {
    pub(crate) fn kind(&self) -> LockKind<'static> {
        match (self.fair, self.read, self.write, self.permits) {
            (true, ..) => LockKind::Fair,
            (_, true, ..) => LockKind::Read,
            (_, _, true, _) => LockKind::Write,
            (.., Some(permits)) => LockKind::Permit(permits),
            _ => LockKind::Mutex,
        }
    }
}

/// Does something with a guard of any kind; or, if given, something else for a firing and a lead.
// A macro, as the guards have the same methods but no trait in common.
macro_rules! with {
    ($held:expr, $guard:ident => $what:expr) => {
        with!($held, $guard => $what, $guard => $what, $guard => $what)
    };
    (
        $held:expr, $guard:ident => $what:expr,
        $once:ident => $done:expr, $lead:ident => $led:expr
    ) => {
        match $held {
            LockHeld::Exclusive($guard) => $what,
            LockHeld::Reads($guard) => $what,
            LockHeld::Writes($guard) => $what,
            LockHeld::Permit($guard) => $what,
            LockHeld::Once($once) => $done,
            LockHeld::Leads($lead) => $led,
        }
    };
}

impl LockHeld {
    /// Acquires the lock. `None`: the firing is done.
    pub(crate) async fn acquire(
        quorum: &Quorate,
        kind: LockKind<'_>,
        name: &str,
        request: Request<'_>,
    ) -> Result<Option<Self>, Error> {
        let Request { wait, lease, hold_at_most, note } = request;
        macro_rules! take {
            ($lock:expr, $wait:ident($($value:expr)?), $within:ident) => {{
                let mut lock = $lock.note(note.unwrap_or_default());
                if let Some(lease) = lease {
                    lock = lock.lease(lease);
                }
                if let Some(most) = hold_at_most {
                    lock = lock.hold_at_most(most);
                }
                match wait {
                    // With a limit by the call that says who has the lock when the time is over.
                    None => lock.$wait($($value)?).await,
                    Some(limit) => lock.$within($($value,)? limit).await,
                }
            }};
        }
        Ok(Some(match kind {
            LockKind::Mutex => Self::Exclusive(take!(quorum.mutex(name), lock(), lock_or_busy)?),
            LockKind::Fair => {
                Self::Exclusive(take!(quorum.fair_mutex(name), lock(), lock_or_busy)?)
            }
            LockKind::Read => Self::Reads(take!(quorum.rw_lock(name), read(), read_or_busy)?),
            LockKind::Write => Self::Writes(take!(quorum.rw_lock(name), write(), write_or_busy)?),
            LockKind::Permit(permits) => {
                Self::Permit(take!(quorum.semaphore(name, permits), acquire(), acquire_or_busy)?)
            }
            LockKind::Lead(value) => {
                Self::Leads(take!(quorum.election(name), campaign(value), campaign_or_busy)?)
            }
            LockKind::Once(firing, keep) => {
                let once = quorum.once(name);
                let once = keep.map_or(once.clone(), |keep| once.keep(keep));
                match take!(once, enter(firing), enter_or_busy)? {
                    Some(guard) => Self::Once(guard),
                    None => return Ok(None),
                }
            }
            LockKind::Parked(ticket) => Self::Exclusive(quorum.resume(ticket).await?),
        }))
    }

    pub(crate) fn hold(&self) -> &HoldId {
        with!(self, guard => guard.hold())
    }

    /// The token; readers and permits have none.
    pub(crate) fn token(&self) -> Option<Token> {
        match self {
            Self::Exclusive(guard) => Some(guard.token()),
            Self::Writes(guard) => Some(guard.token()),
            Self::Leads(leadership) => Some(leadership.token()),
            Self::Once(guard) => Some(guard.token()),
            Self::Reads(_) | Self::Permit(_) => None,
        }
    }

    /// The number of the permit.
    pub(crate) fn slot(&self) -> Option<u32> {
        if let Self::Permit(guard) = self { Some(guard.slot()) } else { None }
    }

    pub(crate) fn remaining(&self) -> Duration {
        with!(self, guard => guard.remaining())
    }

    pub(crate) fn lost(&self) -> Lost {
        with!(self, guard => guard.lost())
    }

    pub(crate) async fn release(self) -> Result<(), Error> {
        with!(self, it => it.release().await, it => it.release().await, it => it.resign().await)
    }

    /// Releases it after work that went well: a firing is done then.
    pub(crate) async fn finish(self) -> Result<(), Error> {
        with!(self, it => it.release().await, it => it.done().await, it => it.resign().await)
    }

    /// Renews it for this time at least.
    pub(crate) async fn extend(&self, lease: Duration) -> Result<(), Error> {
        // For a firing or a lead no subcommand asks for it, and the agent refuses it before.
        with!(self, it => it.extend(lease).await, _it => Ok(()), _it => Ok(()))
    }

    /// Leaves it taken for this time; a lead or a firing is released.
    pub(crate) async fn keep_for(self, time: Duration) -> Result<(), Error> {
        with!(self, it => it.keep_for(time).await, it => it.done().await, it => it.resign().await)
    }
}

/// The locks that a name can stand for.
pub(crate) const KINDS: [Kind; 5] =
    [Kind::Mutex, Kind::RwLock, Kind::Semaphore, Kind::Election, Kind::Once];

/// A hold that has votes.
pub(crate) struct FoundHold {
    kind: Kind,
    /// The hold, with the longest time that is left on any voter.
    pub(crate) held: Holder,
    /// How long ago it began, if its token says that.
    since: Option<Duration>,
    votes: usize,
    voters: usize,
}

impl FoundHold {
    /// Ends it by force. Says whose hold it was, and how many voters have confirmed the end.
    pub(crate) async fn end(&self, quorum: &Quorate, name: &str) -> Result<String, Error> {
        let confirmed = quorum.admin().end(self.kind, name, &self.held.hold).await?;
        Ok(format!("{}, confirmed by {confirmed} of {} voters", self.whose(), self.voters))
    }

    /// The hold, and its client if the id names it.
    pub(crate) fn whose(&self) -> String {
        let client = self.held.client_name.as_ref().map(|name| format!(" of {}", quoted(name)));
        format!("{}{}", quoted(self.held.hold.as_str()), client.unwrap_or_default())
    }

    /// Whether it has a majority, and so keeps others from a lock of this kind.
    pub(crate) fn keeps_from(&self, kind: LockKind<'_>) -> bool {
        // A name stands for five locks: who holds the semaphore is in nobody's way at the mutex.
        let of = match kind {
            LockKind::Mutex | LockKind::Fair | LockKind::Parked(_) => Kind::Mutex,
            LockKind::Read | LockKind::Write => Kind::RwLock,
            LockKind::Permit(_) => Kind::Semaphore,
            LockKind::Lead(_) => Kind::Election,
            LockKind::Once(..) => Kind::Once,
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
            HolderKind::Parked => "parked",
            _ => "held",
        };
        let hold = quoted(self.held.hold.as_str());
        let client = self.held.client_name.as_ref().map_or_else(|| hold.clone(), |it| quoted(it));
        write!(f, "{held} by {client}{}", noted(&self.held.hold))?;
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

/// All holds of all locks of the name, also holds with the votes of a minority.
// An operator may have to end these, too: they can keep everybody from a majority.
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

/// How long ago a hold with this token began.
fn age(token: Token) -> Option<Duration> {
    // A token is at least the wall clock of its client in microseconds (design 7), so in most cases
    // it is the time of the grant. A token of Redisson is a small number, and no time.
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let age = clock::wall().saturating_sub(Duration::from_micros(token.into()));
    Some(age).filter(|age| !age.is_zero() && *age < YEAR)
}
