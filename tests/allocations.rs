//! How often a lock and its release allocate, with all that their client does for them; and how
//! much a client keeps that is connected.
//!
//! Alone in its process: its allocator counts. Everything runs on one thread, whose allocations are
//! counted.

use std::iter::repeat_with;

use allocation_counter::measure;
use quorate::{Mutex, Quorate};
use quorate_tests::{prelude::*, scene};
use tokio::runtime::{Builder, Runtime};

/// So many locks and releases are counted for each task.
const CYCLES: u64 = 100;

fn lock_and_release(runtime: &Runtime, mutexes: &[Mutex], cycles: u64) {
    runtime.block_on(join_all(mutexes.iter().map(|mutex| async move {
        for _ in 0..cycles {
            mutex.lock().await.expect("nobody else wants it").release().await.expect("it is held");
        }
    })));
}

/// For one lock and its release.
fn allocations(servers: usize, tasks: usize) -> u64 {
    let servers = RedisServer::start_many(&Settings::new(), servers);
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let quorum = runtime.block_on(scene::connect(scene::builder(&servers)));
    let mut names = 0;
    let mutexes: Vec<_> = repeat_with(|| {
        names += 1;
        quorum.mutex(format!("lock {names}"))
    })
    .take(tasks)
    .collect();
    // What is made once and kept.
    lock_and_release(&runtime, &mutexes, CYCLES / 4);
    let counted = measure(|| lock_and_release(&runtime, &mutexes, CYCLES));
    runtime.block_on(quorum.close()).expect("all confirm");
    counted.count_total / (CYCLES * tasks as u64)
}

// Some more than was counted, as answers arrive alone or together: 75, 154, 233, 42, 49. Most are
// of the client library underneath, for each command; tasks that ask together share commands.
#[test]
fn a_lock_and_its_release_allocate_at_most_so_often() {
    let bounds = [(1, 1, 82), (3, 1, 167), (5, 1, 252), (3, 64, 50), (5, 64, 58)];
    for (servers, tasks, most) in bounds {
        let count = allocations(servers, tasks);
        println!("{servers} servers, {tasks} tasks: {count}");
        assert!(count <= most, "{servers} servers, {tasks} tasks: {count} allocations of {most}");
    }
}

/// So many clients are connected, after a first one, which makes what is made once.
const CLIENTS: i64 = 4;

// Some more than was counted, 709 KiB. Most are tasks and buffers of the client library underneath,
// for two connections to each server. In an optimized build it is 596 KiB.
#[test]
fn a_connected_client_of_three_servers_keeps_at_most_so_much() {
    let servers = RedisServer::start_many(&Settings::new(), 3);
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let connect = || {
        runtime.block_on(async {
            let quorum = scene::connect(scene::builder(&servers)).await;
            let mutex = quorum.mutex("a");
            mutex.lock().await.expect("nobody has it").release().await.expect("it is held");
            quorum
        })
    };
    let first = connect();
    let mut clients = Vec::new();
    let kept = measure(|| clients.extend((0..CLIENTS).map(|_| connect())));
    let each = kept.bytes_current / CLIENTS / 1024;
    println!("{each} KiB");
    assert!(each <= 780, "{each} KiB");
    for client in clients.into_iter().chain([first]) {
        runtime.block_on(client.close()).expect("all confirm");
    }
}

/// So many locks are held at the same time.
const HELD: u64 = 20_000;
/// So many of them are asked for, or released, together.
const TOGETHER: usize = 64;

async fn hold_and_release(quorum: &Quorate, count: u64) {
    let mutexes: Vec<_> = (0..count).map(|it| quorum.mutex(format!("lock {it}"))).collect();
    let mut guards = Vec::new();
    for some in mutexes.chunks(TOGETHER) {
        guards.extend(join_all(some.iter().map(Mutex::lock)).await);
    }
    while !guards.is_empty() {
        let some = guards.split_off(guards.len().saturating_sub(TOGETHER));
        let released = some.into_iter().map(|guard| guard.expect("nobody else wants it").release());
        for released in join_all(released).await {
            released.expect("it is held");
        }
    }
}

// Some more than was counted, 124 KiB and then 65, which is for room that tables and buffers have
// kept: six bytes for each lock. What a client keeps of a lock that is over is its last token, of a few dozen
// locks.
#[test]
fn what_stays_behind_of_many_locks_that_are_over_does_not_grow_with_their_number() {
    let servers = RedisServer::start_many(&Settings::new(), 3);
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let quorum = runtime.block_on(scene::connect(scene::builder(&servers)));
    runtime.block_on(hold_and_release(&quorum, 100));
    for _ in 0..2 {
        let kept = measure(|| runtime.block_on(hold_and_release(&quorum, HELD)));
        let kept = kept.bytes_current / 1024;
        println!("{kept} KiB");
        assert!(kept <= 256, "{kept} KiB of {HELD} locks");
    }
    runtime.block_on(quorum.close()).expect("all confirm");
}
