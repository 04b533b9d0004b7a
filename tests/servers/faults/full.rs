//! Servers without room in memory refuse what is new, and nothing else.

use quorate::{LockKind, Quorate};
use quorate_support::{RedisServer, Reply, eventually_async};
use quorate_tests::scene::{MS, builder, connect, key, leased, servers};
use tokio::time::sleep;

/// From now on servers refuse what may take memory, or do not any more.
fn set_memory(servers: &[RedisServer], limit: &str) {
    for server in servers {
        server.command(&["CONFIG", "SET", "maxmemory", limit]).expect("it can be set");
    }
}

async fn is_refused(client: &Quorate, name: &str) {
    let error = client.mutex(name).try_lock().await.expect_err("there is no room for it");
    assert!(error.is_no_quorum() && error.to_string().contains("OOM"), "{error}");
}

// Two leases pass. Redis refuses the first write of a script if that could take memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_on_full_servers_is_renewed_entered_again_given_back_and_ended_by_force() {
    let servers = servers(3);
    let lease = MS(8000);
    let client = connect(leased(builder(&servers), lease)).await;
    let mutex = client.mutex("a").lock().await.expect("all are up");
    let forced = client.mutex("e").lock().await.expect("all are up");
    let reading = client.rw_lock("b").read().await.expect("all are up");
    let other = client.rw_lock("b").read().await.expect("all are up");
    let writing = client.rw_lock("c").write().await.expect("all are up");
    let fair = client.fair_mutex("d").lock().await.expect("all are up");
    for server in &servers {
        server.command(&["SET", &key("f"), "text"]).expect("there is room");
    }
    set_memory(&servers, "1");
    is_refused(&client, "g").await;
    sleep(2 * lease).await;
    assert!(mutex.is_held() && reading.is_held() && other.is_held());
    assert!(writing.is_held() && fair.is_held());

    let again = mutex.reenter().await.expect("it is held");
    again.release().await.expect("a majority confirms");
    let again = writing.reenter().await.expect("it is held");
    again.release().await.expect("a majority confirms");
    mutex.release().await.expect("a majority confirms");
    fair.release().await.expect("a majority confirms");
    reading.release().await.expect("a majority confirms");

    eventually_async("what was given back is gone", async || {
        let given_back = [key("a"), key("d")];
        servers.iter().all(|server| !server.keys().iter().any(|key| given_back.contains(key)))
    })
    .await;

    let admin = client.admin();
    assert!(admin.clear(LockKind::Mutex, "f").await.expect("a majority confirms"));
    for (kind, name, hold) in [
        (LockKind::Mutex, "e", forced.hold()),
        (LockKind::RwLock, "b", other.hold()),
        (LockKind::RwLock, "c", writing.hold()),
    ] {
        admin.end(kind, name, hold).await.expect("a majority confirms");
    }
    assert!(forced.lost().await.is_lost());
    assert!(other.lost().await.is_lost() && writing.lost().await.is_lost());
    set_memory(&servers, "0");
    client.mutex("g").lock().await.expect("there is room").release().await.expect("all confirm");
}

// The place is refreshed meanwhile: without that it counts for two seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_while_servers_are_full_keeps_its_place() {
    let servers = servers(3);
    let holder = connect(builder(&servers)).await;
    let waiter = builder(&servers).voter_deadline(MS(500)).waiter_deadline(MS(2000));
    let waiter = connect(waiter).await;
    let guard = holder.fair_mutex("a").lock().await.expect("all are up");
    let waiting = tokio::spawn(waiter.fair_mutex("a").lock());
    let stands = async |client: &Quorate| {
        let seen = client.fair_mutex("a").inspect().await;
        seen.is_ok_and(|seen| seen.waiting.len() == 1)
    };
    eventually_async("it stands in the queue", async || stands(&holder).await).await;
    set_memory(&servers, "1");
    sleep(MS(5000)).await;
    assert!(stands(&holder).await && !waiting.is_finished());
    set_memory(&servers, "0");
    guard.release().await.expect("a majority confirms");
    let entered = waiting.await.expect("no panic").expect("all are up");
    entered.release().await.expect("a majority confirms");
}

// Who may not set an expiry cannot renew; what stands there goes on until its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_the_server_denies_takes_no_vote_and_leaves_nothing_without_an_end() {
    let server = servers(1).remove(0);
    let rules = ["ACL", "SETUSER", "quorate", "on", ">pw", "~*", "&*", "+@all"];
    server.command(&rules).expect("there can be users");
    let url = server.url().replacen("://", "://quorate:pw@", 1);
    let client = connect(leased(Quorate::builder().voter(url), MS(6000))).await;
    let guard = client.mutex("a").lock().await.expect("it is up");
    let reading = client.rw_lock("b").read().await.expect("it is up");
    let deny = ["ACL", "SETUSER", "quorate", "-pexpire", "-pexpireat"];
    server.command(&deny).expect("a right can be taken");
    eventually_async("renewals are denied", async || {
        let log = format!("{:?}", server.command(&["ACL", "LOG"]).expect("it has a log"));
        log.contains("\"pexpire\"") && log.contains("\"pexpireat\"")
    })
    .await;
    let of = |command, record: &str, hold: &str| server.command(&[command, record, hold]);
    assert_eq!(of("HEXISTS", &key("a"), guard.hold().as_str()), Ok(Reply::Int(1)));
    let read = of("ZSCORE", "quorate:{b}:rw:readers", reading.hold().as_str());
    assert!(matches!(read, Ok(Reply::Text(_))), "the vote is gone: {read:?}");
    drop(client.fair_mutex("a").lock_within(MS(300)).await);
    for key in server.keys() {
        let Ok(Reply::Int(ms)) = server.command(&["PTTL", &key]) else { panic!("{key}") };
        assert!(ms > 0, "{key} has no end");
    }
}
