//! What operators ask, and nobody who wants a lock.

use quorate::ServerInfo;
use quorate_tests::{prelude::*, rights, scene::DURABLE};

async fn info(quorum: &Quorate, voter: usize) -> ServerInfo {
    let survey = quorum.survey().await;
    survey.voters[voter].servers[0].info.clone().expect("it answers")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_says_how_it_is_set_up() {
    let mut servers = servers(2);
    servers[0].command(&["CONFIG", "SET", "save", "60 1"]).expect("it can be set");
    servers.push(RedisServer::start_with(&DURABLE));
    let limits = [("maxmemory", "64mb"), ("maxmemory-policy", "noeviction")];
    for (name, value) in limits {
        servers[2].command(&["CONFIG", "SET", name, value]).expect("it can be set");
    }
    let quorum = connect(builder(&servers)).await;
    let survey = quorum.survey().await;
    assert_eq!(survey.status(), quorum.status().await);
    let (plain, durable) = (info(&quorum, 0).await, info(&quorum, 2).await);
    // Valkey has a version of its own, and says beside it which Redis it began from.
    let version = |name| servers[0].info(&["INFO", "server"], name);
    let said = version("valkey_version").or_else(|_| version("redis_version")).expect("it has one");
    assert_eq!((plain.version, plain.memory_limit), (said, None));
    assert_eq!(plain.persistence.save.as_deref(), Some("60 1"));
    assert!(!plain.persistence.is_durable() && durable.persistence.is_durable());
    assert_eq!((durable.memory_limit, durable.memory_used > 0), (Some(64 << 20), true));
    let clock = durable.clock.expect("it tells its time");
    // One machine has one clock.
    let uncertain = i64::try_from(clock.uncertain.as_micros()).expect("it is short") + 1_000;
    assert!(clock.ahead_micros.abs() <= uncertain, "{clock:?}");
    let replica = servers[0].start_replica();
    quorate_support::succeeds("it is linked", || replica.is_linked_to(&servers[0]));
    assert_eq!(info(&quorum, 0).await.replicas, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_hang_or_die_are_told_of_in_bounded_time() {
    let (mut servers, quorum) = servers_and_client(3).await;
    servers[0].stop();
    servers[1].kill();
    let asked = tokio::time::timeout(Duration::from_secs(30), quorum.survey()).await;
    let survey = asked.expect("it ends");
    let known: Vec<_> = survey.voters.iter().map(|voter| voter.servers[0].info.is_ok()).collect();
    assert_eq!(known, [false, false, true]);
    servers[0].resume();
    drop(quorum.close().await);
    let survey = quorum.survey().await;
    let error = |voter: usize| survey.voters[voter].servers[0].info.clone().unwrap_err();
    assert!((0..3).all(|voter| matches!(error(voter), Cause::Unreachable(_))));
    let found = quorum.admin().find("*", 10).await;
    assert_eq!((found.locks.len(), found.missing.len()), (0, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_right_that_is_missing_is_named() {
    // Without these there is no voter, or it is asked in another way.
    let others = ["+hello", "+select", "+info", "+subscribe", "+unsubscribe"];
    let rights = rights::documented();
    let given = rights.iter().enumerate().filter(|(_, right)| {
        let is_given = !right.starts_with("reset") && !right.starts_with('-');
        is_given && !others.contains(right) && !right.starts_with('~')
    });
    let all = rights::user();
    let users: Vec<_> = given.map(|(at, right)| (rights::user_without(at), right)).collect();
    let texts: Vec<&str> = users.iter().map(|((user, _), _)| &**user).chain([&*all]).collect();
    let server = RedisServer::start_as(&Settings::new().users(&texts));
    let missing = async |name: &str| {
        let builder = Quorate::builder().voter(server.url_as(name, "password")).only_looks(true);
        let quorum = connect(builder.voter_deadline(MS(2_000))).await;
        let missing = info(&quorum, 0).await.missing_rights;
        drop(quorum.close().await);
        missing
    };
    for ((user, name), right) in &users {
        assert_eq!(missing(name).await, [**right], "{user}");
    }
    assert_eq!(missing("quorate").await, Vec::<String>::new());
    let keys = server.keys();
    let known = ["{%voter}", "{%client:", "{%roster}"];
    let is_known = |key: &String| known.iter().any(|known| key.contains(known));
    assert!(keys.iter().all(is_known), "what is tried changes nothing: {keys:?}");
}

// A key pattern that is wrong keeps a client from all locks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_channels_of_another_prefix_are_named_as_missing() {
    let user = rights::user().replace("quorate:", "other:");
    let server = RedisServer::start_as(&Settings::new().users(&[&user]));
    let builder = Quorate::builder().voter(server.url_as("quorate", "password")).only_looks(true);
    let quorum = connect(builder.voter_deadline(MS(2_000))).await;
    let missing = info(&quorum, 0).await.missing_rights;
    assert_eq!(missing, ["&quorate:calls:*", "&quorate:{*", "~quorate:{*"]);
    let wakes = &quorum.survey().await.voters[0].wakes;
    assert!(
        matches!(wakes, Err(Cause::Rejected(why)) if why.to_string().contains("NOPERM")),
        "{wakes:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_that_are_held_or_waited_for_are_found_once_each() {
    let servers = servers(3);
    let (ours, theirs) = (connect(builder(&servers)).await, connect(builder(&servers)).await);
    let mutex = ours.mutex("invoice:{1}%").lock().await.unwrap();
    let fair = ours.fair_mutex("invoice:2").lock().await.unwrap();
    let read = ours.rw_lock("prices").read().await.unwrap();
    let waiter = tokio::spawn(theirs.rw_lock("prices").write());
    let released = ours.mutex("free").lock().await.unwrap();
    released.release().await.unwrap();
    // A majority has confirmed it; each of the voters is asked.
    until!(
        "all have heard of the release",
        servers.iter().all(|server| !server.keys().contains(&key("free")))
    );
    let find = async |names: &str, limit| theirs.admin().find(names, limit).await;
    let names = |found: &quorate::FoundLocks| -> Vec<(String, LockKind)> {
        found.locks.iter().map(|found| (found.name.clone(), found.kind)).collect()
    };
    let all = find("*", 100).await;
    let [first, second] = ["invoice:2", "invoice:{1}%"].map(|name| (name.into(), LockKind::Mutex));
    assert_eq!(names(&all), [first.clone(), second, ("prices".into(), LockKind::RwLock)]);
    assert!(all.is_complete && all.missing.is_empty());
    let some = find("invoice:?", 100).await;
    assert_eq!((names(&some), some.is_complete), (vec![first.clone()], true));
    assert_eq!(names(&find("invoice:{*", 100).await)[0].0, "invoice:{1}%");
    let few = find("*", 1).await;
    assert_eq!((names(&few), few.is_complete), (vec![first], false));
    read.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
    mutex.release().await.unwrap();
    fair.release().await.unwrap();
}

// Twenty locks have their keys on all primaries, each under three names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_locks_are_found_on_all_primaries_and_named_once() {
    let cluster = Cluster::start(3, 0);
    for voters in [1, 3] {
        let quorum = connect(patient(
            Quorate::builder().cluster(Voters::new(cluster.urls()).voters(voters)),
        ))
        .await;
        let names: Vec<_> = (0..20).map(|number| format!("invoice:{number}")).collect();
        let guards = join_all(names.iter().map(|name| quorum.mutex(name).lock())).await;
        let found = quorum.admin().find("invoice:*", 100).await;
        assert!(found.is_complete && found.missing.is_empty(), "{found:?}");
        let all: BTreeSet<_> = found.locks.iter().map(|found| found.name.clone()).collect();
        assert_eq!((found.locks.len(), all), (20, names.into_iter().collect()));
        let survey = quorum.survey().await;
        let servers = survey.voters.iter().flat_map(|voter| &voter.servers);
        let infos: Vec<_> = servers.map(|server| server.info.clone().unwrap()).collect();
        assert_eq!(infos.len(), 3);
        for guard in guards {
            guard.unwrap().release().await.unwrap();
        }
        drop(quorum.close().await);
    }
}
