//! The one error type.

use std::{borrow::Cow, fmt, time::Duration};

use super::{
    Cause, HoldId, Listed, Majorities, Quorum, Rounded, ServerError, Side, Verdict, VoterReport,
};

/// Anything that went wrong, with the values in the message and the voters' own causes.
///
/// Match on its [`kind`](Self::kind), or ask one of the `is_*` methods. A lock that somebody else
/// holds is not an error for `try_lock`, `lock_within` and their like, which answer `None`. It is
/// one for `lock_or_busy` and its like, which say who holds the lock.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await.unwrap();
/// use quorate::ErrorKind;
///
/// voters[0].kill();
/// voters[1].kill();
/// let error = quorum.mutex("invoice:42").try_lock().await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NoQuorum);
/// assert_eq!(error.lock(), Some("invoice:42"));
/// for report in error.voters() {
///     println!("{report}"); // "embedded-1: unreachable: killed"
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Error {
    // In a box: every result of the library has room for an error.
    kind: Box<Kind>,
    voters: Vec<VoterReport>,
}

/// What kind of [`Error`] it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting, an address or a lock name cannot be used, or two voters are one server. No lock
    /// was requested, unless a lock of [Redisson](crate::Redisson) turns out to be an `RFairLock`
    /// in Java.
    Invalid,
    /// Too few voters could be reached, or compared their voter configuration, when the client
    /// connected. Or a majority takes longer to answer than the settings allow, for now or because
    /// it is far away.
    NotConnected,
    /// Too few voters answered: it is unknown whether the lock is free, and nothing was acquired.
    /// If only quarantines keep a majority away, [`retry_after`](Error::retry_after) says when a
    /// call can succeed.
    NoQuorum,
    /// Another hold has the lock, or other callers have too many of its votes. Only calls that end
    /// with `or_busy` return this error: see [`holder`](Error::holder) and
    /// [`lease_left`](Error::lease_left).
    Busy,
    /// The hold has ended without being released: somebody else may hold the lock.
    Lost,
    /// The last guard of the hold was released or dropped. Only a [`Lost`](crate::Lost) that
    /// outlives all guards returns this error.
    Released,
    /// The release went out, but no majority confirmed it in time. It goes on in the background,
    /// and the lock is free at the latest when its lease ends: see
    /// [`frees_in`](Error::frees_in). The lock was held until then.
    Unconfirmed,
    /// This owner holds the lock, and no majority confirmed in time that it enters again, or reads
    /// under its write. The lock is held as before, without this entry.
    NotEntered,
    /// The hold that was to be ended by force has no vote: it has ended, or is of another lock.
    /// Nothing was ended.
    NotHolding,
    /// The hold of this ticket can no longer be resumed: somebody has resumed it, its time was
    /// over, it was ended by force, or too few voters still had it.
    TicketEnded,
    /// The owner reads the lock that it wants to write, so it would wait for itself forever. It
    /// gets no write, and the voters store nothing of one.
    Deadlock,
    /// This client already makes as many attempts as it may at once, and none of them ended in
    /// time. The voters were not asked for this lock. `lock_within` returns this at its limit,
    /// `try_lock` after the [quorum timeout](crate::Builder::quorum_timeout), `lock` never.
    Overloaded,
    /// Other clients of the same voters have another set of voters, longest lease, drift or restart
    /// guard, or are more than one step of a change of the voters apart. From
    /// [`connect`](crate::Builder::connect). The message shows the configuration of both sides.
    ConfigurationMismatch,
    /// The client was closed, its runtime has ended, or this process was forked from the one that
    /// connected.
    Closed,
    /// A call of the feature `blocking` was made inside a future that tokio runs, and would block
    /// the other tasks of the thread. Nothing was sent.
    InsideRuntime,
}

/// What the holder of a busy lock does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum HolderKind {
    /// It holds the [`Mutex`](crate::Mutex).
    Mutex,
    /// It reads. Of several readers it is the one whose lease ends last; of a lock of
    /// [Redisson](crate::Redisson) any of them.
    Read,
    /// It writes.
    Write,
    /// It has permits of a [`Semaphore`](crate::Semaphore). Of several such holds it is the one
    /// whose lease ends last.
    Permit,
    /// It leads an [`Election`](crate::Election).
    Leader,
    /// It is [parked](crate::MutexGuard::detach_for): nobody works under the lock, and whoever has
    /// the ticket can resume it.
    Parked,
    /// It waits in the queue, and comes before the caller. The lock itself may be free.
    Waiting,
}

/// Who is in the way of a caller.
#[derive(Clone, Debug)]
pub struct Taker {
    pub hold: HoldId,
    pub kind: HolderKind,
}

impl fmt::Display for Taker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            HolderKind::Mutex | HolderKind::Permit => "taken by ",
            HolderKind::Read => "read by ",
            HolderKind::Write => "written by ",
            HolderKind::Leader => "led by ",
            HolderKind::Parked => "parked by ",
            HolderKind::Waiting => "kept for a waiter that comes first, ",
        })?;
        self.hold.fmt(f)?;
        self.hold.note().map_or(Ok(()), |note| write!(f, " ({note:?})"))
    }
}

/// The kind of an error, with its values. `asked_ago`: how long before the error the voters were
/// asked. `too_late`: a majority granted with less validity left than this.
#[derive(Clone, Debug)]
pub enum Kind {
    Invalid(String),
    Connect {
        needed: Majorities,
        after: Duration,
    },
    TooFar(String),
    NoQuorum {
        lock: String,
        needed: Majorities,
        after: Duration,
        asked_ago: Duration,
        too_late: Option<Duration>,
    },
    Busy {
        lock: String,
        by: Option<Taker>,
        lease_left: Option<Duration>,
    },
    Lost {
        lock: String,
        hold: HoldId,
        why: Cow<'static, str>,
    },
    Released {
        lock: String,
        hold: HoldId,
    },
    Reads {
        lock: String,
        hold: HoldId,
    },
    Unconfirmed {
        lock: String,
        hold: HoldId,
        needed: Majorities,
        frees_in: Duration,
    },
    NotEntered {
        lock: String,
        hold: HoldId,
        what: &'static str,
        needed: Majorities,
    },
    NotHolding {
        lock: String,
        hold: HoldId,
    },
    TicketEnded {
        lock: String,
        hold: HoldId,
        why: Cow<'static, str>,
    },
    ConfigurationMismatch(String),
    Overloaded {
        lock: String,
        most: usize,
        after: Duration,
    },
    Refused {
        kind: ErrorKind,
        why: &'static str,
    },
}

/// Why a closed client does not ask its voters.
pub(crate) const CLOSED: &str =
    "the client is closed, its runtime has ended, or it was connected before a fork";

impl Error {
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(Kind::Invalid(what.into()), Vec::new())
    }

    pub(crate) fn closed() -> Self {
        Self::refused(ErrorKind::Closed, CLOSED)
    }

    pub(crate) fn refused(kind: ErrorKind, why: &'static str) -> Self {
        Self::new(Kind::Refused { kind, why }, Vec::new())
    }

    pub(crate) fn new(kind: Kind, voters: Vec<VoterReport>) -> Self {
        Self { kind: Box::new(kind), voters }
    }

    // One list for all three questions: a new kind is added at one place.
    /// Its kind, and the lock and the hold that it is about.
    fn about(&self) -> (ErrorKind, Option<&str>, Option<&HoldId>) {
        match &*self.kind {
            Kind::Invalid(_) => (ErrorKind::Invalid, None, None),
            Kind::Connect { .. } | Kind::TooFar(_) => (ErrorKind::NotConnected, None, None),
            Kind::ConfigurationMismatch(_) => (ErrorKind::ConfigurationMismatch, None, None),
            Kind::Refused { kind, .. } => (*kind, None, None),
            Kind::NoQuorum { lock, .. } => (ErrorKind::NoQuorum, Some(lock), None),
            Kind::Busy { lock, .. } => (ErrorKind::Busy, Some(lock), None),
            Kind::Overloaded { lock, .. } => (ErrorKind::Overloaded, Some(lock), None),
            Kind::Lost { lock, hold, .. } => (ErrorKind::Lost, Some(lock), Some(hold)),
            Kind::Released { lock, hold } => (ErrorKind::Released, Some(lock), Some(hold)),
            Kind::Reads { lock, hold } => (ErrorKind::Deadlock, Some(lock), Some(hold)),
            Kind::Unconfirmed { lock, hold, .. } => {
                (ErrorKind::Unconfirmed, Some(lock), Some(hold))
            }
            Kind::NotEntered { lock, hold, .. } => (ErrorKind::NotEntered, Some(lock), Some(hold)),
            Kind::NotHolding { lock, hold } => (ErrorKind::NotHolding, Some(lock), Some(hold)),
            Kind::TicketEnded { lock, hold, .. } => {
                (ErrorKind::TicketEnded, Some(lock), Some(hold))
            }
        }
    }

    /// What kind it is.
    pub fn kind(&self) -> ErrorKind {
        self.about().0
    }

    /// The name of the lock that it is about, if there is one.
    pub fn lock(&self) -> Option<&str> {
        self.about().1
    }

    /// The hold that was lost, was not confirmed to be released, stands in the way of its own
    /// owner, was to be ended by force and has no vote, or was parked and cannot be resumed.
    pub fn hold(&self) -> Option<&HoldId> {
        self.about().2
    }

    /// After an unconfirmed release: the longest time until the lock is free, counted from when the
    /// error was made.
    pub fn frees_in(&self) -> Option<Duration> {
        match &*self.kind {
            Kind::Unconfirmed { frees_in, .. } => Some(*frees_in),
            _ => None,
        }
    }

    /// How long after the error a call can succeed, if only the [quarantine](crate::Quarantine) of
    /// voters keeps a majority from counting. A call that is made sooner fails again. `None` for
    /// any other error, and if too few voters answered: nobody knows when they come back.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # use std::time::Duration;
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// voters[0].restart_empty();
    /// voters[1].restart_empty();
    /// let mutex = quorum.mutex("invoice:42");
    /// # tokio::time::sleep(Duration::from_millis(10)).await;
    /// let error = mutex.try_lock().await.unwrap_err();
    /// let time = error.retry_after().expect("two of three voters are in quarantine");
    /// tokio::time::sleep(time).await;
    /// assert!(mutex.try_lock().await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        let Kind::NoQuorum { asked_ago, .. } = &*self.kind else { return None };
        let voters = self.voters();
        let quorum = Quorum::of_sides(voters.iter().map(|report| report.side));
        let left = quorum.lowest(|voter| voters.get(voter)?.verdict.counts_in())?;
        // Zero: the voters that answered are a majority, and the lock was lost for another reason.
        // The rest is counted since the voters were asked, and the caller counts from the error on.
        (!left.is_zero()).then(|| left.saturating_sub(*asked_ago))
    }

    /// Whether the same call fails until somebody changes something: the client was closed, an
    /// argument cannot be used, a ticket has ended, or so many servers refuse the call for lack of
    /// rights (`NOPERM`) that there is no majority without them.
    /// [`Election::lead`](crate::Election::lead) ends with such an error, and waits out all others.
    pub fn is_permanent(&self) -> bool {
        let refuses = |voter: usize| match self.voters().get(voter).map(|report| &report.verdict) {
            Some(Verdict::Unknown(Cause::Rejected(why) | Cause::Unreachable(why))) => {
                matches!(why.server_error(), Some(ServerError::NotPermitted(_)))
            }
            _ => false,
        };
        let quorum = Quorum::of_sides(self.voters().iter().map(|report| report.side));
        // A minority without the right does not matter: the others can grant the next call.
        let is_final = self.is_closed() || self.is_invalid() || self.is_ticket_ended();
        is_final || self.is_no_quorum() && quorum.missed(refuses)
    }

    /// Who has the lock, for an error of the kind [`Busy`](ErrorKind::Busy): the hold that most
    /// voters named, or the place in the queue that comes before the caller's. `None` if they named
    /// nobody, as when several clients split the votes. Its [note](HoldId::note) is also in the
    /// message.
    pub fn holder(&self) -> Option<&HoldId> {
        self.busy().0.map(|taker| &taker.hold)
    }

    /// What the [`holder`](Self::holder) does with the lock: holds a mutex, reads, writes, or waits
    /// in front of the caller.
    pub fn holder_kind(&self) -> Option<HolderKind> {
        self.busy().0.map(|taker| taker.kind)
    }

    /// How much of the [`holder`](Self::holder)'s lease, or of the time of its place in the queue,
    /// was left when an error of the kind [`Busy`](ErrorKind::Busy) was made. This does not say
    /// when to ask again: a holder that releases frees the lock sooner, usually much sooner, and a
    /// holder that renews keeps it longer. `None` if the record of the holder has no expiry.
    pub fn lease_left(&self) -> Option<Duration> {
        self.busy().1
    }

    fn busy(&self) -> (Option<&Taker>, Option<Duration>) {
        match &*self.kind {
            Kind::Busy { by, lease_left, .. } => (by.as_ref(), *lease_left),
            _ => (None, None),
        }
    }

    /// What each voter said, in the order in which they were configured. Empty if none was asked.
    pub fn voters(&self) -> &[VoterReport] {
        &self.voters
    }
}

/// A method for each kind.
macro_rules! predicates {
    ($($name:ident: $kind:ident,)*) => {
        impl Error {
            $(
                #[doc = concat!(
                    "Of the kind [`", stringify!($kind), "`](ErrorKind::", stringify!($kind), ")."
                )]
                pub fn $name(&self) -> bool {
                    self.kind() == ErrorKind::$kind
                }
            )*
        }
    };
}

predicates! {
    is_invalid: Invalid,
    is_not_connected: NotConnected,
    is_no_quorum: NoQuorum,
    is_busy: Busy,
    is_lost: Lost,
    is_released: Released,
    is_unconfirmed: Unconfirmed,
    is_not_entered: NotEntered,
    is_not_holding: NotHolding,
    is_ticket_ended: TicketEnded,
    is_deadlock: Deadlock,
    is_overloaded: Overloaded,
    is_configuration_mismatch: ConfigurationMismatch,
    is_closed: Closed,
    is_inside_runtime: InsideRuntime,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Invalid(what) | Kind::TooFar(what) | Kind::ConfigurationMismatch(what) => {
                f.write_str(what)
            }
            Kind::Refused { why, .. } => f.write_str(why),
            Kind::Connect { needed, after } => {
                let after = Rounded(*after);
                write!(f, "fewer than {needed:#} {} could be reached in {after}", needed.noun())
            }
            Kind::NoQuorum { lock, needed, after, too_late, .. } => {
                write!(f, "no quorum of {needed} for lock `{lock}` in {}", Rounded(*after))?;
                let Some(least) = too_late.map(Rounded) else { return Ok(()) };
                write!(f, ": granted too late, the minimum validity of {least} was not left")
            }
            Kind::Busy { lock, by, lease_left } => {
                match by {
                    Some(by) => write!(f, "lock `{lock}` is {by}")?,
                    None => write!(f, "lock `{lock}` is taken")?,
                }
                let Some(left) = lease_left.map(Rounded) else { return Ok(()) };
                write!(f, ", for {left} more unless renewed or released")
            }
            Kind::Lost { lock, hold, why } => write!(f, "lock `{lock}` lost by hold {hold}: {why}"),
            Kind::Released { lock, hold } => {
                write!(f, "lock `{lock}` was left by the last guard of hold {hold}")
            }
            Kind::Reads { lock, hold } => {
                write!(f, "lock `{lock}` cannot be written by an owner that reads it as {hold}")
            }
            Kind::Unconfirmed { lock, hold, needed, frees_in } => {
                write!(f, "release of lock `{lock}` by hold {hold} not confirmed by {needed} ")?;
                write!(f, "{}, free in {} at the latest", needed.noun(), Rounded(*frees_in))
            }
            Kind::NotEntered { lock, hold, what, needed } => {
                write!(f, "{what} of lock `{lock}` not confirmed by {needed} {}", needed.noun())?;
                write!(f, "; hold {hold} has it as before")
            }
            Kind::NotHolding { lock, hold } => {
                write!(f, "lock `{lock}` is not held by {hold}: nothing was ended")
            }
            Kind::TicketEnded { lock, hold, why } => {
                write!(f, "the ticket of lock `{lock}` with hold {hold} has ended: {why}")
            }
            Kind::Overloaded { lock, most, after } => {
                write!(f, "lock `{lock}` was not asked for in {}: this client ", Rounded(*after))?;
                write!(f, "has {most} attempts under way, and makes no more at once")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if let Kind::Connect { needed, .. }
        | Kind::NoQuorum { needed, .. }
        | Kind::Unconfirmed { needed, .. }
        | Kind::NotEntered { needed, .. } = *self.kind
        {
            write_lacking(f, needed, &self.voters)?;
        }
        // For a lock that is taken the holder is enough: what each voter said would say it again.
        if self.voters.is_empty() || self.is_busy() {
            return Ok(());
        }
        write!(f, " ({})", Listed(&self.voters))
    }
}

/// Names each of two sets with too few usable answers.
fn write_lacking(
    f: &mut fmt::Formatter<'_>,
    Majorities { new, old }: Majorities,
    reports: &[VoterReport],
) -> fmt::Result {
    // With one set, the number in the message is enough.
    let Some(old) = old else { return Ok(()) };
    for (side, (needed, _), is_in) in
        [(Side::New, new, Side::is_new as fn(Side) -> bool), (Side::Old, old, Side::is_old)]
    {
        let of_set = reports.iter().filter(|report| report.side.is_some_and(is_in));
        let answers =
            of_set.filter(|report| !matches!(report.verdict, Verdict::Unknown(_))).count();
        if answers < needed {
            write!(f, ", {answers} of the {side} voters gave a usable answer")?;
        }
    }
    Ok(())
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl std::error::Error for Error {
    /// The cause of the first voter without a usable answer.
    // A chain has one source, and an error as many causes as voters. `voters()` has all of them.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.voters.iter().find_map(|report| match &report.verdict {
            Verdict::Unknown(cause) => Some(cause as _),
            _ => None,
        })
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
