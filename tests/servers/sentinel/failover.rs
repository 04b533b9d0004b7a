//! Failovers while locks are held and asked for.

use std::{slice, time::Duration};

use quorate::{Builder, MutexGuard, Quarantine, Quorate};

use crate::sentinel::{address, make_deaf};
use quorate_support::{RedisServer, Sentinels, eventually_async, succeeds_async};
use quorate_tests::{
    load::Load,
    scene::{
        MS, called, connect, key, leased, now, patient, proxies, servers, since, until_queued,
        votes_for,
    },
    standing::{kept_out, make_old, until_kept_out, until_noticed},
};

/// Under the sentinels, and two servers without.
fn builder(sentinels: &Sentinels, servers: &[RedisServer]) -> Builder {
    let urls = servers.iter().map(RedisServer::url);
    patient(Quorate::builder().voter(address(sentinels)).voters(urls))
}

async fn until_all_vote(guard: &MutexGuard) {
    eventually_async("all voters vote for it", async || guard.votes() == 3).await;
}

/// A lock is held, another one is asked for all the time, and there is a failover meanwhile: what
/// is held stays held, what is asked for is given, and never twice.
async fn all_goes_on(fail_over: impl AsyncFnOnce(&mut Sentinels) -> usize) {
    let (mut sentinels, servers) = (Sentinels::start(), servers(2));
    let settings = || leased(builder(&sentinels, &servers), MS(8000));
    let client = connect(settings()).await;
    let guard = client.mutex("held").lock().await.expect("all are up");
    until_all_vote(&guard).await;
    let hold = guard.hold().to_string();
    // Every client has its turn.
    let load = Load::start(3, settings, 1).await;
    load.goes_on(20).await;

    let new = fail_over(&mut sentinels).await;
    until_noticed(&client, 0).await;
    load.goes_on(20).await;
    assert!(guard.is_held());
    eventually_async("the new primary is told", async || votes_for(&sentinels[new], "held", &hold))
        .await;
    eventually_async("its quarantine ends", async || kept_out(&client, 0).await.is_none()).await;
    load.goes_on(20).await;
    assert!(guard.is_held());
    until_all_vote(&guard).await;
    load.judge(40).await;
    guard.release().await.expect("it was never lost");
    eventually_async("nothing of it is left", async || !votes_for(&sentinels[new], "held", &hold))
        .await;
    assert!(client.mutex("held").try_lock().await.expect("all are up").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_by_command_loses_no_lock_and_gives_none_twice() {
    all_goes_on(async |sentinels| sentinels.failover().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_death_of_a_primary_loses_no_lock_and_gives_none_twice() {
    all_goes_on(async |sentinels| {
        let old = sentinels.primary();
        sentinels[old].kill();
        sentinels.wait_for_failover(old).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_comes_back_as_a_replica_is_not_used() {
    let mut sentinels = Sentinels::start();
    let client = connect(patient(Quorate::builder().voter(address(&sentinels)))).await;
    let old = sentinels.primary();
    sentinels[old].kill();
    sentinels.wait_for_failover(old).await;
    sentinels[old].restart();
    sentinels.settled().await;
    // What a primary writes its replicas write, too: not what it reads.
    let scripts = |server: usize| sentinels[server].calls("exists");
    // Alone it is kept out for the longest lease, so what shows that it is asked is that it runs
    // scripts. On a busy machine there may have been one more failover.
    succeeds_async("the new one is asked", async || {
        let tried = format!("{:?}", client.mutex("a").try_lock().await);
        let others = (0..3).filter(|&server| server != old).map(scripts).sum::<u64>();
        (others > 0).then_some(()).ok_or(tried)
    })
    .await;
    assert_eq!(scripts(old), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_listens_to_the_new_primary() {
    let sentinels = Sentinels::start();
    // Nobody is given a lock while the only voter is kept out.
    let minute = Duration::from_mins(1);
    let settings = || {
        Quorate::builder().voter(address(&sentinels)).poll_interval(minute).quorum_timeout(minute)
    };
    let settings = || leased(settings(), MS(8000));
    let (ada, ben) = (connect(settings()).await, connect(settings()).await);
    let guard = ada.mutex("a").lock().await.expect("it is up");
    let waiting = tokio::spawn(async move { ben.mutex("a").lock().await });
    let listens = async |server: usize| {
        let server = &sentinels[server];
        let heard = async || called(server) == 2;
        eventually_async("both listen", heard).await;
    };
    until_queued(slice::from_ref(&sentinels[sentinels.primary()]), 1).await;
    listens(sentinels.primary()).await;
    let new = sentinels.failover().await;
    listens(new).await;
    assert!(!waiting.is_finished() && guard.is_held());
    guard.release().await.expect("the new one has its vote too");
    waiting
        .await
        .expect("no panic")
        .expect("the quarantine ends")
        .release()
        .await
        .expect("it is up");
}

/// How many clients of ours a server has: none of the others has this name.
fn clients(server: &RedisServer) -> usize {
    let list = server.command(&["CLIENT", "LIST"]).expect("it answers");
    format!("{list:?}").matches(" user=locker ").count()
}

// As where the old primary is cut off with a client from sentinels and replicas: nobody ends the
// connections, and it would go on to vote. Here it obeys no sentinel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_does_not_learn_of_its_successor_is_left_all_the_same() {
    let sentinels = Sentinels::start();
    for server in sentinels.servers() {
        let locker = ["ACL", "SETUSER", "locker", "on", ">secret", "~*", "&*", "+@all"];
        server.command(&locker).expect("the user is set");
    }
    let address = address(&sentinels).replace("://", "://locker:secret@");
    let client = connect(patient(Quorate::builder().voter(address))).await;
    let mutex = client.mutex("a");
    assert!(mutex.try_lock().await.expect("it is up").is_some());
    let old = sentinels.primary();
    make_deaf(&sentinels[old]);
    assert!(clients(&sentinels[old]) > 0);
    let new = sentinels.failover().await;
    eventually_async("the new one is asked, and the old one left", async || {
        let _ = mutex.try_lock().await;
        clients(&sentinels[new]) == 2 && clients(&sentinels[old]) == 0
    })
    .await;
    assert_eq!(sentinels[old].info(&["INFO"], "role").as_deref(), Ok("master"));
}

// Ada holds by the first two voters and reaches no third, and does not renew. The primary of the
// first fails over, and its successor has missed her vote. Ben has seen that, and Cleo comes then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_that_a_failover_lost_lets_nobody_in() {
    let lease = MS(10_000);
    let (sentinels, servers) = (Sentinels::start(), servers(2));
    make_old(servers.iter().chain([&sentinels[sentinels.primary()]]));
    let third = proxies(&servers[1..]).await.remove(0);
    third.refuse().await;
    let ada = Quorate::builder().voter(address(&sentinels)).voter(servers[0].url());
    let ada = connect(leased(ada.voter(third.url()), lease)).await;
    let ben = connect(leased(builder(&sentinels, &servers), lease)).await;
    let entered = ben.mutex("b").lock().await.expect("all are up");
    eventually_async("ben reaches all", async || entered.votes() == 3).await;
    entered.release().await.expect("all are up");

    let guard = ada.mutex("a").lease_fixed(lease).lock().await.expect("two are up");
    let new = sentinels.failover().await;
    sentinels[new].command(&["DEL", &key("a")]).expect("it is a primary");
    let failed_over = now();
    until_kept_out(&ben, 0, Quarantine::Restarted).await;
    let cleo = connect(leased(builder(&sentinels, &servers), lease)).await;
    // She finds the mark of the one before her.
    let dora = connect(leased(builder(&sentinels, &servers), lease)).await;
    for client in [&cleo, &dora] {
        let why = kept_out(client, 0).await.map(|it| it.why);
        assert_eq!(why, Some(Quarantine::Young), "as young as its promotion");
    }
    for client in [&ben, &cleo, &dora] {
        let tried = client.mutex("a").try_lock().await;
        assert!(guard.is_held(), "the machine was too busy to show anything");
        assert!(!matches!(tried, Ok(Some(_))), "a second holder");
    }
    let entered = ben.mutex("a").lock().await.expect("all are up");
    assert!(!guard.is_held() && entered.is_held(), "after {:?}", since(failed_over));
}
