//! A `RedissonRedLock` has another owner on each server.

use quorate::Quorate;
use tokio::{task::JoinHandle, time::timeout};

use super::{
    LEASE, NAME, client,
    java::{Java, channel},
    servers,
};
use quorate_support::{RedisServer, Reply, eventually_async};
use quorate_tests::fixture::{Stopwatch, ms, secs};

async fn until_listening(servers: &[RedisServer]) {
    let listening = Ok(Reply::List(vec![Reply::Text(channel(NAME)), Reply::Int(1)]));
    eventually_async("it listens on all servers", async || {
        let listens = |server: &RedisServer| {
            server.command(&["PUBSUB", "NUMSUB", &channel(NAME)]) == listening
        };
        servers.iter().all(listens)
    })
    .await;
}

fn wait_for(client: &Quorate) -> JoinHandle<Result<quorate::MutexGuard, quorate::Error>> {
    let mutex = client.redisson().mutex(NAME);
    tokio::spawn(async move { mutex.lock().await })
}

fn scripts_run(servers: &[RedisServer]) -> u64 {
    servers.iter().map(|server| server.calls("evalsha")).sum()
}

// The poll is ten minutes away, and so is the end of the lease: only the calls wake it.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_holder_that_is_listened_to_and_whose_release_wakes_us_at_once() {
    let servers = servers::<3>();
    let client = client(&servers).await;
    for held in [0..3, 0..2] {
        let java = Java::on_each(&servers[held]);
        assert!(java.iter().all(|java| java.try_lock(NAME, secs(600))));
        assert!(client.redisson().mutex(NAME).try_lock().await.unwrap().is_none());
        let waiter = wait_for(&client);
        until_listening(&servers).await;
        // It has asked once more behind its subscription, and then leaves the servers alone.
        tokio::time::sleep(ms(300)).await;
        let before = scripts_run(&servers);
        tokio::time::sleep(secs(1)).await;
        assert!(!waiter.is_finished());
        let more = scripts_run(&servers) - before;
        assert!(more <= 3, "{more} scripts in a second");
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
    let guard = timeout(secs(20), wait_for(&client)).await.expect("it ends").unwrap().unwrap();
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
    let waiter = wait_for(&client);
    // The first request brings its script along, the second names it.
    eventually_async("it asked twice", async || scripts_run(&servers[..1]) > before).await;
    servers[2].resume();
    let guard = timeout(secs(20), waiter).await.expect("it is asked again").unwrap().unwrap();
    guard.release().await.unwrap();
}

// A majority of its votes is gone, so another had the lock, whoever that is by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_it_took_by_force_is_lost_at_its_next_renewal() {
    let servers = servers::<3>();
    let guard = client(&servers).await.redisson().mutex(NAME).lease(secs(24)).lock().await.unwrap();
    eventually_async("all have voted", async || guard.votes() == 3).await;
    let watch = Stopwatch::start();
    for java in &Java::on_each(&servers)[..2] {
        assert!(java.force_unlock(NAME) && java.try_lock(NAME, LEASE));
    }
    timeout(secs(60), guard.lost()).await.expect("it is told");
    assert!(watch.time() < secs(20), "not at its deadline: {:?}", watch.time());
}
