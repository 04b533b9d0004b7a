//! Servers are known by their fingerprints.

use std::time::Duration;

use super::{
    Arc, Cause, Heard, InspectionSettings, Node, RedisServer, answers, count, fails, number,
    run_ids, start_with,
};
use crate::{
    scripts::mutex,
    voter::{Call, Identity},
};
use quorate_support::{Proxy, Reply, are_before_7, eventually, eventually_async};

/// The key of the fingerprint.
const FINGERPRINT: &str = "quorate:{%voter}";
const SECS: fn(u64) -> Duration = Duration::from_secs;
const MS: fn(u64) -> Duration = Duration::from_millis;

fn looks() -> InspectionSettings {
    InspectionSettings { fingerprint: Some(FINGERPRINT.into()), ..InspectionSettings::default() }
}

fn start(url: &str) -> (Arc<dyn Node>, Arc<Heard>) {
    start_with(url, looks())
}

/// A node that has connected, and has left its fingerprint.
async fn connect(url: &str) -> (Arc<dyn Node>, Arc<Heard>) {
    let (node, heard) = start(url);
    answers(&node).await;
    (node, heard)
}

/// A replica that has become a primary, and its former primary.
fn promoted() -> (RedisServer, RedisServer) {
    let primary = RedisServer::start();
    let replica = primary.start_replica();
    tell(&replica, &["REPLICAOF", "NO", "ONE"]);
    (replica, primary)
}

fn tell(server: &RedisServer, words: &[&str]) {
    server.command(words).unwrap_or_else(|why| panic!("{words:?}: {why}"));
}

fn info(server: &RedisServer, name: &str) -> String {
    server.info(&["INFO"], name).unwrap()
}

/// A server that has run for a while and that nobody has met.
fn unmet() -> RedisServer {
    let server = RedisServer::start();
    eventually("it has run for a while", || server.uptime() >= SECS(3));
    server
}

// As in a Valkey 9.1 without the package that has Lua, and as where a service forbids scripts.
#[tokio::test]
async fn a_server_that_runs_no_scripts_is_refused_with_what_to_do() {
    let without_eval = RedisServer::start_with(&["--rename-command", "EVAL", ""]);
    let modules = ["--enable-module-command", "yes"];
    let without_lua = RedisServer::start_with(if are_before_7() { &[] } else { &modules });
    let has_lua_as_a_module = without_lua.command(&["MODULE", "UNLOAD", "lua"]).is_ok();
    let servers = [Some(without_eval), has_lua_as_a_module.then_some(without_lua)];
    for server in servers.into_iter().flatten() {
        let (node, heard) = start(&server.url());
        let told = "unreachable: it runs no Lua scripts, which all locks need";
        fails(&node, |cause| cause.to_string().starts_with(told)).await;
        assert!(heard.met.lock().unwrap().is_empty(), "it is no voter");
    }
}

/// The parts of the fingerprint: the name of the data, the life of the server, two numbers in
/// milliseconds, whether it forgets nothing by a restart, and another number in milliseconds.
fn fingerprint(server: &RedisServer) -> [String; 6] {
    let fingerprint = server.command(&["GET", FINGERPRINT]).unwrap().text();
    fingerprint.split(' ').map(str::to_owned).collect::<Vec<_>>().try_into().expect("six parts")
}

/// Makes the fingerprint older, or plants another one.
fn plant(server: &RedisServer, part: usize, text: &str) {
    let mut fingerprint = fingerprint(server);
    fingerprint[part] = text.to_owned();
    tell(server, &["SET", FINGERPRINT, &fingerprint.join(" "), "PX", "60000"]);
}

fn left(server: &RedisServer) -> Duration {
    let Reply::Int(left) = server.command(&["PTTL", FINGERPRINT]).unwrap() else {
        panic!("no number")
    };
    Duration::from_millis(left.try_into().expect("it has an expiry"))
}

fn name(identity: &Identity) -> String {
    identity.birth.as_ref().expect("the data have a name").name.to_string()
}

async fn met(url: &str) -> Identity {
    last(&connect(url).await.1)
}

fn last(heard: &Heard) -> Identity {
    heard.met.lock().unwrap().last().unwrap().0.clone()
}

/// What was heard of a server since it was met.
fn seen(heard: &Heard) -> Vec<Identity> {
    heard.seen.lock().unwrap().iter().map(|(identity, _)| identity.clone()).collect()
}

// Its own clock may have been set since it started: what it says of its age proves nothing.
#[tokio::test]
async fn a_server_is_as_old_as_its_mark_whatever_it_says_of_its_age() {
    let server = unmet();
    let first = met(&server.url()).await;
    assert!(first.age < SECS(1), "nobody has met it before: {:?}", first.age);
    let [_, life, ..] = fingerprint(&server);
    assert_eq!(life, format!("{}/", info(&server, "run_id")));
    eventually_async("it grows older", async || met(&server.url()).await.age >= SECS(1)).await;
    let again = met(&server.url()).await;
    assert!(again.age < server.uptime(), "{:?}", again.age);
    assert_eq!(name(&again), name(&first));
    assert_eq!(server.keys(), [FINGERPRINT], "and nothing else");
}

#[tokio::test]
async fn a_mark_is_kept_for_a_month_after_the_last_look() {
    let server = RedisServer::start();
    let (_node, _heard) = connect(&server.url()).await;
    let month = SECS(30 * 24 * 3_600);
    assert!(left(&server) <= month && left(&server) + SECS(60) > month);
    let before = fingerprint(&server);
    tell(&server, &["PEXPIRE", FINGERPRINT, "60000"]);
    eventually_async("it is kept for a month again", async || left(&server) + SECS(60) > month)
        .await;
    assert_eq!(fingerprint(&server)[..2], before[..2]);
}

// However far the clock was set ahead between two looks.
#[tokio::test]
async fn one_look_makes_a_server_no_more_than_fifteen_seconds_older() {
    let server = RedisServer::start();
    met(&server.url()).await;
    plant(&server, 3, "1000");
    let age = met(&server.url()).await.age;
    assert!(age >= SECS(15) && age < SECS(25), "{age:?}");
    // And one that was set back makes it no younger.
    plant(&server, 3, "99999999999999");
    let again = met(&server.url()).await.age;
    assert!(again >= age && again < age + SECS(10), "{again:?}");
}

// Who sees it first may tell nobody. After a start that forgets something the data are young
// anyway.
#[tokio::test]
async fn each_look_tells_that_the_clock_was_set_back_until_the_data_are_renamed_or_forgotten() {
    const AHEAD: u64 = 60_000;
    let server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let set_back = async || met(&server.url()).await.birth.expect("the data have a name").set_back;
    // As if somebody had looked when the clock was a minute ahead.
    let look_ahead = || {
        let looked = fingerprint(&server)[3].parse::<u64>().expect("a number");
        plant(&server, 3, &(looked + AHEAD).to_string());
    };
    let is_told = |by: Duration| by <= MS(AHEAD) && by > MS(AHEAD / 2);
    assert_eq!(set_back().await, MS(0));
    look_ahead();
    for _ in 0..2 {
        let by = set_back().await;
        assert!(is_told(by), "{by:?}");
    }
    let first = fingerprint(&server)[0].clone();
    connect(&server.url()).await.0.rename(0).await.unwrap();
    let renamed = fingerprint(&server)[0].clone();
    assert!(renamed.contains('-') && renamed.ends_with(&format!("~{first}")));
    assert_eq!(set_back().await, MS(0));
    // As if the server had started since.
    look_ahead();
    plant(&server, 1, "another");
    let by = set_back().await;
    assert!(is_told(by), "it writes all to disk: {by:?}");
    for (part, text) in [(1, "another"), (4, "0")] {
        plant(&server, part, text);
    }
    assert_eq!(set_back().await, MS(0));
}

#[tokio::test]
async fn another_start_and_another_promotion_make_a_server_young_and_keep_the_name_of_its_data() {
    let (server, _primary) = promoted();
    let first = met(&server.url()).await;
    plant(&server, 2, "3600000");
    assert!(met(&server.url()).await.age >= SECS(3600));
    plant(&server, 1, "another");
    let again = met(&server.url()).await;
    assert!(again.age < SECS(1), "{:?}", again.age);
    assert_eq!(name(&again), name(&first));

    let mut server = RedisServer::start();
    let first = met(&server.url()).await;
    plant(&server, 2, "3600000");
    tell(&server, &["SAVE"]);
    server.restart();
    let again = met(&server.url()).await;
    assert!(again.age < SECS(1) && name(&again) == name(&first), "{again:?}");
}

// An hour after it, or when it has no replica for as long as it is told.
#[tokio::test]
async fn a_server_that_forgets_that_it_was_promoted_is_no_younger() {
    let (server, primary) = promoted();
    drop(primary);
    let first = met(&server.url()).await;
    plant(&server, 2, "3600000");
    tell(&server, &["CONFIG", "SET", "repl-backlog-ttl", "1"]);
    let forgotten = || info(&server, "master_replid2").bytes().all(|byte| byte == b'0');
    eventually("it has forgotten", forgotten);
    let again = met(&server.url()).await;
    assert!(again.age >= SECS(3600) && name(&again) == name(&first), "{again:?}");
}

/// What an answer to a call for a lock says of the data.
async fn data(node: &Arc<dyn Node>) -> Option<String> {
    let keys = ["lock", "queue", "alive", "fence"];
    let acquire =
        Call::of(&mutex::ACQUIRE, &keys, &["calls:", "5000", "60000", "5000", "c:1", "7", ""]);
    node.send(acquire).await.remove(0).expect("it is granted").data
}

#[tokio::test]
async fn every_answer_says_whether_the_data_were_deleted() {
    let server = RedisServer::start();
    let (node, heard) = connect(&server.url()).await;
    // By the script as a whole, by its hash, and with packed arguments.
    for _ in 0..3 {
        assert_eq!(data(&node).await, Some(fingerprint(&server)[0].clone()));
    }
    tell(&server, &["FLUSHALL"]);
    assert_eq!(data(&node).await, Some(String::new()));
    assert_eq!(data(&node).await, Some(String::new()), "nor has the lock's own key a name");
    eventually_async("another name", async || {
        seen(&heard).last().is_some_and(|now| name(now) != name(&last(&heard)))
    })
    .await;
    assert_eq!(data(&node).await, Some(fingerprint(&server)[0].clone()));
    // Somebody else's value is no name.
    tell(&server, &["DEL", FINGERPRINT]);
    tell(&server, &["HSET", FINGERPRINT, "a", "b"]);
    assert_eq!(data(&node).await, Some(String::new()));
}

// A key that the user has no right to would have the whole call refused.
#[tokio::test]
async fn a_mark_that_cannot_be_read_is_no_key_of_a_call() {
    let server = RedisServer::start();
    let rights = ["ACL", "SETUSER", "lock", "on", "nopass", "+@all"];
    let keys = ["~lock", "~queue", "~alive", "~fence"];
    tell(&server, &[&rights[..], &keys].concat());
    let url = format!("redis://lock:x@127.0.0.1:{}", server.port());
    let (node, _heard) = connect(&url).await;
    assert_eq!(data(&node).await, None);
}

// What it says of its disk is true, and the data are gone all the same, or lack something.
#[tokio::test]
async fn data_are_as_old_as_they_are_known_whatever_the_server_says_of_its_disk() {
    let server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let met = async || {
        let met = met(&server.url()).await;
        assert!(met.durable);
        (name(&met), met.age)
    };
    let (node, _heard) = connect(&server.url()).await;
    let first = met().await.0;
    plant(&server, 2, "3600000");
    assert!(met().await.1 >= SECS(3600));
    node.rename(0).await.unwrap();
    let (renamed, age) = met().await;
    assert!(renamed != first && age < SECS(10), "{age:?}");
    node.rename(0).await.unwrap();
    assert_eq!(met().await.0, renamed, "it is renamed once");
    plant(&server, 2, "3600000");
    tell(&server, &["FLUSHALL"]);
    assert!(met().await.1 < SECS(1));
    assert!(met().await.1 < SECS(10), "also for who comes after the first");
}

// And all clients are told how old they were then: whoever looks first makes them older.
#[tokio::test]
async fn a_restart_makes_data_no_younger_where_all_was_on_disk_before_and_is_now() {
    let ways = [("always", "always", true), ("everysec", "always", false)];
    for (before, after, keeps) in ways.into_iter().chain([("always", "everysec", false)]) {
        let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", after]);
        tell(&server, &["CONFIG", "SET", "appendfsync", before]);
        let first = met(&server.url()).await;
        plant(&server, 2, "3600000");
        // Who does not ask how it writes changes nothing of that.
        connect(&server.url()).await.0.identify().await.unwrap();
        // So that the fingerprint itself is on disk.
        tell(&server, &["CONFIG", "SET", "appendfsync", "always"]);
        tell(&server, &["SET", "a", "b"]);
        let known = Duration::from_millis(fingerprint(&server)[2].parse().expect("an age"));
        server.restart();
        let again = met(&server.url()).await;
        assert_eq!(name(&again), name(&first));
        assert_eq!(again.age >= SECS(3600), keeps, "{before}, {after}: {:?}", again.age);
        if keeps {
            plant(&server, 2, "7200000");
            let second = met(&server.url()).await;
            assert!(second.age >= SECS(7200), "{second:?}");
            let began = [again, second].map(|met| met.birth.expect("it has a name").began);
            assert_eq!(began, [known; 2]);
        }
    }
}

#[tokio::test]
async fn a_setting_that_was_changed_is_heard_of_with_a_later_look_and_so_is_the_time() {
    let server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (_node, heard) = connect(&server.url()).await;
    let durable = || seen(&heard).last().map(|identity| identity.durable);
    eventually_async("it is durable", async || durable() == Some(true)).await;
    tell(&server, &["CONFIG", "SET", "appendfsync", "everysec"]);
    eventually_async("it is not any more", async || durable() == Some(false)).await;
    // The fingerprint tells it, at every look.
    assert!(heard.seen.lock().unwrap().iter().all(|(_, stamp)| stamp.is_some()));
    assert_eq!(heard.met.lock().unwrap().len(), 1, "on one connection");
}

#[tokio::test]
async fn who_may_not_look_at_the_mark_takes_the_server_for_as_old_as_its_process() {
    let server = unmet();
    let rules = ["ACL", "SETUSER", "poor", "on", ">pw", "~a*", "+@all"];
    tell(&server, &rules);
    let (node, heard) = connect(&server.url_as("poor", "pw")).await;
    assert!(last(&heard).age >= SECS(2) && last(&heard).birth.is_none());
    assert_eq!(node.run(count("a")).await, Ok(number(1)), "it is a voter all the same");
    assert_eq!(server.keys(), ["a"]);
    // The time, which no fingerprint tells, is asked for.
    let timed = || heard.seen.lock().unwrap().iter().any(|(_, stamp)| stamp.is_some());
    eventually_async("it tells its time", async || timed()).await;
}

#[tokio::test]
async fn a_server_that_can_write_nothing_now_says_why_and_its_data_have_no_name() {
    let server = unmet();
    for (setting, value, usual, why) in
        [("maxmemory", "1", "0", "OOM"), ("min-replicas-to-write", "1", "0", "NOREPLICAS")]
    {
        tell(&server, &["CONFIG", "SET", setting, value]);
        let (node, heard) = connect(&server.url()).await;
        let met = last(&heard);
        assert!(met.age < SECS(1) && met.birth.is_none(), "{met:?}");
        assert!(met.refuses.is_some_and(|refusal| refusal.contains(why)));
        let refuses = async || node.identify().await.unwrap().refuses;
        assert!(refuses().await.is_some_and(|refusal| refusal.contains(why)));
        tell(&server, &["CONFIG", "SET", setting, usual]);
        assert_eq!(refuses().await, None);
        tell(&server, &["DEL", FINGERPRINT]);
    }
}

#[tokio::test]
async fn a_server_whose_memory_is_limited_says_how_full_it_is() {
    let server = RedisServer::start_with(&["--maxmemory", "50mb"]);
    let used = info(&server, "used_memory").parse::<u32>().expect("a number");
    let told = met(&server.url()).await.memory.expect("it is limited");
    let expected = used / 52_429;
    assert!(expected > 0 && (expected..3 * expected).contains(&told), "{told} of {expected}");
}

#[tokio::test]
async fn a_server_that_was_a_replica_in_between_is_another_one_and_stays_that() {
    let (other, server) = promoted();
    let (_node, heard) = connect(&server.url()).await;
    let run_id = info(&server, "run_id");
    let met_again = async |times: usize| {
        tell(&server, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        eventually_async("it is met again", async || run_ids(&heard).len() == times).await;
        run_ids(&heard).pop().unwrap()
    };
    let mut told = vec![run_id.clone()];
    for times in 2..=3 {
        tell(&server, &["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
        eventually("it has the data", || server.is_linked_to(&other).is_ok());
        tell(&server, &["REPLICAOF", "NO", "ONE"]);
        told.push(met_again(times).await);
        assert_eq!(told.last(), Some(&format!("{run_id}/{}", info(&server, "master_replid"))));
    }
    assert_ne!(told[1], told[2]);
    // After a time without replicas it does not tell any more that it was promoted.
    tell(&server, &["CONFIG", "SET", "repl-backlog-ttl", "1"]);
    let forgotten = || info(&server, "master_replid2").bytes().all(|byte| byte == b'0');
    eventually("it has forgotten", forgotten);
    assert_eq!(met_again(4).await, told[2]);
}

// It may forget that it was promoted before it is met again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_seen_as_a_replica_is_another_one_whatever_it_forgets() {
    let (other, server) = (RedisServer::start(), RedisServer::start());
    let proxy = Proxy::start(server.port()).await;
    let (node, heard) = connect(&proxy.url()).await;
    tell(&server, &["CONFIG", "SET", "repl-backlog-ttl", "1"]);
    tell(&server, &["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
    fails(
        &node,
        |why| matches!(why, Cause::Unreachable(why) if why.text().contains("is a replica")),
    )
    .await;
    proxy.refuse().await;
    proxy.cut().await;
    tell(&server, &["REPLICAOF", "NO", "ONE"]);
    let forgotten = || info(&server, "master_replid2").bytes().all(|byte| byte == b'0');
    eventually("it has forgotten", forgotten);
    proxy.accept();
    answers(&node).await;
    let told = run_ids(&heard);
    let (first, again) = (told.first().unwrap(), told.last().unwrap());
    assert!(*first != *again && again.starts_with(&**first), "{told:?}");
}

// While it loads it does not tell yet what it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_loads_its_data_is_met_when_it_has_them() {
    // It answers after each kilobyte of them.
    let slowly = "--key-load-delay 100000 --loading-process-events-interval-bytes 1024 \
        --rdbcompression no";
    let mut server = RedisServer::start_with(&slowly.split_whitespace().collect::<Vec<_>>());
    let value = "a".repeat(2_000);
    for key in 0..20 {
        tell(&server, &["SET", &format!("a:{key}"), &value]);
    }
    tell(&server, &["SAVE"]);
    let (node, heard) = connect(&server.url()).await;
    let restarted = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    fails(
        &node,
        |cause| matches!(cause, Cause::Unreachable(why) if why.text().contains("still loads")),
    )
    .await;
    assert_eq!(run_ids(&heard).len(), 1);
    let _server = restarted.await.unwrap();
    answers(&node).await;
    assert_eq!(run_ids(&heard).len(), 2);
}

// So what loses transactions, or the end of the file, loses the fingerprint with them.
#[tokio::test]
async fn a_look_is_written_down_as_a_vote_is() {
    let server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    met(&server.url()).await;
    let files = std::fs::read_dir(server.dir().join("appendonlydir")).unwrap();
    let files = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    let text = String::from_utf8_lossy(&files.collect::<Vec<_>>().concat()).to_lowercase();
    let before = text.split(FINGERPRINT).next().expect("there is a beginning");
    assert!(before.ends_with("multi\r\n*5\r\n$3\r\nset\r\n$16\r\n"), "{text}");
}
