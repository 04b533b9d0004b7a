//! A voter whose server sentinels name: a failover costs nobody a lock, and gives none twice.

use std::slice;

use quorate_support::succeeds_async;
use quorate_tests::{
    load::Load,
    prelude::*,
    scene::{called, until_queued},
    standing::until_noticed,
};

/// The address of a voter that these sentinels watch.
fn address(sentinels: &Sentinels) -> String {
    named(sentinels, &sentinels.sentinel_addresses())
}

/// The same by these ways to the sentinels.
fn named(sentinels: &Sentinels, hosts: &[String]) -> String {
    format!("redis-sentinel://{}/{}", hosts.join(","), sentinels.service())
}

/// No sentinel has the server follow another one, or ends its connections. By what is left of
/// `CLIENT`: servers older than 7.0 cannot take one part of a command away.
fn make_deaf(server: &RedisServer) {
    let user = ["ACL", "SETUSER", "default", "-slaveof", "-replicaof", "-client"];
    let rules = [&user[..], &["+client|id", "+client|list", "+client|setname"]].concat();
    server.command(&rules).expect("the user is set");
}

// Which sentinels are asked, and what is told where they do not answer.

async fn refused(address: String) -> Error {
    let builder = Quorate::builder().voter(address).connect_timeout(MS(10_000));
    let error = builder.connect().await.expect_err("it names no server");
    assert!(error.is_not_connected());
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_the_sentinels_do_not_know_is_told_with_what_each_says() {
    let sentinels = Sentinels::start();
    let error = refused(address(&sentinels).replace("/lock-1", "/other")).await.to_string();
    assert!(error.contains("0 of 3 sentinels say where `other` is"), "{error}");
    for sentinel in sentinels.sentinel_addresses() {
        let told = format!("{sentinel}: no such service");
        assert!(error.contains(&told), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_of_the_sentinels_must_say_where_the_primary_is() {
    let mut sentinels = Sentinels::start();
    let url = address(&sentinels);
    sentinels.sentinels()[0].kill();
    let client = connect(patient(Quorate::builder().voter(&url))).await;
    let works = async || matches!(client.mutex("a").try_lock().await, Ok(Some(_)));
    assert!(works().await);
    let seen = client.mutex("a").inspect().await.expect("it is up");
    let label = format!("{}@{}", sentinels.service(), sentinels.sentinel_addresses().join(","));
    assert_eq!(seen.voters[0].voter, label);
    sentinels.sentinels()[1].kill();
    assert!(works().await, "for a moment without a majority of them");
    let mut why = String::new();
    until!("the voter is left", {
        let tried = client.mutex("a").try_lock().await;
        why = tried.err().map(|error| error.to_string()).unwrap_or_default();
        why.contains("1 of 3 sentinels say where `lock-1` is")
    });
    assert!(why.contains("Connection refused"), "{why}");
    sentinels.sentinels()[1].restart();
    eventually_async("it is back", works).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_servers_have_users_of_their_own() {
    let users = ["quorate on >of-the-servers ~* &* +@all"];
    let rights = "+sentinel|master +sentinel|get-master-addr-by-name";
    let watching = [&*format!("asker on >of-the-sentinels resetchannels -@all {rights}")];
    let settings = (Settings::new().users(&users), Settings::new().users(&watching));
    let sentinels = Sentinels::start_as(&settings.0, &settings.1);
    let plain = address(&sentinels);
    let with_user = plain.replace("://", "://quorate:of-the-servers@");
    let right = format!("{with_user}?sentinel_user=asker&sentinel_password=of-the-sentinels");
    let client = connect(patient(Quorate::builder().voter(right))).await;
    assert!(client.mutex("a").try_lock().await.expect("it is up").is_some());
    for (wrong, expected) in [
        (format!("{plain}?sentinel_user=asker&sentinel_password=of-the-sentinels"), "NOAUTH"),
        (with_user.clone(), "0 of 3 sentinels"),
        (format!("{with_user}?sentinel_user=asker&sentinel_password=hunter2"), "WRONGPASS"),
    ] {
        let error = refused(wrong).await.to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("of-the-se") && !error.contains("hunter2"), "{error}");
    }
}

// Failovers while locks are held and asked for.

/// Under the sentinels, and two servers without.
fn beside(sentinels: &Sentinels, servers: &[RedisServer]) -> Builder {
    let urls = servers.iter().map(RedisServer::url);
    patient(Quorate::builder().voter(address(sentinels)).voters(urls))
}

async fn until_all_vote(guard: &MutexGuard) {
    until!("all voters vote for it", guard.votes() == 3);
}

/// A lock is held, another one is asked for all the time, and there is a failover meanwhile: what
/// is held stays held, what is asked for is given, and never twice.
async fn all_goes_on(fail_over: impl AsyncFnOnce(&mut Sentinels) -> usize) {
    let (mut sentinels, servers) = (Sentinels::start(), servers(2));
    let settings = || leased(beside(&sentinels, &servers), MS(8000));
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
    until!("the new primary is told", votes_for(&sentinels[new], "held", &hold));
    until!("its quarantine ends", kept_out(&client, 0).await.is_none());
    load.goes_on(20).await;
    assert!(guard.is_held());
    until_all_vote(&guard).await;
    load.judge(40).await;
    guard.release().await.expect("it was never lost");
    until!("nothing of it is left", !votes_for(&sentinels[new], "held", &hold));
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
    until!("the new one is asked, and the old one left", {
        let _ = mutex.try_lock().await;
        clients(&sentinels[new]) == 2 && clients(&sentinels[old]) == 0
    });
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
    let ben = connect(leased(beside(&sentinels, &servers), lease)).await;
    let entered = ben.mutex("b").lock().await.expect("all are up");
    until!("ben reaches all", entered.votes() == 3);
    entered.release().await.expect("all are up");

    let guard = ada.mutex("a").lease_fixed(lease).lock().await.expect("two are up");
    let new = sentinels.failover().await;
    sentinels[new].command(&["DEL", &key("a")]).expect("it is a primary");
    let failed_over = now();
    until_kept_out(&ben, 0, Quarantine::Restarted).await;
    let cleo = connect(leased(beside(&sentinels, &servers), lease)).await;
    // She finds the fingerprint of the one before her.
    let dora = connect(leased(beside(&sentinels, &servers), lease)).await;
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

// A primary that is cut off together with a client goes on to vote for it beside its successor.

// Ada has the old primary and the second voter. Her renewals count there for seconds after the
// failover, each for a whole lease. Ben has the new primary and the third, from the failover on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_by_a_primary_that_was_replaced_is_alone_until_its_lease_ends() {
    let lease = MS(4_000);
    let (mut sentinels, servers) = (Sentinels::start(), servers(2));
    let to_sentinels = proxies(sentinels.sentinels()).await;
    let third = proxies(&servers[1..]).await.remove(0);
    third.refuse().await;
    let hosts: Vec<_> =
        to_sentinels.iter().map(|way| format!("127.0.0.1:{}", way.port())).collect();
    let ada = Quorate::builder().voter(named(&sentinels, &hosts)).voter(servers[0].url());
    let ada = connect(leased(patient(ada.voter(third.url())), lease)).await;
    let ben = Quorate::builder().voter(address(&sentinels)).voter(servers[0].url());
    let ben = connect(leased(patient(ben.voter(servers[1].url())), lease)).await;
    let entered = ben.mutex("b").lock().await.expect("all are up");
    until!("ben reaches all", entered.votes() == 3);
    entered.release().await.expect("all are up");

    let guard = ada.mutex("a").lock().await.expect("two are up");
    to_sentinels.iter().for_each(Proxy::black_hole);
    let old = sentinels.primary();
    make_deaf(&sentinels[old]);
    let new = sentinels.failover().await;
    let failed_over = now();
    sentinels[new].command(&["DEL", &key("a")]).expect("it is a primary");
    let mut outlived = false;
    until!("ben is let in", {
        let tried = ben.mutex("a").try_lock().await;
        let held = guard.is_held();
        assert!(!(held && matches!(tried, Ok(Some(_)))), "after {:?}", since(failed_over));
        outlived |= held && since(failed_over) > lease;
        matches!(tried, Ok(Some(_)))
    });
    assert!(outlived, "the machine was too busy to show anything");
}

// Replicas cannot vote: what they have granted would not be known to their primary.

fn demote(server: &RedisServer, primary: &RedisServer) {
    let port = primary.port().to_string();
    server.command(&["REPLICAOF", "127.0.0.1", &port]).expect("it becomes a replica");
}

fn promote(server: &RedisServer) {
    server.command(&["REPLICAOF", "NO", "ONE"]).expect("it becomes a primary");
}

// The connection stands: nobody ends it, as sentinels would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_is_made_a_replica_is_left_and_comes_back_as_another() {
    let servers = servers(2);
    let client = connect(builder(&servers[1..]).longest_lease(MS(30_000))).await;
    let mutex = client.mutex("a");
    assert!(mutex.try_lock().await.expect("it is up").is_some());
    demote(&servers[1], &servers[0]);
    until!("it is left", {
        let why = mutex.try_lock().await.err().map(|error| error.to_string());
        why.is_some_and(|why| why.contains("unreachable: ") && why.contains("is a replica"))
    });
    promote(&servers[1]);
    until!("it is back, and kept out", {
        let entered = mutex.try_lock().await;
        assert!(!matches!(entered, Ok(Some(_))), "it may have forgotten");
        let seen = mutex.inspect().await.ok();
        let quarantine = seen.and_then(|seen| seen.voters[0].quarantine);
        quarantine.is_some_and(|quarantined| quarantined.why == Quarantine::Restarted)
    });
}
