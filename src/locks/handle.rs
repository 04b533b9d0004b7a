//! What every lock is asked for with, whatever its kind.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    acquire::Coordinator,
    hold::{Entry, Holds, LockRequest},
    kinds::{Form, Forms, Kind, LockRecord, Preference},
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
    /// Its lock in place of ours of this kind. `preference`: as the caller has set it.
    fn record(
        &self,
        handle: &LockHandle,
        kind: &'static Kind,
        preference: Option<Preference>,
    ) -> Result<LockRecord, Error>;
}

impl LockHandle {
    /// The lock of this kind and name, as it is asked for.
    pub(super) fn record(
        &self,
        kind: &'static Kind,
        preference: Option<Preference>,
    ) -> Result<LockRecord, Error> {
        if let Some(dialect) = self.parts.dialect {
            return dialect.record(self, kind, preference);
        }
        let (name, form) = self.form(kind, preference.unwrap_or_default())?;
        Ok(LockRecord::own(&self.settings().keys, name, form, None))
    }

    /// The name, and what all locks of the kind have in common that are asked for so.
    pub(crate) fn form(
        &self,
        kind: &'static Kind,
        preference: Preference,
    ) -> Result<(LockName, Arc<Form>), Error> {
        let (name, rules) = self.checked()?;
        Ok((name, self.parts.forms.of(kind, rules, preference, self.settings())))
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

    /// The end of a time that begins now. Without any, the voters are asked once, and leave to ask
    /// them is not waited for. In the queue they would name the waiter before, and not the holder.
    pub(super) fn within(&self, time: Duration) -> Limit {
        let now = self.parts.coordinator.clock().now();
        if time.is_zero() { Limit::Once(now) } else { Limit::Until(now + time) }
    }

    /// Of one who does not wait.
    pub(super) fn once(&self) -> Limit {
        Limit::Once(self.parts.coordinator.patience())
    }

    /// The request for the lock of this record.
    pub(super) fn request(&self, record: LockRecord) -> LockRequest {
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
