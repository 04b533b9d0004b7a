//! A `RedissonRedLock` has another owner on each server.

use quorate_tests::prelude::*;

use super::{
    LEASE, NAME, builder, client,
    java::{Java, Subscriber, channel},
    servers, until_listening,
};

fn wait_for(
    client: &Quorate,
    in_order: bool,
) -> JoinHandle<Result<quorate::MutexGuard, quorate::Error>> {
    let (fair, plain) = (client.redisson().fair_mutex(NAME), client.redisson().mutex(NAME));
    tokio::spawn(async move { if in_order { fair.lock().await } else { plain.lock().await } })
}

fn scripts_run(servers: &[RedisServer]) -> u64 {
    servers.iter().map(|server| server.calls("evalsha")).sum()
}

// The poll is ten minutes away, and so is the end of the lease, and a place in the queue is
// refreshed after 40 s, or after 4 s where no order is promised: only the calls wake it.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_holder_that_is_listened_to_and_whose_release_wakes_us_at_once() {
    let servers = servers::<3>();
    let (builder, place) = (builder(&servers), secs(120));
    let builder = builder.lease(place).longest_lease(place).waiter_deadline(place);
    let client = builder.connect().await.unwrap();
    for (held, in_order) in [(0..3, false), (0..2, false), (0..3, true), (0..2, true)] {
        let java = Java::on_each(&servers[held]);
        assert!(java.iter().all(|java| java.try_lock(NAME, secs(600))));
        assert!(client.redisson().mutex(NAME).try_lock().await.unwrap().is_none());
        let waiter = wait_for(&client, in_order);
        until_listening(&servers, &channel(NAME)).await;
        let left = servers[0].command(&["PTTL", "{orders}:quorate_queue"]);
        assert!(matches!(left, Ok(Reply::Int(12_001..))) == in_order, "{in_order}: {left:?}");
        // It has asked once more behind its subscription, and then leaves the servers alone.
        tokio::time::sleep(ms(300)).await;
        let before = scripts_run(&servers);
        tokio::time::sleep(secs(1)).await;
        assert!(!waiter.is_finished());
        let more = scripts_run(&servers) - before;
        // Who waits in order refreshes its place.
        assert!(in_order || more <= 3, "{more} scripts in a second");
        let watch = Stopwatch::start();
        assert!(java.iter().all(|java| java.unlock(NAME)));
        let guard = timeout(secs(20), waiter).await.expect("it is woken").unwrap().unwrap();
        assert!(watch.time() < secs(15), "{:?}", watch.time());
        guard.release().await.unwrap();
    }
}

// Its leases end at about the same time, and nobody says so: the waiter asks when a majority of
// them must have ended.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_waited_for_until_the_leases_of_a_majority_end() {
    let servers = servers::<3>();
    let client = client(&servers).await;
    for (java, lease) in Java::on_each(&servers).iter().zip([600, 2, 2]) {
        assert!(java.try_lock(NAME, secs(lease)));
    }
    let watch = Stopwatch::start();
    let waiter = wait_for(&client, false);
    let guard = timeout(secs(20), waiter).await.expect("it ends").unwrap().unwrap();
    assert!((ms(1_500)..secs(15)).contains(&watch.time()), "{:?}", watch.time());
    guard.release().await.unwrap();
}

// It is silent for both of the attempts after which it waits for the other two.
#[tokio::test(flavor = "multi_thread")]
async fn a_voter_that_was_silent_is_asked_again_long_before_the_other_leases_end() {
    let servers = servers::<3>();
    let client = client(&servers).await;
    for (java, lease) in Java::on_each(&servers[..2]).iter().zip([600, 2]) {
        assert!(java.try_lock(NAME, secs(lease)));
    }
    servers[2].stop();
    let before = scripts_run(&servers[..1]);
    let waiter = wait_for(&client, false);
    // The first request brings its script along, the second names it.
    until!("it asked twice", scripts_run(&servers[..1]) > before);
    servers[2].resume();
    let guard = timeout(secs(20), waiter).await.expect("it is asked again").unwrap().unwrap();
    guard.release().await.unwrap();
}

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
