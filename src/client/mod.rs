//! The client: it connects, makes locks, and closes.

mod builder;
mod connect;
mod env;
mod status;
mod voters;

use std::{fmt, sync::Arc};

use futures::future::join_all;

pub use builder::Builder;
pub use status::{SetStatus, Status, Survey, VoterStatus, VoterSurvey};
pub use voters::{Cluster, SharedPrimaries, VoterSet};

use crate::{
    acquire::Coordinator,
    clock::Clock,
    hold::{Hold, Lost},
    locks::{
        Admin, Election, LockAll, LockParts, Lockable, Mutex, MutexGuard, Once, RwLock, Semaphore,
    },
    log,
    proto::{Error, HoldTicket},
    redisson::Redisson,
    voter::{Address, Replies, Voter},
};

/// A client of a set of voters; makes locks. Clones are the same client.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), quorate::Error> {
/// # async fn send_invoice() {}
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
/// let guard = quorum.mutex("invoice:42").lock().await?; // waits; renewed until dropped
/// guard.while_held(send_invoice()).await?; // dropped the moment the lock is lost
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Quorate {
    parts: Arc<LockParts>,
}

impl Quorate {
    /// Connects to independent servers with the default settings. An [`Address`] is a text, as
    /// `redis://user:password@10.0.0.1:7000`, or made of its parts.
    ///
    /// Succeeds when a majority answers, and goes on trying to reach the rest in the background.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid): an address cannot be used, there is none, two are the
    /// same server, or the tokio runtime of the caller has no timer (`enable_time`).
    /// [`is_not_connected`](Error::is_not_connected): no majority within the connect timeout
    /// (default 5 s), or a majority takes longer to answer than a tenth of the lease; each voter's
    /// cause is in it.
    /// [`is_configuration_mismatch`](Error::is_configuration_mismatch): other clients of these
    /// voters believe otherwise about the voters or the longest lease; see
    /// [`Builder::voter_configuration`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn connect() -> Result<(), quorate::Error> {
    /// use quorate::{ErrorKind, Quorate};
    ///
    /// let servers = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
    /// let quorum = Quorate::connect(servers).await?;
    ///
    /// // By what is to be done:
    /// match Quorate::connect(servers).await {
    ///     Ok(quorum) => println!("{quorum:?}"),
    ///     Err(error) => match error.kind() {
    ///         ErrorKind::Invalid => println!("mend the settings: {error}"),
    ///         ErrorKind::NotConnected => println!("try again: {error}"),
    ///         ErrorKind::ConfigurationMismatch => println!("name the same voters: {error}"),
    ///         _ => return Err(error),
    ///     },
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect<A: Into<Address>>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Self, Error> {
        Self::builder().voters(addresses).connect().await
    }

    /// A builder, for settings other than the defaults, and for voters that
    /// [`connect`](Self::connect) does not take, such as a [cluster](Builder::cluster).
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The mutex of this name, with the client's settings. Nothing is sent. A name has 1 to 512
    /// bytes; locking by any other name fails.
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Mutex::new(&self.parts, name.as_ref())
    }

    /// The [fair mutex](Mutex#the-fair-mutex) of this name: as [`mutex`](Self::mutex), and given in
    /// the order of asking.
    pub fn fair_mutex(&self, name: impl AsRef<str>) -> Mutex {
        self.mutex(name).fair()
    }

    /// The read/write lock of this name, with the client's settings; another lock than the mutex of
    /// this name.
    pub fn rw_lock(&self, name: impl AsRef<str>) -> RwLock {
        RwLock::new(&self.parts, name.as_ref())
    }

    /// The semaphore of this name with this number of permits, 1 to 10,000, with the client's
    /// settings; another lock than the mutex of this name. All its users should give the same
    /// number: [what happens otherwise](Semaphore#permits).
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Semaphore {
        Semaphore::of(&self.parts, name.as_ref(), permits)
    }

    /// The job of this name, of which each firing is done once, with the client's settings; another
    /// lock than the mutex of this name.
    pub fn once(&self, name: impl AsRef<str>) -> Once {
        Once::new(&self.parts, name.as_ref())
    }

    /// The election of this name, with the client's settings; another lock than the mutex of this
    /// name.
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election::new(&self.parts, name.as_ref())
    }

    /// Locks that are shared with Java services that use Redisson.
    pub fn redisson(&self) -> Redisson {
        Redisson::new(&self.parts)
    }

    /// For operators: looks at any lock, finds locks, and ends holds by force.
    pub fn admin(&self) -> Admin {
        Admin::new(&self.parts)
    }

    /// Several locks as one: all or none, in whatever order callers name them. The list has names
    /// of mutexes, or mutexes and fair mutexes. If it also has a read/write lock, by the side that
    /// [reads](RwLock::reading) or [writes](RwLock::writing), turn each mutex into an item by
    /// [`Mutex::into`]. Each lock keeps its own settings.
    pub fn lock_all<L: Into<Lockable>>(&self, locks: impl IntoIterator<Item = L>) -> LockAll {
        LockAll::new(&self.parts, locks.into_iter().map(Into::into))
    }

    /// Takes over the hold of a [detached](crate::MutexGuard::detach_for) guard: the mutex is held
    /// again, by this client. The guard has a hold and a [token](crate::MutexGuard::token) of its
    /// own, and the lease of the guard before. If several clients try, at most one succeeds.
    ///
    /// It asks the voters for their votes. If too few answer, or others ask with the same ticket at
    /// the same time, it tries again for the [quorum timeout](Builder::quorum_timeout). An attempt
    /// that fails gives the votes back to the ticket.
    ///
    /// # Errors
    ///
    /// [`is_ticket_ended`](Error::is_ticket_ended): somebody has resumed it, its time was over, the
    /// hold was ended by force or lost, or its [`hold_at_most`](crate::Mutex::hold_at_most) is
    /// over. [`is_no_quorum`](Error::is_no_quorum) and [`is_busy`](Error::is_busy): not in time;
    /// the ticket is as good as before. [`is_invalid`](Error::is_invalid): this client cannot use
    /// the lease of the guard, or the text of the ticket was changed.
    /// [`is_closed`](Error::is_closed): the client was closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the votes back to the ticket, on all voters.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # async fn work() {}
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// # let guard = quorum.mutex("invoice:42").lock().await?;
    /// # let ticket = guard.detach_for(std::time::Duration::from_secs(60)).await?;
    /// use quorate::ErrorKind;
    ///
    /// match quorum.resume(&ticket).await {
    ///     Ok(guard) => {
    ///         guard.while_held(work()).await?;
    ///         guard.release().await?;
    ///     }
    ///     Err(error) => match error.kind() {
    ///         ErrorKind::TicketEnded => println!("too late, or somebody else works: {error}"),
    ///         _ => println!("try again: {error}"),
    ///     },
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume(
        &self,
        ticket: &HoldTicket,
    ) -> impl Future<Output = Result<MutexGuard, Error>> + Send + use<> {
        Mutex::resume(&self.parts, ticket)
    }

    /// The hold of this ticket, if this client parks it. [`Lost`] completes when the client stops
    /// parking it, and says why: it was resumed, or its time is over.
    pub fn parked(&self, ticket: &HoldTicket) -> Option<Lost> {
        self.parts.holds.parked(ticket.hold()).map(Lost::of_parked)
    }

    /// Releases everything that is held, and ends the connections. Guards that are left are lost.
    /// A [parked](crate::MutexGuard::detach_for) hold keeps the rest of its lease.
    /// Calls that wait, and all later calls, fail with [`is_closed`](Error::is_closed).
    ///
    /// Waits up to the voter deadline until a majority has confirmed each release, and as long for
    /// the [log](crate::log::flush).
    ///
    /// # Errors
    ///
    /// The client is closed even then. [`is_unconfirmed`](Error::is_unconfirmed): no majority has
    /// confirmed the release of some holds in time. The error names one of these holds, and says
    /// when the last of them is [free](Error::frees_in): when its lease ends. Guards that were
    /// dropped before have sent their releases, and are not checked.
    /// [`is_closed`](Error::is_closed): this process was forked from the one that connected.
    ///
    /// # Cancel safety
    ///
    /// Dropped half way, some holds may not be released yet, and nothing can be acquired any more;
    /// calling again finishes it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
    /// let guard = quorum.mutex("invoice:42").lock().await?;
    /// if let Err(error) = quorum.close().await {
    ///     eprintln!("a lock stays taken for a while: {error}");
    /// }
    /// assert!(!guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close(&self) -> Result<(), Error> {
        let coordinator = self.coordinator();
        // The thread of the clients does not exist in the child: waiting for it would hang. The
        // parent keeps its holds (`what_a_process_holds_has_ended_in_a_process_that_it_forks`).
        if coordinator.gate().is_forked() {
            return Err(Error::closed());
        }
        let (clock, panel) = (coordinator.clock(), coordinator.panel());
        let deadline = coordinator.voter_deadline();
        // Before the first wait: if this future is dropped, at least these releases were sent.
        let mut releases = self.release_all();
        let due = clock.now() + deadline;
        // Attempts end before the voters are closed. Otherwise the grants of an attempt could come
        // when neither its release nor its undo can be sent: the lock stays taken for the whole
        // lease (law 6).
        let _ = clock.in_time(due, coordinator.gate().close()).await;
        // A hold that waits for the next task of a local queue has no guard, so nobody else ends
        // it.
        coordinator.close_tenures();
        // Holds that were won while the attempts ended.
        releases.append(&mut self.release_all());
        let due = clock.now() + deadline;
        let confirmed =
            releases.into_iter().map(async |(hold, replies)| hold.closed(replies, due).await);
        let unconfirmed = join_all(confirmed).await.into_iter().filter_map(Result::err);
        let last = unconfirmed.max_by_key(Error::frees_in);
        // Before the connections end: in the gauges they would be voters that are down.
        panel.standings.retire();
        let closing: Vec<_> = panel.voters.iter().map(Voter::close).collect();
        let due = clock.now() + deadline;
        let _ = clock.in_time(due, join_all(closing)).await;
        // In the time of a test, a thread of real time is never waited for: time that is paused
        // would jump to the deadline at once.
        if matches!(clock, Clock::System) {
            let _ = clock.in_time(clock.now() + deadline, log::until_written()).await;
        }
        last.map_or(Ok(()), Err)
    }

    fn of(parts: &Arc<LockParts>) -> Self {
        let mut parts = Arc::clone(parts);
        // `client().mutex(..)` of a lock of Redisson is a mutex of Quorate.
        if parts.dialect.is_some() {
            Arc::make_mut(&mut parts).dialect = None;
        }
        Self { parts }
    }

    fn coordinator(&self) -> &Coordinator {
        &self.parts.coordinator
    }

    fn release_all(&self) -> Vec<(Arc<Hold>, Replies)> {
        let released = |hold: Arc<Hold>| Some((Arc::clone(&hold), hold.close()?));
        self.parts.holds.all().into_iter().filter_map(released).collect()
    }
}

macro_rules! client_of {
    ($($lock:ident),+) => {$(
        impl $lock {
            /// The client that made it.
            pub fn client(&self) -> Quorate {
                Quorate::of(self.parts())
            }
        }
    )+};
}

client_of!(Mutex, RwLock, Semaphore, Election);

impl fmt::Debug for Quorate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.coordinator().panel().voters.iter().map(Voter::label);
        f.debug_struct("Quorate")
            .field("client", &self.coordinator().client())
            .field("voters", &labels.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{embedded, proto::LockKind};

    // It looks at no lock of ours instead.
    #[tokio::test]
    async fn an_admin_of_redissons_locks_knows_no_kind_that_redisson_has_not() {
        let voters = embedded::voters(1);
        let quorum = Quorate::builder().embedded(&voters).connect().await.unwrap();
        for kind in [LockKind::Semaphore, LockKind::Election, LockKind::Once] {
            let error = quorum.redisson().admin().look(kind, "a").await.unwrap_err();
            assert_eq!(error.to_string(), format!("there is no {kind} of another library"));
        }
    }
}
