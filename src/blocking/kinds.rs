//! The client and its locks, for programs without async.

use std::{fmt, ops::ControlFlow, pin::pin, time::Duration};

use super::{
    AllGuard, Leadership, MutexGuard, Observer, OnceGuard, PermitGuard, ReadGuard, WriteGuard,
    caller,
    mirror::{Mirrored, mirror},
};
use crate::{
    client::{self, Builder, Status, Survey},
    hold::HoldView,
    kinds::Preference,
    locks::{self, Firing, FoundLocks, LockView, Lockable, OnceOutcome, SemaphoreView, after_work},
    proto::{Error, HoldId, HoldTicket, Leader, LockKind, Owner, Token},
    redisson,
    voter::Address,
};

mirror! {
    /// [`quorate::Quorate`](crate::Quorate) for programs without async. Clones are the same client.
    #[derive(Clone)]
    client::Quorate;
    make mutex(name: impl AsRef<str>) -> Mutex;
    make fair_mutex(name: impl AsRef<str>) -> Mutex;
    make rw_lock(name: impl AsRef<str>) -> RwLock;
    make semaphore(name: impl AsRef<str>, permits: u32) -> Semaphore;
    make election(name: impl AsRef<str>) -> Election;
    make once(name: impl AsRef<str>) -> Once;
    make redisson() -> Redisson;
    make admin() -> Admin;
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// use std::time::Duration;
    ///
    /// let ticket = quorum.mutex("invoice:42").lock()?.detach_for(Duration::from_secs(60))?;
    /// let guard = quorum.resume(&ticket)?;
    /// assert!(guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    call resume(ticket: &HoldTicket) -> MutexGuard;
    ask status() -> Status;
    ask survey() -> Survey;
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let guard = quorum.mutex("invoice:42").lock()?;
    /// quorum.close()?;
    /// assert!(!guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    call close() -> ();
}

impl Quorate {
    /// [`Quorate::connect`](crate::Quorate::connect); blocks.
    ///
    /// Other settings: [`builder`](Self::builder).
    ///
    /// # Errors
    ///
    /// As [`Builder::connect_blocking`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn connect() -> Result<(), quorate::Error> {
    /// use quorate::blocking::Quorate;
    ///
    /// let quorum =
    ///     Quorate::connect(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect<A: Into<Address>>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Self, Error> {
        Self::builder().voters(addresses).connect_blocking()
    }

    /// Sets out the settings first; then [`Builder::connect_blocking`].
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// [`Quorate::lock_all`](crate::Quorate::lock_all).
    pub fn lock_all<L: Into<Lockable>>(&self, locks: impl IntoIterator<Item = L>) -> LockAll {
        self.inner.lock_all(locks).mirrored()
    }
}

mirror! {
    /// [`quorate::Redisson`](crate::Redisson) for programs without async.
    #[derive(Clone)]
    redisson::Redisson;
    make mutex(name: impl AsRef<str>) -> Mutex;
    make fair_mutex(name: impl AsRef<str>) -> Mutex;
    make rw_lock(name: impl AsRef<str>) -> RwLock;
    make admin() -> Admin;
}

impl Builder {
    /// Connects a client for programs without async. Blocks.
    ///
    /// Voters inside the process live in real time with it.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect). [`is_inside_runtime`](Error::is_inside_runtime): this would
    /// block a thread on which tokio runs tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// use std::time::Duration;
    ///
    /// use quorate::blocking::Quorate;
    ///
    /// let voters = quorate::embedded::voters(5);
    /// let settings = Quorate::builder().embedded(&voters).lease(Duration::from_secs(10));
    /// let quorum = settings.connect_blocking()?;
    /// assert!(quorum.status()?.has_quorum());
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_blocking(self) -> Result<Quorate, Error> {
        Ok(caller::wait(self.connect())??.mirrored())
    }
}

mirror! {
    /// [`quorate::Mutex`](crate::Mutex) for programs without async.
    ///
    /// The same lock as the async mutex of this name, in this process and in others. Threads of one
    /// client get it in the order of asking.
    #[derive(Clone)]
    #[must_use = "it does nothing until it is locked"]
    locks::Mutex;
    with owner(owner: &Owner);
    with lease(lease: Duration);
    with lease_fixed(lease: Duration);
    with hold_at_most(time: Duration);
    with note(note: impl AsRef<str>);
    get name() -> &str;
    get kind() -> LockKind;
    make client() -> Quorate;
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let guard = quorum.mutex("invoice:42").lock()?;
    /// assert!(guard.is_held());
    /// guard.release()
    /// # }
    /// ```
    call lock() -> MutexGuard;
    call try_lock() -> Option<MutexGuard>;
    call lock_within(limit: Duration) -> Option<MutexGuard>;
    call lock_or_busy(limit: Duration) -> MutexGuard;
    call is_locked() -> bool;
    call inspect() -> LockView;
    /// Locks, works and gives the lock back: waits as [`lock`](Self::lock) does, runs the
    /// work on the calling thread, and releases when the work is done, has failed or
    /// panics. The work is given its [`Token`].
    ///
    /// **The work is not stopped when the lock is lost.** It runs to its end, and the error
    /// says afterwards that it was not covered throughout: somebody else may have done the
    /// same meanwhile. Long work looks by itself, with a guard.
    ///
    /// Work that is done stays done: a release that no majority has confirmed in time goes
    /// on in the background, and is no error here.
    ///
    /// # Errors
    ///
    /// The error of the work; or, converted to its type, an error of [`lock`](Self::lock), or
    /// [`is_lost`](Error::is_lost) if the lock was lost before the work was done.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # fn charge(_: quorate::Token) -> Result<u32, quorate::Error> { Ok(42) }
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let charged = quorum.mutex("invoice:42").run(charge)?;
    /// assert_eq!(charged, 42);
    /// # Ok(())
    /// # }
    /// ```
    run run() -> Token = (lock, token);
}

impl From<Mutex> for Lockable {
    fn from(mutex: Mutex) -> Self {
        mutex.inner.into()
    }
}

impl Mutex {
    /// [`Mutex::into`](crate::Mutex::into).
    pub fn into(self) -> Lockable {
        self.inner.into()
    }
}

mirror! {
    /// [`quorate::RwLock`](crate::RwLock) for programs without async.
    ///
    /// Without an owner nothing shows that two guards are of one thread: see
    /// [there](crate::RwLock#owners).
    #[derive(Clone)]
    #[must_use = "it does nothing until it is locked"]
    locks::RwLock;
    with owner(owner: &Owner);
    with lease(lease: Duration);
    with lease_fixed(lease: Duration);
    with hold_at_most(time: Duration);
    with note(note: impl AsRef<str>);
    get name() -> &str;
    get kind() -> LockKind;
    make client() -> Quorate;
    with preference(preference: Preference);
    get reading() -> Lockable;
    get writing() -> Lockable;
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let lock = quorum.rw_lock("prices");
    /// let (one, other) = (lock.read()?, lock.read()?);
    /// assert!(lock.try_write()?.is_none());
    /// one.release()?;
    /// other.release()
    /// # }
    /// ```
    call read() -> ReadGuard;
    call try_read() -> Option<ReadGuard>;
    call read_within(limit: Duration) -> Option<ReadGuard>;
    call read_or_busy(limit: Duration) -> ReadGuard;
    call write() -> WriteGuard;
    call try_write() -> Option<WriteGuard>;
    call write_within(limit: Duration) -> Option<WriteGuard>;
    call write_or_busy(limit: Duration) -> WriteGuard;
    call is_locked() -> bool;
    call inspect() -> LockView;
    /// Reads, works and gives the read back: waits as [`read`](Self::read) does, runs the work on
    /// the calling thread, and releases when the work is done, has failed or panics. The work is
    /// given a [view](HoldView) of the hold.
    ///
    /// **The work is not stopped when the read is lost**: it can ask [`HoldView::is_held`].
    ///
    /// # Errors
    ///
    /// The error of the work; or, converted to its type, an error of [`read`](Self::read), or
    /// [`is_lost`](Error::is_lost) if the read was lost before the work was done.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # fn total(_: quorate::HoldView) -> Result<u32, quorate::Error> { Ok(42) }
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// assert_eq!(quorum.rw_lock("prices").run_read(total)?, 42);
    /// # Ok(())
    /// # }
    /// ```
    run run_read() -> HoldView = (read, view);
    /// Writes, works and gives the write back: waits as [`write`](Self::write) does, runs the work
    /// on the calling thread, and releases when the work is done, has failed or panics. The work is
    /// given its [`Token`].
    ///
    /// **The work is not stopped when the write is lost**: see [`Mutex::run`].
    ///
    /// # Errors
    ///
    /// The error of the work; or, converted to its type, an error of [`write`](Self::write), or
    /// [`is_lost`](Error::is_lost) if the write was lost before the work was done.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # fn raise(_: quorate::Token) -> Result<u32, quorate::Error> { Ok(43) }
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// assert_eq!(quorum.rw_lock("prices").run_write(raise)?, 43);
    /// # Ok(())
    /// # }
    /// ```
    run run_write() -> Token = (write, token);
}

mirror! {
    /// [`quorate::Semaphore`](crate::Semaphore) for programs without async.
    #[derive(Clone)]
    #[must_use = "it does nothing until a permit is acquired"]
    locks::Semaphore;
    with owner(owner: &Owner);
    with lease(lease: Duration);
    with lease_fixed(lease: Duration);
    with hold_at_most(time: Duration);
    with note(note: impl AsRef<str>);
    get name() -> &str;
    get kind() -> LockKind;
    make client() -> Quorate;
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let exports = quorum.semaphore("exports", 2);
    /// let (one, other) = (exports.acquire()?, exports.acquire()?);
    /// assert!(exports.try_acquire()?.is_none());
    /// one.release()?;
    /// other.release()
    /// # }
    /// ```
    call acquire() -> PermitGuard;
    call try_acquire() -> Option<PermitGuard>;
    call acquire_within(limit: Duration) -> Option<PermitGuard>;
    call acquire_or_busy(limit: Duration) -> PermitGuard;
    call acquire_many(wanted: u32) -> PermitGuard;
    call try_acquire_many(wanted: u32) -> Option<PermitGuard>;
    call acquire_many_within(wanted: u32, limit: Duration) -> Option<PermitGuard>;
    call acquire_many_or_busy(wanted: u32, limit: Duration) -> PermitGuard;
    call is_locked() -> bool;
    call inspect() -> SemaphoreView;
    /// Acquires a permit, works and gives it back: waits as [`acquire`](Self::acquire) does, runs
    /// the work on the calling thread, with the number of its permit as the only one of its slots,
    /// and releases when the work is done, has failed or panics.
    ///
    /// **The work is not stopped when the permit is lost**: see [`Mutex::run`].
    ///
    /// # Errors
    ///
    /// The error of the work; or, converted to its type, an error of [`acquire`](Self::acquire), or
    /// [`is_lost`](Error::is_lost) if the permit was lost before the work was done.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # fn export(slots: Vec<u32>) -> Result<u32, quorate::Error> { Ok(slots[0]) }
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// assert!(quorum.semaphore("exports", 2).run(export)? < 2);
    /// # Ok(())
    /// # }
    /// ```
    run run() -> Vec<u32> = (acquire, slots);
    /// [`run`](Self::run) with so many permits, all or none; the work is given their numbers.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run) and [`acquire_many`](Self::acquire_many).
    run run_many(wanted: u32) -> Vec<u32> = (acquire_many, slots);
}

mirror! {
    /// [`quorate::Election`](crate::Election) for programs without async.
    #[derive(Clone)]
    #[must_use = "it does nothing until somebody campaigns or asks"]
    locks::Election;
    with lease(lease: Duration);
    with hold_at_most(time: Duration);
    with note(note: impl AsRef<str>);
    get name() -> &str;
    get kind() -> LockKind;
    make client() -> Quorate;
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let election = quorum.election("scheduler");
    /// let leadership = election.campaign("10.0.0.1:80")?;
    /// assert_eq!(election.leader()?.expect("somebody leads").text(), Some("10.0.0.1:80"));
    /// leadership.resign()
    /// # }
    /// ```
    call campaign(value: impl AsRef<[u8]>) -> Leadership;
    call try_campaign(value: impl AsRef<[u8]>) -> Option<Leadership>;
    call campaign_within(value: impl AsRef<[u8]>, limit: Duration) -> Option<Leadership>;
    call campaign_or_busy(value: impl AsRef<[u8]>, limit: Duration) -> Leadership;
    call leader() -> Option<Leader>;
    call is_locked() -> bool;
    call inspect() -> LockView;
    make observe() -> Observer;
}

/// How often `lead` asks whether the program is shut down, while another leads.
// A closure cannot be awaited, and a program may take this long to end.
const SHUTDOWN_ASKED: Duration = Duration::from_millis(100);

impl Election {
    /// [`Election::lead`](crate::Election::lead): campaigns, runs the work on the calling thread
    /// while it leads, and campaigns again, until the work returns `Break` or `is_shut_down`
    /// returns true. `is_shut_down` is asked while another leads, and after the work.
    ///
    /// **The work is not stopped**, neither by a shutdown nor when the lead is lost. It has to ask
    /// itself: for a shutdown, and by [`Leadership::ending_within`] for the end of the lead. The
    /// lead is renewed meanwhile. The value of a `Break` is returned even if the lead was lost.
    ///
    /// # Errors
    ///
    /// As [there](crate::Election::lead), and [`is_inside_runtime`](Error::is_inside_runtime).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # fn plan(_: quorate::Token) {}
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// # let (asked, ended) = (std::cell::Cell::new(0), 3);
    /// # let is_shut_down = || asked.replace(asked.get() + 1) >= ended;
    /// use std::{ops::ControlFlow::Continue, time::Duration};
    ///
    /// let election = quorum.election("scheduler");
    /// let done: Option<()> = election.lead("10.0.0.1:80", is_shut_down, |leadership| {
    ///     let pause = Duration::from_millis(10);
    ///     while !is_shut_down() && matches!(leadership.ending_within(pause), Ok(false)) {
    ///         plan(leadership.token());
    ///     }
    ///     Continue(())
    /// })?;
    /// assert_eq!(done, None, "it was shut down");
    /// # Ok(())
    /// # }
    /// ```
    pub fn lead<T>(
        &self,
        value: impl AsRef<[u8]>,
        is_shut_down: impl Fn() -> bool,
        mut work: impl FnMut(&Leadership) -> ControlFlow<T>,
    ) -> Result<Option<T>, Error> {
        let (mut pause, mut failed) = (locks::Election::pause(), None);
        loop {
            let shutdown = pin!(async {
                while !is_shut_down() {
                    tokio::time::sleep(SHUTDOWN_ASKED).await;
                }
            });
            let next = self.inner.next_lead(value.as_ref(), shutdown, &mut pause, failed);
            let Some(leadership) = caller::wait(next)??.mirrored() else { return Ok(None) };
            let done = work(&leadership);
            // Reported by the next campaign, and not returned: it may have failed because the lead
            // was lost, and then this candidate has to campaign again.
            failed = leadership.resign().err();
            if let ControlFlow::Break(done) = done {
                return Ok(Some(done));
            }
        }
    }
}

mirror! {
    /// [`quorate::Once`](crate::Once) for programs without async.
    #[derive(Clone)]
    #[must_use = "it does nothing until it is run"]
    locks::Once;
    with keep(time: Duration);
    with lease(lease: Duration);
    with hold_at_most(time: Duration);
    with note(note: impl AsRef<str>);
    with at_most_once();
    call enter(firing: impl Into<Firing>) -> Option<OnceGuard>;
    call enter_or_busy(firing: impl Into<Firing>, limit: Duration) -> Option<OnceGuard>;
    call inspect() -> LockView;
}

impl Once {
    /// [`Once::run`](crate::Once::run), with the work on the calling thread.
    ///
    /// **The work is not stopped when the lock is lost**: then its outcome is not `marked`, and
    /// another may have done the same work. Long work should use [`enter`](Self::enter), and ask
    /// the guard from time to time.
    ///
    /// # Errors
    ///
    /// The error of the work, and then the firing is not done; or, converted to its type, an error
    /// of [`enter`](Self::enter).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # fn make_report(_: quorate::Token) -> Result<u32, quorate::Error> { Ok(42) }
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// use quorate::OnceOutcome;
    ///
    /// let outcome = quorum.once("report").run(4711, make_report)?;
    /// assert_eq!(outcome, OnceOutcome::Ran { value: 42, marked: true });
    /// # Ok(())
    /// # }
    /// ```
    pub fn run<T, E: From<Error>>(
        &self,
        firing: impl Into<Firing>,
        work: impl FnOnce(Token) -> Result<T, E>,
    ) -> Result<OnceOutcome<T>, E> {
        let turn = self.inner.clone().turn(firing.into(), None);
        let guard = match caller::wait(turn)?? {
            ControlFlow::Continue(guard) => guard.mirrored(),
            ControlFlow::Break(done) => return Ok(done.into()),
        };
        let value = work(guard.token())?;
        // Not an error: the value of work that is done is returned although no majority stores the
        // mark (guarantee 13).
        Ok(OnceOutcome::Ran { value, marked: guard.done().is_ok() })
    }
}

mirror! {
    /// [`quorate::LockAll`](crate::LockAll) for programs without async.
    #[derive(Clone)]
    #[must_use = "it does nothing until it is locked"]
    locks::LockAll;
    with note(note: impl AsRef<str>);
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// let guard = quorum.lock_all(["account:1", "account:2"]).lock()?;
    /// assert!(guard.is_held());
    /// guard.release()
    /// # }
    /// ```
    call lock() -> AllGuard;
    call try_lock() -> Option<AllGuard>;
    call lock_within(limit: Duration) -> Option<AllGuard>;
    call lock_or_busy(limit: Duration) -> AllGuard;
}

impl LockAll {
    /// Locks all, works and gives them back, as [`Mutex::run`] does for one: the work runs to its
    /// end even if a lock is lost. It is given the tokens, in the order of the list.
    ///
    /// # Errors
    ///
    /// As [there](Mutex::run).
    pub fn run<T, E: From<Error>>(
        &self,
        work: impl FnOnce(Vec<Option<Token>>) -> Result<T, E>,
    ) -> Result<T, E> {
        let guard = self.lock()?;
        let done = work(guard.tokens().map(|(_, token)| token).collect());
        after_work(done, guard.release())
    }
}

mirror! {
    /// [`quorate::Admin`](crate::Admin) for programs without async.
    #[derive(Clone)]
    locks::Admin;
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), quorate::Error> {
    /// # let voters = quorate::embedded::voters(3);
    /// # let quorum = quorate::Quorate::builder().embedded(&voters).connect_blocking()?;
    /// use quorate::LockKind;
    ///
    /// let guard = quorum.mutex("invoice:42").lock()?;
    /// let seen = quorum.admin().look(LockKind::Mutex, "invoice:42")?;
    /// assert_eq!(&seen.holders[0].hold, guard.hold());
    /// # Ok(())
    /// # }
    /// ```
    call look(kind: LockKind, name: &str) -> LockView;
    call end(kind: LockKind, name: &str, hold: &HoldId) -> usize;
    call end_all(kind: LockKind, name: &str) -> Vec<HoldId>;
    call clear(kind: LockKind, name: &str) -> bool;
    call jobs() -> Vec<String>;
    call copy_once() -> usize;
    call forget_once(name: &str) -> bool;
    ask find(names: &str, limit: usize) -> FoundLocks;
}
