//! `hold_at_most`: a program that is stuck loses its lock when the time is over.

use quorate_tests::prelude::*;

use crate::cancel::kinds::Access::{self, BothPermits, FairLock, Lead, Lock, Read, Several, Write};

const AT_MOST: Duration = secs(60);
const EACH: [Access; 7] = [Lock, FairLock, Read, Write, BothPermits, Lead, Several];

#[track_caller]
fn assert_ended(why: &Error, limit: &str) {
    let told = format!(": held for longer than hold_at_most of {limit}");
    assert!(why.is_lost() && why.to_string().ends_with(&told), "{why}");
}

/// Without an end it would be waited for in vain.
async fn lost(loss: impl Future<Output = Error>) -> Error {
    timeout(2 * AT_MOST, loss).await.expect("it is lost")
}

/// A client that renews its leases of 30 s, one that waits for what it has, and when it has it.
async fn until_the_next(on: &Fixture, access: Access) -> (Guard, Duration) {
    let limited = on.builder().hold_at_most(AT_MOST).connect().await.unwrap();
    let other = Quorate::clone(&*on.client().await);
    let held = access.have(&limited, None).await;
    let watch = Stopwatch::start();
    let next = async move { access.excludes().have(&other, None).await };
    let next = tokio::spawn(timeout(2 * AT_MOST, next));
    sleep(AT_MOST.saturating_sub(ms(1))).await;
    assert!(held.is_held() && !next.is_finished(), "{access:?}");
    next.await.unwrap().expect("it comes").release().await.unwrap();
    (held, watch.time())
}

// Votes that are left to their leases would be free at 70 s; those that are renewed never.
#[tokio::test(start_paused = true)]
async fn who_is_stuck_loses_a_lock_of_any_kind_and_the_next_has_it_at_once() {
    for access in EACH {
        let on = Fixture::embedded(3);
        let (held, time) = until_the_next(&on, access).await;
        assert!(time >= AT_MOST && time <= AT_MOST + ms(10), "{access:?}: {time:?}");
        assert!(!held.is_held(), "{access:?}");
        assert_ended(&lost(held.lost()).await, "60s");
        assert!(held.release().await.unwrap_err().is_lost(), "{access:?}");
        // Nobody renews it any more.
        sleep(AT_MOST).await;
        on.until_clean_but_for_places(&[]).await;
    }
}

// Each of them renews a lease of 30 s, and is lost after five seconds; work under it is dropped.
#[tokio::test(start_paused = true)]
async fn each_lock_may_have_a_time_of_its_own() {
    let on = Fixture::embedded(3);
    let quorum = on.builder().hold_at_most(secs(3600)).connect().await.unwrap();
    let own = secs(5);
    macro_rules! ends {
        ($locked:expr, $while:ident) => {{
            let guard = $locked.await.unwrap();
            let watch = Stopwatch::start();
            // What is not stopped would end by itself.
            let stopped = guard.$while(sleep(2 * own)).await.unwrap_err();
            assert!(watch.time() >= own && watch.time() <= own + ms(1), "{:?}", watch.time());
            assert_ended(&stopped, "5s");
        }};
    }
    ends!(quorum.mutex("a").hold_at_most(own).lock(), while_held);
    ends!(quorum.fair_mutex("b").hold_at_most(own).lock(), while_held);
    ends!(quorum.rw_lock("c").hold_at_most(own).read(), while_held);
    ends!(quorum.rw_lock("c").hold_at_most(own).write(), while_held);
    ends!(quorum.semaphore("d", 2).hold_at_most(own).acquire(), while_held);
    ends!(quorum.election("e").hold_at_most(own).campaign("me"), while_leader);
    // The one that ends first takes the other along.
    let both: [Lockable; 2] =
        [quorum.mutex("f").into(), quorum.rw_lock("g").hold_at_most(own).writing()];
    ends!(quorum.lock_all(both).lock(), while_held);
    on.until_clean_but_for_places(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_that_a_holder_does_puts_off_the_end_or_brings_it_nearer() {
    let (_on, quorum) = Fixture::with_client(3).await;
    let (owner, watch) = (Owner::new(), Stopwatch::start());
    let mutex = quorum.clone().mutex("a").owner(&owner);
    let lasts = |time| Quorate::clone(&quorum).mutex("a").owner(&owner).hold_at_most(time);
    let guard = lasts(AT_MOST).lock().await.unwrap();
    sleep(secs(30)).await;
    // More than is left, less than has passed, and none.
    let others = [
        lasts(AT_MOST).lock().await.unwrap(),
        lasts(secs(10)).lock().await.unwrap(),
        mutex.lock().await.unwrap(),
        guard.reenter().await.unwrap(),
    ];
    guard.extend(secs(29)).await.unwrap();
    sleep(secs(20)).await;
    guard.renew().await.unwrap();
    assert!(guard.is_held() && guard.remaining() <= secs(10), "{:?}", guard.remaining());
    assert_ended(&lost(guard.lost()).await, "60s");
    assert!(watch.time() >= AT_MOST && watch.time() <= AT_MOST + ms(1), "{:?}", watch.time());
    assert!(others.iter().all(|other| !other.is_held()));

    // What a write guard turns into is held from the grant of the write on.
    let lock = Quorate::clone(&quorum).rw_lock("b").hold_at_most(AT_MOST);
    let (writing, watch) = (lock.write().await.unwrap(), Stopwatch::start());
    sleep(secs(50)).await;
    let beside = writing.read().await.unwrap();
    let reading = writing.downgrade().await.unwrap();
    for read in [beside, reading] {
        assert_ended(&lost(read.lost()).await, "60s");
        assert!(watch.time() >= AT_MOST && watch.time() <= AT_MOST + ms(1), "{:?}", watch.time());
    }
    // One that an owner asks for is one of its own.
    let lock = lock.owner(&owner);
    let (writing, watch) = (lock.write().await.unwrap(), Stopwatch::start());
    sleep(secs(50)).await;
    let reading = lock.read().await.unwrap();
    assert_ended(&lost(writing.lost()).await, "60s");
    assert!(reading.is_held());
    assert_ended(&lost(reading.lost()).await, "60s");
    assert!(watch.time() >= secs(110) && watch.time() <= secs(110) + ms(1), "{:?}", watch.time());
}

#[tokio::test(start_paused = true)]
async fn a_fixed_lease_that_is_shorter_ends_first_and_what_is_kept_is_held_by_nobody() {
    let on = Fixture::embedded(3);
    let quorum = Quorate::clone(&*on.client().await);
    let mutex = quorum.mutex("a").hold_at_most(secs(10));
    let why = mutex.clone().lease_fixed(secs(9)).lock().await.unwrap().lost().await;
    assert!(why.to_string().ends_with("its fixed lease ended"), "{why}");
    let longer = mutex.clone().lease_fixed(secs(11)).lock().await.unwrap();
    assert_ended(&lost(longer.lost()).await, "10s");
    let guard = mutex.lock().await.unwrap();
    sleep(secs(5)).await;
    let watch = Stopwatch::start();
    guard.keep_for(secs(20)).await.unwrap();
    drop(mutex.lock().await.unwrap());
    assert!(watch.time() >= secs(20), "{:?}", watch.time());
}

// The second ends within the time by which a renewal may be early.
#[tokio::test(start_paused = true)]
async fn the_end_of_one_hold_has_no_other_renewed_that_ends_soon_after() {
    let on = Fixture::embedded(3);
    let client = on.builder().hold_at_most(secs(1)).connect().await.unwrap();
    let first = client.mutex("a").lock().await.unwrap();
    sleep(ms(50)).await;
    let second = client.mutex("b").lock().await.unwrap();
    lost(first.lost()).await;
    lost(second.lost()).await;
    assert_eq!(on.runs("mutex/renew"), Some(vec![0; 3]));
}

#[tokio::test(start_paused = true)]
async fn a_time_in_which_nothing_can_be_done_is_refused() {
    let on = Fixture::embedded(3);
    let quorum = Quorate::clone(&*on.client().await);
    let none = Duration::ZERO;
    let refused = [
        on.builder().hold_at_most(none).connect().await.unwrap_err(),
        quorum.mutex("a").hold_at_most(none).lock().await.unwrap_err(),
        quorum.fair_mutex("a").hold_at_most(none).lock().await.unwrap_err(),
        quorum.rw_lock("a").hold_at_most(none).read().await.unwrap_err(),
        quorum.rw_lock("a").hold_at_most(none).write().await.unwrap_err(),
        quorum.semaphore("a", 2).hold_at_most(none).acquire_many(2).await.unwrap_err(),
        quorum.election("a").hold_at_most(none).campaign("me").await.unwrap_err(),
        quorum.redisson().mutex("a").hold_at_most(none).lock().await.unwrap_err(),
    ];
    for error in refused {
        assert!(error.is_invalid(), "{error}");
        assert_eq!(error.to_string(), "hold_at_most of 0ns is less than a millisecond");
    }
}

// The first is stuck for two minutes, the second holds another lock of the kind for a while. Other
// tests of this program have no lock of this name.
#[tokio::test(start_paused = true)]
async fn the_age_of_the_oldest_hold_is_that_of_all_clients_of_the_process() {
    let (snapshotter, _recording) = record();
    let on = Fixture::embedded(3);
    let connect = async || {
        let builder = on.builder().named_metrics(["aged:*"]);
        builder.connect().await.unwrap()
    };
    let (one, other) = (connect().await, connect().await);
    let age = |kind| {
        let told = recorded(&snapshotter, &[quorate::metric::OLDEST_HOLD_SECONDS]);
        // Every client says it again, whichever has the hold.
        told.get(&format!("{kind} aged:*")).copied().expect("it is told every 5 s")
    };
    let stuck = one.mutex("aged:1").lock().await.unwrap();
    sleep(secs(100)).await;
    let young = other.mutex("aged:2").lock().await.unwrap();
    let read = other.rw_lock("aged:3").read().await.unwrap();
    sleep(secs(20)).await;
    let mutexes = age("mutex");
    assert!((115.0..=120.0).contains(&mutexes), "{mutexes:?}");
    sleep(secs(6)).await;
    let reads = age("read");
    assert!((21.0..=26.0).contains(&reads), "{reads:?}");
    stuck.release().await.unwrap();
    read.release().await.unwrap();
    sleep(secs(6)).await;
    let mutexes = age("mutex");
    assert!((27.0..=32.0).contains(&mutexes), "{mutexes:?}");
    // Lost, while its guard is still there.
    assert!(other.admin().clear(LockKind::Mutex, "aged:2").await.unwrap());
    assert!(young.lost().await.is_lost());
    sleep(secs(6)).await;
    assert!(age("mutex").abs() < 0.1);
}
