//! Servers that stand still for moments, while a client that skips a step tries to come in.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use quorate::Quorate;
use quorate_support::{Proxy, RedisServer};
use quorate_tests::scene::{connect, proxies, servers};

const MS: fn(u64) -> Duration = Duration::from_millis;
/// How long the other client tries.
const TRIES: Duration = Duration::from_secs(8);

// The first client has no way to two of the five, of which the other one counts two of three. So
// one voter alone knows of both. It may have no connection to it yet when it is let in, but soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "real servers live in real time")]
async fn who_skips_a_step_while_servers_stand_still_for_moments_holds_nothing_beside_others() {
    let servers = Arc::new(servers(5));
    let ways = proxies(&servers[..2]).await;
    for way in &ways {
        way.refuse().await;
    }
    let urls = ways.iter().map(Proxy::url);
    let urls = urls.chain(servers[2..].iter().map(RedisServer::url));
    let first = Quorate::builder().voters(urls).roster(1).voter_deadline(MS(1_000));
    let first = connect(first).await;
    let held = first.mutex("m").lock().await.expect("a majority is up");
    let over = Arc::new(AtomicBool::new(false));
    let (stopped, ends) = (Arc::clone(&servers), Arc::clone(&over));
    let stopping = std::thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            stopped[..3].iter().for_each(RedisServer::stop);
            std::thread::sleep(MS(300));
            stopped[..3].iter().for_each(RedisServer::resume);
            std::thread::sleep(MS(200));
        }
    });
    let started = Instant::now();
    let (mut refused, mut let_in) = (0, Vec::new());
    while started.elapsed() < TRIES {
        let urls = servers[..3].iter().map(RedisServer::url);
        match Quorate::builder().voters(urls).roster(2).connect_timeout(MS(2_000)).connect().await {
            Ok(other) => {
                let guard = other.mutex("m").lock_within(MS(500)).await;
                let_in.push((other, guard.ok().flatten()));
            }
            Err(error) => {
                assert!(error.is_out_of_step() || error.is_not_connected(), "{error}");
                refused += 1;
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    stopping.join().expect("it ends");
    assert!(refused > 0, "one voter knows of both");
    tokio::time::sleep(MS(3_000)).await;
    assert!(held.is_held(), "nobody takes it from the first one");
    for (other, guard) in &let_in {
        assert!(!guard.as_ref().is_some_and(quorate::MutexGuard::is_held), "both hold it");
        assert!(other.mutex("n").try_lock().await.is_err(), "it knows by now");
    }
    println!("{refused} times refused, {} times let in", let_in.len());
}
