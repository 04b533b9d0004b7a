//! What locks and idle clients cost, near and far; and crowds.

use quorate_tests::{
    prelude::*,
    scene::{SCRIPTS, called, calls, forget_calls, until_queued, watched},
};
use tokio::{runtime, task::spawn_blocking};

// What an uncontended lock costs each server, command by command.

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
    let (servers, quorum) = servers_and_client(1).await;
    // The servers learn the scripts, and the client's other connection has come to listen.
    work(&quorum).await;
    until!("it listens", servers[0].calls("subscribe") > 0);
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
/// Each call reads the fingerprint of the data, once for all of its requests.
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
        until!("it is renewed", servers[0].calls("evalsha") > 0);
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
    let (servers, quorum) = servers_and_client(1).await;
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

// More callers at once than servers answer in time: they wait, and none is refused.

const MANY: usize = 2000;

/// Lets everybody in, at the same time.
async fn all_enter<F>(client: &Quorate, enter: impl Fn(&Quorate, usize) -> F)
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let tasks: JoinSet<_> = (0..MANY).map(|number| enter(client, number)).collect();
    for done in tasks.join_all().await {
        done.expect("all servers are well");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_callers_at_once_all_get_what_they_want_and_nothing_stays() {
    let (servers, client) = servers_and_client(3).await;
    all_enter(&client, |client, number| {
        let mutex = client.mutex(number.to_string());
        async move { mutex.lock().await?.release().await }
    })
    .await;
    // However many want one at once: a lock costs each server an acquire and a release.
    for server in &servers {
        let asked = calls(server, &SCRIPTS);
        assert!(asked < 2 * MANY as u64 + MANY as u64 / 20, "{asked} requests for {MANY} locks");
    }
    all_enter(&client, |client, _| {
        let mutex = client.mutex("one");
        async move { mutex.lock().await?.release().await }
    })
    .await;
    all_enter(&client, |client, _| {
        let mutex = client.fair_mutex("fair");
        async move { mutex.lock().await?.release().await }
    })
    .await;
    all_enter(&client, |client, _| {
        let lock = client.rw_lock("read");
        async move { lock.read().await?.release().await }
    })
    .await;
    drop(client);
    until!("nothing stays", are_empty(&servers));
}

// Servers that are far away, and clients that have nothing to do.

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
// known to need longer. That is known from when the client met it, so the very first request has
// the
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
    drop(client.close().await);
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

// In 65 s INFO and the fingerprint six times, the configuration four or five times, and now and
// then one of a name, of the disk and of the connection that listens. Asked every second, both
// connections alone would make 130.
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
    drop(client.close().await);
}

// The queue of a mutex that is not fair.

/// As long as a dead waiter would hold up those behind it.
const WAITER_DEADLINE: Duration = Duration::from_secs(20);

/// A client that asks often, so that it enters the queue soon.
fn hasty(servers: &[RedisServer]) -> Builder {
    builder(servers).poll_interval(MS(20)).waiter_deadline(WAITER_DEADLINE)
}

// The place of one that died would block those behind it until the waiter deadline. But nobody
// hears its call, and so the next one is called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_that_died_in_the_queue_hold_up_nobody() {
    let (servers, holder) = servers_and_client(3).await;
    let guard = holder.mutex("a").lock().await.expect("nobody else is there");
    let doomed = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let doomed = doomed.expect("a runtime");
    for place in 1..=2 {
        let client = doomed.spawn(connect(hasty(&servers))).await.expect("it connects");
        doomed.spawn(async move { client.mutex("a").lock().await });
        until_queued(&servers, place).await;
    }
    let counts = servers[0].command(&["PTTL", "quorate:{a}:queue"]);
    assert!(
        matches!(counts, Ok(Reply::Int(1_500..))),
        "as set, and not as in a cluster: {counts:?}"
    );
    let client = connect(hasty(&servers)).await;
    let mutex = client.mutex("a");
    let waiter = tokio::spawn(async move { mutex.lock().await });
    until_queued(&servers, 3).await;
    // As a process that is killed: nothing is said, and its connections are closed.
    doomed.shutdown_background();
    until!(
        "one still listens, beside the holder",
        servers.iter().all(|server| called(server) == 2)
    );
    until_queued(&servers, 3).await;
    let released = now();
    guard.release().await.expect("all confirm");
    let guard = waiter.await.expect("it does not panic").expect("the voters are well");
    let waited = since(released);
    assert!(waited < WAITER_DEADLINE / 2, "{waited:?}");
    guard.release().await.expect("all confirm");
    drop(client.close().await);
    drop(holder.close().await);
    until!("no place is left", are_empty(&servers));
}
