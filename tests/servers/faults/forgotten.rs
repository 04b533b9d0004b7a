//! Servers that forget their scripts all the time.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    thread,
};

use futures::future::join_all;
use tokio::{runtime::Handle, task};

use quorate_support::eventually_async;
use quorate_tests::scene::{Ending, are_empty, builder, connect, servers};

const TASKS: u64 = 8;
const ROUNDS: u64 = 25;

/// Each adds one by reading and, after a while, writing what it read plus one: two at once lose.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_go_on_exactly_while_every_server_forgets_its_scripts_again_and_again() {
    let servers = servers(3);
    let quorum = connect(builder(&servers)).await;
    let (counter, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let add = async || {
        let mutex = quorum.mutex("a");
        for _ in 0..ROUNDS {
            let guard = mutex.lock().await.expect("all are up");
            let read = counter.load(SeqCst);
            task::yield_now().await;
            counter.store(read + 1, SeqCst);
            guard.release().await.expect("it is ours");
        }
    };
    let forget = || {
        while !over.load(SeqCst) {
            for server in &servers {
                server.command(&["SCRIPT", "FLUSH"]).expect("it forgets");
            }
        }
    };
    thread::scope(|scope| {
        let _ending = Ending(&over);
        scope.spawn(forget);
        let all = join_all((0..TASKS).map(|_| add()));
        task::block_in_place(|| Handle::current().block_on(all));
    });
    assert_eq!(counter.load(SeqCst), TASKS * ROUNDS);
    for server in &servers {
        let errors = format!("{:?}", server.command(&["INFO", "errorstats"]));
        assert!(errors.contains("errorstat_NOSCRIPT"), "the flushes met calls: {errors}");
    }
    eventually_async("no key is left", async || are_empty(&servers)).await;
}
