//! Holds whose renewals need replicas.

use tokio::time::{sleep, timeout};

use crate::replicas::scene::{Voter, builder};
use quorate_support::eventually_async;
use quorate_tests::scene::{MS, connect, leased, votes_for};

/// The first renewal comes after a third of the lease, and those that failed are repeated: many do
/// not count, until the hold ends by its deadline as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_whose_renewals_no_replica_has_is_lost_at_its_deadline_and_says_why() {
    let voter = Voter::start(1);
    let quorum = connect(leased(builder([&voter], 1), MS(6000))).await;
    let guard = quorum.mutex("a").lock().await.expect("the replica answers");
    voter.replicas[0].stop();
    // A renewal that was acknowledged before that has ended by now: nothing moves the deadline.
    sleep(MS(200)).await;
    let left = guard.remaining();
    assert!(!left.is_zero(), "lost too early");
    let asked = voter.primary.calls("wait");
    let error = timeout(left + MS(3000), guard.lost()).await.expect("it is told in time");
    assert!(error.is_lost() && !guard.is_held());
    assert!(error.to_string().contains("0 of 1 replicas acknowledged within 150ms"), "{error}");
    assert!(voter.primary.calls("wait") > asked + 2, "it was asked again and again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_does_not_count_takes_nothing_and_the_next_one_counts() {
    let voter = Voter::start(1);
    let quorum = connect(builder([&voter], 1).lease(MS(6000))).await;
    let guard = quorum.mutex("a").lock().await.expect("the replica answers");
    let (lease, hold) = (guard.remaining(), guard.hold().as_str());
    voter.replicas[0].stop();
    let asked = voter.primary.calls("wait");
    eventually_async("three renewals came to nothing", async || {
        assert!(votes_for(&voter.primary, "a", hold), "the vote stays");
        voter.primary.calls("wait") > asked + 3
    })
    .await;
    assert!(guard.is_held());
    let left = guard.remaining();
    assert!(left < lease * 3 / 4, "no renewal counted: {left:?}");
    voter.replicas[0].resume();
    eventually_async("a renewal counts", async || guard.remaining() > left).await;
    assert!(guard.is_held());
    guard.release().await.expect("it is ours");
}
