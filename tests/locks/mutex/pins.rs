//! What the types promise to the compiler: taking one of these away breaks users.

use std::{
    fmt::{Debug, Display},
    hash::Hash,
    panic::{RefUnwindSafe, UnwindSafe},
    str::FromStr,
};

use quorate::{
    Admin, AllGuard, Builder, Cause, ClockOffset, Cluster, Credentials, Election, Error, ErrorKind,
    FairMutex, FenceGate, FoundLock, FoundLocks, HoldId, Holder, HolderKind, Leader, Leadership,
    LockAll, LockKind, LockState, LockView, Lockable, Lost, Mutex, MutexGuard, Observed, Observer,
    Owner, PermitGuard, Persistence, Preference, Quarantine, Quarantined, Quorate, ReadGuard,
    Redisson, RestartGuard, RosterEntry, RwLock, Semaphore, ServerInfo, ServerReport, SetStatus,
    SharedPrimaries, Side, Stale, Status, Survey, Tls, Token, Verdict, VoterReport, VoterSet,
    VoterStatus, VoterSurvey, VoterView, Waiting, WriteGuard,
    embedded::{EmbeddedVoter, Fault, FaultGuard, InFlight, Machine, Ran, Record, Reply, Sent},
    metric::{Label, Metric, MetricKind, MetricUnit},
};

use quorate_tests::fixture::{Fixture, secs};

fn is_pinned<T: Send + Sync + Unpin + Debug + 'static>() {}
fn cloned<T: Clone>() {}
fn compared<T: Clone + Eq>() {}

/// Holds the promises for each of these types.
macro_rules! pinned {
    ($($type:ident),+ $(,)?) => {
        $(is_pinned::<$type>();)+
    };
}

#[test]
fn every_public_type_is_send_sync_unpin_and_debug() {
    #[rustfmt::skip]
    pinned![
        Admin, AllGuard, Builder, Cause, ClockOffset, Cluster, Credentials, EmbeddedVoter, Error,
        ErrorKind,
        Election, FairMutex,
        Fault, FaultGuard, FenceGate, FoundLock, FoundLocks, HoldId, Holder, HolderKind,
        InFlight, Label, LockKind, LockState, LockView, Lost,
        Leader, Leadership, LockAll, Lockable, Machine,
        Metric, MetricKind, MetricUnit, Mutex, MutexGuard,
        Observed, Observer, Owner, PermitGuard,
        Persistence, Preference,
        Quarantine,
        Quarantined, Quorate,
        Ran, ReadGuard, Record, Redisson, Reply, RestartGuard, RosterEntry,
        RwLock, Semaphore,
        Sent, ServerInfo, ServerReport, SetStatus, SharedPrimaries, Side, Stale, Status, Survey,
        Tls, Token, Verdict, VoterReport, VoterSet, VoterStatus,
        VoterSurvey, VoterView, Waiting, WriteGuard,
    ];
}

/// The types of programs without async have the names of those above.
#[test]
fn every_blocking_type_is_send_sync_unpin_and_debug() {
    use quorate::blocking::{
        Admin, AllGuard, Election, FairMutex, Leadership, LockAll, Mutex, MutexGuard, Observer,
        PermitGuard, Quorate, ReadGuard, RwLock, Semaphore, WriteGuard,
    };

    #[rustfmt::skip]
    pinned![
        Admin, AllGuard, Election, FairMutex, Leadership, LockAll, Mutex, MutexGuard, Observer,
        PermitGuard, Quorate, ReadGuard, RwLock, Semaphore, WriteGuard,
    ];
    cloned::<Quorate>();
    cloned::<Mutex>();
    cloned::<FairMutex>();
    cloned::<RwLock>();
    cloned::<Semaphore>();
    cloned::<Election>();
}

#[test]
fn values_can_be_cloned_compared_and_shown() {
    fn shown<T: Display>() {}
    fn read<T: FromStr<Err = Error>>() {}
    fn keys<T: Hash + Ord>() {}
    fn error<T: std::error::Error + UnwindSafe + RefUnwindSafe>() {}
    cloned::<Quorate>();
    cloned::<Builder>();
    cloned::<Mutex>();
    cloned::<FairMutex>();
    cloned::<RwLock>();
    cloned::<Semaphore>();
    cloned::<Error>();
    cloned::<EmbeddedVoter>();
    cloned::<LockAll>();
    cloned::<Lockable>();
    cloned::<Election>();
    cloned::<Observed>();
    compared::<Leader>();
    compared::<Owner>();
    compared::<Preference>();
    compared::<Survey>();
    compared::<VoterSurvey>();
    compared::<ServerReport>();
    compared::<ServerInfo>();
    compared::<Persistence>();
    compared::<ClockOffset>();
    compared::<FoundLocks>();
    compared::<FoundLock>();
    compared::<LockKind>();
    keys::<FoundLock>();
    compared::<HoldId>();
    compared::<Verdict>();
    compared::<Cause>();
    compared::<VoterReport>();
    compared::<LockView>();
    compared::<Holder>();
    compared::<Waiting>();
    shown::<HoldId>();
    shown::<Owner>();
    shown::<Token>();
    read::<HoldId>();
    read::<Owner>();
    read::<Token>();
    shown::<VoterReport>();
    keys::<HoldId>();
    error::<Error>();
}

#[tokio::test(start_paused = true)]
async fn every_future_can_be_spawned() {
    fn can_be_spawned<F: Future + Send>(future: F) -> F {
        future
    }
    let client = Fixture::embedded(3).client().await;
    let mutex = client.mutex("a");
    let guard = can_be_spawned(mutex.lock()).await.unwrap();
    drop(can_be_spawned(guard.lost()));
    can_be_spawned(guard.while_held(async {})).await.unwrap();
    drop(can_be_spawned(guard.reenter()).await.unwrap());
    drop(can_be_spawned(mutex.try_lock()).await);
    drop(can_be_spawned(mutex.lock_within(secs(1))).await);
    can_be_spawned(mutex.inspect()).await.unwrap();
    can_be_spawned(guard.release()).await.unwrap();
    let admin = client.admin();
    drop(can_be_spawned(admin.look(LockKind::Election, "a")).await);
    drop(can_be_spawned(admin.find("*", 1)).await);
    drop(can_be_spawned(admin.end(LockKind::Mutex, "a", &"c:1".parse().unwrap())).await);
    drop(can_be_spawned(admin.clear(LockKind::Mutex, "a")).await);
    let fair = client.fair_mutex("a");
    can_be_spawned(fair.lock()).await.unwrap().release().await.unwrap();
    drop(can_be_spawned(fair.try_lock()).await);
    drop(can_be_spawned(fair.lock_within(secs(1))).await);
    can_be_spawned(fair.inspect()).await.unwrap();
    let rw = client.rw_lock("a");
    can_be_spawned(rw.read()).await.unwrap().release().await.unwrap();
    let writing = can_be_spawned(rw.write()).await.unwrap();
    drop(can_be_spawned(writing.read()).await.unwrap());
    drop(can_be_spawned(writing.downgrade()).await.unwrap());
    drop(can_be_spawned(rw.try_read()).await);
    drop(can_be_spawned(rw.read_within(secs(1))).await);
    drop(can_be_spawned(rw.try_write()).await);
    drop(can_be_spawned(rw.write_within(secs(1))).await);
    can_be_spawned(rw.inspect()).await.unwrap();
    can_be_spawned(client.close()).await;
    drop(can_be_spawned(Quorate::connect(["redis://127.0.0.1:1"])));
    drop(can_be_spawned(Quorate::builder().connect()));
}
