//! What the types promise to the compiler: taking one of these away breaks users.

use std::{
    fmt::{Debug, Display},
    hash::Hash,
    panic::{RefUnwindSafe, UnwindSafe},
    str::FromStr,
};

use quorate::{
    Address, Admin, AllGuard, ClockOffset, Cluster, ConfigurationEntry, Credentials, Election,
    ErrorKind, FenceGate, Firing, FiringDone, FoundLock, FoundLocks, HoldTicket, HoldView, Holder,
    Leader, Leadership, LockAll, LockState, Lost, Mutex, Observer, Once, OnceGuard, Permission,
    Persistence, Quarantined, Reason, Redisson, RwLock, Semaphore, SemaphoreView, ServerError,
    ServerInfo, ServerReport, SetStatus, SharedPrimaries, Side, Stale, Status, Survey, Tls,
    VoterSet, VoterStatus, VoterSurvey, Waiting,
    embedded::{Ran, Record, Reply, Sent},
    metric::{Label, Metric, MetricKind, MetricUnit},
};
use quorate_tests::prelude::*;

fn is_pinned<T: Send + Sync + Unpin + Debug + 'static>() {}
fn cloned<T: Clone>() {}
fn compared<T: Clone + Eq>() {}

/// Holds the promises for each of these types.
macro_rules! promised {
    ($promise:ident: $($type:ident),+ $(,)?) => {
        $($promise::<$type>();)+
    };
}

#[test]
fn every_public_type_is_send_sync_unpin_and_debug() {
    #[rustfmt::skip]
    promised![is_pinned:
        Address, Admin, AllGuard, Builder, Cause, ClockOffset, Cluster, Credentials, EmbeddedVoter, Error,
        ErrorKind, Election, Fault, FaultGuard, FenceGate, FoundLock, FoundLocks,
        HoldId, HoldTicket, HoldView, Holder, HolderKind, InFlight, Label, LockKind, LockState, LockView, Lost, Leader,
        Leadership, LockAll, Lockable, Machine, Metric, MetricKind, MetricUnit, Mutex, MutexGuard,
        Firing, FiringDone, Once, OnceGuard, Observed, Observer, Owner, PermitGuard, Persistence, Preference,
        Quarantine, Quarantined, Quorate, Ran, ReadGuard, Record, Redisson, Reply, RestartGuard,
        ConfigurationEntry, RwLock, Semaphore, SemaphoreView, Sent, ServerInfo, ServerReport, SetStatus,
        SharedPrimaries, Side, Stale, Status, Survey, Tls, Token, Verdict, VoterReport, VoterSet,
        VoterStatus, VoterSurvey, Permission, Reason, ServerError,
        VoterView, Waiting, WriteGuard,
    ];
}

/// The types of programs without async have the names of those above.
#[test]
fn every_blocking_type_is_send_sync_unpin_and_debug() {
    use quorate::blocking::{
        Admin, AllGuard, Election, Leadership, LockAll, Mutex, MutexGuard, Observer, Once,
        OnceGuard, PermitGuard, Quorate, ReadGuard, RwLock, Semaphore, WriteGuard,
    };

    #[rustfmt::skip]
    promised![is_pinned:
        Admin, AllGuard, Election, Leadership, LockAll, Mutex, MutexGuard, Observer, Once, OnceGuard,
        PermitGuard, Quorate, ReadGuard, RwLock, Semaphore, WriteGuard,
    ];
    promised![cloned: Quorate, Mutex, Once, RwLock, Semaphore, Election];
}

#[test]
fn values_can_be_cloned_compared_and_shown() {
    fn shown<T: Display>() {}
    fn read<T: FromStr<Err = Error>>() {}
    fn keys<T: Hash + Ord>() {}
    fn error<T: std::error::Error + UnwindSafe + RefUnwindSafe>() {}
    #[rustfmt::skip]
    promised![cloned:
        Quorate, Builder, Mutex, RwLock, Semaphore, Error, EmbeddedVoter, LockAll,
        Lockable, Election, HoldView, Observed,
    ];
    #[rustfmt::skip]
    promised![compared:
        Address, Leader, Owner, Preference, Survey, VoterSurvey, ServerReport, ServerInfo, Persistence,
        ClockOffset, FoundLocks, FoundLock, LockKind, HoldId, Verdict, Cause, VoterReport,
        LockView, SemaphoreView, Holder, Waiting, Reason, ServerError, Permission, HoldTicket,
    ];
    promised![keys: FoundLock, HoldId];
    promised![shown: HoldId, HoldTicket, Owner, Reason, Token, VoterReport];
    promised![read: HoldId, HoldTicket, Owner, Token];
    error::<Error>();
}

#[tokio::test(start_paused = true)]
async fn every_future_can_be_spawned() {
    fn can_be_spawned<F: Future + Send>(future: F) -> F {
        future
    }
    let client = Fixture::embedded(3).client().await;
    // Those that acquire are spawned by tests of each kind.
    let mutex = client.mutex("a");
    let guard = mutex.lock().await.unwrap();
    drop(can_be_spawned(guard.lost()));
    can_be_spawned(guard.while_held(async {})).await.unwrap();
    let gate = FenceGate::new();
    can_be_spawned(gate.guarded_async("a", guard.token(), async || ())).await.unwrap();
    drop(can_be_spawned(guard.reenter()).await.unwrap());
    can_be_spawned(mutex.inspect()).await.unwrap();
    let ticket = can_be_spawned(guard.detach_for(secs(60))).await.unwrap();
    drop(can_be_spawned(client.resume(&ticket)).await.unwrap());
    let admin = client.admin();
    drop(can_be_spawned(admin.look(LockKind::Election, "a")).await);
    drop(can_be_spawned(admin.find("*", 1)).await);
    drop(can_be_spawned(admin.end(LockKind::Mutex, "a", &"c:1".parse().unwrap())).await);
    drop(can_be_spawned(admin.end_all(LockKind::Mutex, "a")).await);
    drop(can_be_spawned(admin.clear(LockKind::Mutex, "a")).await);
    can_be_spawned(client.fair_mutex("a").inspect()).await.unwrap();
    let rw = client.rw_lock("a");
    let writing = rw.write().await.unwrap();
    drop(can_be_spawned(writing.read()).await.unwrap());
    drop(can_be_spawned(writing.downgrade()).await.unwrap());
    can_be_spawned(rw.inspect()).await.unwrap();
    can_be_spawned(client.close()).await.unwrap();
    drop(can_be_spawned(Quorate::connect(["redis://127.0.0.1:1"])));
    drop(can_be_spawned(Quorate::builder().connect()));
}
