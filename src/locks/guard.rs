//! What all guards can do.

/// Makes the type of a guard. `$acquire`: the call on a client that returns one, for the examples.
macro_rules! guard {
    ($(#[$about:meta])* $name:ident, $acquire:literal) => {
        $(#[$about])*
        #[must_use = "the lock is released when the guard is dropped"]
        pub struct $name(Entry);

        impl $name {
            pub(super) fn new(entry: Entry) -> Self {
                Self(entry)
            }

            /// The lock's name.
            pub fn name(&self) -> &str {
                self.0.name()
            }

            /// The hold, as voters store it and as the errors of other clients name it. Guards of a
            /// plain mutex that tasks of one client have one after the other can share it; each has
            /// a token of its own.
            pub fn hold(&self) -> &HoldId {
                self.0.id()
            }

            /// How many voters have given it their votes, by their latest answers. A majority at
            /// first, and more as the others answer. A voter that lost its data gives its vote
            /// again at a renewal. Of a mutex that another task handed on: as many as that task
            /// had.
            pub fn votes(&self) -> usize {
                self.0.votes()
            }

            /// How many guards of this hold exist.
            pub fn count(&self) -> u32 {
                self.0.count()
            }

            /// Whether the lock may still be relied on. Read from the clock at each call: never
            /// true at or after the deadline, whatever the network, the watchdog or the machine did
            /// meanwhile. In a forked process it is false.
            pub fn is_held(&self) -> bool {
                self.0.is_held()
            }

            /// The time for which the lock may be relied on if no renewal succeeds; zero once it is
            /// lost.
            pub fn remaining(&self) -> Duration {
                self.0.remaining()
            }

            /// Completes when the lock is lost, with the reason: at the deadline by the clock
            /// alone, or as soon as the voters say that another hold has them or that this one was
            /// ended by force. What is returned borrows nothing and can be cloned and spawned; once
            /// the lock is [released](Self::release), it completes as well.
            ///
            /// On Linux the deadline counts time for which the machine was suspended. After such a
            /// sleep [`is_held`](Self::is_held) is false at once, and this future completes within
            /// half a second.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future has no effect on the lock.
            pub fn lost(&self) -> Lost {
                self.0.lost()
            }

            /// A view of the hold, for work that is spawned or that outlives this guard.
            pub fn view(&self) -> HoldView {
                self.0.view()
            }

            /// Runs `work` as long as the lock is held: drops it the moment the lock is lost.
            ///
            /// Tasks that `work` has spawned go on, and what it has sent elsewhere stays sent.
            ///
            /// # Errors
            ///
            /// [`is_lost`](crate::Error::is_lost): the lock was lost and `work` was dropped
            /// unfinished. Or `work` blocked its thread, and has ended after the loss: then what it
            /// returned is dropped.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future drops `work`; the lock stays held.
            ///
            /// # Examples
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), quorate::Error> {
            /// # let voters = quorate::embedded::voters(3);
            /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
            #[doc = concat!("let guard = quorum.", $acquire, ".await?;")]
            /// let sum = guard.while_held(async { 20 + 22 }).await?;
            /// assert_eq!(sum, 42);
            /// guard.release().await?;
            /// # Ok(())
            /// # }
            /// ```
            pub async fn while_held<F: Future>(&self, work: F) -> Result<F::Output, Error> {
                self.0.while_held(work).await
            }

            /// [`while_held`](Self::while_held) for work that can fail: its error and the loss of
            /// the lock are one result.
            ///
            /// # Errors
            ///
            /// The error of `work`; or, made into its type, [`is_lost`](crate::Error::is_lost),
            /// also where `work` ended well after the loss.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future drops `work`; the lock stays held.
            ///
            /// # Examples
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// # let voters = quorate::embedded::voters(3);
            /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
            #[doc = concat!("let guard = quorum.", $acquire, ".await?;")]
            /// let work = async { Ok::<_, Box<dyn std::error::Error>>("42".parse::<u32>()?) };
            /// let number = guard.try_while_held(work).await?;
            /// assert_eq!(number, 42);
            /// # Ok(())
            /// # }
            /// ```
            pub async fn try_while_held<T, E: From<Error>>(
                &self,
                work: impl Future<Output = Result<T, E>>,
            ) -> Result<T, E> {
                self.0.try_while_held(work).await
            }

            /// Renews the lease now, and makes it this long at least: a lease that is not renewed
            /// by itself ends so much later, counted from now. One that is renewed by itself stays
            /// so.
            ///
            /// # Errors
            ///
            /// [`is_lost`](crate::Error::is_lost): the lock is not held any more.
            /// [`is_not_entered`](crate::Error::is_not_entered): no majority answered in time; the
            /// lock is held as before. [`is_invalid`](crate::Error::is_invalid): the lease cannot
            /// be used.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future leaves the lock held, with the old lease or the new one.
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
            /// let mutex = quorum.mutex("invoice:42").lease_fixed(Duration::from_secs(5));
            /// let guard = mutex.lock().await?;
            /// guard.extend(Duration::from_secs(20)).await?;
            /// assert!(guard.remaining() > Duration::from_secs(19));
            /// # Ok(())
            /// # }
            /// ```
            pub async fn extend(&self, lease: Duration) -> Result<(), Error> {
                self.0.extend(Some(lease)).await
            }

            /// Renews the lease now, for as long as it was before. A fixed lease begins anew.
            ///
            /// # Errors
            ///
            /// [`is_lost`](crate::Error::is_lost): the lock is not held any more.
            /// [`is_not_entered`](crate::Error::is_not_entered): no majority answered in time; the
            /// lock is held as before.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future leaves the lock held, with the old lease or the new one.
            ///
            /// # Examples
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), quorate::Error> {
            /// # let voters = quorate::embedded::voters(3);
            /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
            /// use quorate::ErrorKind;
            ///
            #[doc = concat!("let guard = quorum.", $acquire, ".await?;")]
            /// match guard.renew().await {
            ///     Ok(()) => println!("held for {:?} at least", guard.remaining()),
            ///     Err(error) => match error.kind() {
            ///         ErrorKind::Lost => println!("stop: {error}"),
            ///         ErrorKind::NotEntered => println!("held for {:?}", guard.remaining()),
            ///         _ => return Err(error),
            ///     },
            /// }
            /// # Ok(())
            /// # }
            /// ```
            pub async fn renew(&self) -> Result<(), Error> {
                self.0.extend(None).await
            }

            /// Enters again; the lock is released when every guard of it is. Goes through the
            /// quorum and renews the lease on the way.
            ///
            /// # Errors
            ///
            /// [`is_lost`](crate::Error::is_lost): the lock is not held any more.
            /// [`is_not_entered`](crate::Error::is_not_entered): no majority answered in time; the
            /// lock is still held, but this entry does not count.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future leaves the count as it was before.
            pub async fn reenter(&self) -> Result<Self, Error> {
                self.0.reenter().await.map(Self)
            }

            /// Keeps the lock taken for `time`, counted from now, and then lets it expire. Nobody
            /// else gets it before, even if this process ends: neither a drop nor closing the
            /// client gives it back. A hold that ends like this is not lost.
            ///
            /// Voters that do not hear of a `time` that is shorter than what is left of the lease
            /// keep the lock for what is left. So does a read/write lock of
            /// [Redisson](crate::Redisson).
            ///
            /// Use it for work that is to be done once although several machines start it within
            /// seconds of each other: a machine that comes later finds the lock taken. `time` is at
            /// most the [longest lease](crate::Builder::longest_lease), 30 s by default. If the
            /// work must not be repeated for longer, also record somewhere that it was done.
            ///
            /// If the hold was entered several times, only this entry ends.
            ///
            /// # Errors
            ///
            /// [`is_lost`](crate::Error::is_lost): the lock had been lost before.
            /// [`is_not_entered`](crate::Error::is_not_entered): no majority confirmed `time`.
            /// [`is_invalid`](crate::Error::is_invalid): `time` cannot be used as a lease: it is
            /// shorter than twice the voter deadline, or above the longest lease. After both the
            /// lock stays taken for what is left of its lease.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future releases the lock, unless a majority has stored `time` already.
            ///
            /// # Examples
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), quorate::Error> {
            /// # async fn make_report() {}
            /// # let voters = quorate::embedded::voters(3);
            /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
            /// use std::time::Duration;
            ///
            /// // On each machine, when its clock shows two.
            /// let mutex = quorum.mutex("nightly report");
            /// if let Some(guard) = mutex.try_lock().await? {
            ///     guard.while_held(make_report()).await?;
            ///     guard.keep_for(Duration::from_secs(20)).await?;
            /// }
            /// assert!(mutex.try_lock().await?.is_none(), "for those whose clocks are late");
            /// # Ok(())
            /// # }
            /// ```
            pub async fn keep_for(self, time: Duration) -> Result<(), Error> {
                self.0.keep_for(time).await
            }

            /// Leaves: the last guard of a hold gives the lock back. Returns when a majority has
            /// confirmed; slow voters get the release in the background. A mutex that goes to the
            /// next task of this client is confirmed by nobody: that a hold was ended by force,
            /// say, is then learnt by the next owner.
            ///
            /// # Errors
            ///
            /// [`is_lost`](crate::Error::is_lost): the lock had been lost before; nothing of the
            /// next holder's was touched. [`is_unconfirmed`](crate::Error::is_unconfirmed): no
            /// majority confirmed in time; it goes on in the background, and the lock is free when
            /// the lease ends at the latest. A voter whose connection broke is asked again until
            /// then; that it has no vote of the hold any more is no loss.
            ///
            /// # Cancel safety
            ///
            /// The release is sent when this is first polled; dropping the future afterwards loses
            /// only the answer. Dropped before, the guard is dropped: that releases as well.
            ///
            /// # Examples
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), quorate::Error> {
            /// # let voters = quorate::embedded::voters(3);
            /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
            /// use quorate::ErrorKind;
            ///
            #[doc = concat!("let guard = quorum.", $acquire, ".await?;")]
            /// match guard.release().await {
            ///     Ok(()) => println!("it was held throughout"),
            ///     Err(error) => match error.kind() {
            ///         ErrorKind::Lost => println!("somebody else may have worked: {error}"),
            ///         ErrorKind::Unconfirmed => println!("free in {:?}", error.frees_in()),
            ///         _ => return Err(error),
            ///     },
            /// }
            /// # Ok(())
            /// # }
            /// ```
            pub async fn release(self) -> Result<(), Error> {
                self.0.release().await
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("name", &self.name())
                    .field("hold", self.hold())
                    .field("count", &self.count())
                    .field("remaining", &self.remaining())
                    .finish()
            }
        }
    };
}

/// Gives the guard of an exclusive lock its token.
macro_rules! token {
    ($name:ident, $acquire:literal) => {
        impl $name {
            /// The fencing token of this hold: higher than that of every hold of the lock before
            /// it. Show it to what the lock protects, and let that refuse lower ones: then the late
            /// work of a lost hold does no harm.
            ///
            /// Entering again and renewals do not change it.
            ///
            /// # Examples
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), quorate::Error> {
            /// # let voters = quorate::embedded::voters(3);
            /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
            #[doc = concat!("let first = quorum.", $acquire, ".await?;")]
            /// let token = first.token();
            /// first.release().await?;
            #[doc = concat!("let second = quorum.", $acquire, ".await?;")]
            /// assert!(second.token() > token);
            /// # Ok(())
            /// # }
            /// ```
            pub fn token(&self) -> Token {
                given_token(&self.0)
            }
        }
    };
}

pub(super) use guard;
pub(super) use token;
