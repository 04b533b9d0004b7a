//! Those who wait in order, here and in Java.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    LEASE, NAME, builder, client,
    java::{Java, Subscriber, channel},
    servers,
};
use quorate_support::{Reply, eventually_async};
use quorate_tests::fixture::{Stopwatch, ms, secs};

/// Of a place in the queue: no sooner does a waiter ask again unless it is woken.
const REFRESH: Duration = secs(40);

// Java calls nobody in the queue. A place is refreshed after 40 s here, the lease has ten minutes
// to go, and so has the poll: only the channel wakes it.
#[tokio::test(flavor = "multi_thread")]
async fn an_unlock_in_java_wakes_who_waits_in_order_or_not() {
    let servers = servers::<3>();
    let (builder, place) = (builder(&servers), 3 * REFRESH);
    let builder = builder.lease(place).longest_lease(place).waiter_deadline(place);
    let client = builder.connect().await.unwrap();
    for (held, in_order) in [(0..3, true), (0..2, true), (0..3, false), (0..2, false)] {
        let java = Java::on_each(&servers[held]);
        assert!(java.iter().all(|java| java.try_lock(NAME, secs(600))));
        let (fair, plain) = (client.redisson().fair_mutex(NAME), client.redisson().mutex(NAME));
        let waiter =
            tokio::spawn(
                async move { if in_order { fair.lock().await } else { plain.lock().await } },
            );
        let listening = Ok(Reply::List(vec![Reply::Text(channel(NAME)), Reply::Int(1)]));
        eventually_async("it listens", async || {
            servers
                .iter()
                .all(|server| server.command(&["PUBSUB", "NUMSUB", &channel(NAME)]) == listening)
        })
        .await;
        // Long enough for the bid after the subscription.
        tokio::time::sleep(ms(300)).await;
        assert!(!waiter.is_finished());
        let watch = Stopwatch::start();
        assert!(java.iter().all(|java| java.unlock(NAME)));
        let guard = timeout(secs(60), waiter).await.expect("it is woken").unwrap().unwrap();
        assert!(watch.time() < REFRESH / 2, "{:?}", watch.time());
        guard.release().await.unwrap();
    }
}

// Java stands in no queue of ours, so it is told of each release also while others wait in order.
// They are called by name, and pass such a message over.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_to_the_next_who_waits_in_order_is_told_to_java() {
    let servers = servers::<1>();
    let client = client(&servers).await;
    let first = client.redisson().fair_mutex(NAME).lock().await.unwrap();
    let waiters = [0; 3].map(|_| {
        let mutex = client.redisson().fair_mutex(NAME);
        tokio::spawn(async move { mutex.lock().await.unwrap().release().await.unwrap() })
    });
    eventually_async("all stand in the queue", async || {
        client.redisson().fair_mutex(NAME).inspect().await.unwrap().queue().len() == 3
    })
    .await;
    let mut java = Subscriber::listen(&servers[0], NAME).await;
    first.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap();
    }
    let mut messages = Vec::new();
    for _ in 0..4 {
        messages.push(java.message().await);
    }
    // `Long.valueOf` reads each as 0, which is how Redisson's waiters are woken.
    assert_eq!(messages, ["00", "00", "00", "0"]);
}

// Redisson's fair lock has a queue and channels of its own: its waiters do not hear our release,
// nor do we keep their order.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_would_wait_beside_a_fair_lock_of_java_is_told_so() {
    let servers = servers::<1>();
    let (client, java) = (client(&servers).await, Java::new(&servers[0], 1));
    assert!(java.try_lock(NAME, LEASE));
    // As long as nobody waits there it is as any other lock.
    assert!(client.redisson().mutex(NAME).lock_within(ms(300)).await.unwrap().is_none());
    Java::new(&servers[0], 2).stand_in_fair_queue(NAME);
    let errors = [
        client.redisson().mutex(NAME).lock_within(secs(20)).await.unwrap_err(),
        client.redisson().fair_mutex(NAME).lock().await.unwrap_err(),
    ];
    for error in errors {
        assert!(error.is_invalid(), "{error}");
        let text = error.to_string();
        let begins = "`orders` is an RFairLock in Java, which is no lock of ours:";
        let ends = "has its queue, `redisson_lock_queue:{orders}`";
        assert!(text.contains(begins) && text.contains(ends), "{text}");
    }
    assert!(client.redisson().mutex(NAME).try_lock().await.unwrap().is_none(), "it is held");
}
