//! What a replica knows that takes over.

use quorate::{Holder, Quorate, VoterView};

use crate::replicas::scene::{REPLICA_TIMEOUT, Voter, assert_too_few, builder, promote, voters};
use quorate_support::{RedisServer, eventually_async};
use quorate_tests::scene::{connect, patient, votes_for};

async fn connect_to(servers: &[&RedisServer]) -> Quorate {
    connect(patient(Quorate::builder().voters(servers.iter().map(|server| server.url())))).await
}

#[tokio::test]
async fn a_lock_with_acknowledgements_outlives_all_of_its_primaries() {
    let mut voters = voters(3, 1);
    let quorum = connect(builder(&voters, 1)).await;
    let guard = quorum.mutex("a").lock().await.expect("all replicas answer");
    for voter in &mut voters {
        voter.primary.kill();
    }
    let replicas: Vec<_> = voters.iter().map(|voter| &voter.replicas[0]).collect();
    for replica in &replicas {
        promote(replica);
    }

    let next = connect_to(&replicas).await;
    let is_ours = |view: &&VoterView| {
        let is_held = |held: &Holder| held.hold == *guard.hold();
        view.state.as_ref().is_ok_and(|state| state.holders.iter().any(is_held))
    };
    // On a busy machine one of them may be reached later than the others.
    eventually_async("a majority knows it", async || {
        let seen = next.mutex("a").inspect().await;
        seen.is_ok_and(|seen| seen.voters.iter().filter(is_ours).count() >= 2)
    })
    .await;
    assert!(next.mutex("a").try_lock().await.expect("all answer").is_none(), "it is held");
}

/// What the acknowledgements are for; and how the test above would see that they are missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_acknowledgements_a_promoted_replica_may_not_know_the_lock() {
    let (mut voter, proxy) = Voter::start_behind_proxy().await;
    let (with, without) =
        (connect(builder([&voter], 1)).await, connect(builder([&voter], 0)).await);
    proxy.black_hole();
    let error = with.mutex("a").try_lock().await.expect_err("the replica is cut off");
    assert_too_few(&error, 0, 1, REPLICA_TIMEOUT);
    let guard = without.mutex("b").lock().await.expect("no replica is needed");
    assert!(votes_for(&voter.primary, "b", guard.hold().as_str()));
    voter.primary.kill();
    promote(&voter.replicas[0]);
    let next = connect_to(&[&voter.replicas[0]]).await;
    let other = next.mutex("b").try_lock().await.expect("it answers");
    assert!(other.is_some() && guard.is_held(), "two hold it");
}
