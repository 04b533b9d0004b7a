//! One read/write lock, whoever reads or writes: ours and an `RReadWriteLock` on one server.

use quorate::RwLock;
use quorate_tests::{force::Access, prelude::*};

use crate::{
    java::{Jvm, Version},
    stage::{Stage, WATCHDOG},
    with_each_redisson,
};

with_each_redisson!(
    writers_are_alone_and_readers_of_both_share,
    releases_wake_both_ways,
    both_watchdogs_keep_it,
    a_killed_jvm_keeps_its_read_for_one_watchdog,
    a_dead_reader_of_ours_does_not_keep_the_lock,
    a_forced_unlock_ends_the_holds_of_the_other,
    nobody_writes_beside_another,
);

/// Within this a call wakes whoever waits; no poll and no lease ends so soon.
const AT_ONCE: Duration = secs(3);
const LATE: Duration = secs(5);
const NAMES: [&str; 4] = ["plain", "with{tag}x", "{t}", "inv:42"];

/// Whether a thread in Java gets it now.
async fn tries(stage: &Stage, thread: &str, kind: &str, name: &str) -> bool {
    stage.java.does(thread, &format!("try {kind} {name} -1 -1")).await == "true"
}

fn lock(stage: &Stage) -> RwLock {
    stage.client.redisson().rw_lock("orders")
}

async fn is_free(stage: &Stage) -> bool {
    match lock(stage).try_write().await.unwrap() {
        Some(guard) => {
            guard.release().await.unwrap();
            true
        }
        None => false,
    }
}

/// Waits in a task of its own: returns when it listens.
async fn wait_for(stage: &Stage, access: Access) -> JoinHandle<()> {
    let lock = lock(stage);
    let waiting = tokio::spawn(async move {
        match access {
            Access::Read => lock.read().await.unwrap().release().await.unwrap(),
            Access::Write => lock.write().await.unwrap().release().await.unwrap(),
        }
    });
    until_listening(stage).await;
    waiting
}

async fn until_listening(stage: &Stage) {
    until!("somebody waits", {
        let reply = stage.servers[0].command(&["PUBSUB", "NUMSUB", "redisson_rwlock:{orders}"]);
        matches!(reply, Ok(Reply::List(parts)) if parts[1] != Reply::Int(0))
    });
    // It asks once more behind its subscription.
    tokio::time::sleep(ms(200)).await;
}

async fn writers_are_alone_and_readers_of_both_share(version: Version) {
    let stage = Stage::start(version, 1).await;
    for name in NAMES {
        let lock = stage.client.redisson().rw_lock(name);
        let reading = lock.read().await.unwrap();
        assert!(tries(&stage, "a", "read", name).await, "{name}");
        assert!(!tries(&stage, "b", "write", name).await, "{name}");
        assert!(lock.try_write().await.unwrap().is_none(), "{name}");
        reading.release().await.unwrap();
        assert!(lock.try_write().await.unwrap().is_none(), "{name}: Java reads on");
        assert!(!tries(&stage, "b", "write", name).await, "{name}");
        let reading = lock.try_read().await.unwrap().expect("readers share it");
        stage.java.does("a", &format!("unlock read {name}")).await;
        assert!(!tries(&stage, "b", "write", name).await, "{name}: we read on");
        reading.release().await.unwrap();

        assert!(tries(&stage, "b", "write", name).await, "{name}");
        assert!(lock.try_read().await.unwrap().is_none(), "{name}");
        let watch = Stopwatch::start();
        assert!(lock.write_within(ms(500)).await.unwrap().is_none(), "{name}");
        assert!((ms(500)..secs(5)).contains(&watch.time()), "{:?}", watch.time());
        stage.java.does("b", &format!("unlock write {name}")).await;
        let writing = lock.try_write().await.unwrap().expect("it is free");
        assert!(!tries(&stage, "a", "read", name).await, "{name}");
        assert!(!tries(&stage, "b", "write", name).await, "{name}");
        for kind in ["read", "write"] {
            let refused = stage.java.ask("a", &format!("unlock {kind} {name}")).await;
            assert!(refused.unwrap_err().contains("IllegalMonitorStateException"));
        }
        assert!(writing.is_held());
        writing.release().await.unwrap();
    }
    let left = without_lasting(stage.servers[0].keys()).into_iter();
    let left: Vec<_> = left.filter(|key| !key.contains("unlock_latch")).collect();
    assert!(left.is_empty(), "{left:?}");
}

async fn releases_wake_both_ways(version: Version) {
    let stage = Stage::start(version, 1).await;
    for (held, wanted) in [("write", "read"), ("write", "write"), ("read", "write")] {
        for _ in 0..5 {
            stage.java.does("a", &format!("lock {held} orders -1")).await;
            let access = if wanted == "read" { Access::Read } else { Access::Write };
            let waiting = wait_for(&stage, access).await;
            assert!(!waiting.is_finished());
            let watch = Stopwatch::start();
            stage.java.does("a", &format!("unlock {held} orders")).await;
            timeout(secs(20), waiting).await.expect("it is woken").unwrap();
            assert!(watch.time() < AT_ONCE, "Java to Rust: {:?}", watch.time());

            let (reading, writing) = match held {
                "read" => (Some(lock(&stage).read().await.unwrap()), None),
                _ => (None, Some(lock(&stage).write().await.unwrap())),
            };
            let threads = ["a", "b"];
            let waiting = threads
                .map(|thread| stage.java.ask(thread, &format!("try {wanted} orders 60000 -1")));
            until_listening(&stage).await;
            let watch = Stopwatch::start();
            if let Some(reading) = reading {
                reading.release().await.unwrap();
            }
            if let Some(writing) = writing {
                writing.release().await.unwrap();
            }
            let [one, other] = waiting;
            let (mut one, mut other) = (Box::pin(one), Box::pin(other));
            let first = tokio::select! {
                got = &mut one => { assert_eq!(got.unwrap(), "true"); 0 }
                got = &mut other => { assert_eq!(got.unwrap(), "true"); 1 }
            };
            assert!(watch.time() < AT_ONCE, "Rust to Java: {:?}", watch.time());
            stage.java.does(threads[first], &format!("unlock {wanted} orders")).await;
            let last = if first == 0 { other.await } else { one.await };
            assert_eq!(last.unwrap(), "true");
            stage.java.does(threads[1 - first], &format!("unlock {wanted} orders")).await;
        }
    }
}

// Each for longer than its own lease and the other's, alone and together.
async fn both_watchdogs_keep_it(version: Version) {
    let stage = Stage::start(version, 1).await;
    let ours = lock(&stage).lease(secs(3));
    let longer = WATCHDOG + secs(1);
    stage.java.does("a", "lock read orders -1").await;
    let reading = ours.read().await.unwrap();
    let theirs = stage.java.ask("b", &format!("try write orders {} -1", longer.as_millis()));
    assert!(lock(&stage).write_within(longer).await.unwrap().is_none());
    assert_eq!(theirs.await.unwrap(), "false");
    assert!(reading.is_held());
    reading.release().await.unwrap();
    assert!(lock(&stage).write_within(longer).await.unwrap().is_none(), "Java reads on");
    stage.java.does("a", "unlock read orders").await;

    let writing = ours.write().await.unwrap();
    let theirs = stage.java.ask("b", &format!("try read orders {} -1", longer.as_millis()));
    assert_eq!(theirs.await.unwrap(), "false");
    assert!(writing.is_held());
    writing.release().await.unwrap();
    stage.java.does("b", "lock write orders -1").await;
    assert!(lock(&stage).read_within(longer).await.unwrap().is_none());
    stage.java.does("b", "unlock write orders").await;
    assert!(is_free(&stage).await);
}

async fn a_killed_jvm_keeps_its_read_for_one_watchdog(version: Version) {
    let stage = Stage::start(version, 1).await;
    for kind in ["read", "write"] {
        let doomed = Jvm::start(version, WATCHDOG, &stage.servers).await;
        doomed.does("a", &format!("lock {kind} orders -1")).await;
        let waiting = wait_for(&stage, Access::Write).await;
        doomed.kill();
        let watch = Stopwatch::start();
        timeout(secs(60), waiting).await.expect("it ends").unwrap();
        assert!(watch.time() < WATCHDOG + LATE, "{kind}: {:?}", watch.time());
    }
    // Beside a reader of ours that goes on: who is dead does not keep it any longer.
    let doomed = Jvm::start(version, WATCHDOG, &stage.servers).await;
    doomed.does("a", "lock read orders -1").await;
    let reading = lock(&stage).read().await.unwrap();
    doomed.kill();
    tokio::time::sleep(WATCHDOG + secs(1)).await;
    assert_eq!(lock(&stage).inspect().await.unwrap().holders.len(), 1);
    reading.release().await.unwrap();
    assert!(is_free(&stage).await);
}

// It leaves its votes to their lease.
async fn a_dead_reader_of_ours_does_not_keep_the_lock(version: Version) {
    let stage = Stage::start(version, 1).await;
    let dead = lock(&stage).lease_fixed(secs(2)).read().await.unwrap();
    dead.keep_for(secs(2)).await.unwrap();
    let watch = Stopwatch::start();
    assert_eq!(stage.java.does("b", "try write orders 30000 -1").await, "true");
    assert!(watch.time() < secs(2) + LATE, "{:?}", watch.time());
    stage.java.does("b", "unlock write orders").await;

    stage.java.does("a", "lock read orders 20000").await;
    let dead = lock(&stage).lease_fixed(secs(1)).read().await.unwrap();
    dead.keep_for(secs(1)).await.unwrap();
    tokio::time::sleep(ms(1500)).await;
    stage.java.does("a", "unlock read orders").await;
    assert!(tries(&stage, "b", "write", "orders").await, "Java's was the last that was alive");
    stage.java.does("b", "unlock write orders").await;

    // Before Redisson 4.4 a watchdog renews the leases of all who read; it ends with its own.
    stage.java.does("a", "lock read orders -1").await;
    let dead = lock(&stage).lease_fixed(secs(2)).read().await.unwrap();
    dead.keep_for(secs(2)).await.unwrap();
    tokio::time::sleep(WATCHDOG + secs(1)).await;
    let left = lock(&stage).inspect().await.unwrap().holders.len();
    println!("read by {left} beside a dead reader");
    stage.java.does("a", "unlock read orders").await;
    let watch = Stopwatch::start();
    assert_eq!(stage.java.does("b", "try write orders 30000 -1").await, "true");
    let at_most = if left == 1 { AT_ONCE } else { WATCHDOG + LATE };
    assert!(watch.time() < at_most, "{left}: {:?}", watch.time());
}

async fn a_forced_unlock_ends_the_holds_of_the_other(version: Version) {
    let stage = Stage::start(version, 1).await;
    let ours = lock(&stage).lease(secs(6));
    let reading = ours.read().await.unwrap();
    assert_eq!(stage.java.does("a", "force write orders").await, "false", "nobody writes");
    assert_eq!(stage.java.does("a", "force read orders").await, "true");
    assert!(tries(&stage, "a", "write", "orders").await);
    timeout(secs(20), reading.lost()).await.expect("it is told at its next renewal");
    assert!(reading.release().await.is_err() && !is_free(&stage).await);
    stage.java.does("a", "unlock write orders").await;
    let writing = ours.write().await.unwrap();
    assert_eq!(stage.java.does("a", "force write orders").await, "true");
    timeout(secs(20), writing.lost()).await.expect("it is told at its next renewal");
    assert!(writing.release().await.is_err());

    for kind in ["read", "write"] {
        stage.java.does("a", &format!("lock {kind} orders -1")).await;
        let next = stage.java.ask("b", "try write orders 60000 -1");
        until_listening(&stage).await;
        let watch = Stopwatch::start();
        assert!(
            !stage
                .client
                .redisson()
                .admin()
                .end_all(LockKind::RwLock, "orders")
                .await
                .unwrap()
                .is_empty()
        );
        assert_eq!(next.await.unwrap(), "true");
        assert!(watch.time() < AT_ONCE, "{:?}", watch.time());
        let refused = stage.java.ask("a", &format!("unlock {kind} orders")).await;
        assert!(refused.unwrap_err().contains("IllegalMonitorStateException"));
        assert!(!is_free(&stage).await);
        stage.java.does("b", "unlock write orders").await;
    }
}

// The gate is made by each writer, and looked for by each reader of ours.
async fn nobody_writes_beside_another(version: Version) {
    let stage = Stage::start(version, 1).await;
    let folder = tempfile::tempdir().unwrap();
    let (time, gate) = (secs(6), folder.path().join("gate"));
    let java = ["a", "b"].map(|thread| {
        let (gate, own) = (gate.display(), folder.path().join(thread));
        let words = format!("{} 500 {gate} {}", time.as_millis(), own.display());
        stage.java.ask(thread, &format!("contend write orders {words}"))
    });
    let ours = ["r1", "r2", "w"].map(|name| {
        let (lock, gate, own) = (lock(&stage), gate.clone(), folder.path().join(name));
        std::fs::write(&own, name).unwrap();
        tokio::spawn(async move {
            let (watch, mut entries) = (Stopwatch::start(), 0);
            while watch.time() < time {
                entries += 1;
                if name == "w" {
                    let guard = lock.write().await.unwrap();
                    std::fs::hard_link(&own, &gate).expect("nobody else is inside");
                    tokio::time::sleep(ms(1)).await;
                    std::fs::remove_file(&gate).unwrap();
                    guard.release().await.unwrap();
                } else {
                    let guard = lock.read().await.unwrap();
                    assert!(!gate.exists(), "somebody writes");
                    tokio::time::sleep(ms(1)).await;
                    assert!(!gate.exists(), "somebody writes");
                    guard.release().await.unwrap();
                    tokio::time::sleep(ms(3)).await;
                }
            }
            entries
        })
    });
    let mut entries = Vec::new();
    for task in ours {
        entries.push(task.await.expect("it was never beside a writer"));
    }
    for java in java {
        let said = java.await.unwrap();
        let numbers: Vec<u64> = said.split(' ').map(|word| word.parse().unwrap()).collect();
        assert!(numbers[0] > 0 && numbers[1] == 0, "entries, failed, longest wait: {said}");
        println!("Java: {said}");
    }
    println!("ours: {entries:?}");
    assert!(entries.iter().all(|entries| *entries > 0), "{entries:?}");
}
