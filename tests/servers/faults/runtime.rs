//! Where a client lives: on the thread of the clients, whatever becomes of the runtimes of its
//! callers, or on a runtime that it was given, and ends with.

use std::{
    env,
    future::pending,
    pin::Pin,
    process::{self, Command},
    sync::Barrier,
    thread,
};

use fork::{Fork, fork, waitpid};
use futures::{FutureExt, executor};
use quorate_tests::{prelude::*, scene::connections};
use tokio::{
    runtime::{self, Handle, Runtime},
    sync::oneshot,
};

const LEASE: Duration = Duration::from_secs(4);
/// For so long threads are blocked.
const BLOCKED: Duration = Duration::from_secs(7);

/// On the thread of the clients, if the builder names no other runtime.
async fn connect(builder: Builder) -> Quorate {
    builder.connect_timeout(MS(60_000)).connect().await.expect("a majority answers")
}

/// What a runtime that ends with its thread has made.
fn elsewhere<T: Send>(make: impl AsyncFnOnce() -> T + Send) -> T {
    let made = thread::scope(|scope| {
        let made = scope.spawn(|| Runtime::new().expect("a runtime").block_on(make()));
        made.join()
    });
    made.expect("it is made")
}

/// Runs a test of this file once more, alone in a process. True in that process.
fn is_alone(test: &str, with: &[(&str, &str)]) -> bool {
    const CHILD: &str = "QUORATE_RUNTIME_CHILD";
    if env::var_os(CHILD).is_some() {
        return true;
    }
    let child = Command::new(env::current_exe().expect("this binary"))
        .args(["--exact", &format!("faults::runtime::{test}"), "--nocapture", "--test-threads=1"])
        .env(CHILD, "yes")
        .envs(with.iter().copied())
        .status();
    assert!(child.expect("this binary runs").success());
    false
}

/// The state of each thread of this process that has this name: `S` if it sleeps.
#[cfg(target_os = "linux")]
fn threads(named: &str) -> Vec<String> {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux has it").flatten();
    let stats = threads.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
    let state = |stat: String| {
        let (name, rest) = stat.split_once(" (")?.1.rsplit_once(") ")?;
        (name == named).then(|| rest[..1].to_owned())
    };
    stats.filter_map(state).collect()
}

/// The threads of this process that are the clients'.
#[cfg(target_os = "linux")]
fn client_threads() -> usize {
    threads("quorate").len()
}

/// Takes a lock on this runtime, has it blocked by threads of it that do nothing else, so many at
/// once, and returns the guard after that.
fn hold_while_blocked(on: &Runtime, threads: usize, settings: Builder) -> MutexGuard {
    let guard = on.block_on(async {
        let client = connect(settings).await;
        client.mutex("a").lock().await.expect("all are up")
    });
    // All block at the same time, or else they were fewer.
    let together = Arc::new(Barrier::new(threads));
    let block = |_| {
        let together = Arc::clone(&together);
        on.spawn(async move {
            together.wait();
            thread::sleep(BLOCKED);
        })
    };
    let blocked: Vec<_> = (0..threads).map(block).collect();
    on.block_on(async {
        for blocked in blocked {
            blocked.await.expect("it does not panic");
        }
    });
    guard
}

type MakeRuntime = fn() -> Runtime;

fn eight_threads() -> Runtime {
    runtime::Builder::new_multi_thread().worker_threads(8).enable_all().build().expect("a runtime")
}

fn one_thread() -> Runtime {
    runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Somebody else asks for the lock all the time; whether it is still held in the end.
fn is_kept(on: MakeRuntime, threads: usize, is_its_own: bool) -> bool {
    let (servers, on) = (servers(3), on());
    let settings = leased(builder(&servers), LEASE);
    let settings = if is_its_own { settings.runtime(on.handle().clone()) } else { settings };
    let theirs = leased(builder(&servers), LEASE);
    let (began, begin) = oneshot::channel();
    let other = thread::spawn(move || {
        one_thread().block_on(async {
            let client = connect(theirs).await;
            began.send(()).expect("it is waited for");
            let mutex = client.mutex("a");
            let is_locked = async || mutex.is_locked().await.expect("all are up");
            eventually_async("the lock is held", is_locked).await;
            mutex.lock_within(BLOCKED).await.expect("all are up").is_some()
        })
    });
    on.block_on(begin).expect("it connects");
    let guard = hold_while_blocked(&on, threads, settings);
    let is_held = guard.is_held();
    let was_got = other.join().expect("it does not panic");
    assert_ne!(is_held, was_got, "either this client has it, or the other got it");
    is_held
}

#[test]
fn a_lock_is_kept_while_threads_of_its_callers_are_blocked() {
    let cases: [(&str, MakeRuntime, usize); 3] = [
        ("one of eight", eight_threads, 1),
        ("all eight", eight_threads, 8),
        ("the only one", one_thread, 1),
    ];
    thread::scope(|scope| {
        let kept = cases
            .map(|(name, on, threads)| (name, scope.spawn(move || is_kept(on, threads, false))));
        // What the others are spared.
        let lost = scope.spawn(|| is_kept(one_thread, 1, true));
        for (name, kept) in kept {
            assert!(kept.join().expect("it does not panic"), "{name}");
        }
        assert!(!lost.join().expect("it does not panic"), "a client on the blocked runtime");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_was_taken_in_a_runtime_that_has_ended_is_renewed() {
    let servers = servers(3);
    let client = connect(leased(builder(&servers), LEASE)).await;
    let mutex = client.mutex("a");
    let guard = elsewhere(async || mutex.lock().await.expect("all are up"));
    tokio::time::sleep(2 * LEASE).await;
    assert!(guard.is_held());
    guard.release().await.expect("a majority confirms");
    until!("no key is left", are_empty(&servers));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_was_made_in_a_runtime_that_has_ended_goes_on() {
    let servers = servers(3);
    let settings = leased(builder(&servers), LEASE);
    let (client, guard) = elsewhere(async || {
        let client = connect(settings).await;
        let guard = client.mutex("a").lock().await.expect("all are up");
        (client, guard)
    });
    tokio::time::sleep(2 * LEASE).await;
    assert!(guard.is_held());
    client.mutex("b").lock().await.expect("all are up").release().await.expect("all are up");
    // On no runtime at all, and on none of tokio's.
    let again = thread::spawn(move || {
        executor::block_on(async {
            guard.release().await.expect("all are up");
            client.mutex("a").lock_within(LEASE).await.expect("all are up").expect("it is free")
        })
    });
    let guard = again.join().expect("it does not panic");
    assert!(guard.is_held());
    drop(guard);
    until!("no key is left", are_empty(&servers));
}

// The lease is 30 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_runtime_drops_as_it_ends_is_released_and_undone() {
    let servers = servers(3);
    let other = connect(builder(&servers)).await;
    let mutex = connect(builder(&servers)).await.mutex("a");
    let held = other.mutex("b").lock().await.expect("all are up");
    elsewhere(async || {
        let guard = mutex.lock().await.expect("all are up");
        let waits = tokio::spawn(connect(builder(&servers)).await.mutex("b").lock());
        until_waiting(&other, LockKind::Mutex, "b", 1).await;
        let (holds, held) = oneshot::channel();
        tokio::spawn(async move {
            let _guard = guard;
            holds.send(()).expect("it is waited for");
            pending::<()>().await;
        });
        held.await.expect("it has the guard");
        drop(waits);
    });
    held.release().await.expect("all are up");
    until!("no key is left", are_empty(&servers));
}

#[tokio::test]
async fn connecting_that_is_dropped_leaves_no_connection() {
    let mut servers = servers(3);
    servers[1].kill();
    servers[2].kill();
    let settings = builder(&servers).connect_timeout(MS(600_000));
    let connecting = tokio::spawn(settings.connect());
    until!("it connects", connections(&servers[0]) > 0);
    connecting.abort();
    until!("nobody is connected", connections(&servers[0]) == 0);
}

// Long before the lease ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_clients_runtime_is_told_at_once() {
    let servers = servers(3);
    let (client, guard, fixed): (_, MutexGuard, MutexGuard) = elsewhere(async || {
        let client = connect(builder(&servers).runtime(Handle::current())).await;
        let guard = client.mutex("a").lock().await.expect("all are up");
        let fixed = client.mutex("b").lease_fixed(MS(30_000)).lock().await.expect("all are up");
        (client, guard, fixed)
    });
    let error = timeout(MS(10_000), guard.lost()).await.expect("it is told at once");
    assert!(error.is_lost() && error.to_string().contains("runtime"), "{error}");
    assert!(!guard.is_held());
    assert!(fixed.is_held(), "nobody need renew it");
    let mutex = client.mutex("c");
    let error = mutex.try_lock().await.expect_err("nobody asks the voters any more");
    assert!(error.is_closed() && error.to_string().contains("runtime"), "{error}");
    // Nobody waits for voters that cannot answer.
    let waited = timeout(MS(5_000), mutex.lock()).await.expect("it is told at once");
    assert!(waited.expect_err("there is nobody to ask").is_closed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_is_told_when_the_clients_runtime_ends() {
    let servers = servers(3);
    let holder = connect(builder(&servers)).await;
    let held = holder.fair_mutex("a").lock().await.expect("all are up");
    let theirs = Runtime::new().expect("a runtime");
    let client = connect(builder(&servers).runtime(theirs.handle().clone())).await;
    let mut observer = client.election("e").observe();
    assert!(observer.next().await.is_some(), "nobody leads");
    let waits = tokio::spawn(client.fair_mutex("a").lock());
    until_waiting(&holder, LockKind::Mutex, "a", 1).await;
    theirs.shutdown_background();
    let waited = timeout(MS(5_000), waits).await.expect("it is told at once").expect("no panic");
    assert!(waited.expect_err("there is nobody to ask").is_closed());
    assert!(timeout(MS(5_000), observer.next()).await.expect("it is told at once").is_none());
    held.release().await.expect("all are up");
}

#[cfg(target_os = "linux")]
#[test]
fn all_clients_of_a_process_share_one_thread() {
    if !is_alone("all_clients_of_a_process_share_one_thread", &[]) {
        return;
    }
    let server = RedisServer::start();
    assert_eq!(client_threads(), 0, "it begins with the first client");
    let settings = || Quorate::builder().voter(server.url());
    let blocking: Vec<_> =
        (0..20).map(|_| settings().connect_blocking().expect("it answers")).collect();
    let clients = elsewhere(async || join_all((0..80).map(|_| connect(settings()))).await);
    assert_eq!(client_threads(), 1);
    drop((blocking, clients));
    eventually("nobody is connected", || connections(&server) == 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_forked_process_connects_anew_and_can_use_nothing_of_its_parent() {
    if !is_alone("a_forked_process_connects_anew_and_can_use_nothing_of_its_parent", &[]) {
        return;
    }
    let server = RedisServer::start();
    let connect = || Quorate::builder().voter(server.url()).connect_blocking().expect("it answers");
    let client = connect();
    let guard = client.mutex("a").lock().expect("it is up");
    let theirs = match fork().expect("the system has room") {
        Fork::Child => {
            // Its parent waits for it.
            thread::spawn(|| {
                thread::sleep(MS(20_000));
                process::exit(2);
            });
            let is_closed = client.mutex("b").lock().expect_err("it is the parent's").is_closed();
            // What it drops is not released, and what it connects itself works.
            drop(guard);
            let own = connect();
            let is_locked = own.mutex("a").is_locked().expect("it is up");
            let can_lock = own.mutex("b").lock().is_ok();
            let done = [is_closed, is_locked, can_lock, client_threads() == 1];
            println!("the child: {done:?}");
            process::exit((done != [true; 4]).into());
        }
        Fork::Parent(child) => child,
    };
    assert_eq!(waitpid(theirs).expect("it ends"), 0, "as the child says");
    assert!(guard.is_held());
    guard.release().expect("the parent goes on");
}

// Tokio's feature `parking_lot`, which is on here, has a list of all threads that wait. A forked
// process inherits it. Threads of the parent that are in it at the fork may make the child go round
// in it for ever, as the list grows: while some threads of the child wait, there come to be more.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_forked_when_many_connections_were_made_connects_anew() {
    const TEST: &str = "a_process_that_is_forked_when_many_connections_were_made_connects_anew";
    if !is_alone(TEST, &[]) {
        return;
    }
    let servers = servers(5);
    let connect = || {
        let builder = builder(&servers).connect_timeout(MS(15_000));
        builder.connect_blocking().expect("a majority answers")
    };
    let client = connect();
    for number in 0..40 {
        eventually("it has connected", || threads("quorate-pool").iter().all(|it| it == "S"));
        let Fork::Parent(child) = fork().expect("the system has room") else {
            // Its parent waits for it.
            thread::spawn(|| {
                thread::sleep(MS(20_000));
                process::exit(2);
            });
            let works = || connect().mutex("a").is_locked().is_ok();
            let work_at_once = |count| {
                thread::scope(|scope| {
                    let clients: Vec<_> = (0..count).map(|_| scope.spawn(works)).collect();
                    clients.into_iter().all(|client| client.join().expect("no panic"))
                })
            };
            process::exit(i32::from(![1, 2, 4].into_iter().all(work_at_once)));
        };
        assert_eq!(waitpid(child).expect("it ends") >> 8, 0, "child {number}; 2: it hangs");
    }
    drop(client);
}

/// Ends a forked process: well if all that it found is so.
fn end_as_found(found: Vec<(&str, bool)>) -> ! {
    let wrong: Vec<_> = found.into_iter().filter(|(_, is_so)| !is_so).collect();
    for (what, _) in &wrong {
        println!("not so in the child: {what}");
    }
    process::exit((!wrong.is_empty()).into());
}

/// Polls a future once, as somebody does who waits for others as well.
fn begin<F: Future>(future: F) -> Pin<Box<F>> {
    let mut future = Box::pin(future);
    assert!(future.as_mut().now_or_never().is_none(), "it waits");
    future
}

// The child outlives what its parent does: that releases the lock, and another client has it.
#[test]
fn what_a_process_holds_has_ended_in_a_process_that_it_forks() {
    if !is_alone("what_a_process_holds_has_ended_in_a_process_that_it_forks", &[]) {
        return;
    }
    let server = RedisServer::start();
    let settings = || Quorate::builder().voter(server.url());
    let wait = executor::block_on::<futures::future::BoxFuture<'_, Result<MutexGuard, Error>>>;
    let (client, other) = (settings().connect(), settings().connect());
    let [client, other] = [client, other].map(|it| executor::block_on(it).expect("it answers"));
    let lock = |name: &str| wait(client.mutex(name).lock().boxed()).expect("it is free");
    let [guard, kept, left, dropped] = ["a", "kept", "left", "dropped"].map(lock);
    let theirs = wait(other.mutex("theirs").lock().boxed()).expect("it is free");
    let (lost, waits) = (begin(guard.lost()), begin(client.mutex("theirs").lock()));
    let held = begin(left.while_held(pending::<()>()));
    let Fork::Parent(child) = fork().expect("the system has room") else {
        // Its parent waits for it.
        thread::spawn(|| {
            thread::sleep(MS(20_000));
            println!("not so in the child: nothing blocks");
            process::exit(2);
        });
        let taken = || matches!(server.command(&["EXISTS", "taken"]), Ok(Reply::Int(1)));
        eventually("another has the lock", taken);
        let is_closed = |ended: Result<(), Error>| ended.is_err_and(|why| why.is_closed());
        let mut has_run = false;
        let work = guard.while_held(async { has_run = true });
        let mut found = vec![
            ("it is not held", !guard.is_held() && guard.remaining().is_zero()),
            ("no work is done", is_closed(executor::block_on(work)) && !has_run),
            ("work is ended", is_closed(executor::block_on(held))),
            ("its end is told", executor::block_on(lost).is_closed()),
            ("and once more", executor::block_on(guard.lost()).is_closed()),
            ("nobody waits", is_closed(executor::block_on(waits).map(drop))),
            ("extend", is_closed(executor::block_on(guard.extend(MS(1_000))))),
            ("renew", is_closed(executor::block_on(guard.renew()))),
            ("reenter", is_closed(executor::block_on(guard.reenter()).map(drop))),
            ("keep_for", is_closed(executor::block_on(kept.keep_for(MS(100))))),
            ("release", is_closed(executor::block_on(guard.release()))),
            ("it is shown", format!("{left:?}").contains("remaining: 0ns")),
        ];
        drop((dropped, theirs, left));
        found.push(("close", is_closed(executor::block_on(client.close()))));
        drop((client, other));
        end_as_found(found);
    };
    drop((lost, waits, held));
    let hold = guard.hold().to_string();
    executor::block_on(guard.release()).expect("it is up");
    let again = wait(other.mutex("a").lock().boxed()).expect("it is free");
    assert!(again.is_held() && !votes_for(&server, "a", &hold));
    server.command(&["SET", "taken", "yes"]).expect("it answers");
    assert_eq!(waitpid(child).expect("it ends"), 0, "as the child says");
    for guard in [kept, left, dropped, theirs, again] {
        assert!(guard.is_held() && votes_for(&server, guard.name(), guard.hold().as_str()));
        executor::block_on(guard.release()).expect("the parent goes on");
    }
}

#[test]
fn every_kind_of_hold_has_ended_in_a_forked_process() {
    if !is_alone("every_kind_of_hold_has_ended_in_a_forked_process", &[]) {
        return;
    }
    let server = RedisServer::start();
    let client = Quorate::builder().voter(server.url());
    let client = executor::block_on(client.connect()).expect("it answers");
    let settings = || Quorate::builder().voter(server.url());
    let blocking = settings().connect_blocking().expect("it answers");
    let mutex = blocking.mutex("blocking").lock().expect("it is free");
    let mut observer = blocking.election("e").observe();
    let (reads, writes, permit, leads, all) = executor::block_on(async {
        let writes = client.rw_lock("w").write().await.expect("it is free");
        let reads = client.rw_lock("r").read().await.expect("it is free");
        let permit = client.semaphore("s", 2).acquire().await.expect("it is free");
        let leads = client.election("e").campaign("first").await.expect("it is free");
        let all = client.lock_all(["x", "y"].map(|name| client.mutex(name)));
        (reads, writes, permit, leads, all.lock().await.expect("they are free"))
    });
    assert!(observer.next().is_some_and(|seen| seen.is_ok()), "somebody leads");
    let Fork::Parent(child) = fork().expect("the system has room") else {
        thread::spawn(|| {
            thread::sleep(MS(20_000));
            println!("not so in the child: nothing blocks");
            process::exit(2);
        });
        let is_closed = |ended: Result<(), Error>| ended.is_err_and(|why| why.is_closed());
        let ended = !reads.is_held() && !writes.is_held() && !permit.is_held();
        let found = vec![
            ("not held", ended && !leads.is_held() && !all.is_held() && !mutex.is_held()),
            ("read", is_closed(executor::block_on(writes.read()).map(drop))),
            ("downgrade", is_closed(executor::block_on(writes.downgrade()).map(drop))),
            ("a read", is_closed(executor::block_on(reads.release()))),
            ("a permit", is_closed(executor::block_on(permit.renew()))),
            ("proclaim", is_closed(executor::block_on(leads.proclaim("second")))),
            ("a leader", is_closed(executor::block_on(leads.while_leader(async {})))),
            ("resign", is_closed(executor::block_on(leads.resign()))),
            ("extend all", is_closed(executor::block_on(all.extend(MS(1_000))))),
            ("all", is_closed(executor::block_on(all.release()))),
            ("nothing is observed", observer.next().is_none()),
            ("a blocking extend", is_closed(mutex.extend(MS(1_000)))),
            ("a blocking release", is_closed(mutex.release())),
            ("a blocking close", is_closed(blocking.close())),
        ];
        drop(permit);
        end_as_found(found);
    };
    assert_eq!(waitpid(child).expect("it ends"), 0, "as the child says");
    assert!(reads.is_held() && writes.is_held() && permit.is_held());
    assert!(leads.is_held() && all.is_held() && mutex.is_held());
    executor::block_on(async {
        reads.release().await.expect("the parent goes on");
        writes.release().await.expect("the parent goes on");
        permit.release().await.expect("the parent goes on");
        leads.resign().await.expect("the parent goes on");
        all.release().await.expect("the parent goes on");
    });
    mutex.release().expect("the parent goes on");
}

/// The address of the server that the parent of a test has started.
const SERVER: &str = "QUORATE_RUNTIME_SERVER";

#[test]
fn a_process_ends_though_it_holds_and_what_it_has_closed_is_free_at_once() {
    const TEST: &str = "a_process_ends_though_it_holds_and_what_it_has_closed_is_free_at_once";
    let lease = Duration::from_secs(3);
    let connect = |url: String| {
        let builder = leased(Quorate::builder().voter(url), lease);
        builder.connect_blocking().expect("it answers")
    };
    if let Ok(url) = env::var(SERVER) {
        let (closed, left) = (connect(url.clone()), connect(url));
        let guard = closed.mutex("closed").lock().expect("it is free");
        std::mem::forget(left.mutex("left").lock().expect("it is free"));
        closed.close().expect("it is up");
        drop(guard);
        // As `main` does when it returns.
        process::exit(0);
    }
    let server = RedisServer::start();
    assert!(!is_alone(TEST, &[(SERVER, &server.url())]));
    let client = connect(server.url());
    assert!(client.mutex("closed").try_lock().expect("it is up").is_some(), "it was released");
    let left = client.mutex("left");
    assert!(left.try_lock().expect("it is up").is_none(), "until the lease ends");
    assert!(left.lock_within(2 * lease).expect("it is up").is_some(), "the lease has ended");
}

// No system has so much room for a thread.
#[test]
fn where_the_system_gives_no_thread_connecting_says_so() {
    let stack = [("RUST_MIN_STACK", "70368744177664")];
    if !is_alone("where_the_system_gives_no_thread_connecting_says_so", &stack) {
        return;
    }
    let connecting = Quorate::builder().voter("redis://127.0.0.1:1").connect();
    let error = executor::block_on(connecting).expect_err("there is no thread");
    assert!(error.is_invalid(), "{error}");
    assert!(error.to_string().contains("the thread of the clients cannot be started"), "{error}");
}
