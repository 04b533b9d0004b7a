//! The mutex, plain and fair.

use std::{sync::Arc, time::Duration};

use super::{
    LockParts, LockView, Lockable,
    admin::{inspect, is_locked},
    guard::{guard, token},
    handle::{given_token, lock, taking},
};
use crate::{
    hold::{Entry, HoldView, Lost},
    kinds::{FAIR_MUTEX, Kind, MUTEX},
    proto::{Error, HoldId, HoldTicket, Owner, Token},
};

lock! {
    /// A reentrant mutex held by a majority of the voters.
    ///
    /// Made by [`Quorate::mutex`](crate::Quorate::mutex), or by
    /// [`Quorate::fair_mutex`](crate::Quorate::fair_mutex), which keeps an order between processes.
    /// A cheap value that says which lock and how, and that sends nothing before a call such as
    /// [`lock`](Self::lock).
    ///
    /// A call owns what it needs, so it can be spawned: `tokio::spawn(quorum.mutex("a").lock())`.
    /// It does nothing before it is awaited, but its limit counts from when it was made.
    ///
    /// Each outermost acquisition makes a *hold*. Without [`owner`](Self::owner) every acquisition
    /// is a hold of its own, so a second `lock()` waits for the first guard. Acquisitions by one
    /// owner are one hold: the second enters at once.
    ///
    /// Waiters of one process wait in a local queue, in the order of asking, and the first of them
    /// waits in a queue on the voters. So a release wakes one waiter, however many there are, and
    /// no process starves. If other tasks were in the local queue when the lock was granted, a
    /// release hands it on to the next of them without asking the voters: for 64 tasks or 50 ms,
    /// then other processes have their turn. The guards that follow one another like this have the
    /// same [`hold`](MutexGuard::hold), and each a higher [`token`](MutexGuard::token).
    ///
    /// # The fair mutex
    ///
    /// Between processes a plain mutex promises no order. One that is made by
    /// [`Quorate::fair_mutex`](crate::Quorate::fair_mutex) is given in the order of asking: first
    /// come, first served, over all voters and all clients. It is the same lock as the plain mutex
    /// of its name, with the same queue and the same methods.
    ///
    /// Each call of [`lock`](Self::lock) that finds the lock taken has a place in the queue on the
    /// voters, with a ticket that a majority has agreed on and that never changes afterwards.
    /// Everybody who asks after that comes later. In `select!` in a loop, keep the future: a new
    /// one has a new place, at the end.
    ///
    /// A release wakes the first in the queue and nobody else. A waiter that gives up leaves at
    /// once; one that dies is passed over after the [waiter
    /// deadline](crate::Builder::waiter_deadline) (5 s), and a holder that dies when its lease
    /// ends. How long the lock is held does not change the order. [`try_lock`](Self::try_lock) does
    /// not pass those who wait.
    ///
    /// Not guaranteed is:
    ///
    /// - The order of two that ask at the same time, within the round trip or two until the tickets
    ///   of both are fixed.
    /// - The order between different clients, where more than 512 tasks of one client wait. Only
    ///   512 of them are in the queue at the same time. The others wait in the client, in their
    ///   order, until one of these enters or leaves.
    /// - The place of a waiter, if so many voters forget it that no majority has it any more: they
    ///   restarted without their data, or were out of reach for longer than the waiter deadline.
    ///   The waiter keeps its ticket and sends it again, but others may get the lock or a lower
    ///   ticket first.
    ///
    /// It costs more where it is contended: every waiter in the queue has an entry on each voter,
    /// which it refreshes every third of the waiter deadline. Uncontended it costs the same.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let mutex = quorum.fair_mutex("invoice:42");
    /// let first = mutex.lock().await?;
    /// let mut workers = Vec::new();
    /// for waiting in 1..=2 {
    ///     workers.push(tokio::spawn(mutex.lock()));
    ///     while mutex.inspect().await?.waiting.len() < waiting {
    ///         tokio::task::yield_now().await;
    ///     }
    /// }
    /// first.release().await?;
    /// let second = workers.remove(0).await.expect("it does not panic")?;
    /// assert_eq!(mutex.inspect().await?.waiting.len(), 1); // the third still waits
    /// # drop(second);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "it does nothing until it is locked"]
    Mutex;

    /// Acquires for this owner, who may enter again while it holds the lock.
    owner(owner: &Owner);

    /// The lease for which voters give the lock, renewed from a third of it on until the guard is
    /// dropped. It is also the longest time for which a lock outlives its dead holder. Default: the
    /// client's.
    lease(lease: Duration);

    /// A lease that is not renewed: the lock is lost when it ends, unless released before.
    lease_fixed(lease: Duration);

    /// The longest time for which the lock may be held, so that a program that is stuck does not
    /// keep it: renewals go on while a task waits for ever, or its thread is in a deadlock.
    /// Default: the client's, which is unset.
    ///
    /// The time counts from the grant, and nothing puts off its end: no renewal, no
    /// [`extend`](MutexGuard::extend), no re-entry. When it is over, the lock is
    /// [lost](MutexGuard::lost) with this reason, and its votes are given back, so the next holder
    /// gets it at once. A stuck thread that wakes up later still works, so let what the lock
    /// protects check the [token](MutexGuard::token).
    ///
    /// - The hold has the limit of the call that was granted. An owner that enters again with
    ///   another one changes nothing.
    /// - A lease that is fixed, and shorter, ends first.
    /// - It ends no lock that is [kept](MutexGuard::keep_for) after the work: nobody holds that
    ///   one, and it ends with its lease.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// use std::{future::pending, time::Duration};
    ///
    /// let mutex = quorum.mutex("invoice:42").hold_at_most(Duration::from_secs(60));
    /// let guard = mutex.lock().await?;
    /// let stuck = guard.while_held(pending::<()>()).await.unwrap_err();
    /// assert!(stuck.is_lost());
    /// assert!(stuck.to_string().ends_with("held for longer than hold_at_most of 60s"));
    /// assert!(mutex.try_lock().await?.is_some(), "it is free, although the guard is still there");
    /// # Ok(())
    /// # }
    /// ```
    hold_at_most(time: Duration);

    /// What the lock is held for: any text of at most 200 bytes without control characters. An
    /// empty one is none.
    ///
    /// Everybody who can see the hold can read the note: in an error
    /// ([`Error::holder`](crate::Error::holder)), from [`inspect`](Self::inspect), in the log, and
    /// by `quorate status`. It is stored on the servers, in the [id](crate::HoldId::note) of the
    /// hold and of its place in the queue, so put no secret into it. The hold keeps the note of the
    /// call that was granted: an owner that enters again with another one changes nothing. One that
    /// is handed over by a [ticket](crate::MutexGuard::detach_for) has none.
    ///
    /// A mutex is [handed on](Self) only to a task that asks with the same note. Tasks with notes
    /// of their own ask the voters each.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// use std::time::Duration;
    ///
    /// let mutex = quorum.mutex("invoice:42");
    /// let guard = mutex.clone().note("job 42").lock().await?;
    /// let busy = mutex.lock_or_busy(Duration::ZERO).await.unwrap_err();
    /// assert!(busy.to_string().contains("(\"job 42\")"));
    /// let seen = mutex.inspect().await?;
    /// assert_eq!(seen.holders[0].note.as_deref(), Some("job 42"));
    /// assert_eq!(guard.hold().note().as_deref(), Some("job 42"));
    /// # Ok(())
    /// # }
    /// ```
    note(note: impl AsRef<str>);
}

impl Mutex {
    pub(crate) fn fair(self) -> Self {
        Self(self.0.fair())
    }

    /// Takes over the hold that this ticket is for.
    pub(crate) fn resume(
        parts: &Arc<LockParts>,
        ticket: &HoldTicket,
    ) -> impl Future<Output = Result<MutexGuard, Error>> + Send + use<> {
        let mutex = Self::new(parts, ticket.lock()).lease(ticket.lease());
        let mutex = if ticket.is_fair() { mutex.fair() } else { mutex };
        let (request, ticket) = (mutex.0.request(mutex.asked_kind()), ticket.clone());
        async move { request?.resume(&ticket).await.map(MutexGuard::new) }
    }

    pub(super) fn asked_kind(&self) -> &'static Kind {
        if self.0.is_fair { &FAIR_MUTEX } else { &MUTEX }
    }

    /// This mutex as one of [several locks](crate::Quorate::lock_all) of different kinds, as
    /// [`RwLock::reading`](crate::RwLock::reading) is. A method of its own, so that nobody has to
    /// say what type it becomes.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let accounts = ["account:1", "account:2"].map(|name| quorum.mutex(name).into());
    /// let prices = quorum.rw_lock("prices").reading();
    /// let guard = quorum.lock_all(accounts.into_iter().chain([prices])).lock().await?;
    /// assert_eq!(guard.names().count(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into(self) -> Lockable {
        Lockable::from(self)
    }

    taking! {
        |self| self.0.request(self.asked_kind()) => MutexGuard;
        /// Acquires the lock, waiting for as long as another hold has it.
        ///
        /// # Errors
        ///
        /// [`is_no_quorum`](Error::is_no_quorum): no majority of the voters has answered for longer
        /// than the [quorum timeout](crate::Builder::quorum_timeout) (default 10 s); each voter's
        /// cause is in it. [`is_invalid`](Error::is_invalid): the name or the lease cannot be used;
        /// nothing was sent. Or the lock is one of [Redisson](crate::Redisson), and somebody waits
        /// for its `RFairLock`. [`is_lost`](Error::is_lost): this owner held the lock, lost it and
        /// still has a guard of it. [`is_not_entered`](Error::is_not_entered): this owner holds the
        /// lock, and no majority answered its re-entry in time; the lock is still held, but this
        /// entry does not count. [`is_closed`](Error::is_closed): the client was closed.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future gives up the place in the queue, and undoes on all voters whatever
        /// was sent.
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), quorate::Error> {
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// let guard = quorum.mutex("invoice:42").lock().await?;
        /// assert!(guard.is_held());
        /// guard.release().await?;
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// By what is to be done after an error:
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), quorate::Error> {
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// use quorate::{ErrorKind, Owner};
        ///
        /// let mutex = quorum.mutex("invoice:42").owner(&Owner::new());
        /// match mutex.lock().await {
        ///     Ok(guard) => guard.release().await?,
        ///     Err(error) => match error.kind() {
        ///         ErrorKind::NoQuorum => println!("try again later: {error}"),
        ///         ErrorKind::Closed => println!("this program is about to end"),
        ///         // Only with an owner:
        ///         ErrorKind::Lost => println!("stop the work of the guard that is left: {error}"),
        ///         ErrorKind::NotEntered => println!("try again, or use the guard there is"),
        ///         // Invalid: the name or the lease.
        ///         _ => return Err(error),
        ///     },
        /// }
        /// # Ok(())
        /// # }
        /// ```
        lock;

        /// Acquires the lock if it is free. `None` if another hold has it, if contenders have split
        /// the votes, or if somebody waits for it.
        ///
        /// Of several tries at the same moment one succeeds.
        ///
        /// # Errors
        ///
        /// As [`lock`](Self::lock); `is_no_quorum` after the first attempt.
        /// [`is_overloaded`](Error::is_overloaded): this client had 128 attempts under way for the
        /// whole [quorum timeout](crate::Builder::quorum_timeout), so it did not ask for this lock;
        /// see [`ErrorKind::Overloaded`](crate::ErrorKind::Overloaded).
        ///
        /// # Cancel safety
        ///
        /// As [`lock`](Self::lock).
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), quorate::Error> {
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// let mutex = quorum.mutex("invoice:42");
        /// let guard = mutex.try_lock().await?.expect("nobody else wants it");
        /// assert!(mutex.try_lock().await?.is_none());
        /// # Ok(())
        /// # }
        /// ```
        try_lock;

        /// Acquires the lock, waiting no longer than `limit`. Returns `None` if the lock was still
        /// taken after `limit`; nothing stays queued. If no majority has answered by then, a
        /// request in flight gets its full time, so that a short limit is not taken for silent
        /// servers: it may overrun `limit` by up to two voter deadlines. If `limit` is zero, it
        /// asks once, as [`try_lock`](Self::try_lock) does.
        ///
        /// # Errors
        ///
        /// As [`lock`](Self::lock), but `is_no_quorum` only at the limit: where no majority
        /// answers, it is asked again and again until then. So a limit can outlast a restart of the
        /// servers. [`is_overloaded`](Error::is_overloaded): this client had 128 attempts under way
        /// until the limit; see [`ErrorKind::Overloaded`](crate::ErrorKind::Overloaded).
        ///
        /// # Cancel safety
        ///
        /// As [`lock`](Self::lock).
        lock_within;

        /// As [`lock_within`](Self::lock_within), but a lock that is still taken is an error. It
        /// says who holds the lock and for how long, so an HTTP handler can answer 409. For
        /// `Retry-After` take a number of your own: see [`Error::lease_left`].
        ///
        /// # Errors
        ///
        /// [`is_busy`](Error::is_busy): another hold has the lock; see [`Error::holder`] and
        /// [`Error::lease_left`]. All others as [`lock_within`](Self::lock_within).
        ///
        /// # Cancel safety
        ///
        /// As [`lock`](Self::lock).
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), quorate::Error> {
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// use std::time::Duration;
        ///
        /// let mutex = quorum.mutex("invoice:42");
        /// let guard = mutex.lock_or_busy(Duration::ZERO).await?;
        /// let error = mutex.lock_or_busy(Duration::ZERO).await.unwrap_err();
        /// assert!(error.is_busy());
        /// assert_eq!(error.holder(), Some(guard.hold()));
        /// assert!(error.lease_left() > Some(Duration::from_secs(29)), "the lease is 30 s");
        ///
        /// // As an HTTP handler answers:
        /// use quorate::ErrorKind;
        ///
        /// let status = match mutex.lock_or_busy(Duration::ZERO).await {
        ///     Ok(_) => 200,
        ///     Err(error) => match error.kind() {
        ///         ErrorKind::Busy => 409,
        ///         ErrorKind::NoQuorum | ErrorKind::Overloaded | ErrorKind::Closed => 503,
        ///         _ => 500,
        ///     },
        /// };
        /// assert_eq!(status, 409);
        /// # Ok(())
        /// # }
        /// ```
        lock_or_busy;

        /// Locks, works and gives the lock back: waits as [`lock`](Self::lock) does, drops the work
        /// the moment the lock is lost, and releases when the work is done or has failed. The work
        /// is given its [`Token`].
        ///
        /// Work that is done stays done: a release that no majority has confirmed in time goes on
        /// in the background, and is no error here.
        ///
        /// # Errors
        ///
        /// The error of the work; or, made into its type: as [`lock`](Self::lock), and
        /// [`is_lost`](Error::is_lost) where the lock was lost before the work was done. Also where
        /// the work blocked its thread meanwhile, and ended well: then what it returned is dropped.
        /// The work's own error type is one that is made from [`Error`], as `Box<dyn
        /// std::error::Error>` is.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future drops the work, and releases the lock in the background.
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// # type Error = Box<dyn std::error::Error>;
        /// # async fn charge(_: quorate::Token) -> Result<u32, Error> { Ok(42) }
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// let charged = quorum.mutex("invoice:42").run(charge).await?;
        /// let sum = quorum.mutex("invoice:42").run(async |_| Ok::<_, Error>(charged + 1)).await?;
        /// assert_eq!(sum, 43);
        /// # Ok(())
        /// # }
        /// ```
        run[work: fn(Token)] => |entry| work(given_token(entry));
    }

    /// Whether a majority of the voters has given its vote, mostly to a holder. Returns as soon as
    /// a majority has said yes or no. The answer may be outdated at once; to work, acquire it.
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect); [`is_no_quorum`](Error::is_no_quorum) also where the voters
    /// that did not answer decide.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let mutex = quorum.mutex("invoice:42");
    /// let guard = mutex.lock().await?;
    /// assert!(mutex.is_locked().await?);
    /// guard.release().await?;
    /// assert!(!mutex.is_locked().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_locked(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        is_locked(&self.0, self.asked_kind())
    }

    /// Asks every voter who holds the lock and who waits for it, as
    /// [`Admin::look`](crate::Admin::look) does for any lock. That can end a hold, too.
    ///
    /// # Errors
    ///
    /// As [there](crate::Admin::look); [`is_invalid`](Error::is_invalid) also where the lease
    /// cannot be used.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let mutex = quorum.mutex("invoice:42");
    /// let guard = mutex.lock().await?;
    /// let seen = mutex.inspect().await?;
    /// let holder = seen.holder().expect("it is held");
    /// assert_eq!((&holder.hold, holder.count), (guard.hold(), 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn inspect(&self) -> impl Future<Output = Result<LockView, Error>> + Send + use<> {
        inspect(&self.0, self.asked_kind())
    }
}

// The guard of a mutex.

guard! {
    /// Proof that this client holds a [`Mutex`](crate::Mutex), for as long as
    /// [`is_held`](Self::is_held) says so.
    ///
    /// Dropping it releases the lock in the background: dropping never blocks and never fails.
    /// [`release`](Self::release) does the same and says whether it worked. Neither a guard nor the
    /// watchdog behind it can keep a lock whose voters are gone: watch [`lost`](Self::lost), or do
    /// the work inside [`while_held`](Self::while_held).
    MutexGuard, "mutex(\"invoice:42\").lock()"
}

token!(MutexGuard, "mutex(\"invoice:42\").lock()");

impl MutexGuard {
    /// Detaches the hold from this client. Another task, or another process with the same voters,
    /// [resumes](crate::Quorate::resume) it with the ticket.
    /// Nobody else gets the lock in between.
    ///
    /// From the first poll on nobody has the lock. The hold is *parked*: this client goes on
    /// renewing it for `time`, counted from the return, and then frees the lock unless it was
    /// resumed. If this client ends before, also by [`close`](crate::Quorate::close), the ticket is
    /// good for what is left of the lease (30 s by default).
    ///
    /// [`hold_at_most`](crate::Mutex::hold_at_most) goes along: the time while the hold is parked
    /// counts, by the wall clocks of both machines. A fixed lease is renewed while the hold is
    /// parked; the one that resumes has it renewed too.
    ///
    /// # Errors
    ///
    /// After each of them there is no ticket, and the lock is released, as if the guard was
    /// dropped. [`is_unconfirmed`](Error::is_unconfirmed): no majority stored the ticket in time;
    /// see [`Error::frees_in`]. [`is_lost`](Error::is_lost): the lock had been lost before.
    /// [`is_invalid`](Error::is_invalid): the hold is entered more than once (the other guards keep
    /// it), the lock is one of [Redisson](crate::Redisson), or `time` is less than a millisecond.
    /// Guards of other kinds of locks have no such method.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let api = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// # let worker = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// use std::time::Duration;
    ///
    /// let guard = api.mutex("invoice:42").lock().await?;
    /// let token = guard.token();
    /// let ticket = guard.detach_for(Duration::from_secs(600)).await?;
    ///
    /// // As text to a queue, and from there:
    /// let guard = worker.resume(&ticket).await?;
    /// assert!(guard.token() > token);
    /// assert!(api.resume(&ticket).await.unwrap_err().is_ticket_ended());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn detach_for(self, time: Duration) -> Result<HoldTicket, Error> {
        self.0.park(time).await
    }
}
