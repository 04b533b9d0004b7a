//! What the types promise to the compiler: taking one of these away breaks users.

use std::{
    fmt::{Debug, Display},
    hash::Hash,
    panic::{RefUnwindSafe, UnwindSafe},
};

use quorate::{
    Access, Builder, Cause, Error, FairMutex, HoldId, Holder, Inspection, KeyScheme, Mutex,
    MutexGuard, Owner, Preference, Quorate, ReadGuard, Reader, RwInspection, RwLock, RwState,
    RwView, Verdict, VoterReport, VoterView, Waiting, WriteGuard,
    embedded::{EmbeddedVoter, Fault, FaultGuard, Reply},
};

use crate::fixture::{Fixture, secs};

fn pinned<T: Send + Sync + Unpin + Debug + 'static>() {}
fn cloned<T: Clone>() {}
fn compared<T: Clone + Eq>() {}

#[test]
fn every_public_type_is_send_sync_unpin_and_debug() {
    pinned::<Quorate>();
    pinned::<Builder>();
    pinned::<Mutex>();
    pinned::<FairMutex>();
    pinned::<MutexGuard>();
    pinned::<RwLock>();
    pinned::<ReadGuard>();
    pinned::<WriteGuard>();
    pinned::<Access>();
    pinned::<Preference>();
    pinned::<RwInspection>();
    pinned::<RwView>();
    pinned::<RwState>();
    pinned::<Reader>();
    pinned::<Owner>();
    pinned::<HoldId>();
    pinned::<Error>();
    pinned::<VoterReport>();
    pinned::<Verdict>();
    pinned::<Cause>();
    pinned::<Inspection>();
    pinned::<VoterView>();
    pinned::<Holder>();
    pinned::<Waiting>();
    pinned::<KeyScheme>();
    pinned::<EmbeddedVoter>();
    pinned::<FaultGuard>();
    pinned::<Fault>();
    pinned::<Reply>();
}

#[test]
fn values_can_be_cloned_compared_and_shown() {
    fn shown<T: Display>() {}
    fn keys<T: Hash + Ord>() {}
    fn error<T: std::error::Error + UnwindSafe + RefUnwindSafe>() {}
    cloned::<Quorate>();
    cloned::<Builder>();
    cloned::<Mutex>();
    cloned::<FairMutex>();
    cloned::<RwLock>();
    cloned::<Error>();
    cloned::<EmbeddedVoter>();
    compared::<Owner>();
    compared::<Access>();
    compared::<Preference>();
    compared::<RwInspection>();
    compared::<RwView>();
    compared::<RwState>();
    compared::<Reader>();
    compared::<HoldId>();
    compared::<Verdict>();
    compared::<Cause>();
    compared::<VoterReport>();
    compared::<Inspection>();
    compared::<Holder>();
    compared::<Waiting>();
    compared::<KeyScheme>();
    shown::<HoldId>();
    shown::<Inspection>();
    shown::<RwInspection>();
    shown::<RwState>();
    shown::<Holder>();
    shown::<Waiting>();
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
    can_be_spawned(mutex.force_release()).await.unwrap();
    let fair = client.fair_mutex("a");
    can_be_spawned(fair.lock()).await.unwrap().release().await.unwrap();
    drop(can_be_spawned(fair.try_lock()).await);
    drop(can_be_spawned(fair.lock_within(secs(1))).await);
    can_be_spawned(fair.inspect()).await.unwrap();
    can_be_spawned(fair.force_release()).await.unwrap();
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
    can_be_spawned(rw.force_release(Access::Read)).await.unwrap();
    can_be_spawned(client.close()).await;
    drop(can_be_spawned(Quorate::connect(["redis://127.0.0.1:1"])));
    drop(can_be_spawned(Quorate::builder().connect()));
}
