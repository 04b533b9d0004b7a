//! Real servers that restart, with their data and without.

use quorate::{Cause, Error, Quarantine, Quorate, RestartGuard, Verdict};

use crate::{
    scene::{DURABLE, MS, builder, connect, now, proxies, servers, servers_with, since, votes_for},
    support::{RedisServer, Reply, eventually_async},
};

/// So many servers, which have run for long enough that one which restarts is the only young one:
/// those that start within five seconds count as started together.
async fn old_servers(count: usize) -> Vec<RedisServer> {
    let servers = servers(count);
    grow_old(&servers).await;
    servers
}

async fn grow_old(servers: &[RedisServer]) {
    eventually_async("they have run for a while", async || {
        servers.iter().all(|server| uptime_secs(server) >= 7)
    })
    .await;
}

fn uptime_secs(server: &RedisServer) -> u64 {
    let Ok(Reply::Text(info)) = server.command(&["INFO", "server"]) else { panic!("no text") };
    let uptime = info.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"));
    uptime.expect("it says so").trim().parse().expect("a number")
}

/// Why a voter is in quarantine, if it is.
fn quarantine(error: &Error, voter: usize) -> Option<Quarantine> {
    match error.voters()[voter].verdict {
        Verdict::Unknown(Cause::Quarantined(quarantined)) => Some(quarantined.why),
        _ => None,
    }
}

/// Waits until the client keeps a voter out for this reason; it never gets the lock meanwhile.
async fn until_kept_out(client: &Quorate, voter: usize, why: Quarantine) {
    let mutex = client.mutex("a");
    eventually_async("the one that restarted is kept out", async || {
        let tried = mutex.try_lock().await;
        assert!(!matches!(tried, Ok(Some(_))), "a second holder");
        let seen = mutex.inspect().await.ok().and_then(|seen| seen.voters[voter].quarantine);
        seen.is_some_and(|quarantined| quarantined.why == why)
    })
    .await;
}

// CONFORMANCE 38
// Ada holds by the first two servers and reaches no third, and does not renew. The second restarts
// empty. Ben has seen that, and Cleo comes then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_empty_helps_nobody_in_until_the_longest_lease_has_passed() {
    let lease = MS(5000);
    let mut servers = old_servers(3).await;
    let third = proxies(&servers[2..]).await.remove(0);
    third.refuse().await;
    let ada = connect(builder(&servers[..2]).voter(third.url()).longest_lease(lease).lease(lease));
    let ada = ada.await;
    let theirs = || builder(&servers).longest_lease(lease).lease(lease);
    let ben = connect(theirs()).await;
    eventually_async("ben reaches all three", async || {
        let entered = ben.mutex("b").try_lock().await;
        entered.is_ok_and(|entered| entered.is_some_and(|guard| guard.votes() == 3))
    })
    .await;

    let guard = ada.mutex("a").lease_fixed(lease).lock().await.expect("two are up");
    servers[1].restart();
    let restarted = now();
    let cleo = connect(builder(&servers).longest_lease(lease).lease(lease)).await;
    until_kept_out(&ben, 1, Quarantine::Restarted).await;
    until_kept_out(&cleo, 1, Quarantine::Young).await;
    assert!(guard.is_held(), "the machine was too busy to show anything");
    for client in [ben, cleo] {
        let entered = client.mutex("a").lock().await.expect("all are up");
        assert!(!guard.is_held() && since(restarted) + MS(500) >= lease);
        entered.release().await.expect("all confirm");
    }
}

// Ada holds by the first two and reaches no third; the second forgets it, and the first dies. Ben
// has only seen that the second started after the third, which then starts again with its data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_with_its_data_does_not_make_up_for_one_that_forgot() {
    let lease = MS(5000);
    let mut servers = servers_with(3, &DURABLE);
    servers[1] = RedisServer::start();
    grow_old(&servers).await;
    let third = proxies(&servers[2..]).await.remove(0);
    third.refuse().await;
    let ada = builder(&servers[..2]).voter(third.url()).longest_lease(lease).lease(lease);
    let ada = connect(ada).await;
    let guard = ada.mutex("a").lease_fixed(lease).lock().await.expect("two are up");
    servers[1].restart();
    let restarted = now();
    servers[0].kill();
    let ben = connect(builder(&servers).longest_lease(lease).lease(lease)).await;
    until_kept_out(&ben, 1, Quarantine::Young).await;
    servers[2].restart();
    assert!(guard.is_held(), "the machine was too busy to show anything");
    let entered = ben.mutex("a").lock().await.expect("two are up");
    assert!(!guard.is_held() && since(restarted) + MS(500) >= lease, "{:?}", since(restarted));
    entered.release().await.expect("both confirm");
}

// Both of two that are left are needed; by default the longest lease is longer than this waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_to_a_server_that_was_cut_is_no_quarantine() {
    let mut servers = servers(3);
    let proxies = proxies(&servers).await;
    let ben = connect(crate::scene::builder_through(&proxies)).await;
    servers[2].kill();
    for proxy in &proxies {
        proxy.cut().await;
    }
    eventually_async("both count", async || matches!(ben.mutex("a").try_lock().await, Ok(Some(_))))
        .await;
}

// Both of two that are left are needed, and restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_syncs_every_write_restarts_with_its_votes_and_without_a_quarantine() {
    let mut servers = servers_with(3, &DURABLE);
    let (ada, ben) = (connect(builder(&servers)).await, connect(builder(&servers)).await);
    let guard = ada.mutex("a").lock().await.expect("all are up");
    let hold = guard.hold().as_str();
    eventually_async("all vote", async || guard.votes() == 3).await;
    servers[2].kill();
    for server in &mut servers[..2] {
        server.restart();
        assert!(votes_for(server, "a", hold), "it has forgotten");
    }
    for client in [&ben, &connect(builder(&servers)).await] {
        eventually_async("both count", async || {
            matches!(client.mutex("b").try_lock().await, Ok(Some(_)))
        })
        .await;
        let tried = client.mutex("a").try_lock().await.expect("both answer");
        assert!(tried.is_none(), "a second holder");
    }
    assert!(guard.is_held());
    eventually_async("ada has come back to both", async || ada.status().await.counting() == 2)
        .await;
    guard.release().await.expect("both confirm");
}

// A server that says it syncs every write, and one that only seems to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_syncs_every_second_is_kept_out_after_a_restart() {
    let mut servers = servers_with(3, &["--appendonly", "yes", "--appendfsync", "everysec"]);
    let ben = connect(builder(&servers)).await;
    servers[2].kill();
    servers[1].restart();
    until_kept_out(&ben, 1, Quarantine::Restarted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_first_start_of_all_servers_a_lock_is_there_at_once_unless_the_guard_is_strict() {
    let longest = MS(4000);
    let servers = servers(3);
    let started = now();
    let settings = || builder(&servers).lease(longest).longest_lease(longest);
    let strict = connect(settings().restart_guard(RestartGuard::Strict)).await;
    let error = strict.mutex("a").try_lock().await.expect_err("nobody counts yet");
    assert_eq!(quarantine(&error, 0), Some(Quarantine::Young), "{error}");
    let relative = connect(settings()).await;
    let entered = relative.mutex("a").try_lock().await.expect("all are up").expect("it is free");
    entered.release().await.expect("all confirm");
    assert!(strict.mutex("a").try_lock().await.is_err() || since(started) + MS(500) > longest);
    eventually_async("the longest lease has passed", async || {
        matches!(strict.mutex("a").try_lock().await, Ok(Some(_)))
    })
    .await;
    assert!(since(started) + MS(1000) > longest, "after {:?}", since(started));
}

// The first two that come back are a majority: nobody enters before their quarantine has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_of_all_servers_who_saw_it_waits_for_the_longest_lease() {
    let longest = MS(4000);
    let mut servers = servers(3);
    let ben = connect(builder(&servers).lease(longest).longest_lease(longest)).await;
    servers.iter_mut().for_each(RedisServer::kill);
    servers[0].restart();
    let second = now();
    servers[1..].iter_mut().for_each(RedisServer::restart);
    until_kept_out(&ben, 0, Quarantine::Restarted).await;
    let guard = ben.mutex("a").lock().await.expect("all are up");
    assert!(since(second) >= longest, "after {:?}", since(second));
    guard.release().await.expect("all confirm");
}
