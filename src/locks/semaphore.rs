//! The semaphore.

use std::{sync::Arc, time::Duration};

use futures::TryFutureExt;

use super::{
    LockParts, SemaphoreView,
    admin::{inspect, is_locked},
    guard::guard,
    handle::{lock, taking},
};
use crate::{
    hold::{Entry, HoldView, Lost},
    kinds::SEMAPHORE,
    proto::{Error, HoldId, Owner, Slots},
};

lock! {
    /// A semaphore held by majorities of the voters: each permit has one holder at a time.
    ///
    /// Made by [`Quorate::semaphore`](crate::Quorate::semaphore) with the number of permits; a
    /// cheap value that says which semaphore and how, and that sends nothing before a call such as
    /// [`acquire`](Self::acquire).
    ///
    /// A permit is a numbered *slot*, and a hold has it once a majority of the voters has given it
    /// that very slot. So no more can hold than there are slots, whichever voters answered: two
    /// majorities share a voter, and a voter gives a slot to one hold.
    ///
    /// All waiters queue in the order of asking, as for a [fair
    /// mutex](crate::Mutex#the-fair-mutex), also if they want several permits: a waiter that wants
    /// fewer does not pass them. Each hold has a lease of its own, so the permits of a holder that
    /// dies come back when its lease ends, whatever others do.
    ///
    /// # Permits
    ///
    /// All users of a semaphore should name the same number of permits. Where they do not, each
    /// voter goes by the smallest number with which a holder or a waiter has asked, for a lease
    /// after that: it gives no slot beyond, and none while as many are taken. No holder loses a
    /// permit. A client that gets a permit under a smaller number says so in the log, once for each
    /// semaphore. So to raise the number, change it everywhere. The higher number takes effect one
    /// lease after the last request with the smaller one.
    ///
    /// # Owners
    ///
    /// Without [`owner`](Self::owner) every acquisition is a hold of its own. An owner that asks
    /// for as many permits as it holds enters again, and takes no others.
    ///
    /// # What is not guaranteed
    ///
    /// A semaphore is another lock than the mutex of the same name. Holds have the same guarantees
    /// as holds of a [`Mutex`](crate::Mutex): see there, and at the top of this crate.
    #[must_use = "it does nothing until a permit is acquired"]
    Semaphore;

    /// Acquires for this owner, who enters again at once what it holds.
    owner(owner: &Owner);

    /// As [`Mutex::lease`](crate::Mutex::lease).
    lease(lease: Duration);

    /// As [`Mutex::lease_fixed`](crate::Mutex::lease_fixed).
    lease_fixed(lease: Duration);

    /// As [`Mutex::hold_at_most`](crate::Mutex::hold_at_most).
    hold_at_most(time: Duration);

    /// As [`Mutex::note`](crate::Mutex::note).
    note(note: impl AsRef<str>);
}

impl Semaphore {
    taking! {
        |self| self.0.request(&SEMAPHORE) => PermitGuard;
        /// Acquires a permit, behind everybody who has asked before.
        ///
        /// # Errors
        ///
        /// As [`Mutex::lock`](crate::Mutex::lock). [`is_invalid`](Error::is_invalid) also for a
        /// semaphore of no permits or of more than 10,000; nothing was sent.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future gives up the place in the queue, and undoes on all voters whatever
        /// was sent. In `select!` in a loop, keep the future: a new one has a new place, at the
        /// end.
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), quorate::Error> {
        /// # async fn export() {}
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// let exports = quorum.semaphore("exports", 2);
        /// let (one, other) = (exports.acquire().await?, exports.acquire().await?);
        /// assert!(exports.try_acquire().await?.is_none());
        /// one.while_held(export()).await?;
        /// one.release().await?;
        /// assert!(exports.try_acquire().await?.is_some());
        /// # drop(other);
        /// # Ok(())
        /// # }
        /// ```
        acquire;

        /// Acquires a permit if one is free and nobody waits; `None` otherwise. It waits in no
        /// queue.
        ///
        /// Of several tries for the last permit at the same moment one succeeds, or none.
        ///
        /// # Errors
        ///
        /// As [`acquire`](Self::acquire); `is_no_quorum` and `is_overloaded` as
        /// [`Mutex::try_lock`](crate::Mutex::try_lock).
        ///
        /// # Cancel safety
        ///
        /// As [`acquire`](Self::acquire).
        try_acquire;

        /// As [`acquire`](Self::acquire), waiting no longer than `limit`; `None` if its turn had
        /// not come by then. Nothing is left behind in the queue.
        ///
        /// # Errors
        ///
        /// As [`acquire`](Self::acquire), but `is_no_quorum` only at the limit; `is_overloaded` as
        /// [`Mutex::lock_within`](crate::Mutex::lock_within).
        ///
        /// # Cancel safety
        ///
        /// As [`acquire`](Self::acquire).
        acquire_within;

        /// As [`acquire_within`](Self::acquire_within), but fails if no permit has come. The error
        /// names one of the holders, and says when a permit may come back, so an HTTP handler can
        /// answer 429. For `Retry-After` take a number of your own: see [`Error::lease_left`].
        ///
        /// # Errors
        ///
        /// [`is_busy`](Error::is_busy): no permit is free, or others wait; see [`Error::holder`]
        /// and [`Error::lease_left`]. All others as [`acquire_within`](Self::acquire_within).
        ///
        /// # Cancel safety
        ///
        /// As [`acquire`](Self::acquire).
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
        /// use quorate::ErrorKind;
        ///
        /// let exports = quorum.semaphore("exports", 2);
        /// let status = match exports.acquire_or_busy(Duration::from_millis(100)).await {
        ///     Ok(_) => 200,
        ///     Err(error) => match error.kind() {
        ///         ErrorKind::Busy => 429,
        ///         ErrorKind::NoQuorum | ErrorKind::Overloaded | ErrorKind::Closed => 503,
        ///         _ => 500, // Invalid: more permits than there can be
        ///     },
        /// };
        /// assert_eq!(status, 200);
        /// # Ok(())
        /// # }
        /// ```
        acquire_or_busy;

        /// Acquires a permit, works and gives it back, as [`Mutex::run`](crate::Mutex::run) does:
        /// waits as [`acquire`](Self::acquire) does, drops the work the moment the permit is lost,
        /// and releases when the work is done or has failed. The work is given the number of its
        /// permit, as the only one of its [`slots`](PermitGuard::slots).
        ///
        /// # Errors
        ///
        /// The error of the work; or, made into its type: as [`acquire`](Self::acquire), and
        /// [`is_lost`](Error::is_lost) if the permit was lost before the work was done.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future drops the work, gives up the place in the queue, and releases the
        /// permit in the background.
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// # type Error = Box<dyn std::error::Error>;
        /// # async fn export(slots: Vec<u32>) -> Result<u32, Error> { Ok(slots[0]) }
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// let slot = quorum.semaphore("exports", 2).run(export).await?;
        /// assert!(slot < 2);
        /// # Ok(())
        /// # }
        /// ```
        run[work: fn(Vec<u32>)] => |entry| work(numbers(entry));
    }

    taking! {
        |self, wanted: u32| self.0.request_many(&SEMAPHORE, wanted) => PermitGuard;
        /// Acquires so many permits, 256 at most, all for one guard or none. A caller that wants
        /// several waits for its turn, and is not passed by callers that want fewer.
        ///
        /// # Errors
        ///
        /// As [`acquire`](Self::acquire). [`is_invalid`](Error::is_invalid) also for no permits,
        /// for more than the semaphore has, and for more than 256: a server would answer nobody
        /// else for too long. Nothing was sent. [`is_no_quorum`](Error::is_no_quorum) also where
        /// others use the semaphore with fewer permits than are wanted.
        ///
        /// # Cancel safety
        ///
        /// As [`acquire`](Self::acquire).
        ///
        /// # Examples
        ///
        /// ```
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), quorate::Error> {
        /// # let voters = quorate::embedded::voters(3);
        /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
        /// let memory = quorum.semaphore("memory, in GB", 16);
        /// let big = memory.acquire_many(12).await?;
        /// assert_eq!((big.permits(), big.slots().len()), (12, 12));
        /// assert!(memory.try_acquire_many(5).await?.is_none());
        /// assert!(memory.try_acquire_many(4).await?.is_some());
        /// # Ok(())
        /// # }
        /// ```
        acquire_many;

        /// [`try_acquire`](Self::try_acquire) for so many permits, all or none.
        ///
        /// # Errors
        ///
        /// As [`acquire_many`](Self::acquire_many) and [`try_acquire`](Self::try_acquire).
        ///
        /// # Cancel safety
        ///
        /// As [`acquire`](Self::acquire).
        try_acquire_many;

        /// [`acquire_within`](Self::acquire_within) for so many permits, all or none.
        ///
        /// # Errors
        ///
        /// As [`acquire_many`](Self::acquire_many) and [`acquire_within`](Self::acquire_within).
        ///
        /// # Cancel safety
        ///
        /// As [`acquire`](Self::acquire).
        acquire_many_within;

        /// [`acquire_or_busy`](Self::acquire_or_busy) for so many permits, all or none.
        ///
        /// # Errors
        ///
        /// As [`acquire_or_busy`](Self::acquire_or_busy) and [`acquire_many`](Self::acquire_many).
        ///
        /// # Cancel safety
        ///
        /// As [`acquire`](Self::acquire).
        acquire_many_or_busy;

        /// [`run`](Self::run) with so many permits, all or none. The work is given their numbers,
        /// in no particular order.
        ///
        /// # Errors
        ///
        /// As [`run`](Self::run) and [`acquire_many`](Self::acquire_many).
        ///
        /// # Cancel safety
        ///
        /// As [`run`](Self::run).
        run_many(wanted: u32)[work: fn(Vec<u32>)] => |entry| work(numbers(entry));
    }

    pub(crate) fn of(parts: &Arc<LockParts>, name: &str, permits: u32) -> Self {
        Self(Self::new(parts, name).0.permits(permits))
    }

    /// Whether a majority of the voters has given some permits, all of them or not. Else as
    /// [`Mutex::is_locked`](crate::Mutex::is_locked); how many are [free](SemaphoreView::free),
    /// [`inspect`](Self::inspect) says.
    ///
    /// # Errors
    ///
    /// As [there](crate::Mutex::is_locked).
    pub fn is_locked(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        is_locked(&self.0, &SEMAPHORE)
    }

    /// Asks every voter who has which permits, and who waits, as
    /// [`Mutex::inspect`](crate::Mutex::inspect) does. Where more than 256 permits are taken,
    /// voters are asked for 256 at a time, and what has changed meanwhile may be missing.
    ///
    /// # Errors
    ///
    /// As [`Mutex::inspect`](crate::Mutex::inspect).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let exports = quorum.semaphore("exports", 3);
    /// let guard = exports.acquire().await?;
    /// let seen = exports.inspect().await?;
    /// assert_eq!((seen.permits(), seen.free()), (3, 2));
    /// assert_eq!(&seen.holders[0].hold, guard.hold());
    /// # Ok(())
    /// # }
    /// ```
    pub fn inspect(&self) -> impl Future<Output = Result<SemaphoreView, Error>> + Send + use<> {
        let permits = self.0.permits.unwrap_or(Slots::MOST.into());
        inspect(&self.0, &SEMAPHORE).map_ok(move |seen| SemaphoreView::new(seen, permits))
    }
}

// The guard of permits.

guard! {
    /// Proof that this client has a permit of a [`Semaphore`](crate::Semaphore), or several, for as
    /// long as [`is_held`](Self::is_held) says so.
    ///
    /// It behaves as a [`MutexGuard`](crate::MutexGuard) does. Each hold has a lease of its own:
    /// renewing or releasing it changes nothing for others. All of its permits are held, renewed
    /// and lost together.
    ///
    /// It has no token: several work at the same time, so there is no latest one for the protected
    /// side to prefer. It has [`slots`](Self::slots) instead.
    PermitGuard, "semaphore(\"exports\", 3).acquire()"
}

fn given_slots(entry: &Entry) -> &Slots {
    entry.slots().expect("a hold of a semaphore has slots")
}

fn numbers(entry: &Entry) -> Vec<u32> {
    given_slots(entry).list().iter().copied().map(u32::from).collect()
}

impl PermitGuard {
    /// How many permits it has.
    pub fn permits(&self) -> u32 {
        u32::try_from(given_slots(&self.0).list().len()).unwrap_or(u32::MAX)
    }

    /// The number of its permit, or of its first: from 0 to one less than the semaphore has
    /// permits. No other hold has this number at the same time, so it can name one of so many
    /// things: a port, a shard, a connection.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let semaphore = quorum.semaphore("exports", 2);
    /// let (one, other) = (semaphore.acquire().await?, semaphore.acquire().await?);
    /// assert_eq!(one.slot() + other.slot(), 1); // one has 0, the other 1
    /// # Ok(())
    /// # }
    /// ```
    pub fn slot(&self) -> u32 {
        u32::from(given_slots(&self.0).list()[0])
    }

    /// The numbers of all its permits, in no particular order.
    pub fn slots(&self) -> Vec<u32> {
        numbers(&self.0)
    }
}
