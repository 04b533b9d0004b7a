//! What servers say and show of themselves, and who is told of it.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    thread,
};

use quorate::{Side, Status, VoterStatus};
use quorate_tests::{
    prelude::*,
    scene::{DURABLE, connections},
    standing::refused,
};

// Servers in two sets of voters.

fn changing() -> Builder {
    leased(Quorate::builder(), MS(12_000))
}

/// By another address of the same server.
fn also(server: &RedisServer) -> String {
    format!("redis://localhost:{}", server.port())
}

#[tokio::test]
async fn a_server_in_both_sets_is_named_alike_in_both() {
    let servers = servers(4);
    let urls: Vec<_> = servers.iter().map(RedisServer::url).collect();
    let both = changing().voters(&urls[1..]).replacing(&urls[..3]);
    let client = connect(both).await;
    let status = client.status().await;
    let sides: Vec<_> = status.voters.iter().map(|voter| voter.side).collect();
    let [new, both, old] = [Side::New, Side::Both, Side::Old].map(Some);
    assert_eq!(sides, [new, both, both, old]);

    let otherwise = [urls[0].clone(), also(&servers[1]), urls[2].clone()];
    let error = changing().voters(&urls[1..]).replacing(otherwise).connect().await;
    let error = error.expect_err("two voters are one server");
    assert!(error.is_invalid(), "{error}");
    let told = error.to_string();
    assert!(told.contains("are the same server, which has one vote"), "{told}");
    assert!(told.ends_with("; give the server the same address in both sets"), "{told}");
}

// Addresses that lead to the server of another voter.

/// For so long a voter that has changed its server is kept out of new holds: the test waits for
/// the end of it.
const LEASE: Duration = Duration::from_secs(8);

/// From now on new connections by this way come to that server; those that stand are cut.
fn lead(way: &Path, server: &RedisServer, standing: &[RedisServer]) {
    let _ = fs::remove_file(way);
    symlink(server.socket(), way).expect("the folder is private");
    for server in standing {
        for kind in ["normal", "pubsub"] {
            server.command(&["CLIENT", "KILL", "TYPE", kind]).expect("they can be cut");
        }
    }
}

fn is_twin(error: &Error, voter: usize, of: &Path) -> bool {
    match &error.voters()[voter].verdict {
        Verdict::Unknown(Cause::Duplicate(other)) => **other == *of.to_string_lossy(),
        _ => false,
    }
}

// All servers write every change, so no restart is suspected where one comes back as another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_comes_back_as_the_server_of_another_has_no_vote_until_it_is_its_own_again() {
    let mut servers = servers_with(3, &DURABLE);
    let folder = tempfile::tempdir().expect("a temp dir");
    let ways: Vec<PathBuf> = (0..3).map(|way| folder.path().join(format!("way-{way}"))).collect();
    for (way, server) in ways.iter().zip(&servers) {
        lead(way, server, &[]);
    }
    let urls = || ways.iter().map(|way| format!("redis+unix://{}", way.display()));
    let ada = connect(leased(Quorate::builder().voters(urls()), LEASE)).await;
    let ben = connect(leased(builder(&servers), LEASE)).await;
    for client in [&ada, &ben] {
        until!("all count", client.status().await.counting() == 3);
    }

    // Cleo meets the second for the first time when it is the first.
    fs::remove_file(&ways[1]).expect("it is there");
    let cleo = connect(leased(Quorate::builder().voters(urls()), LEASE)).await;
    fs::remove_file(&ways[2]).expect("it is there");
    lead(&ways[1], &servers[0], &servers[1..]);
    let mutex = ada.mutex("a");
    for mutex in [&mutex, &cleo.mutex("a")] {
        until!(
            "they are known to be one server",
            match mutex.try_lock().await {
                Ok(entered) => panic!("one server is a majority of three: {entered:?}"),
                Err(error) => error.is_no_quorum() && is_twin(&error, 1, &ways[0]),
            }
        );
    }
    let status = ada.status().await;
    assert!(matches!(status.voters[1].connection, Err(Cause::Duplicate(_))), "{status}");
    assert!(status.voters[0].counts && !status.has_quorum(), "{status}");
    until_given(&ben, "a").await;
    let guard = ben.mutex("a").lock().await.expect("all are up");
    let tried = mutex.try_lock().await;
    assert!(!matches!(tried, Ok(Some(_))), "{tried:?}");
    guard.release().await.expect("all confirm");

    lead(&ways[1], &servers[1], &servers[..1]);
    until_given(&ada, "a").await;
    servers[2].kill();
    until!(
        "and are needed",
        ada.status().await.counting() == 2 && matches!(mutex.try_lock().await, Ok(Some(_)))
    );
    for client in [ada, ben, cleo] {
        drop(client.close().await);
    }
    until!("no connection is left", servers[..2].iter().all(|server| connections(server) == 0));
}

// Servers that clients have not known for long.

/// INFO without a section, as it is asked on each new connection; fred's own names one.
const INFO: &str = "*1\r\n$4\r\nINFO\r\n";

// Two have forgotten, and the third knows what they knew. It answers after all their deadlines, and
// before a second is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_meets_young_servers_waits_for_the_one_that_may_be_older() {
    let servers = servers(3);
    make_old(&servers[2..]);
    for _ in 0..20 {
        let slow = Proxy::start(servers[2].port()).await;
        slow.hold_replies_from(INFO);
        let urls = servers[..2].iter().map(RedisServer::url).chain([slow.url()]);
        let builder = Quorate::builder().voters(urls).voter_deadline(MS(50));
        let began = now();
        let connecting = tokio::spawn(connect(builder));
        until!("it is asked", slow.holds_replies());
        sleep(MS(300)).await;
        let was_connected = connecting.is_finished();
        slow.pass();
        let client = connecting.await.expect("no panic");
        if since(began) > MS(900) {
            // The machine is too busy: who says nothing for a second counts as one that is away.
            continue;
        }
        assert!(!was_connected, "it has not waited");
        for voter in 0..2 {
            let why = kept_out(&client, voter).await.map(|kept| kept.why);
            assert_eq!(why, Some(Quarantine::Young));
        }
        return;
    }
    panic!("a server had no second for an answer in twenty tries");
}

// Servers whose data are deleted while they run.

// Ada holds by the first two and has never reached the third. Ben has met all three as they were,
// and asks before he looks at them again. Cleo comes then: by what they say of themselves all three
// have run for the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_flushed_helps_nobody_to_a_lock() {
    let servers = servers(3);
    drop(connect(builder(&servers)).await);
    make_old(&servers);
    let third = Proxy::start(servers[2].port()).await;
    third.refuse().await;
    let urls = [servers[0].url(), servers[1].url(), third.url()];
    let ada = connect(patient(Quorate::builder().voters(urls))).await;
    let guard = ada.mutex("a").lease_fixed(MS(30_000)).lock().await.expect("two are up");
    let ben = connect(builder(&servers)).await;
    until!("all count", ben.status().await.counting() == 3);
    servers[1].command(&["FLUSHALL"]).expect("it can be flushed");
    let tried = ben.mutex("a").try_lock().await;
    assert!(!matches!(tried, Ok(Some(_))), "a second holder");
    let why = kept_out(&ben, 1).await.map(|kept| kept.why);
    assert_eq!(why, Some(Quarantine::Emptied));
    let cleo = connect(builder(&servers)).await;
    refused(&cleo, 1).await;
    assert!(guard.is_held(), "the machine was too busy to show anything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_may_delete_votes_are_refused_unless_that_is_accepted() {
    let evicts = ["--maxmemory", "20mb", "--maxmemory-policy", "volatile-ttl"];
    let servers = servers_with(3, &evicts);
    // Only an operator can change that: nobody waits for it.
    let patient = builder(&servers).connect_timeout(MS(60_000)).connect();
    let (took, refused) = timed(patient).await;
    let error = refused.expect_err("they evict");
    assert!(error.is_not_connected() && took < MS(30_000), "after {took:?}: {error}");
    let told = "it deletes keys, and so votes, when its memory is full (maxmemory-policy \
        volatile-ttl with maxmemory 20971520)";
    assert!(error.to_string().contains(told), "{error}");

    let client = connect(builder(&servers).allow_eviction(true)).await;
    let guard = client.mutex("held").lock().await.expect("all are up");
    // Another tenant fills one of them; what ends first goes first, as votes do.
    let value = "a".repeat(100_000);
    for at in 0..400 {
        let other = format!("other:{at}");
        servers[0].command(&["SET", &other, &value, "EX", "3600"]).expect("there is room again");
    }
    let evicted = servers[0].info(&["INFO", "stats"], "evicted_keys").expect("it tells");
    assert_ne!(evicted, "0");
    until!(
        "it is kept out",
        kept_out(&client, 0).await.is_some_and(|kept| kept.why == Quarantine::Emptied)
    );
    assert!(guard.is_held(), "the others have its votes");
}

/// A server that deletes nothing any more, or that does.
fn set_policy(server: &RedisServer, policy: &str) {
    server.command(&["CONFIG", "SET", "maxmemory-policy", policy]).expect("it can be set");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_set_right_is_a_voter_without_a_restart_of_the_client() {
    let servers = servers_with(3, &["--maxmemory", "20mb"]);
    set_policy(&servers[2], "allkeys-lru");
    let client = connect(builder(&servers)).await;
    let status = client.status().await;
    let why = status.voters[2].connection.clone().expect_err("it evicts");
    assert!(why.to_string().contains("allkeys-lru"), "{why}");
    set_policy(&servers[2], "noeviction");
    until!("all count", client.status().await.counting() == 3);
}

// Servers without room in memory refuse what is new, and nothing else.

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

    until!("what was given back is gone", {
        let given_back = [key("a"), key("d")];
        servers.iter().all(|server| !server.keys().iter().any(|key| given_back.contains(key)))
    });

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
    let (servers, holder) = servers_and_client(3).await;
    let waiter = builder(&servers).voter_deadline(MS(500)).waiter_deadline(MS(2000));
    let waiter = connect(waiter).await;
    let guard = holder.fair_mutex("a").lock().await.expect("all are up");
    let waiting = tokio::spawn(waiter.fair_mutex("a").lock());
    let stands = async |client: &Quorate| {
        let seen = client.fair_mutex("a").inspect().await;
        seen.is_ok_and(|seen| seen.waiting.len() == 1)
    };
    until!("it stands in the queue", stands(&holder).await);
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
    until!("renewals are denied", {
        let log = format!("{:?}", server.command(&["ACL", "LOG"]).expect("it has a log"));
        log.contains("\"pexpire\"") && log.contains("\"pexpireat\"")
    });
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

// What a health endpoint is told.

fn connected(status: &Status) -> Vec<bool> {
    status.voters.iter().map(|voter| voter.connection.is_ok()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_hang_or_die_are_told_of_and_so_is_their_return() {
    let (mut servers, quorum) = servers_and_client(3).await;
    until!("all are connected", connected(&quorum.status().await) == [true; 3]);
    let labels: Vec<String> =
        servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    let status = quorum.status().await;
    assert!(status.voters.iter().map(|voter| &voter.voter).eq(&labels));
    assert_eq!((status.needed(), status.counting(), status.has_quorum()), (2, 3, true));

    servers[0].stop();
    until!("the first hangs", connected(&quorum.status().await) == [false, true, true]);
    assert!(quorum.status().await.has_quorum());
    servers[1].kill();
    until!("the second is dead", connected(&quorum.status().await) == [false, false, true]);
    let status = quorum.status().await;
    assert!(!status.has_quorum());
    let shown = status.to_string();
    let why = status.voters[0].connection.clone().expect_err("it hangs");
    let begin = format!("1 of 3 votes count, 2 are needed ({}: {why}; ", labels[0]);
    assert!(shown.starts_with(&begin) && shown.ends_with(": connected)"), "{shown}");

    servers[0].resume();
    servers[1].restart_empty();
    until!("both are back, and one of them has forgotten", {
        let status = quorum.status().await;
        connected(&status) == [true; 3] && status.counting() == 2
    });
    let status = quorum.status().await;
    let quarantined = status.voters[1].quarantine.expect("it has forgotten");
    assert_eq!(quarantined.why, Quarantine::Restarted);
    assert!(quarantined.left <= Duration::from_secs(30) && status.has_quorum());

    drop(quorum.close().await);
    let status = quorum.status().await;
    let closed = |connection: &Result<(), Cause>| matches!(connection, Err(Cause::Unreachable(_)));
    assert!(status.voters.iter().all(|voter| closed(&voter.connection)), "{status}");
}

// A server in any of these states answers PING.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_answer_and_take_no_votes_are_told_of_with_the_reason() {
    let servers = servers(3);
    for server in &servers {
        let user = ["ACL", "SETUSER", "quorate", "on", ">pw", "~*", "&*", "+@all"];
        server.command(&user).expect("there can be users");
    }
    let urls = servers.iter().map(|server| server.url_as("quorate", "pw"));
    let quorum = connect(Quorate::builder().voters(urls).voter_deadline(MS(2_000))).await;
    let all = |words: &[&str]| {
        for server in &servers {
            server.command(words).expect("it can be set");
        }
    };
    let refused = async |why: &str| {
        until!(why, {
            let status = quorum.status().await;
            let tells = |voter: &VoterStatus| {
                voter.connection.is_ok()
                    && voter.refuses.as_ref().is_some_and(|told| told.contains(why))
            };
            status.voters.iter().all(tells) && !status.has_quorum()
        });
        let status = quorum.status().await;
        assert!(status.to_string().contains("takes no new votes: "), "{status}");
        let error = quorum.mutex("a").try_lock().await.expect_err("nobody takes a vote");
        assert!(error.is_no_quorum() && error.to_string().contains(why), "{error}");
    };
    let counts = async || {
        until!("all count", quorum.status().await.counting() == 3);
    };
    counts().await;
    for (set, why, reset) in [
        (["CONFIG", "SET", "maxmemory", "1"], "OOM", ["CONFIG", "SET", "maxmemory", "0"]),
        (
            ["CONFIG", "SET", "min-replicas-to-write", "1"],
            "NOREPLICAS",
            ["CONFIG", "SET", "min-replicas-to-write", "0"],
        ),
        (
            ["ACL", "SETUSER", "quorate", "-evalsha"],
            "NOPERM",
            ["ACL", "SETUSER", "quorate", "+evalsha"],
        ),
    ] {
        // Scripts leave by their hash only once they were answered.
        drop(quorum.status().await);
        quorum.mutex("a").lock().await.expect("all are up").release().await.expect("all confirm");
        all(&set);
        refused(why).await;
        all(&reset);
        counts().await;
    }
    // One alone: the others are enough.
    servers[0].command(&["CONFIG", "SET", "maxmemory", "1"]).expect("it can be set");
    let status = quorum.status().await;
    assert!(status.counting() == 2 && status.has_quorum(), "{status}");
}

// It does nothing else, and so does not answer anything but that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_busy_with_a_script_takes_no_votes() {
    let servers = Arc::new(servers(1));
    let busy = ["CONFIG", "SET", "lua-time-limit", "1"];
    servers[0].command(&busy).expect("it can be set");
    let quorum = connect(builder(&servers).voter_deadline(MS(2_000))).await;
    let running = thread::spawn({
        let servers = Arc::clone(&servers);
        // It ends with an error when it is killed.
        move || drop(servers[0].command(&["EVAL", "while true do end", "0"]))
    });
    until!("it says so", {
        let status = quorum.status().await;
        status.voters[0].refuses.as_ref().is_some_and(|why| why.contains("BUSY"))
    });
    assert!(!quorum.status().await.has_quorum());
    servers[0].command(&["SCRIPT", "KILL"]).expect("it is ended");
    running.join().expect("no panic");
    until!("it counts", quorum.status().await.has_quorum());
}

// Votes that a voter may have kept though they were given back.

// The user may acquire, and not release: the server says so, and to ask again would be no use.
#[tokio::test]
async fn a_release_that_the_server_refuses_is_counted_as_a_vote_that_it_may_have_kept() {
    let (snapshotter, _recording) = record();
    let leaked = || added(&snapshotter, metric::LEAKED_VOTES, None);
    let users = ["locker on >password ~* &* +@all -hdel"];
    let server = RedisServer::start_as(&Settings::new().users(&users));
    let voter = server.url_as("locker", "password");
    let quorum = connect(patient(Quorate::builder().voter(voter))).await;
    let guard = quorum.mutex("a").lock().await.expect("it may acquire");
    assert_eq!(leaked(), 0);
    let error = guard.release().await.expect_err("it may not release");
    // Of Redis up to 7.0, and of later ones.
    let words = ["can't run this command", "has no permissions to run the 'hdel' command"];
    assert!(words.iter().any(|words| error.to_string().contains(words)), "{error}");
    let mut counted = 0;
    until!("it is counted", {
        counted += leaked();
        counted > 0
    });
    drop(quorum.close().await);
    assert_eq!(counted + leaked(), 1, "once");
}
