//! What every lock is asked for with, whatever its kind.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    Access, Preference,
    mutex_record::{ExclusiveKind, MutexForms, MutexRecord, MutexTerms},
    request::LockAsked,
    rw_record::{RwForms, RwRecord, RwTerms},
    semaphore_record::{SemaphoreForms, SemaphoreTerms},
};
use crate::{
    acquire::{Coordinator, LockRecord},
    hold::{Entry, Holds, LockRequest},
    proto::{Error, Limit, LockName, Owner, Rules, Token},
    settings::Settings,
};

/// What a client gives to each of its locks.
#[derive(Clone)]
pub(crate) struct LockParts {
    pub(crate) coordinator: Arc<Coordinator>,
    pub(crate) holds: Arc<Holds>,
    pub(crate) forms: Arc<Forms>,
    /// None: locks as ours are.
    pub(crate) dialect: Option<&'static dyn Dialect>,
}

/// Which lock, for whom, and for how long.
#[derive(Clone)]
pub(crate) struct LockHandle {
    pub(crate) parts: Arc<LockParts>,
    name: Result<LockName, Error>,
    owner: Option<Owner>,
    lease: Duration,
    renewed: bool,
    hold_at_most: Option<Duration>,
}

/// How another library writes its locks, where not as ours are.
pub(crate) trait Dialect: Sync {
    fn mutex(&self, handle: &LockHandle, kind: ExclusiveKind) -> Result<MutexRecord, Error>;

    /// `preference`: as the caller has set it.
    fn rw_lock(
        &self,
        handle: &LockHandle,
        access: Access,
        preference: Option<Preference>,
    ) -> Result<Arc<dyn LockAsked>, Error>;
}

impl LockHandle {
    /// The record of a mutex of this kind.
    pub(super) fn mutex(&self, kind: ExclusiveKind) -> Result<MutexRecord, Error> {
        if let Some(dialect) = self.parts.dialect {
            return dialect.mutex(self, kind);
        }
        let ((name, rules), settings) = (self.checked()?, self.settings());
        let keys = match kind {
            ExclusiveKind::Election => settings.keys.election(&name),
            ExclusiveKind::Mutex | ExclusiveKind::FairMutex => settings.keys.mutex(&name),
        };
        let forms = self.parts.forms.of_mutex(MutexTerms::new(settings, rules, kind));
        Ok(MutexRecord::new(name, keys, forms, None))
    }

    /// The record of a read/write lock.
    pub(super) fn rw_lock(
        &self,
        access: Access,
        preference: Option<Preference>,
    ) -> Result<Arc<dyn LockAsked>, Error> {
        if let Some(dialect) = self.parts.dialect {
            return dialect.rw_lock(self, access, preference);
        }
        let ((name, rules), settings) = (self.checked()?, self.settings());
        let terms = RwTerms::new(settings, rules, access, preference.unwrap_or_default());
        let keys = settings.keys.rw_lock(&name);
        Ok(Arc::new(RwRecord::new(name, keys, self.parts.forms.of_rw(terms))))
    }

    pub(super) fn new(parts: &Arc<LockParts>, name: &str) -> Self {
        Self {
            parts: Arc::clone(parts),
            name: LockName::parse(name),
            owner: None,
            lease: parts.coordinator.settings().lease,
            renewed: true,
            hold_at_most: parts.coordinator.settings().hold_at_most,
        }
    }

    pub(super) fn owner(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    pub(super) fn lease(self, lease: Duration, renewed: bool) -> Self {
        Self { lease, renewed, ..self }
    }

    pub(super) fn hold_at_most(self, time: Duration) -> Self {
        Self { hold_at_most: Some(time), ..self }
    }

    /// The name and the lease, if they and the time for which it may be held can be used.
    pub(crate) fn checked(&self) -> Result<(LockName, Rules), Error> {
        let name = self.name.clone()?;
        Settings::check_hold_at_most(self.hold_at_most)?;
        Ok((name, self.settings().rules(self.lease)?))
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.parts.coordinator.settings()
    }

    pub(crate) fn coordinator(&self) -> &Arc<Coordinator> {
        &self.parts.coordinator
    }

    /// What the caller called it, if that can be the name of a lock.
    pub(super) fn name(&self) -> &str {
        self.name.as_ref().map_or("", |name| name.as_str())
    }

    /// The end of a time that begins now.
    pub(super) fn within(&self, time: Duration) -> Limit {
        Limit::Until(self.parts.coordinator.clock().now() + time)
    }

    /// Of one who does not wait.
    pub(super) fn once(&self) -> Limit {
        Limit::Once(self.parts.coordinator.patience())
    }

    /// The request for the lock of this record.
    pub(super) fn request(&self, record: Arc<dyn LockRecord>) -> LockRequest {
        let LockParts { coordinator, holds, .. } = &*self.parts;
        let (coordinator, holds) = (Arc::clone(coordinator), Arc::clone(holds));
        let Self { renewed, hold_at_most, owner, .. } = *self;
        let hands_on = false;
        LockRequest { coordinator, holds, record, renewed, hands_on, hold_at_most, owner }
    }

    pub(super) fn show<'a, 'b>(
        &self,
        kind: &str,
        f: &'a mut fmt::Formatter<'b>,
    ) -> fmt::DebugStruct<'a, 'b> {
        let mut shown = f.debug_struct(kind);
        shown
            .field("name", &self.name())
            .field("owner", &self.owner)
            .field("lease", &self.lease)
            .field("renewed", &self.renewed)
            .field("hold_at_most", &self.hold_at_most);
        shown
    }
}

// What a call does when it is polled. It owns all that it needs: callers spawn it.

/// Waits for a lock without a limit.
pub(super) async fn wait<G>(
    request: Result<LockRequest, Error>,
    guard: fn(Entry) -> G,
) -> Result<G, Error> {
    request?.enter(Limit::Never).await.map(without_limit).map(guard)
}

/// Enters a lock before the limit, if it can.
pub(super) async fn enter<G>(
    request: Result<LockRequest, Error>,
    limit: Limit,
    guard: fn(Entry) -> G,
) -> Result<Option<G>, Error> {
    Ok(request?.enter(limit).await?.map(guard))
}

/// Enters a lock before the limit, or says who has it.
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
    let done = entry.while_held(work(&entry)).await.unwrap_or_else(|lost| Err(lost.into()));
    after_work(done, entry.release().await)
}

/// What work under a lock has come to, after the lock was given back.
pub(crate) fn after_work<T, E: From<Error>>(
    done: Result<T, E>,
    released: Result<(), Error>,
) -> Result<T, E> {
    match released {
        // It was held for as long as there was work. Who is next may have to wait for its end.
        Err(error) if error.is_unconfirmed() => {
            tracing::warn!(lock = error.lock(), %error, "not released yet");
        }
        // Else the work has failed, maybe because it was stopped for that, and says so.
        Err(error) if done.is_ok() => return Err(error.into()),
        _ => {}
    }
    done
}

pub(super) fn given_token(entry: &Entry) -> Token {
    entry.token().expect("only reads have none")
}

/// Whoever has set no limit waits until the lock is its own.
pub(super) fn without_limit<T>(entered: Option<T>) -> T {
    entered.expect("only at a limit the answer is that the lock is held")
}

// What every request of a lock has in common: made once for the settings of the client.

/// The forms of locks with the client's own settings.
#[derive(Debug)]
pub(crate) struct Forms {
    calls: Arc<str>,
    mutexes: Vec<Arc<MutexForms>>,
    rw_locks: Vec<Arc<RwForms>>,
    semaphore: Option<Arc<SemaphoreForms>>,
}

impl Forms {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut forms = Self {
            calls: settings.keys.calls().into(),
            mutexes: Vec::new(),
            rw_locks: Vec::new(),
            semaphore: None,
        };
        // An invalid lease is an error of the call that locks.
        let Ok(rules) = settings.rules(settings.lease) else { return forms };
        let waiting = settings.waiting(settings.lease);
        forms.mutexes = ExclusiveKind::ALL
            .map(|kind| forms.of_mutex(MutexTerms::new(settings, rules, kind)))
            .to_vec();
        forms.rw_locks = [Access::Read, Access::Write]
            .map(|access| RwTerms::new(settings, rules, access, Preference::default()))
            .map(|terms| forms.of_rw(terms))
            .to_vec();
        forms.semaphore = Some(forms.of_semaphore(SemaphoreTerms { rules, waiting }));
        forms
    }

    pub(crate) fn of_mutex(&self, terms: MutexTerms) -> Arc<MutexForms> {
        let made = self.mutexes.iter().find(|made| made.terms == terms).cloned();
        made.unwrap_or_else(|| Arc::new(MutexForms::new(&self.calls, terms)))
    }

    pub(super) fn of_semaphore(&self, terms: SemaphoreTerms) -> Arc<SemaphoreForms> {
        let made = self.semaphore.as_ref().filter(|made| made.terms == terms).cloned();
        made.unwrap_or_else(|| Arc::new(SemaphoreForms::new(&self.calls, terms)))
    }

    pub(super) fn of_rw(&self, terms: RwTerms) -> Arc<RwForms> {
        let made = self.rw_locks.iter().find(|made| made.terms == terms).cloned();
        made.unwrap_or_else(|| Arc::new(RwForms::new(&self.calls, terms)))
    }
}
