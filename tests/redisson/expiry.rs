//! What nobody renews ends, for both sides alike.

use quorate_tests::prelude::*;

use crate::{
    contention::{Contender, ContenderPlan},
    java::{Jvm, Version},
    stage::{Stage, WATCHDOG},
    with_each_redisson,
};

with_each_redisson!(
    a_lease_that_ends_in_java_lets_us_in,
    a_lease_of_ours_that_ends_lets_java_in,
    a_killed_jvm_keeps_its_lock_for_one_watchdog,
    a_killed_process_of_ours_keeps_its_lock_for_one_lease,
    who_was_paused_past_its_lease_knows_and_harms_nobody,
);

const LATE: Duration = secs(5);

async fn a_lease_that_ends_in_java_lets_us_in(version: Version) {
    for servers in [1, 3] {
        let stage = Stage::start(version, servers).await;
        stage.java.does("a", "lock plain orders 1000").await;
        let watch = Stopwatch::start();
        let guard = stage.mutex("orders").lock_within(secs(20)).await.unwrap().expect("it ends");
        assert!((ms(800)..secs(1) + LATE).contains(&watch.time()), "{:?}", watch.time());
        let late = stage.java.ask("a", "unlock plain orders").await;
        if servers == 1 {
            assert!(late.unwrap_err().contains("IllegalMonitorStateException"));
        }
        assert!(guard.is_held());
        guard.release().await.unwrap();
    }
}

async fn a_lease_of_ours_that_ends_lets_java_in(version: Version) {
    for servers in [1, 3] {
        let stage = Stage::start(version, servers).await;
        let guard = stage.mutex("orders").lease_fixed(secs(1)).lock().await.unwrap();
        let watch = Stopwatch::start();
        assert_eq!(stage.java.does("a", "try plain orders 20000 -1").await, "true");
        assert!((ms(800)..secs(1) + LATE).contains(&watch.time()), "{:?}", watch.time());
        assert!(!guard.is_held() && guard.release().await.is_err());
        assert!(stage.mutex("orders").try_lock().await.unwrap().is_none(), "it is Java's");
    }
}

async fn a_killed_jvm_keeps_its_lock_for_one_watchdog(version: Version) {
    for servers in [1, 3] {
        let stage = Stage::start(version, servers).await;
        let doomed = Jvm::start(version, WATCHDOG, &stage.servers).await;
        doomed.does("a", "lock plain orders -1").await;
        let waiting = stage.wait_for("orders").await;
        doomed.kill();
        let watch = Stopwatch::start();
        let guard = tokio::time::timeout(secs(60), waiting).await.expect("it ends").unwrap();
        assert!(watch.time() < WATCHDOG + LATE, "{:?}", watch.time());
        guard.release().await.unwrap();
    }
}

async fn a_killed_process_of_ours_keeps_its_lock_for_one_lease(version: Version) {
    for servers in [1, 3] {
        let stage = Stage::start(version, servers).await;
        let folder = tempfile::tempdir().unwrap();
        let (lease, held) = (secs(2), secs(600));
        let plan = ContenderPlan { lease, tasks: 1, time: secs(60), held };
        let mut doomed = Contender::start("doomed", plan, folder.path(), &stage.servers);
        let gate = folder.path().join("gate");
        until!("it is inside", gate.exists());
        doomed.kill();
        let watch = Stopwatch::start();
        assert_eq!(stage.java.does("a", "try plain orders 60000 -1").await, "true");
        assert!(watch.time() < lease + LATE, "{:?}", watch.time());
    }
}

// Its process stands still, and somebody else has the lock when it goes on.
async fn who_was_paused_past_its_lease_knows_and_harms_nobody(version: Version) {
    let stage = Stage::start(version, 3).await;
    let paused = Jvm::start(version, WATCHDOG, &stage.servers).await;
    paused.does("a", "lock plain orders -1").await;
    paused.stop();
    let guard = stage.mutex("orders").lock_within(secs(60)).await.unwrap().expect("it ends");
    paused.resume();
    // Of one server it hears that it is not the holder; with several it says nothing.
    let _ = paused.ask("a", "unlock plain orders").await;
    assert!(guard.is_held());
    assert!(!stage.java.tries("a", "orders").await);
    guard.release().await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let plan = ContenderPlan { lease: secs(2), tasks: 1, time: secs(3), held: ms(500) };
    let mut worker = Contender::start("paused", plan, folder.path(), &stage.servers);
    let gate = folder.path().join("gate");
    until!("it is inside", gate.exists());
    worker.stop();
    assert_eq!(stage.java.does("a", "try plain orders 60000 -1").await, "true");
    worker.resume();
    let tally = worker.finish();
    assert_eq!((tally.entries, tally.failed), (1, 2), "it was lost, and not given back");
    assert!(stage.mutex("orders").try_lock().await.unwrap().is_none(), "it is Java's");
}
