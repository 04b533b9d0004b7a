//! Sentinels watch a primary and its replicas, and put another in its place.

use super::{is_alive, text};
use quorate_support::{RedisServer, Sentinels, Settings};

#[tokio::test]
async fn a_failover_under_sentinel_names_another_primary() {
    let sentinels = Sentinels::start();
    assert_eq!((sentinels.primary(), sentinels.service()), (0, "lock-1"));
    assert_eq!(sentinels.sentinel_addresses().len(), 3);
    sentinels[0].commands(&[&["SET", "k", "v"], &["WAIT", "2", "5000"]]).expect("it answers");
    let new = sentinels.failover().await;
    assert_ne!(new, 0);
    assert_eq!(sentinels[new].command(&["SET", "k", "w"]), Ok(text("OK")));
    sentinels.settled().await;
    assert_eq!(sentinels.primary(), new);
    let refused = sentinels[0].command(&["SET", "k", "x"]).expect_err("it is a replica");
    assert!(refused.starts_with("READONLY"), "{refused}");
    // And again: to either of the two that are replicas now.
    assert_ne!(sentinels.failover().await, new);
}

#[tokio::test]
async fn a_dead_primary_is_replaced_by_sentinel_and_comes_back_as_a_replica() {
    let mut sentinels = Sentinels::start();
    sentinels[0].kill();
    let new = sentinels.wait_for_failover(0).await;
    sentinels[new].command(&["SET", "k", "v"]).expect("it is the primary");
    sentinels[0].restart();
    sentinels.settled().await;
    assert_eq!(sentinels[0].command(&["GET", "k"]), Ok(text("v")));
    // A primary that was a replica at first stays what it is over a restart.
    sentinels[new].restart();
    sentinels.settled().await;
    let role = sentinels[new].info(&["INFO", "replication"], "role");
    let is_primary = role == Ok("master".to_owned());
    assert_eq!(is_primary, sentinels.primary() == new);
}

#[tokio::test]
async fn sentinels_and_servers_can_want_a_login() {
    let users = Settings::new().users(&["locker on >secret ~* &* +@all"]);
    let sentinels = Sentinels::start_as(&users, &users);
    assert_ne!(sentinels.failover().await, 0);
}

#[test]
fn no_sentinel_and_no_server_is_left() {
    let mut sentinels = Sentinels::start();
    let all = sentinels.sentinels().iter().map(RedisServer::pid).collect::<Vec<_>>();
    let all = [all, sentinels.servers().iter().map(RedisServer::pid).collect()].concat();
    assert_eq!(all.len(), 6);
    drop(sentinels);
    assert!(!all.into_iter().any(is_alive));
}
