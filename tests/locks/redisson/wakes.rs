//! Whoever gives a vote back wakes those who wait for it, whichever language they speak.

use super::{
    LEASE, NAME, client,
    java::{Java, Subscriber},
    servers,
};

// Two of three are Java's, so the one vote that we get is no majority: it goes back, and whoever
// waits at that server in Java hears of it. Otherwise it would sleep until the lease ends.
#[tokio::test(flavor = "multi_thread")]
async fn the_vote_of_a_minority_that_is_given_back_wakes_java() {
    let servers = servers::<3>();
    let client = client(&servers).await;
    let java = Java::on_each(&servers);
    assert!(java[1].try_lock(NAME, LEASE) && java[2].try_lock(NAME, LEASE));
    let mut waiter = Subscriber::listen(&servers[0], NAME).await;
    assert!(client.redisson().mutex(NAME).try_lock().await.unwrap().is_none());
    assert_eq!(waiter.message().await, "0");
    assert!(java[0].try_lock(NAME, LEASE), "it is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_wakes_java() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    let mut waiter = Subscriber::listen(&servers[0], NAME).await;
    let guard = client.redisson().mutex(NAME).lock().await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(waiter.message().await, "0");
}
