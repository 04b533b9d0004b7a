//! What is done under a lock, and how it hears of the end.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use quorate::ErrorKind;
use quorate_tests::{
    inside::{self},
    prelude::*,
};

async fn client() -> (Vec<EmbeddedVoter>, Quorate) {
    let voters = embedded::voters(3);
    let client = inside::client(&voters).await;
    (voters, client)
}

/// What a service's own error looks like.
#[derive(Debug)]
enum Failure {
    Lock(Error),
    Work(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

/// Notes that it was dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn work_gets_its_token_and_gives_the_lock_back_whether_it_fails_or_not() {
    let (_voters, client) = client().await;
    let (mutex, fair) = (client.mutex("a"), client.fair_mutex("a"));
    let first = mutex.run(async |token| Ok::<_, Failure>(token)).await.expect("it is free");
    let failed = fair.run(async |token| {
        assert!(token > first);
        assert!(matches!(mutex.try_lock().await, Ok(None)), "it is held");
        Err::<(), _>(Failure::Work("no paper"))
    });
    assert!(matches!(failed.await, Err(Failure::Work("no paper"))));
    assert!(mutex.try_lock().await.expect("all voters answer").is_some(), "it was given back");
}

#[tokio::test(start_paused = true)]
async fn work_reads_beside_others_writes_alone_and_gives_back() {
    let (_voters, client) = client().await;
    let lock = client.rw_lock("a");
    let token = lock.run_write(async |token| {
        assert!(matches!(lock.try_read().await, Ok(None)), "it is written");
        Ok::<_, Failure>(token)
    });
    let token = token.await.expect("it is free");
    let kept = OnceLock::new();
    let failed = lock.run_read(async |reading| {
        assert!(matches!(lock.try_write().await, Ok(None)), "it is read");
        assert!(reading.is_held() && reading.remaining() > secs(20));
        let seen = lock.inspect().await.expect("all voters answer").readers().remove(0);
        assert_eq!((reading.name(), reading.hold()), ("a", &seen.hold));
        kept.set(reading).expect("once");
        lock.run_read(async |_| Err::<(), _>(Failure::Work("no paper"))).await
    });
    assert!(matches!(failed.await, Err(Failure::Work("no paper"))));
    let later = lock.run_write(async |token| Ok::<_, Failure>(token)).await.expect("given back");
    assert!(later > token);
    // A view keeps no lock, and outlives it.
    let view = kept.into_inner().expect("it was read");
    assert!(!view.is_held() && view.remaining().is_zero() && view.lost().await.is_released());
}

#[tokio::test(start_paused = true)]
async fn work_gets_the_slots_of_its_permits_and_no_other_work_has_them() {
    let (_voters, client) = client().await;
    let semaphore = client.semaphore("a", 5);
    let all = semaphore.run_many(3, async |three| {
        let one = semaphore.run(async |one| {
            let seen = semaphore.inspect().await?;
            assert_eq!((seen.permits(), seen.free(), seen.holders.len()), (5, 1, 2));
            Ok::<_, Failure>(one)
        });
        let one = one.await?;
        assert_eq!((three.len(), one.len()), (3, 1));
        Ok::<_, Failure>([three, one].concat())
    });
    let all = Box::pin(all).await.expect("they are free");
    assert_eq!(BTreeSet::from_iter(all).len(), 4);
    assert!(!semaphore.is_locked().await.expect("all voters answer"), "they were given back");
    let many = semaphore.run_many(6, async |_| Ok::<_, Failure>(())).await;
    assert!(matches!(many, Err(Failure::Lock(error)) if error.is_invalid()));
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_when_the_lock_is_lost_and_the_loss_is_its_error() {
    let (voters, client) = client().await;
    let (watch, dropped) = (Stopwatch::start(), [(); 3].map(|()| Arc::<AtomicBool>::default()));
    let [of_lock, of_read, of_write] = dropped.clone().map(|on_drop| async move {
        let _dropped = Dropped(on_drop);
        std::future::pending::<Result<(), Failure>>().await
    });
    let (mutex, lock) = (client.mutex("a").lease(secs(3)), client.rw_lock("b").lease(secs(3)));
    let other = client.rw_lock("c").lease(secs(3));
    let cut = async {
        sleep(ms(10)).await;
        all(&voters, Fault::DropRequests)
    };
    let (locked, read, write, _silence) = tokio::join!(
        mutex.run(async move |_| of_lock.await),
        lock.run_read(async move |_| of_read.await),
        other.run_write(async move |_| of_write.await),
        cut
    );
    for (ended, name) in [(locked, "a"), (read, "b"), (write, "c")] {
        let Err(Failure::Lock(error)) = ended else { panic!("{ended:?}") };
        assert_eq!((error.kind(), error.lock()), (ErrorKind::Lost, Some(name)));
        assert!(error.hold().is_some());
    }
    // All were given back in vain, for a tenth of the lease each.
    assert!(watch.time() < secs(4), "{:?}", watch.time());
    assert!(dropped.iter().all(|dropped| dropped.load(Ordering::Relaxed)));
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_is_no_failure_because_its_release_is_not_confirmed() {
    let (voters, client) = client().await;
    let mutex = client.mutex("a");
    let done = mutex.run(async |_| {
        std::mem::forget(all(&voters, Fault::DropRequests));
        Ok::<_, Failure>(42)
    });
    assert_eq!(done.await.expect("it is done"), 42);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_not_confirmed_says_when_the_lock_is_free_at_the_latest() {
    let (voters, client) = client().await;
    let guard = client.mutex("a").lease(secs(20)).lock().await.expect("it is free");
    let hold = guard.hold().clone();
    let _silence = all(&voters, Fault::DropRequests);
    let error = guard.release().await.expect_err("nobody answers");
    assert_eq!((error.kind(), error.hold()), (ErrorKind::Unconfirmed, Some(&hold)));
    let frees_in = error.frees_in().expect("it says so");
    // The voters had a tenth of the lease to confirm.
    assert!(frees_in <= secs(18) && frees_in > secs(17), "{frees_in:?}");
    let told = error.to_string();
    assert!(
        told.starts_with(&format!("release of lock `a` by hold {hold} not confirmed")),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_loss_can_be_spawned_cloned_and_waited_for_beside_the_release() {
    let (voters, client) = client().await;
    let guard = client.mutex("a").lease(secs(3)).lock().await.expect("it is free");
    let lost = guard.lost();
    let spawned = tokio::spawn(lost.clone());
    let _silence = all(&voters, Fault::DropRequests);
    assert!(spawned.await.expect("no panic").is_lost());
    assert!(lost.await.is_lost() && !guard.is_held());

    let (_voters, client) = self::client().await;
    let guard = client.mutex("b").lock().await.expect("it is free");
    let (lost, other) = (guard.lost(), guard.reenter().await.expect("it is held"));
    let waits = tokio::spawn(lost);
    guard.release().await.expect("all voters answer");
    sleep(secs(60)).await;
    assert!(!waits.is_finished(), "an entry is left");
    other.release().await.expect("all voters answer");
    let over = timeout(ms(1), waits).await.expect("at once").expect("no panic");
    assert_eq!((over.kind(), over.lock()), (ErrorKind::Released, Some("b")));
}

#[tokio::test(start_paused = true)]
async fn a_loss_says_where_nobody_had_looked_at_the_clock() {
    let (voters, machine) = (embedded::voters(3), Machine::new("laptop"));
    let client = Quorate::builder().embedded(&voters).machine(&machine).connect().await;
    let guard = client.expect("all voters answer").mutex("a").lock().await.expect("it is free");
    machine.stall();
    sleep(secs(70)).await;
    machine.resume();
    let told = guard.lost().await.to_string();
    let (_, why) = told.split_once(": ").expect("a reason");
    assert!(
        why.starts_with("its validity ended 4") && why.contains("before this was noticed"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fixed_lease_is_extended_as_often_as_the_holder_wants_and_never_shortened() {
    let (_voters, client) = client().await;
    let mutex = client.mutex("a").lease_fixed(secs(5));
    let guard = mutex.lock().await.expect("it is free");
    for _ in 0..3 {
        sleep(secs(4)).await;
        guard.extend(secs(10)).await.expect("it is held");
        assert!(guard.remaining() > secs(9) && guard.count() == 1, "{guard:?}");
    }
    guard.extend(secs(1)).await.expect("it is held");
    assert!(guard.remaining() > secs(8), "{guard:?}");
    assert!(matches!(client.mutex("a").try_lock().await, Ok(None)));
    assert!(guard.extend(secs(3600)).await.expect_err("too long").is_invalid());
    sleep(secs(10)).await;
    assert!(!guard.is_held(), "nothing renews it by itself");
    assert!(guard.extend(secs(5)).await.expect_err("too late").is_lost());
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_nobody_elses_until_its_time_is_over_whatever_becomes_of_the_client() {
    let (voters, client) = client().await;
    let other = inside::client(&voters).await;
    let owner = Owner::new();
    for lock in [client.mutex("a"), client.mutex("b").lease_fixed(secs(3))] {
        let watch = Stopwatch::start();
        let guard = lock.clone().owner(&owner).lock().await.expect("it is free");
        let (inner, name) = (guard.reenter().await.expect("it is held"), guard.name().to_owned());
        inner.keep_for(secs(1)).await.expect("it is held");
        assert!(guard.is_held(), "an entry is left");
        let lost = guard.lost();
        guard.keep_for(secs(20)).await.expect("it is held");
        assert!(lost.await.is_released());
        sleep(secs(10)).await;
        let again = lock.clone().owner(&owner).try_lock().await.expect("all voters answer");
        assert!(again.is_none(), "not the owner's either");
        let theirs = other.mutex(name).lock_within(secs(60)).await.expect("all voters answer");
        assert!(theirs.is_some() && watch.time() >= secs(20), "{:?}", watch.time());
        // Those who wait look again a few times in a lease.
        assert!(watch.time() < secs(23), "nothing renews it: {:?}", watch.time());
    }
    let guard = client.mutex("c").lock().await.expect("it is free");
    guard.keep_for(secs(25)).await.expect("it is held");
    drop(client.close().await);
    assert!(matches!(other.mutex("c").try_lock().await, Ok(None)));

    let (voters, client) = self::client().await;
    let guard = client.mutex("a").lock().await.expect("it is free");
    assert!(guard.keep_for(secs(3600)).await.expect_err("too long").is_invalid());
    assert!(matches!(client.mutex("a").try_lock().await, Ok(None)), "for what is left");
    let guard = client.mutex("b").lock().await.expect("it is free");
    let silence = all(&voters, Fault::DropRequests);
    assert!(guard.keep_for(secs(5)).await.expect_err("nobody answers").is_not_entered());
    drop(silence);
    sleep(secs(7)).await;
    assert!(matches!(client.mutex("b").try_lock().await, Ok(None)), "for what is left");
    let guard = client.mutex("c").lock().await.expect("it is free");
    assert!(guard.keep_for(ms(100)).await.expect_err("too short").is_invalid());
    sleep(secs(1)).await;
    assert!(matches!(client.mutex("c").try_lock().await, Ok(None)), "for what is left");
}

#[tokio::test(start_paused = true)]
async fn a_voter_that_hangs_holds_up_nobody_who_looks() {
    let (voters, client) = client().await;
    let mutex = client.mutex("a");
    let guard = mutex.lock().await.expect("it is free");
    sleep(secs(1)).await;
    let _silence = voters[0].fault(Fault::DropRequests);
    let watch = Stopwatch::start();
    assert!(mutex.is_locked().await.expect("two answer"));
    assert!(watch.time() < ms(10), "{:?}", watch.time());
    let watch = Stopwatch::start();
    let holder = mutex.inspect().await.expect("two answer").holders.remove(0);
    assert!(holder.hold == *guard.hold() && watch.time() <= ms(110), "{:?}", watch.time());
    guard.release().await.expect("two confirm");
    let watch = Stopwatch::start();
    assert!(!client.fair_mutex("a").is_locked().await.expect("two answer"));
    assert!(watch.time() < ms(10), "{:?}", watch.time());
    // One has a vote of it and another none: the third decides.
    voters[2].kill();
    let guard = client.mutex("b").lock_within(secs(1)).await;
    assert!(guard.expect_err("one answers").is_no_quorum());
    assert!(client.mutex("b").is_locked().await.expect_err("one answers").is_no_quorum());
}

/// The thread of the work is blocked for longer than the lease: nothing can drop the work.
async fn blocked(failed: bool) -> Result<u32, Failure> {
    tokio::task::yield_now().await;
    std::thread::sleep(ms(300));
    if failed { Err(Failure::Work("no paper")) } else { Ok(42) }
}

#[tokio::test]
async fn work_that_ends_after_the_loss_is_told_so() {
    let voters = embedded::voters(3);
    let builder = Quorate::builder().embedded(&voters).voter_deadline(ms(20));
    let client = builder.connect().await.expect("all voters answer");
    let mutex = client.mutex("a").lease_fixed(ms(200));
    let guard = mutex.lock().await.expect("it is free");
    assert!(guard.while_held(blocked(false)).await.expect_err("it ends too late").is_lost());
    drop(guard);
    let guard = mutex.lock().await.expect("it is free");
    let done = guard.try_while_held(blocked(false)).await;
    assert!(matches!(done, Err(Failure::Lock(error)) if error.is_lost()));
    drop(guard);
    // Its own failure came first.
    let done = mutex.run(async |_| blocked(true).await).await;
    assert!(matches!(done, Err(Failure::Work("no paper"))));
    let guard = mutex.lock().await.expect("it is free");
    let done = guard.try_while_held(blocked(true)).await;
    assert!(matches!(done, Err(Failure::Work("no paper"))));
    drop(guard);
    let all = client.lock_all([mutex.clone(), client.mutex("b").lease_fixed(ms(200))]);
    let guard = all.lock().await.expect("they are free");
    assert!(guard.while_held(blocked(false)).await.expect_err("it ends too late").is_lost());
    let guard = all.lock().await.expect("they are free");
    let done = guard.try_while_held(blocked(true)).await;
    assert!(matches!(done, Err(Failure::Work("no paper"))));
    drop(guard);
    let election = client.election("c").lease(ms(200));
    let leadership = election.campaign("me").await.expect("nobody leads");
    let done = leadership.try_while_leader(blocked(true)).await;
    assert!(matches!(done, Err(Failure::Work("no paper"))));
}

#[tokio::test(start_paused = true)]
async fn a_fixed_lease_is_renewed_for_as_long_as_it_was_when_the_holder_says_so() {
    let (voters, client) = client().await;
    let guard = client.mutex("a").lease_fixed(secs(10)).lock().await.expect("it is free");
    for _ in 0..3 {
        sleep(secs(8)).await;
        guard.renew().await.expect("it is held");
        assert!(guard.remaining() > secs(9) && guard.count() == 1, "{guard:?}");
    }
    let silence = all(&voters, Fault::DropRequests);
    for (told, what) in [
        (guard.renew().await, "renewal of lock `a` not confirmed by 2 voters"),
        (guard.extend(secs(20)).await, "extension of lock `a` not confirmed by 2 voters"),
        (guard.reenter().await.map(drop), "re-entry of lock `a` not confirmed by 2 voters"),
        (guard.keep_for(secs(20)).await, "keeping of lock `a` not confirmed by 2 voters"),
    ] {
        let told = told.expect_err("nobody answers");
        assert!(told.is_not_entered() && told.to_string().starts_with(what), "{told}");
    }
    drop(silence);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_renewed_can_be_made_longer() {
    let (voters, client) = client().await;
    let guard = client.mutex("a").lease(secs(3)).lock().await.expect("it is free");
    guard.extend(secs(30)).await.expect("it is held");
    sleep(secs(100)).await;
    let _silence = all(&voters, Fault::DropRequests);
    sleep(secs(15)).await;
    assert!(guard.is_held(), "renewals ask for the longer lease");
}

// The watchdog has looked before the short lease comes, and would look next after its end.
#[tokio::test(start_paused = true)]
async fn a_short_lease_is_renewed_in_time_beside_long_ones_that_were_there_before() {
    let (_voters, client) = client().await;
    let gone = client.mutex("a").lock().await.expect("it is free");
    let long = client.mutex("b").lock().await.expect("it is free");
    sleep(ms(100)).await;
    gone.release().await.expect("a majority confirms");
    let short = client.mutex("c").lease(secs(3)).lock().await.expect("it is free");
    sleep(secs(100)).await;
    assert!(short.is_held() && long.is_held());
}
