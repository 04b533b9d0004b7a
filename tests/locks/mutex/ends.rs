//! Ends of holds and of clients: loss, close, and guards that are dropped in odd places.

use std::thread;

use quorate_tests::prelude::*;
use tokio::runtime::Runtime;

/// A lease that is waited for. Requests wait for a tenth of it, which a busy machine keeps.
const SHORT: Duration = secs(3);

claims!(everywhere of both:
    close_releases_everything_and_later_calls_say_closed,
    close_tells_whoever_waits,
    close_undoes_what_is_being_acquired,
    lost_completes_with_the_reason_and_not_while_the_lock_is_held,
    a_guard_dropped_outside_any_runtime_releases,
);

// All there is on the voters afterwards is the other client's.
async fn close_releases_everything_and_later_calls_say_closed(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    let kept = theirs.mutex("c").lock().await.unwrap();
    let owner = quorate::Owner::new();
    let one = ours.mutex("a").owner(&owner).lock().await.unwrap();
    let again = one.reenter().await.unwrap();
    let other = ours.mutex("b").lock().await.unwrap();
    ours.close().await.expect("all releases are confirmed");
    on.until_only(&["quorate:{c}"]).await;
    for guard in [one, again, other] {
        assert!(!guard.is_held());
        assert!(guard.remaining().is_zero());
        let why = guard.lost().await;
        assert!(why.is_lost() && why.to_string().contains("closed"), "{why}");
        assert!(guard.release().await.unwrap_err().is_lost());
    }
    let mutex = ours.mutex("a");
    assert!(mutex.lock().await.unwrap_err().is_closed());
    assert!(mutex.try_lock().await.unwrap_err().is_closed());
    assert!(mutex.lock_within(secs(1)).await.unwrap_err().is_closed());
    assert!(mutex.inspect().await.unwrap_err().is_closed());
    assert!(ours.admin().clear(LockKind::Mutex, "a").await.unwrap_err().is_closed());
    ours.close().await.expect("nothing is left to release");
    assert!(kept.is_held());
    kept.release().await.unwrap();
    on.until_clean().await;
}

// A voter of three is enough to be short of two; the other lock's votes are where it is not missed.
#[tokio::test(start_paused = true)]
async fn close_says_which_release_no_majority_has_confirmed_and_when_that_lock_is_free() {
    let voters = embedded::voters(3);
    let quorum = Quorate::builder().embedded(&voters).connect().await.unwrap();
    let brief = quorum.mutex("a").lease_fixed(secs(20)).lock().await.unwrap();
    let held = quorum.mutex("b").lock().await.unwrap();
    voters[0].stop();
    let one = Quorate::builder().embedded(&voters).connect().await.unwrap();
    let confirmed = one.mutex("c").lock().await.unwrap();
    one.close().await.expect("two confirm");
    assert!(!confirmed.is_held());
    voters[1].stop();
    let error = quorum.close().await.expect_err("one confirms");
    assert!(error.is_unconfirmed() && error.lock() == Some("b"), "{error}");
    assert_eq!((error.hold(), error.voters().len()), (Some(held.hold()), 3));
    let frees_in = error.frees_in().expect("it says so");
    assert!(frees_in > secs(29) && frees_in <= secs(30), "{frees_in:?}");
    assert!(!held.is_held() && !brief.is_held());
    // It is closed all the same.
    assert!(quorum.mutex("a").lock().await.unwrap_err().is_closed());
    quorum.close().await.expect("nothing is left to release");
}

// The lock stays another's, and the next poll is ten minutes away: only the close can end this.
async fn close_tells_whoever_waits(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let client = on.connect(on.builder().poll_interval(secs(600))).await;
    let waiters = [(); 3].map(|()| tokio::spawn(client.mutex("a").lock()));
    on.until_queued().await;
    sleep(ms(100)).await;
    drop(client.close().await);
    for waiter in waiters {
        let told = timeout(on.at_most(ms(1)), waiter).await.expect("it is told").unwrap();
        assert!(told.unwrap_err().is_closed());
    }
    on.until_only(&["quorate:{a}"]).await;
    guard.release().await.unwrap();
    on.until_clean().await;
}

// The requests are on their way to a voter that is 20 ms away when the client closes, so no answer
// has come. An undo that nobody sent would leave the record for 30 s, which is longer than this
// waits for the voters to be clean.
async fn close_undoes_what_is_being_acquired(mut on: Fixture) {
    for voter in 0..on.voters() {
        on.make_way_longer(voter).await;
    }
    let client = on.client().await;
    (0..on.voters()).for_each(|voter| on.delay(voter, ms(20)));
    let acquiring = tokio::spawn(client.mutex("a").lock());
    sleep(ms(5)).await;
    drop(client.close().await);
    match acquiring.await.unwrap() {
        Err(error) => assert!(error.is_closed(), "{error}"),
        // Only a busy machine lets 20 ms pass before the close.
        Ok(_) => assert!(on.is_real()),
    }
    let watch = Stopwatch::start();
    on.until_clean().await;
    assert!(watch.time() < secs(20));
}

// As long as it is held there is nothing to tell; then there is, to everyone who asks.
async fn lost_completes_with_the_reason_and_not_while_the_lock_is_held(on: Fixture) {
    let before = Stopwatch::start();
    let client = on.client_with_lease(SHORT).await;
    let guard = client.mutex("a").lease_fixed(SHORT).lock().await.unwrap();
    let after = Stopwatch::start();
    let (one, other) = tokio::join!(guard.lost(), guard.lost());
    assert!(before.time() >= trusted(SHORT) && after.time() <= on.at_most(trusted(SHORT) + ms(2)));
    assert!(!guard.is_held() && guard.remaining().is_zero());
    for why in [one, other] {
        assert!(why.is_lost());
        let start = format!("lock `a` lost by hold {}: its fixed lease ended", guard.hold());
        assert!(why.to_string().starts_with(&start), "{why}");
    }
    // What the voters still had was given back.
    on.until_clean().await;
}

// The release is queued to the client's own tasks, wherever the drop happens.
async fn a_guard_dropped_outside_any_runtime_releases(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    thread::spawn(move || drop(guard)).join().expect("no panic");
    on.until_clean().await;
}

/// Everything is dropped after its runtime: there is nobody left to send anything, and no panic.
fn ends_without_panic(make: fn() -> Fixture) {
    let runtime = Runtime::new().unwrap();
    let (on, client, guard) = runtime.block_on(async {
        let on = make();
        let client: Client = on.client().await;
        let owner = quorate::Owner::new();
        let guard = client.mutex("a").owner(&owner).lock().await.unwrap();
        (on, client, guard)
    });
    drop(runtime);
    assert!(!format!("{guard:?}").is_empty());
    drop(guard);
    drop(client);
    drop(on);
}

#[test]
fn a_guard_dropped_after_its_runtime_does_not_panic() {
    ends_without_panic(|| Fixture::embedded(3));
    ends_without_panic(|| Fixture::real(1));
}

// The renewal was sent on a connection that was given up, and runs when the voter goes on: long
// after the release, of which nothing arrived there until then.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_runs_after_the_lease_and_the_release_gives_no_vote() {
    let voters = embedded::voters(3);
    let quorum = Quorate::builder().embedded(&voters).lease(secs(3)).connect().await.unwrap();
    let guard = quorum.mutex("a").lock().await.unwrap();
    voters[0].stop();
    sleep(secs(2)).await;
    voters[0].cut(InFlight::Arrives);
    guard.release().await.unwrap();
    sleep(secs(20)).await;
    voters[0].cut(InFlight::Lost);
    assert!(without_lasting(voters[0].keys()).is_empty(), "the lease was over");
    voters[0].resume();
    assert!(without_lasting(voters[0].keys()).is_empty(), "nobody has heard that it has no vote");
    sleep(secs(2)).await;
    assert!(without_lasting(voters[0].keys()).is_empty());
    drop(quorum.close().await);
}
