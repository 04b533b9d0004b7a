//! Which grants count.

use quorate::metric;

use crate::replicas::scene::{REPLICA_TIMEOUT, Voter, assert_too_few, builder};
use quorate_support::eventually_async;
use quorate_tests::{
    recorded::{added, record},
    scene::{MS, are_empty, connect, votes_for},
    standing::until_given,
};

/// Looked at without waiting, and far sooner than it would be there by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_on_the_replica_when_its_guard_is_handed_out() {
    let (voter, proxy) = Voter::start_behind_proxy().await;
    let quorum = connect(builder([&voter], 1).voter_deadline(MS(2000))).await;
    proxy.delay(MS(0), MS(30));
    for round in 0..20 {
        let name = round.to_string();
        let guard = quorum.mutex(&name).lock().await.expect("the replica answers");
        assert!(votes_for(&voter.replicas[0], &name, guard.hold().as_str()), "in round {round}");
        guard.release().await.expect("it is confirmed");
    }
}

#[tokio::test]
async fn without_a_replica_that_it_needs_a_lock_has_no_quorum_and_says_why() {
    let mut voter = Voter::start(2);
    let (one, two) = (connect(builder([&voter], 1)).await, connect(builder([&voter], 2)).await);
    let tried = async || {
        let tries = [
            two.mutex("a").try_lock().await.map(drop),
            two.fair_mutex("a").try_lock().await.map(drop),
            two.rw_lock("b").try_read().await.map(drop),
            two.rw_lock("b").try_write().await.map(drop),
        ];
        for tried in tries {
            let error = tried.expect_err("one replica is missing");
            assert!(error.is_no_quorum(), "{error}");
            assert_too_few(&error, 1, 2, REPLICA_TIMEOUT);
        }
        let guard = one.mutex("c").try_lock().await.expect("one answers").expect("it is free");
        guard.release().await.expect("it is confirmed");
    };
    voter.replicas[0].stop();
    tried().await;
    voter.replicas[0].resume();
    until_given(&two, "d").await;
    voter.replicas[0].kill();
    tried().await;
}

#[tokio::test]
async fn a_vote_that_did_not_count_is_given_back_and_counted_by_its_voter() {
    let (snapshotter, _recording) = record();
    let voter = Voter::start(1);
    let (with, without) =
        (connect(builder([&voter], 1)).await, connect(builder([&voter], 0)).await);
    with.mutex("a").lock().await.expect("the replica answers").release().await.expect("ours");
    voter.replicas[0].stop();
    let before = voter.primary.calls("hset");
    for _ in 0..3 {
        let error = with.mutex("a").try_lock().await.expect_err("the replica is stopped");
        assert_too_few(&error, 0, 1, REPLICA_TIMEOUT);
    }
    assert!(voter.primary.calls("hset") > before, "the primary granted");
    let address = voter.primary.url().replace("redis://", "");
    assert_eq!(added(&snapshotter, metric::UNACKNOWLEDGED, Some(&address)), 3);
    eventually_async("it is given back", async || are_empty([&voter.primary])).await;
    // Whoever does not get the lock anyway waits for no replica.
    let guard = without.mutex("a").lock().await.expect("no replica is needed");
    assert!(with.mutex("a").try_lock().await.expect("it is refused").is_none());
    guard.release().await.expect("it is confirmed");
    voter.replicas[0].resume();
    let next = connect(builder([&voter], 1)).await;
    let guard = next.mutex("a").lock().await.expect("it is free, and the replica answers");
    assert!(votes_for(&voter.replicas[0], "a", guard.hold().as_str()));
}

/// A script that was not known comes with its question again.
#[tokio::test]
async fn a_server_that_forgot_its_scripts_asks_its_replicas_all_the_same() {
    let voter = Voter::start(1);
    let quorum = connect(builder([&voter], 1)).await;
    let mutex = quorum.mutex("a");
    mutex.lock().await.expect("all answer").release().await.expect("confirmed");
    let asked = voter.primary.calls("wait");
    voter.primary.command(&["SCRIPT", "FLUSH"]).expect("it forgets");
    let guard = mutex.lock().await.expect("all answer");
    assert!(votes_for(&voter.replicas[0], "a", guard.hold().as_str()));
    assert!(voter.primary.calls("wait") >= asked + 2, "once in vain, and once for the grant");
    guard.release().await.expect("confirmed");

    voter.replicas[0].stop();
    voter.primary.command(&["SCRIPT", "FLUSH"]).expect("it forgets");
    let granted = voter.primary.calls("hset");
    let error = mutex.try_lock().await.expect_err("the replica is stopped");
    assert!(error.is_no_quorum(), "{error}");
    assert!(voter.primary.calls("hset") > granted, "the primary granted all the same");
}
