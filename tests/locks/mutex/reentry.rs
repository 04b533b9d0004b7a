//! Owners that enter again, and everybody else, who cannot.

use quorate_tests::prelude::*;

claims!(everywhere of both:
    hold_counts_go_up_and_down_and_others_fail_until_the_last_release,
    re_entry_widens_a_lease_and_nothing_else_ends_it_sooner,
    another_client_with_an_equal_owner_is_another_party,
    a_late_release_says_lost_and_removes_nothing_of_the_next_holders,
    an_owner_passes_the_line_that_waits_for_it,
    when_one_task_of_an_owner_enters_its_others_follow,
    re_entry_after_loss_is_an_error,
);

/// What a voter's times are rounded to.
const MILLISECOND: std::time::Duration = ms(1);

// The voters' own records say 1, 2, 1 and nothing; another client is refused at 2 and at 1.
async fn hold_counts_go_up_and_down_and_others_fail_until_the_last_release(on: Fixture) {
    let theirs = on.client().await.mutex("a");
    let owner = Owner::new();
    let ours = on.client().await.mutex("a").owner(&owner);
    let count = async || theirs.inspect().await.unwrap().holder().map_or(0, |holder| holder.count);
    assert_eq!(count().await, 0);
    let outer = ours.lock().await.unwrap();
    assert_eq!((outer.count(), count().await), (1, 1));
    let inner = ours.lock().await.unwrap();
    assert_eq!(inner.hold(), outer.hold());
    assert_eq!((inner.count(), count().await), (2, 2));
    assert!(theirs.try_lock().await.unwrap().is_none());
    outer.release().await.unwrap();
    assert_eq!((inner.count(), count().await), (1, 1));
    assert!(theirs.try_lock().await.unwrap().is_none());
    let innermost = inner.reenter().await.unwrap();
    assert_eq!((inner.count(), count().await), (2, 2));
    inner.release().await.unwrap();
    innermost.release().await.unwrap();
    assert_eq!(count().await, 0);
    theirs.try_lock().await.unwrap().expect("it is free").release().await.unwrap();
    on.until_clean().await;
}

// A shorter lease leaves the 20 s as they are; a longer one makes them 30 s.
async fn re_entry_widens_a_lease_and_nothing_else_ends_it_sooner(on: Fixture) {
    let owner = Owner::new();
    let mutex = on.client().await.mutex("a").owner(&owner);
    let watch = Stopwatch::start();
    let first = mutex.clone().lease_fixed(secs(20)).lock().await.unwrap();
    let second = mutex.clone().lease_fixed(secs(11)).lock().await.unwrap();
    let ttl = mutex.inspect().await.unwrap().holder().unwrap().ttl.unwrap();
    assert!(ttl <= secs(20) && ttl + MILLISECOND + watch.time() >= secs(20), "{ttl:?}");
    let third = mutex.clone().lease_fixed(secs(30)).lock().await.unwrap();
    let ttl = mutex.inspect().await.unwrap().holder().unwrap().ttl.unwrap();
    assert!(ttl > secs(20) && ttl <= secs(30), "{ttl:?}");
    for guard in [first, second, third] {
        guard.release().await.unwrap();
    }
    on.until_clean().await;
}

// The value of the owner is the same; the client is not, so it can neither enter nor give back.
async fn another_client_with_an_equal_owner_is_another_party(on: Fixture) {
    let owner = Owner::new();
    let ours = on.client().await.mutex("a").owner(&owner);
    let theirs = on.client().await.mutex("a").owner(&owner);
    let guard = ours.lock().await.unwrap();
    assert!(theirs.try_lock().await.unwrap().is_none());
    let holder = theirs.inspect().await.unwrap().holders.remove(0);
    assert_eq!((&holder.hold, holder.count), (guard.hold(), 1));
    guard.release().await.unwrap();
    on.until_clean().await;
}

// The first hold's 3 s are over when the second has the lock, so all the first does then must
// leave the second's record alone on every voter that has it, and that is a majority.
async fn a_late_release_says_lost_and_removes_nothing_of_the_next_holders(on: Fixture) {
    let ours = on.client_with_lease(secs(3)).await;
    let theirs = on.client().await.mutex("a");
    let late = ours.mutex("a").lease_fixed(secs(3)).lock().await.unwrap();
    let guard = theirs.lock().await.unwrap();
    assert!(!late.is_held(), "two hold it");
    let has_it = |view: &VoterView| {
        view.state.as_ref().unwrap().holders.iter().any(|held| held.hold == *guard.hold())
    };
    let before = theirs.inspect().await.unwrap();
    assert_eq!(&before.holder().unwrap().hold, guard.hold());
    assert!(late.reenter().await.unwrap_err().is_lost());
    let error = late.release().await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    let after = theirs.inspect().await.unwrap();
    for (before, after) in before.voters.iter().zip(&after.voters) {
        assert!(has_it(after) || !has_it(before), "{after:?}");
    }
    assert!(guard.is_held());
    guard.release().await.unwrap();
    on.until_clean().await;
}

// Three stand in line for a lock that is not freed before the owner has entered again: an owner
// that had to queue behind them would wait for ever.
async fn an_owner_passes_the_line_that_waits_for_it(on: Fixture) {
    let client = on.client().await;
    let owner = Owner::new();
    let mine = client.mutex("a").owner(&owner);
    let outer = mine.lock().await.unwrap();
    let others: JoinSet<_> = (0..3).map(|_| turn(client.mutex("a"))).collect();
    on.until_queued().await;
    let inner = timeout(secs(20), mine.lock()).await.expect("it passes").unwrap();
    assert_eq!(inner.count(), 2);
    let again = timeout(secs(20), mine.try_lock()).await.expect("so does a try").unwrap();
    assert_eq!(again.expect("its own").count(), 3);
    inner.release().await.unwrap();
    outer.release().await.unwrap();
    others.join_all().await;
    on.until_clean().await;
}

// Both guards exist together, so the second task cannot have waited for the first one's release.
async fn when_one_task_of_an_owner_enters_its_others_follow(on: Fixture) {
    let client = on.client().await;
    let owner = Owner::new();
    let other = on.client().await.mutex("a").lock().await.unwrap();
    let enter = |_| client.mutex("a").owner(&owner).lock();
    let waiting: JoinSet<_> = (0..4).map(enter).collect();
    on.until_queued().await;
    other.release().await.unwrap();
    let guards = timeout(secs(20), waiting.join_all()).await.expect("all enter");
    let guards: Vec<_> = guards.into_iter().map(Result::unwrap).collect();
    assert_eq!(guards.iter().map(MutexGuard::count).max(), Some(4));
    for guard in guards {
        guard.release().await.unwrap();
    }
    on.until_clean().await;
}

// The owner's 3 s are over, and it has not dropped its guard: silently starting anew would let two
// parts of it believe in one hold. Once the guard is gone the owner can start anew.
async fn re_entry_after_loss_is_an_error(on: Fixture) {
    let owner = Owner::new();
    let mutex = on.client_with_lease(secs(3)).await.mutex("a").owner(&owner);
    let lost = mutex.clone().lease_fixed(secs(3)).lock().await.unwrap();
    let why = lost.lost().await;
    assert!(why.is_lost());
    assert!(mutex.lock().await.unwrap_err().is_lost());
    assert!(mutex.try_lock().await.unwrap_err().is_lost());
    drop(lost);
    let guard = mutex.lock().await.unwrap();
    on.release(guard.release()).await;
    on.until_clean().await;
}
