//! What an uncontended lock costs each server, command by command.

use std::{collections::BTreeMap, time::Duration};

use quorate::Quorate;
use quorate_support::{RedisServer, eventually_async};
use quorate_tests::scene::{builder, connect, forget_calls, servers};

/// Not of locks: a connection's sign of life, and what this test asks itself.
/// Servers older than 7.0 count the parts of `CONFIG` as one.
const OTHERS: [&str; 5] = ["ping", "info", "auth", "config|resetstat", "config"];

/// How often a server has run each command.
fn commands(server: &RedisServer) -> BTreeMap<String, u32> {
    let stats = server.command(&["INFO", "commandstats"]).expect("it tells").text();
    let of = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let (calls, _) = rest.split_once(',')?;
        Some((name.to_owned(), calls.parse().ok()?))
    };
    let mut counted: BTreeMap<_, _> = stats.lines().filter_map(of).collect();
    counted.retain(|name, _| !OTHERS.contains(&name.as_str()));
    counted
}

async fn ran(work: impl AsyncFn(&Quorate)) -> String {
    let servers = servers(1);
    let quorum = connect(builder(&servers)).await;
    // The servers learn the scripts.
    work(&quorum).await;
    forget_calls(&servers[0]);
    work(&quorum).await;
    let counted = commands(&servers[0]).into_iter();
    let counted: Vec<_> = counted.map(|(name, calls)| format!("{name} {calls}")).collect();
    counted.join(", ")
}

#[tokio::test]
async fn an_uncontended_lock_costs_a_server_as_few_commands_as_it_can() {
    let mutex = ran(async |quorum| {
        let guard = quorum.mutex("a").lock().await.expect("nobody has it");
        guard.release().await.expect("it confirms");
    });
    let fair = ran(async |quorum| {
        let guard = quorum.fair_mutex("a").lock().await.expect("nobody has it");
        guard.release().await.expect("it confirms");
    });
    let write = ran(async |quorum| {
        let guard = quorum.rw_lock("a").write().await.expect("nobody has it");
        guard.release().await.expect("it confirms");
    });
    let read = ran(async |quorum| {
        let guard = quorum.rw_lock("a").read().await.expect("nobody has it");
        guard.release().await.expect("it confirms");
    });
    let alone = "evalsha 2, exists 1, get 1, hdel 1, hset 1, pexpire 1, set 1, time 1, zcard 1";
    let expected = [
        alone,
        alone,
        "del 1, evalsha 2, exists 1, get 1, hexists 1, hset 1, pexpire 1, pttl 1, set 1, time 1, \
         zcard 1, zscore 1",
        "evalsha 2, exists 1, get 1, pexpireat 1, pttl 1, time 2, zadd 1, zcard 1, zcount 1, \
         zrange 1, zrem 1, zscore 2",
    ];
    assert_eq!([mutex.await, fair.await, write.await, read.await], expected);
}

/// The first renewal looks at forced releases and at the token too, the next at the vote alone.
/// Each call reads the mark of the data, once for all of its requests.
#[tokio::test]
async fn an_ordinary_renewal_touches_one_key() {
    let servers = servers(1);
    // Three renewals, 1.7 s apart, fall between two looks.
    let quorum = connect(builder(&servers).lease(Duration::from_secs(5))).await;
    // The server learns the script.
    let first = quorum.mutex("first").lock().await.expect("nobody has it");
    first.reenter().await.expect("it is held").release().await.expect("it confirms");
    first.release().await.expect("it confirms");
    let guard = quorum.mutex("a").lock().await.expect("nobody has it");
    let renewed = async || {
        forget_calls(&servers[0]);
        eventually_async("it is renewed", async || servers[0].calls("evalsha") > 0).await;
        commands(&servers[0])
    };
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut ran = renewed().await;
        let calls = ran.remove("evalsha").expect("it was waited for");
        let each = |(name, times)| format!("{name} {}", times / calls);
        seen.push(ran.into_iter().map(each).collect::<Vec<_>>().join(", "));
    }
    let brief = "get 1, hget 1, pexpire 1, pttl 1, time 1";
    let full = "get 2, hexists 1, hget 1, pexpire 2, pttl 1, time 1";
    assert_eq!(seen, [full, brief, brief]);
    guard.release().await.expect("it confirms");
}

/// With several threads the runtime runs the voter's task right behind the first task that asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_tasks_ask_at_the_same_time_leaves_together() {
    let (tasks, locks) = (16, 100);
    let servers = servers(1);
    let quorum = connect(builder(&servers)).await;
    let work = || {
        let tasks = (0..tasks).map(|task| {
            let mutex = quorum.mutex(format!("own {task}"));
            tokio::spawn(async move {
                for _ in 0..locks {
                    mutex.lock().await.expect("nobody has it").release().await.expect("confirmed");
                }
            })
        });
        futures::future::join_all(tasks.collect::<Vec<_>>())
    };
    work().await;
    forget_calls(&servers[0]);
    assert!(work().await.iter().all(Result::is_ok));
    let calls = servers[0].calls("evalsha");
    let requests = 2 * tasks * locks;
    assert!(calls * 4 <= requests, "{calls} calls for {requests} requests");
}
