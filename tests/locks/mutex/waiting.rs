//! Waiting, giving up, and being cancelled.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Waker},
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(everywhere of both:
    lock_within_waits_that_long_says_no_and_leaves_nothing,
    lock_within_succeeds_when_the_lock_is_released_in_time,
    a_release_wakes_a_waiter_of_another_client_without_polling,
    waiting_leaves_no_subscription_behind,
    thirty_two_tasks_go_through_one_client,
    cancelled_right_after_sending_nothing_is_held,
    cancelled_at_any_time_nothing_is_held,
    a_waiter_that_is_cancelled_leaves_the_holder_alone_and_stops_listening,
);
claims!(inside of both: nothing_renews_the_lease_of_a_cancelled_acquire);

const RECORD: &str = "quorate:{a}";

// Not before 3 s, since the lock is held throughout; no later than a last attempt takes. Afterwards
// the voters have the holder's record and nothing else.
async fn lock_within_waits_that_long_says_no_and_leaves_nothing(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let theirs = on.client().await.mutex("a");
    let watch = Stopwatch::start();
    let refused = theirs.lock_within(secs(3)).await.unwrap();
    let waited = watch.time();
    assert!(refused.is_none());
    assert!(waited >= secs(3) && waited <= on.at_most(secs(3) + ms(2)), "{waited:?}");
    on.until_only(&[RECORD]).await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
    on.until_clean().await;
}

async fn lock_within_succeeds_when_the_lock_is_released_in_time(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let theirs = on.client().await.mutex("a");
    let waiter = tokio::spawn(async move { theirs.lock_within(secs(20)).await });
    on.until_listening().await;
    guard.release().await.unwrap();
    let entered = waiter.await.unwrap().unwrap().expect("it was released in time");
    entered.release().await.unwrap();
    on.until_clean().await;
}

// The lease has 30 s to go and the next poll is ten minutes away: only the message is sooner.
async fn a_release_wakes_a_waiter_of_another_client_without_polling(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let theirs = on.connect(on.builder().poll_interval(secs(600))).await.mutex("a");
    let waiter = tokio::spawn(async move { theirs.lock().await });
    on.until_listening().await;
    // Long enough for the second attempt, after which the waiter sleeps.
    sleep(ms(200)).await;
    let watch = Stopwatch::start();
    guard.release().await.unwrap();
    let entered = waiter.await.unwrap().unwrap();
    assert!(watch.time() <= on.at_most(ms(1)), "{:?}", watch.time());
    entered.release().await.unwrap();
    on.until_clean().await;
}

// Some give up, some are cancelled, some enter: each way of ending must end the listening too.
async fn waiting_leaves_no_subscription_behind(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let mut ends = JoinSet::new();
    for way in 0..9 {
        let mutex = on.client().await.mutex("a");
        ends.spawn(async move {
            match way % 3 {
                // On a busy machine a majority may not have answered by then.
                0 => assert!(!matches!(mutex.lock_within(ms(300)).await, Ok(Some(_)))),
                1 => assert!(timeout(ms(300), mutex.lock()).await.is_err()),
                _ => mutex.lock().await.unwrap().release().await.unwrap(),
            }
        });
    }
    on.until_listening().await;
    for _ in 0..6 {
        ends.join_next().await.unwrap().unwrap();
    }
    guard.release().await.unwrap();
    while let Some(end) = ends.join_next().await {
        end.unwrap();
    }
    on.until_clean().await;
}

// The counter is exact only if each of the 32 x 5000 rounds (or the share of them that fits) was
// alone inside; a second client keeps the first one listening in between.
async fn thirty_two_tasks_go_through_one_client(on: Fixture) {
    let rounds = on.rounds(5000, (40, 20));
    let (on, counter) = (Arc::new(on), Arc::new(AtomicU64::new(0)));
    let (client, rival) = (on.client().await, on.client().await);
    let mut tasks = JoinSet::new();
    for task in 0..33 {
        let mutex = if task == 32 { rival.mutex("a") } else { client.mutex("a") };
        let (on, counter) = (Arc::clone(&on), Arc::clone(&counter));
        tasks.spawn(async move {
            for _ in 0..rounds {
                let guard = mutex.lock().await.unwrap();
                let count = counter.load(Ordering::Relaxed);
                tokio::task::yield_now().await;
                counter.store(count + 1, Ordering::Relaxed);
                on.release(guard).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(counter.load(Ordering::Relaxed), 33 * rounds);
    on.until_clean().await;
}

/// Polls once: that sends the requests. Only on a busy machine can answers be there by then.
fn send_and_drop<F: Future>(on: &Fixture, acquire: F) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(acquire).poll(&mut context).is_pending() || on.is_real());
}

// The undo stands behind the request in every voter's queue, so the same client finds the lock
// free at once, and soon there is no trace of the other.
async fn cancelled_right_after_sending_nothing_is_held(mut on: Fixture) {
    on.make_way_longer(0).await;
    let mutex = on.client().await.mutex("a");
    on.delay(0, ms(10));
    for _ in 0..5 {
        send_and_drop(&on, mutex.lock());
        send_and_drop(&on, mutex.try_lock());
        send_and_drop(&on, mutex.lock_within(secs(5)));
        let guard = mutex.try_lock().await.unwrap().expect("the undo came before");
        guard.release().await.unwrap();
    }
    on.until_clean().await;
}

// From before the first answer to after the last, in steps much smaller than a round trip.
async fn cancelled_at_any_time_nothing_is_held(on: Fixture) {
    let mutex = on.client().await.mutex("a");
    for step in 0..40_u32 {
        drop(timeout(ms(1) / 4 * step, mutex.lock()).await);
    }
    on.until_clean().await;
    drop(on.client().await.mutex("a").try_lock().await.unwrap().expect("it is free"));
}

// The holder's record stays on all voters as it was, and nobody listens any more.
async fn a_waiter_that_is_cancelled_leaves_the_holder_alone_and_stops_listening(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let theirs = on.client().await.mutex("a");
    let waiter = {
        let theirs = theirs.clone();
        tokio::spawn(async move { theirs.lock().await.map(drop) })
    };
    on.until_listening().await;
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    on.until_only(&[RECORD]).await;
    assert_eq!(&theirs.inspect().await.unwrap().holder().unwrap().hold, guard.hold());
    guard.release().await.unwrap();
    on.until_clean().await;
}

// The lease is 30 s and renewed from 10 s on: within 100 s a watchdog that had been started for
// the cancelled acquire would have asked.
async fn nothing_renews_the_lease_of_a_cancelled_acquire(mut on: Fixture) {
    let mutex = on.client().await.mutex("a");
    (0..on.voters()).for_each(|voter| on.delay(voter, ms(10)));
    send_and_drop(&on, mutex.lock());
    for time in [1, 5, 9, 11, 16] {
        assert!(timeout(ms(time), mutex.lock()).await.is_err() || time > 10);
    }
    sleep(secs(100)).await;
    assert_eq!(on.runs("mutex/renew").unwrap(), vec![0; on.voters()]);
    on.until_clean().await;
}

// Voters have 200 ms to answer, and it takes them 150. The first one's count of tokens is ahead, so
// the attempt that begins 250 ms before the limit is followed by a second round, for which 100 ms
// are left: what is not heard in them says nothing about the voters.
#[tokio::test(start_paused = true)]
async fn a_token_that_the_limit_leaves_no_time_to_tell_is_no_lack_of_a_quorum() {
    let mut on = Fixture::embedded(3);
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    on.command(0, &["SET", "quorate:{a}:fence", "1900000000000000"]);
    let theirs = on.client().await.mutex("a");
    (0..on.voters()).for_each(|voter| on.delay(voter, ms(150)));
    let watch = Stopwatch::start();
    let waiter = tokio::spawn(async move { theirs.lock_within(ms(1_000)).await });
    watch.sleep_until(ms(600)).await;
    drop(guard);
    let entered = waiter.await.unwrap();
    let raised = on.runs("mutex/renew").unwrap();
    assert!(raised[1..].iter().all(|runs| *runs == 1), "{raised:?}");
    assert!(entered.expect("all voters answer").is_none());
    assert!(watch.time() >= ms(1_000) && watch.time() <= ms(1_002), "{:?}", watch.time());
    on.until_clean().await;
}
