//! Ending a hold by force.

use quorate::{Admin, LockKind};
use tokio::time::{sleep, timeout};

use crate::cancel::kinds::{Access, Held};
use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
    standing::until_waiting,
};

claims!(everywhere:
    a_hold_that_is_ended_by_its_id_is_lost_and_whoever_waits_is_next,
    holds_beside_the_one_that_is_ended_go_on,
);
claims!(everywhere of both:
    one_mark_is_enough_to_end_a_hold,
    renewals_do_not_bring_back_what_was_ended_by_force,
);

/// Patient with servers on a busy machine.
async fn operator(on: &Fixture) -> Admin {
    on.connect(on.builder().lease(secs(10)).voter_deadline(secs(1))).await.admin()
}

/// Not that its votes were gone: what was ended by force is marked.
async fn must_end_by_force(held: &Held) {
    let why = timeout(secs(60), held.lost()).await.expect("it is told at the next renewal");
    assert!(why.is_lost() && why.to_string().contains("ended by force"), "{why}");
    assert!(!held.is_held());
}

// The waiter does not poll. An operator who saw the first hold ends the first one: the second has
// the lock by then.
async fn a_hold_that_is_ended_by_its_id_is_lost_and_whoever_waits_is_next(on: Fixture) {
    use Access::{BothPermits, FairLock, Lead, Lock, Read, Write};

    let ours = on.client_with_lease(secs(3)).await;
    let theirs = on.connect(on.builder().poll_interval(secs(600))).await;
    let admin = operator(&on).await;
    for access in [Lock, FairLock, Read, Write, BothPermits, Lead] {
        let kind = access.lock();
        let first = access.have(&ours, None).await;
        let hold = first.hold().clone();
        let client = theirs.clone();
        let wanted = if access == Lock { Lock } else { access.excludes() };
        let waiting = tokio::spawn(async move { wanted.have(&client, None).await });
        until_waiting(&theirs, kind, "a", 1).await;
        let watch = Stopwatch::start();
        let confirmed = admin.end(kind, "a", &hold).await.expect("it is held");
        assert!((on.voters() / 2 + 1..=on.voters()).contains(&confirmed), "{confirmed}");
        let next = timeout(secs(60), waiting).await.expect("it was woken").expect("no panic");
        assert!(watch.time() <= on.at_most(ms(100)), "{access:?}: {:?}", watch.time());
        must_end_by_force(&first).await;
        let error = admin.end(kind, "a", &hold).await.unwrap_err();
        let told = error.is_not_holding() && error.to_string().contains(next.hold().as_str());
        assert!(told, "{access:?}: {error}");
        assert_eq!((error.lock(), error.hold()), (Some("a"), Some(&hold)), "{error}");
        assert!(first.release().await.unwrap_err().is_lost());
        // Nothing of the next one's was touched.
        let seen = admin.look(kind, "a").await.expect("a majority answers");
        assert_eq!((&seen.holders[0].hold, next.is_held()), (next.hold(), true), "{access:?}");
        drop(next.release().await);
        eventually_async("it is free", async || {
            admin.look(kind, "a").await.is_ok_and(|seen| seen.is_free)
        })
        .await;
        let error = admin.end(kind, "a", &hold).await.unwrap_err();
        assert!(error.is_not_holding() && error.to_string().contains("held by nobody"), "{error}");
    }
    eventually_async("the marks end too", async || on.keys().iter().all(Vec::is_empty)).await;
}

async fn holds_beside_the_one_that_is_ended_go_on(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let admin = operator(&on).await;
    for access in [Access::Read, Access::Permit] {
        let (one, other) = (access.have(&client, None).await, access.have(&client, None).await);
        admin.end(access.lock(), "a", one.hold()).await.expect("it is held");
        must_end_by_force(&one).await;
        assert!(other.is_held(), "{access:?}");
        drop(other.release().await);
    }
    // A read of the writer's own goes on, and lets other readers in.
    let writing = client.rw_lock("a").write().await.unwrap();
    let (own, lock) = (writing.read().await.unwrap(), on.client().await.rw_lock("a"));
    let reader = tokio::spawn(lock.read());
    sleep(ms(100)).await;
    let ended = admin.end(LockKind::RwLock, "a", writing.hold()).await;
    ended.expect("it is held");
    let reading = reader.await.unwrap().expect("a majority answers");
    must_end_by_force(&Held::Write(writing)).await;
    assert!(own.is_held() && reading.is_held());
    assert!(lock.try_write().await.unwrap().is_none(), "it is read");
}

// Of the voters that were told one may restart without its data, and one may have been away: the
// mark that is left ends the hold, whatever the others grant. That may come between any renewals,
// and before the vote, so that this stands beside the mark at the first renewal.
async fn one_mark_is_enough_to_end_a_hold(on: Fixture) {
    let client = on.client_with_lease(secs(6)).await;
    for after in [ms(0), ms(3000)] {
        let guard = client.mutex("a").lock().await.unwrap();
        sleep(after).await;
        let told = on.voters() - 1;
        on.command(told, &["HSET", "quorate:{a}:revoked", guard.hold().as_str(), "1"]);
        if !after.is_zero() {
            on.command(told, &["DEL", "quorate:{a}"]);
        }
        let error = timeout(secs(4), guard.lost()).await.expect("it is told at the next renewal");
        assert!(error.is_lost() && error.to_string().contains("ended by force"), "{error}");
        assert!(!guard.is_held());
    }
}

// Only the mark of the ended hold is left, through the time of several renewals: a renewal that
// took the free vote again would have made the record anew.
async fn renewals_do_not_bring_back_what_was_ended_by_force(on: Fixture) {
    let guard = on.client_with_lease(secs(3)).await.mutex("a").lock().await.unwrap();
    let admin = on.client_with_lease(secs(3)).await.admin();
    admin.end(LockKind::Mutex, "a", guard.hold()).await.expect("it is held");
    let watch = Stopwatch::start();
    while watch.time() < ms(4500) {
        assert!(on.keys().iter().all(|keys| keys == &["quorate:{a}:revoked"]), "{:?}", on.keys());
        sleep(ms(20)).await;
    }
    assert!(!guard.is_held());
    // Four times what was left of the lease, at most.
    eventually_async("the mark has an end too", async || on.keys().iter().all(Vec::is_empty)).await;
}
