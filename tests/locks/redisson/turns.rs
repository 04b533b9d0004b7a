//! Turns between clients. Java stands in no queue of ours: whoever asks first has the lock.

use std::convert::Infallible;

use quorate_tests::prelude::*;

use super::NAME;

/// Three tasks of one client have the lock in turns, for 20 ms each; another client asks for it.
async fn must_have_a_turn(
    what: &str,
    work: impl AsyncFn(&Quorate),
    ask: impl AsyncFnOnce(&Quorate) -> bool,
) {
    let voters = embedded::voters(1);
    let builder = Quorate::builder().embedded(&voters);
    let connect = async || builder.clone().connect().await.expect("it answers");
    let (client, other) = (connect().await, connect().await);
    let _far = voters[0].fault(Fault::Delay { there: ms(1), back: ms(1) });
    let task = async || -> Infallible {
        loop {
            work(&client).await;
        }
    };
    let asked = async {
        sleep(ms(200)).await;
        ask(&other).await
    };
    tokio::select! {
        got = asked => assert!(got, "{what}: the other client starves"),
        never = task() => match never {},
        never = task() => match never {},
        never = task() => match never {},
    }
}

// Each task would ask right behind the release of the one before, and the other client too late.
#[tokio::test(start_paused = true)]
async fn tasks_that_hand_on_a_lock_in_their_client_let_another_client_have_it() {
    let lock = async |client: &Quorate| {
        let guard = client.redisson().mutex(NAME).lock().await.expect("it answers");
        sleep(ms(20)).await;
        guard
    };
    let lock_within = async |client: &Quorate| {
        client.redisson().mutex(NAME).lock_within(secs(5)).await.expect("it answers").is_some()
    };
    let work = async |client: &Quorate| lock(client).await.release().await.expect("it answers");
    must_have_a_turn("a mutex", work, lock_within).await;
    let work = async |client: &Quorate| drop(lock(client).await);
    must_have_a_turn("a mutex whose guards are dropped", work, lock_within).await;
    let work = async |client: &Quorate| {
        let guard = client.redisson().rw_lock(NAME).write().await.expect("it answers");
        sleep(ms(20)).await;
        guard.release().await.expect("it answers");
    };
    let write_within = async |client: &Quorate| {
        client.redisson().rw_lock(NAME).write_within(secs(5)).await.expect("it answers").is_some()
    };
    must_have_a_turn("a read/write lock", work, write_within).await;
}
