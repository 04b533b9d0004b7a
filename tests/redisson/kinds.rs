//! The other locks of Redisson beside our mutex.

use quorate_tests::prelude::*;

use crate::{java::Version, stage::Stage, with_each_redisson};

with_each_redisson!(
    a_fenced_lock_and_our_mutex_have_one_sequence_of_tokens,
    a_spin_lock_excludes_us_and_we_it,
    who_would_wait_beside_a_fair_lock_is_told_so,
    a_read_write_lock_is_refused_by_us_and_shown,
);

async fn a_fenced_lock_and_our_mutex_have_one_sequence_of_tokens(version: Version) {
    let stage = Stage::start(version, 1).await;
    let mut last = 0;
    for _ in 0..5 {
        let token: u64 = stage.java.does("a", "token fenced orders").await.parse().unwrap();
        assert!(token > last, "{token} after {last}");
        last = token;
        assert!(stage.mutex("orders").try_lock().await.unwrap().is_none());
        stage.java.does("a", "unlock fenced orders").await;
        let guard = stage.mutex("orders").try_lock().await.unwrap().expect("it is free");
        let token = u64::from(guard.token());
        assert!(token > last, "{token} after {last}");
        last = token;
        guard.release().await.unwrap();
    }
    let ttl = stage.servers[0].command(&["PTTL", "redisson_lock_token:{orders}"]);
    assert_eq!(ttl, Ok(Reply::Int(-1)));
}

// It polls, and calls nobody: we ask when its lease would end, or by our poll.
async fn a_spin_lock_excludes_us_and_we_it(version: Version) {
    let stage = Stage::start(version, 1).await;
    stage.java.does("a", "lock spin orders -1").await;
    assert!(stage.mutex("orders").try_lock().await.unwrap().is_none());
    stage.java.does("a", "unlock spin orders").await;
    let guard = stage.mutex("orders").try_lock().await.unwrap().expect("it is free");
    let waiting = stage.java.ask("a", "try spin orders 20000 -1");
    guard.release().await.unwrap();
    assert_eq!(waiting.await.unwrap(), "true");
}

async fn who_would_wait_beside_a_fair_lock_is_told_so(version: Version) {
    let stage = Stage::start(version, 1).await;
    stage.java.does("a", "lock fair orders -1").await;
    let waiting = stage.java.ask("b", "try fair orders 60000 -1");
    until!("it stands in the queue", {
        let queue = stage.servers[0].command(&["EXISTS", "redisson_lock_queue:{orders}"]);
        queue == Ok(Reply::Int(1))
    });
    assert!(stage.mutex("orders").try_lock().await.unwrap().is_none());
    let error = stage.mutex("orders").lock_within(secs(20)).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("RFairLock"), "{error}");
    let error = stage.client.redisson().fair_mutex("orders").lock().await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("RFairLock"), "{error}");
    stage.java.does("a", "unlock fair orders").await;
    assert_eq!(waiting.await.unwrap(), "true", "it was not held up");
}

async fn a_read_write_lock_is_refused_by_us_and_shown(version: Version) {
    let stage = Stage::start(version, 1).await;
    for kind in ["read", "write"] {
        stage.java.does("a", &format!("lock {kind} orders -1")).await;
        let mutex = stage.mutex("orders");
        assert!(mutex.lock_within(ms(300)).await.unwrap().is_none(), "{kind}");
        let holder = mutex.inspect().await.unwrap().holders.remove(0);
        assert_eq!(holder.count, 1, "{kind}");
        stage.java.does("a", &format!("unlock {kind} orders")).await;
        mutex.try_lock().await.unwrap().expect("it is free").release().await.unwrap();
        stage.java.does("a", &format!("lock {kind} orders -1")).await;
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
        let guard = timeout(secs(20), mutex.lock()).await.expect("it is free").unwrap();
        let _ = stage.java.ask("a", &format!("unlock {kind} orders")).await;
        assert!(guard.is_held());
        guard.release().await.unwrap();
    }
}
