//! Servers that are far away, and clients that have nothing to do.

use std::{sync::Arc, time::Duration};

use quorate::{Builder, Quorate};
use tokio::task::spawn_blocking;

use quorate_support::{Proxy, RedisServer};
use quorate_tests::scene::{MS, connect, patient, proxies, servers, watched};

/// One way; a request and its answer take twice as long.
const FAR: Duration = Duration::from_millis(120);

/// With the settings that a user has who sets none.
fn usual(proxies: &[Proxy]) -> Builder {
    Quorate::builder().voters(proxies.iter().map(Proxy::url))
}

async fn far(servers: &[RedisServer], one_way: Duration) -> Vec<Proxy> {
    let proxies = proxies(servers).await;
    for proxy in &proxies {
        proxy.delay(one_way, one_way);
    }
    proxies
}

// Making a connection takes several round trips, and a client that knows nothing of a server waits
// for a second: it has more time with each attempt. Then a voter has 200 ms to answer, unless it is
// known to need longer. That is known from when the client met it, so the very first request has the
// time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_far_away_have_the_time_that_they_need() {
    let servers = servers(3);
    let proxies = far(&servers, MS(400)).await;
    let client = connect(usual(&proxies)).await;
    for _ in 0..3 {
        let guard = client.mutex("a").try_lock().await.expect("they answer").expect("it is free");
        guard.extend(Duration::from_secs(20)).await.expect("they answer");
        guard.release().await.expect("they confirm");
    }
    let reader = client.rw_lock("b").read().await.expect("they answer");
    assert!(client.rw_lock("b").try_write().await.expect("they answer").is_none());
    reader.release().await.expect("they confirm");
    assert_eq!(client.mutex("a").inspect().await.expect("they answer").holder(), None);
    assert_eq!(client.status().await.counting(), 3);
    client.close().await;
}

// Its first requests come too late. Each time the next ones may take twice as long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_become_slow_have_more_and_more_time_until_they_answer() {
    let servers = servers(3);
    let proxies = proxies(&servers).await;
    let client = connect(usual(&proxies)).await;
    client.mutex("a").lock().await.expect("they answer").release().await.expect("they confirm");
    for proxy in &proxies {
        proxy.delay(MS(300), MS(300));
    }
    client.mutex("a").lock().await.expect("they answer").release().await.expect("they confirm");
    let guard = client.mutex("a").try_lock().await.expect("they answer");
    assert!(guard.is_some(), "it is known by now how long they take");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connect_says_so_where_no_majority_can_answer_in_time() {
    let servers = servers(3);
    let proxies = far(&servers, FAR).await;
    let refused = async |builder: Builder| {
        // It asks again all that time: a busy machine answers slowly too.
        let error = builder.connect_timeout(Duration::from_secs(8)).connect().await;
        let error = error.expect_err("they are too far away");
        assert!(error.is_not_connected(), "{error}");
        error.to_string()
    };
    let told = refused(usual(&proxies).voter_deadline(MS(100))).await;
    let end = "more than the voter deadline of 100ms: set a longer `voter_deadline`, or none";
    assert!(told.starts_with("a majority of the voters takes 2") && told.ends_with(end), "{told}");
    let told = refused(usual(&proxies).lease(Duration::from_secs(1))).await;
    let end = "more than 100ms, a tenth of the lease of 1s: set a longer `lease`";
    assert!(told.ends_with(end), "{told}");
    // A minority that is too far away is no hindrance.
    proxies[0].pass();
    proxies[1].pass();
    drop(connect(usual(&proxies).voter_deadline(MS(100))).await);
}

// In 65 s INFO and the mark six times, the roster four or five times, and now and then one of a
// name, of the disk and of the connection that listens. Asked every second, both connections alone
// would make 130.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_client_sends_each_server_at_most_three_commands_in_ten_seconds() {
    let server = Arc::new(servers(1).remove(0));
    let client = connect(patient(Quorate::builder().voter(server.url()))).await;
    // It has waited, and does so no more.
    let fair = client.fair_mutex("a");
    let guard = fair.lock().await.expect("it is up");
    assert!(fair.lock_within(MS(2_000)).await.expect("it is up").is_none());
    guard.release().await.expect("it confirms");
    let before = server.calls("config|get");
    let watching = Arc::clone(&server);
    let watched = spawn_blocking(move || watched(&watching, Duration::from_mins(1)));
    let sent = watched.await.expect("it is up");
    let settings = server.calls("config|get") - before;
    let of = |name| sent.iter().filter(|sent| *sent == name).count();
    assert!((5..=6).contains(&of("EVAL")) && of("EVAL") == of("INFO"), "{sent:?}");
    assert!((3..=6).contains(&of("EVALSHA")), "{sent:?}");
    // Three in ten seconds.
    assert!(sent.len() as u64 + settings <= 19, "{sent:?}, {settings}");
    client.close().await;
}
