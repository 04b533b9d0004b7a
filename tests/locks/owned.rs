//! A call owns what it needs: it can be spawned, and awaited when its lock value is gone.

use std::future::{Ready, ready};

use quorate_tests::prelude::*;

/// Runs the call in a task of its own, as `tokio::spawn` demands it.
async fn spawned<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
    tokio::spawn(call).await.expect("it does not panic")
}

/// Spawns each of these calls of a value that ends with its line.
macro_rules! all_spawned {
    ($($value:expr => $($call:ident($($arg:expr),*))+;)+) => {
        $($({
            let call = $value.$call($($arg),*);
            let _ = spawned(call).await.expect(stringify!($call));
        })+)+
    };
}

fn work() -> Ready<Result<(), Error>> {
    ready(Ok(()))
}

#[tokio::test(start_paused = true)]
async fn every_call_of_a_lock_can_be_spawned() {
    let (_voters, client) = with_client(3).await;
    let all =
        || client.lock_all([Lockable::from(client.mutex("all")), client.rw_lock("all").reading()]);
    let limit = secs(1);
    all_spawned! {
        client.mutex("a") => lock() try_lock() lock_within(limit) lock_or_busy(limit)
            run(|_| work()) is_locked() inspect();
        client.fair_mutex("a") => lock() try_lock() lock_within(limit) lock_or_busy(limit)
            run(|_| work()) is_locked() inspect();
        client.rw_lock("a") => read() try_read() read_within(limit) read_or_busy(limit)
            run_read(|_| work()) write() try_write() write_within(limit) write_or_busy(limit)
            run_write(|_| work()) is_locked() inspect();
        client.semaphore("a", 3) => acquire() try_acquire() acquire_within(limit)
            acquire_or_busy(limit) acquire_many(2) try_acquire_many(2)
            acquire_many_within(2, limit) acquire_many_or_busy(2, limit) run(|_| work())
            run_many(2, |_| work()) is_locked() inspect();
        all() => lock() try_lock() lock_within(limit) lock_or_busy(limit) run(|_| work());
        client.election("a") => campaign("me") try_campaign("me") campaign_within("me", limit)
            campaign_or_busy("me", limit) leader() is_locked() inspect();
        client.admin() => look(LockKind::Mutex, "a") end_all(LockKind::Mutex, "a")
            clear(LockKind::Mutex, "a");
        client.redisson().mutex("a") => lock() inspect();
    }
}

/// What is dropped before the call completes is the lock value, not the wait.
#[tokio::test(start_paused = true)]
async fn calls_of_values_that_are_gone_can_be_raced() {
    let (_voters, client) = with_client(3).await;
    let held = client.mutex("a").lock().await.expect("it is free");
    let won = tokio::select! {
        _ = client.mutex("a").lock() => "a",
        guard = client.mutex("b").lock() => { drop(guard.expect("it is free")); "b" }
    };
    assert_eq!(won, "b");
    let waiting = tokio::spawn(client.mutex("a").lock());
    held.release().await.expect("all answer");
    assert!(waiting.await.expect("it does not panic").expect("it is given back").is_held());
}
