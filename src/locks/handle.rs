//! The settings of a lock, the calls that take it, and what every kind has in common.

use std::{
    fmt, mem,
    sync::{Arc, OnceLock},
    time::Duration,
};

use crate::{
    acquire::Coordinator,
    hold::{Entry, Holds, LockRequest},
    kinds::{Form, Forms, Kind, LockRecord, MUTEX, Preference},
    log,
    proto::{Error, Limit, LockKind, LockName, Note, Owner, Slots, Token},
    settings::Settings,
};

/// What a client gives to each of its locks.
#[derive(Clone)]
pub(crate) struct LockParts {
    pub(crate) coordinator: Arc<Coordinator>,
    pub(crate) holds: Arc<Holds>,
    pub(crate) forms: Arc<Forms>,
    /// How another library writes its locks. `None`: these are locks of ours.
    pub(crate) dialect: Option<&'static dyn Dialect>,
}

impl Drop for LockParts {
    // In a forked process the client is leaked: to drop it would lock mutexes that a thread of the
    // parent may have locked at the fork, which nobody unlocks there.
    fn drop(&mut self) {
        if self.coordinator.gate().is_forked() {
            mem::forget((Arc::clone(&self.coordinator), Arc::clone(&self.holds)));
        }
    }
}

impl fmt::Debug for LockParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockParts").finish_non_exhaustive()
    }
}

/// A lock with the settings of its user: which lock, for whom, and for how long.
#[derive(Clone)]
pub(crate) struct LockHandle {
    pub(crate) parts: Arc<LockParts>,
    /// As the user gave it.
    // It is checked by the call that asks for the lock: to make a lock needs no error then.
    name: Arc<str>,
    owner: Option<Owner>,
    lease: Duration,
    renewed: bool,
    hold_at_most: Option<Duration>,
    /// The note on its holds, which is checked as the name is.
    pub(super) note: Option<Arc<str>>,
    /// Of a mutex: waiters get it in the order of asking.
    pub(super) is_fair: bool,
    /// Of a read/write lock, if it is set.
    pub(crate) preference: Option<Preference>,
    /// The number of permits of a semaphore. `None`: the most that there can be.
    pub(super) permits: Option<u32>,
    /// The records by which calls ask: of an exclusive kind, and of a shared one.
    // Each is made by the first call that needs it, and then shared: its names of keys are long,
    // and a read/write lock that is only read needs none to write.
    records: [OnceLock<Result<LockRecord, Error>>; 2],
}

/// How another library writes its locks.
pub(crate) trait Dialect: Sync {
    /// The record of its lock, in place of ours of this kind.
    fn record(&self, handle: &LockHandle, kind: &'static Kind) -> Result<LockRecord, Error>;
}

impl LockHandle {
    pub(super) fn new(parts: &Arc<LockParts>, name: &str) -> Self {
        let settings = parts.coordinator.settings();
        Self {
            parts: Arc::clone(parts),
            name: name.into(),
            owner: None,
            lease: settings.lease,
            renewed: true,
            hold_at_most: settings.hold_at_most,
            note: None,
            is_fair: false,
            preference: None,
            permits: None,
            records: Default::default(),
        }
    }

    pub(super) fn owner(self, owner: &Owner) -> Self {
        Self { owner: Some(*owner), ..self }
    }

    // The records so far have the old settings, so each setter drops them.
    pub(super) fn lease(self, lease: Duration) -> Self {
        Self { lease, renewed: true, records: Default::default(), ..self }
    }

    pub(super) fn lease_fixed(self, lease: Duration) -> Self {
        Self { renewed: false, ..self.lease(lease) }
    }

    pub(super) fn hold_at_most(self, time: Duration) -> Self {
        Self { hold_at_most: Some(time), records: Default::default(), ..self }
    }

    pub(super) fn note(self, note: impl AsRef<str>) -> Self {
        let note = Some(note.as_ref()).filter(|note| !note.is_empty());
        Self { note: note.map(Arc::from), records: Default::default(), ..self }
    }

    pub(super) fn fair(self) -> Self {
        Self { is_fair: true, ..self }
    }

    pub(super) fn preference(self, preference: Preference) -> Self {
        Self { preference: Some(preference), records: Default::default(), ..self }
    }

    pub(super) fn permits(self, permits: u32) -> Self {
        Self { permits: Some(permits), records: Default::default(), ..self }
    }

    /// The record by which a lock of this kind is asked for.
    pub(super) fn record(&self, kind: &'static Kind) -> Result<LockRecord, Error> {
        self.records[usize::from(kind.is_shared)].get_or_init(|| self.made(kind, 1)).clone()
    }

    /// A new record, for so many permits of a semaphore.
    fn made(&self, kind: &'static Kind, wanted: u32) -> Result<LockRecord, Error> {
        let note = self.note.as_deref().map(Note::parse).transpose()?;
        if let Some(dialect) = self.parts.dialect {
            return Ok(dialect.record(self, kind)?.noted(note));
        }
        let (name, form) = self.form(kind, self.preference.unwrap_or_default())?;
        let is_semaphore = kind.lock == LockKind::Semaphore;
        let permits = self.permits.unwrap_or(Slots::MOST.into());
        let permits = is_semaphore.then(|| checked_permits(permits, wanted)).transpose()?;
        Ok(LockRecord::own(&self.settings().keys, name, form, permits).noted(note))
    }

    /// The checked name, and the form of the kind with the lease. Fails if a setting cannot be
    /// used.
    pub(crate) fn form(
        &self,
        kind: &'static Kind,
        preference: Preference,
    ) -> Result<(LockName, Arc<Form>), Error> {
        let name = LockName::checked(Arc::clone(&self.name))?;
        Settings::check_hold_at_most(self.hold_at_most)?;
        let rules = self.settings().rules(self.lease)?;
        Ok((name, self.parts.forms.of(kind, rules, preference, self.settings())))
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.parts.coordinator.settings()
    }

    pub(crate) fn coordinator(&self) -> &Arc<Coordinator> {
        &self.parts.coordinator
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The limit of a call that waits for this time.
    pub(super) fn within(&self, time: Duration) -> Limit {
        let now = self.parts.coordinator.clock().now();
        // Without any time, the voters are asked once, from no place: in the queue they would name
        // the waiter before this one, and not the holder. Nor does it wait for leave to ask.
        if time.is_zero() { Limit::Once(now) } else { Limit::Until(now + time) }
    }

    /// The limit of a call that does not wait for the lock.
    pub(super) fn once(&self) -> Limit {
        Limit::Once(self.parts.coordinator.patience())
    }

    /// The request for the lock of this kind.
    pub(super) fn request(&self, kind: &'static Kind) -> Result<LockRequest, Error> {
        self.record(kind).map(|record| self.request_of(record))
    }

    /// The request for so many permits of a semaphore.
    pub(super) fn request_many(
        &self,
        kind: &'static Kind,
        wanted: u32,
    ) -> Result<LockRequest, Error> {
        let record = if wanted == 1 { self.record(kind) } else { self.made(kind, wanted) };
        record.map(|record| self.request_of(record))
    }

    /// The request for the lock of this record.
    pub(super) fn request_of(&self, record: LockRecord) -> LockRequest {
        let LockParts { coordinator, holds, .. } = &*self.parts;
        let (coordinator, holds) = (Arc::clone(coordinator), Arc::clone(holds));
        let Self { renewed, hold_at_most, owner, .. } = *self;
        // Not a fair mutex: other clients may wait before the next task of this one (law 4). Not a
        // fixed lease: it is not renewed, so the next owner would get only the rest of it.
        let hands_on = renewed && *record.kind() == MUTEX;
        LockRequest { coordinator, holds, record, renewed, hands_on, hold_at_most, owner }
    }

    /// The `Debug` of a lock of this type.
    pub(super) fn show(&self, kind: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct(kind);
        shown
            .field("name", &self.name())
            .field("owner", &self.owner)
            .field("lease", &self.lease)
            .field("renewed", &self.renewed)
            .field("hold_at_most", &self.hold_at_most);
        if let Some(note) = &self.note {
            shown.field("note", note);
        }
        if self.is_fair {
            shown.field("is_fair", &true);
        }
        if let Some(preference) = &self.preference {
            shown.field("preference", preference);
        }
        if let Some(permits) = &self.permits {
            shown.field("permits", permits);
        }
        shown.finish_non_exhaustive()
    }
}

/// How many permits a semaphore has, and how many of them one caller wants.
fn checked_permits(permits: u32, wanted: u32) -> Result<(u16, u16), Error> {
    let few = |number: u32| u16::try_from(number).ok().filter(|number| *number > 0);
    let (most, at_once) = (Slots::MOST, Slots::AT_ONCE);
    let why = match (few(permits).filter(|permits| *permits <= most), few(wanted)) {
        (None, _) => format!("a semaphore has 1 to {most} permits, not {permits}"),
        (Some(all), Some(wanted)) if wanted <= all.min(at_once) => return Ok((all, wanted)),
        (Some(all), Some(wanted)) if wanted <= all => {
            format!("{wanted} permits at once are over the most of {at_once}")
        }
        _ => format!("{wanted} permits cannot be had of a semaphore of {permits}"),
    };
    Err(Error::invalid(why))
}

/// Makes the type of a lock, of a name and with these settings. Its name is that of its
/// [`LockKind`].
macro_rules! lock {
    (
        $(#[$about:meta])* $name:ident;
        $($(#[$more:meta])* $set:ident($value:ident: $type:ty);)*
    ) => {
        $(#[$about])*
        #[derive(Clone)]
        pub struct $name(pub(super) $crate::locks::LockHandle);

        impl $name {
            pub(crate) fn new(
                parts: &std::sync::Arc<$crate::locks::LockParts>,
                name: &str,
            ) -> Self {
                Self($crate::locks::LockHandle::new(parts, name))
            }

            pub(crate) fn parts(&self) -> &std::sync::Arc<$crate::locks::LockParts> {
                &self.0.parts
            }

            /// Its name, as it was given.
            pub fn name(&self) -> &str {
                self.0.name()
            }

            /// Its kind. [`Admin`](crate::Admin) names a lock by its kind and its
            /// [name](Self::name).
            pub fn kind(&self) -> $crate::proto::LockKind {
                $crate::proto::LockKind::$name
            }

            $(
                $(#[$more])*
                pub fn $set(self, $value: $type) -> Self {
                    Self(self.0.$set($value))
                }
            )*
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.show(stringify!($name), f)
            }
        }
    };
}

/// The calls that take a lock: to wait, to try, to wait for a limited time, to fail with the
/// holder, and, if it is listed, to work under the lock.
// A macro, as the futures own all that they need, `use<>`, so that callers can spawn them: a
// generic `async fn` would borrow the lock.
macro_rules! taking {
    (
        |$self:ident $(, $arg:ident: $type:ty)*| $request:expr => $guard:ident
            $(where $one:ident: $bound:path)?;
        $(#[$about_wait:meta])* $wait:ident;
        $(#[$about_try:meta])* $try:ident;
        $(#[$about_within:meta])* $within:ident;
        $(#[$about_busy:meta])* $busy:ident;
        $($(#[$about_run:meta])* $run:ident$(($run_arg:ident: $run_type:ty))?
            [$work:ident: fn($given:ty)] => $under:expr;)?
    ) => {
        $(#[$about_wait])*
        pub fn $wait$(<$one: $bound>)?(
            &$self $(, $arg: $type)*
        ) -> impl Future<Output = Result<$guard, Error>> + Send + use<$($one)?> {
            $crate::locks::handle::wait($request, $guard::new)
        }

        $(#[$about_try])*
        pub fn $try$(<$one: $bound>)?(
            &$self $(, $arg: $type)*
        ) -> impl Future<Output = Result<Option<$guard>, Error>> + Send + use<$($one)?> {
            $crate::locks::handle::enter($request, $self.0.once(), $guard::new)
        }

        $(#[$about_within])*
        pub fn $within$(<$one: $bound>)?(
            &$self $(, $arg: $type)*, limit: Duration
        ) -> impl Future<Output = Result<Option<$guard>, Error>> + Send + use<$($one)?> {
            $crate::locks::handle::enter($request, $self.0.within(limit), $guard::new)
        }

        $(#[$about_busy])*
        pub fn $busy$(<$one: $bound>)?(
            &$self $(, $arg: $type)*, limit: Duration
        ) -> impl Future<Output = Result<$guard, Error>> + Send + use<$($one)?> {
            $crate::locks::handle::enter_or_busy($request, $self.0.within(limit), $guard::new)
        }

        $(
            $(#[$about_run])*
            pub fn $run<T, E, F, W>(
                &$self $(, $run_arg: $run_type)?, $work: F
            ) -> impl Future<Output = Result<T, E>> + use<T, E, F, W>
            where
                E: From<Error>,
                F: FnOnce($given) -> W,
                W: Future<Output = Result<T, E>>,
            {
                $crate::locks::handle::work_under($request, $under)
            }
        )?
    };
}

pub(super) use lock;
pub(super) use taking;

// What these calls do when they are polled.

/// Waits for a lock without a limit.
pub(super) async fn wait<G>(
    request: Result<LockRequest, Error>,
    guard: fn(Entry) -> G,
) -> Result<G, Error> {
    let entered = request?.enter(Limit::Never).await?;
    Ok(guard(entered.expect("only at a limit the answer is that the lock is held")))
}

/// Enters a lock before the limit, if it can.
pub(super) async fn enter<G>(
    request: Result<LockRequest, Error>,
    limit: Limit,
    guard: fn(Entry) -> G,
) -> Result<Option<G>, Error> {
    Ok(request?.enter(limit).await?.map(guard))
}

/// Enters a lock before the limit, or fails with who has it.
pub(super) async fn enter_or_busy<G>(
    request: Result<LockRequest, Error>,
    limit: Limit,
    guard: fn(Entry) -> G,
) -> Result<G, Error> {
    request?.enter_or_busy(limit).await.map(guard)
}

/// Waits for a lock, works under it, and gives it back.
pub(super) async fn work_under<T, E: From<Error>, W: Future<Output = Result<T, E>>>(
    request: Result<LockRequest, Error>,
    work: impl FnOnce(&Entry) -> W,
) -> Result<T, E> {
    let entry = wait(request, |entry| entry).await?;
    let done = entry.try_while_held(work(&entry)).await;
    after_work(done, entry.release().await)
}

/// The result of work under a lock, after the lock was given back.
pub(crate) fn after_work<T, E: From<Error>>(
    done: Result<T, E>,
    released: Result<(), Error>,
) -> Result<T, E> {
    match released {
        // The lock was held for as long as there was work, so the work is done. Only the next
        // holder may have to wait until the lease ends.
        Err(error) if error.is_unconfirmed() => {
            log::report_here(move || {
                tracing::warn!(lock = error.lock(), %error, "not released yet");
            });
        }
        // If the work failed as well, its error comes first: it may have been stopped by the loss.
        Err(error) if done.is_ok() => return Err(error.into()),
        _ => {}
    }
    done
}

pub(super) fn given_token(entry: &Entry) -> Token {
    entry.token().expect("only reads have none")
}
