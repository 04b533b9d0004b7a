//! Many that ask one voter at once: what waits for replicas holds up little else.

use futures::future::join_all;
use quorate::Quorate;

use crate::replicas::scene::{Voter, builder};
use quorate_support::eventually_async;
use quorate_tests::scene::{MS, connect};

async fn try_all(quorum: &Quorate, count: usize) -> usize {
    let tries = (0..count).map(async |lock| {
        let guard = quorum.mutex(format!("many {lock}")).try_lock().await.ok().flatten()?;
        guard.release().await.ok()
    });
    join_all(tries).await.into_iter().flatten().count()
}

/// One after the other, each would wait for a replica that takes 30 ms to hear of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_that_leave_together_are_acknowledged_together() {
    let (voter, proxy) = Voter::start_behind_proxy().await;
    // On a busy machine an acknowledgement takes longer than the usual time for it.
    let builder = builder([&voter], 1).voter_deadline(MS(2000)).replica_timeout(MS(1000));
    let quorum = connect(builder).await;
    proxy.delay(MS(0), MS(30));
    let before = voter.primary.calls("wait");
    assert_eq!(try_all(&quorum, 64).await, 64);
    let waits = voter.primary.calls("wait") - before;
    assert!((1..32).contains(&waits), "{waits} waits for 64 locks");
}

/// Behind the waits of all sixteen, a tenth of a second and more each, it would come too late.
#[tokio::test]
async fn a_release_is_confirmed_while_others_wait_for_a_replica_that_is_stopped() {
    let voter = Voter::start(1);
    let builder = builder([&voter], 1).voter_deadline(MS(1000)).replica_timeout(MS(100));
    let quorum = connect(builder).await;
    let hold = async |lock| quorum.mutex(format!("held {lock}")).lock().await;
    let held = join_all((0..4).map(hold)).await;
    voter.replicas[0].stop();
    let others = tokio::spawn(async move {
        loop {
            assert_eq!(try_all(&quorum, 16).await, 0);
        }
    });
    for guard in held {
        let before = voter.primary.calls("wait");
        eventually_async("others wait", async || voter.primary.calls("wait") > before).await;
        guard.expect("the replica answered").release().await.expect("it is confirmed");
    }
    assert!(!others.is_finished(), "it found a vote that did not count");
    others.abort();
}
