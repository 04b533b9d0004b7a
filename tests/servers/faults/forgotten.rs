//! Servers that forget their scripts all the time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
};

use quorate_support::eventually_async;
use quorate_tests::scene::{are_empty, builder, connect, servers};

const TASKS: u64 = 8;
const ROUNDS: u64 = 25;

/// Each adds one by reading and, after a while, writing what it read plus one: two at once lose.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_go_on_exactly_while_every_server_forgets_its_scripts_again_and_again() {
    let servers = Arc::new(servers(3));
    let quorum = connect(builder(&servers)).await;
    let (counter, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let flushing = thread::spawn({
        let (servers, over) = (Arc::clone(&servers), Arc::clone(&over));
        move || {
            while !over.load(SeqCst) {
                for server in servers.iter() {
                    server.command(&["SCRIPT", "FLUSH"]).expect("it forgets");
                }
            }
        }
    });
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (mutex, counter) = (quorum.mutex("a"), Arc::clone(&counter));
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    let guard = mutex.lock().await.expect("all are up");
                    let read = counter.load(SeqCst);
                    tokio::task::yield_now().await;
                    counter.store(read + 1, SeqCst);
                    guard.release().await.expect("it is ours");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no error");
    }
    over.store(true, SeqCst);
    flushing.join().expect("all are up");
    assert_eq!(counter.load(SeqCst), TASKS * ROUNDS);
    for server in servers.iter() {
        let errors = format!("{:?}", server.command(&["INFO", "errorstats"]));
        assert!(errors.contains("errorstat_NOSCRIPT"), "the flushes met calls: {errors}");
    }
    eventually_async("no key is left", async || are_empty(servers.iter())).await;
}
