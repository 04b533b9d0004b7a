//! One lock, whoever has it.

use quorate_tests::prelude::*;

use crate::{
    java::Version,
    stage::{Stage, WATCHDOG},
    with_each_redisson,
};

with_each_redisson!(
    what_one_holds_the_other_does_not_get,
    entries_are_counted_by_both,
    both_renew_for_as_long_as_they_hold,
    a_forced_unlock_in_java_ends_our_hold,
    a_forced_release_of_ours_lets_the_next_in_java_in,
    with_one_of_three_servers_gone_both_go_on,
);

async fn what_one_holds_the_other_does_not_get(version: Version) {
    for servers in [1, 3] {
        let stage = Stage::start(version, servers).await;
        for name in ["plain", "with{tag}x", "{t}", "inv:42", "a{b}c"] {
            stage.java.does("a", &format!("lock plain {name} -1")).await;
            let mutex = stage.mutex(name);
            assert!(mutex.try_lock().await.unwrap().is_none(), "{name}");
            let watch = Stopwatch::start();
            assert!(mutex.lock_within(ms(700)).await.unwrap().is_none(), "{name}");
            assert!((ms(700)..secs(5)).contains(&watch.time()), "{:?}", watch.time());
            stage.java.does("a", &format!("unlock plain {name}")).await;

            // Java compares ids, and reads nothing of them.
            let noted = mutex.clone().note("v1.5/7+3 :~r=a= 100%25").try_lock().await;
            let guard = noted.unwrap().expect("it is free");
            assert!(!stage.java.tries("a", name).await, "{name}");
            if servers == 1 {
                let refused = stage.java.ask("a", &format!("unlock plain {name}")).await;
                assert!(refused.unwrap_err().contains("IllegalMonitorStateException"));
            }
            assert!(guard.is_held());
            guard.release().await.unwrap();
            assert!(stage.java.tries("a", name).await, "{name}");
            stage.java.does("a", &format!("unlock plain {name}")).await;
        }
        // But for the latches of unlocks, which end by themselves.
        for server in &stage.servers {
            let left = without_lasting(server.keys()).into_iter();
            let left: Vec<_> = left.filter(|key| !key.contains("unlock_latch")).collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

async fn entries_are_counted_by_both(version: Version) {
    let stage = Stage::start(version, 1).await;
    for _ in 0..3 {
        stage.java.does("a", "lock plain orders -1").await;
    }
    let holder = stage.mutex("orders").inspect().await.unwrap().holders.remove(0);
    assert_eq!(holder.count, 3);
    let waiting = stage.wait_for("orders").await;
    for left in [2, 1] {
        stage.java.does("a", "unlock plain orders").await;
        assert_eq!(stage.java.does("a", "count plain orders").await, left.to_string());
        assert!(stage.mutex("orders").try_lock().await.unwrap().is_none());
    }
    stage.java.does("a", "unlock plain orders").await;
    let guard = timeout(secs(20), waiting).await.expect("it is woken").unwrap();
    let again = guard.reenter().await.unwrap();
    let count = stage.servers[0].command(&["HGET", "orders", guard.hold().as_str()]);
    assert_eq!(count, Ok(Reply::Text("2".into())));
    again.release().await.unwrap();
    assert!(!stage.java.tries("a", "orders").await);
    guard.release().await.unwrap();
    assert!(stage.java.tries("a", "orders").await);
}

// Each for longer than its own lease and the other's.
async fn both_renew_for_as_long_as_they_hold(version: Version) {
    for servers in [1, 3] {
        let stage = Stage::start(version, servers).await;
        stage.java.does("a", "lock plain java -1").await;
        let guard = stage.mutex("ours").lease(secs(3)).lock().await.unwrap();
        let longer = WATCHDOG + secs(1);
        let theirs = stage.java.ask("b", &format!("try plain ours {} -1", longer.as_millis()));
        let java = stage.mutex("java");
        let (ours, theirs) = tokio::join!(java.lock_within(longer), theirs);
        assert!(ours.unwrap().is_none());
        assert_eq!(theirs.unwrap(), "false");
        assert!(guard.is_held());
        guard.release().await.unwrap();
        stage.java.does("a", "unlock plain java").await;
    }
}

async fn a_forced_unlock_in_java_ends_our_hold(version: Version) {
    for (servers, somebody_is_let_in) in [(1, true), (1, false), (3, true)] {
        let stage = Stage::start(version, servers).await;
        let guard = stage.mutex("orders").lease(secs(6)).lock().await.unwrap();
        assert_eq!(stage.java.does("a", "force plain orders").await, "true");
        if somebody_is_let_in {
            assert!(stage.java.tries("a", "orders").await);
        }
        let lost = timeout(secs(20), guard.lost()).await;
        lost.expect("it is told at its next renewal");
        assert!(guard.release().await.is_err());
        if somebody_is_let_in {
            assert!(stage.mutex("orders").try_lock().await.unwrap().is_none(), "it is Java's");
            stage.java.does("a", "unlock plain orders").await;
        }
    }
}

async fn a_forced_release_of_ours_lets_the_next_in_java_in(version: Version) {
    for servers in [1, 3] {
        let stage = Stage::start(version, servers).await;
        stage.java.does("a", "lock plain orders -1").await;
        let next = stage.java.ask("b", "try plain orders 20000 -1");
        stage.until_listening("orders").await;
        let watch = Stopwatch::start();
        assert!(
            !stage
                .client
                .redisson()
                .admin()
                .end_all(LockKind::Mutex, "orders")
                .await
                .unwrap()
                .is_empty()
        );
        assert_eq!(next.await.unwrap(), "true");
        assert!(watch.time() < secs(10), "{:?}", watch.time());
        if servers == 1 {
            let refused = stage.java.ask("a", "unlock plain orders").await;
            assert!(refused.unwrap_err().contains("IllegalMonitorStateException"));
        }
        assert!(stage.mutex("orders").try_lock().await.unwrap().is_none());
        stage.java.does("b", "unlock plain orders").await;
    }
}

async fn with_one_of_three_servers_gone_both_go_on(version: Version) {
    let mut stage = Stage::start(version, 3).await;
    stage.servers[2].kill();
    assert_eq!(stage.java.does("a", "try plain orders 20000 -1").await, "true");
    assert!(stage.mutex("orders").try_lock().await.unwrap().is_none());
    // It says that one server did not answer.
    let _ = stage.java.ask("a", "unlock plain orders").await;
    let guard = stage.mutex("orders").lock_within(secs(20)).await.unwrap().expect("it is free");
    assert_eq!(stage.java.does("a", "try plain orders 3000 -1").await, "false");
    guard.release().await.unwrap();
    assert_eq!(stage.java.does("a", "try plain orders 20000 -1").await, "true");
}
