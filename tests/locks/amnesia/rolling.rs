//! A lock is held while voters restart empty, one after the other.

use quorate_tests::prelude::*;

claims!(minority: rolling_restarts_of_all_voters_lose_no_lock_and_let_nobody_in);

/// Nobody gets the lock: not who saw all restarts, nor who comes now.
async fn nobody_enters(on: &Fixture, held: &MutexGuard, contender: &Quorate) {
    let fresh = on.builder().connect().await.expect("a majority answers");
    for client in [contender, &fresh] {
        for fair in [false, true] {
            let tried = if fair {
                client.fair_mutex("a").try_lock().await
            } else {
                client.mutex("a").try_lock().await
            };
            assert!(!matches!(tried, Ok(Some(_))), "a second holder: {tried:?}");
        }
    }
    drop(fresh.close().await);
    assert!(held.is_held());
}

/// One voter is wiped by a restart. It has the hold again at once, long before the next renewal is
/// due; but where another asks it first and has its vote for a moment (`raced`), by the next one.
async fn wipe(
    on: &mut Fixture,
    (voter, raced): (usize, bool),
    held: &MutexGuard,
    contender: &Quorate,
) {
    let watch = Stopwatch::start();
    on.restart(voter);
    if raced {
        nobody_enters(on, held, contender).await;
    }
    until!(
        "all five vote for the hold",
        on.keys().iter().all(|keys| keys == &["quorate:{a}"]) && held.votes() == 5
    );
    let limit = secs(if raced { 11 } else { 1 });
    assert!(on.is_real() || watch.time() <= limit, "{:?}", watch.time());
    nobody_enters(on, held, contender).await;
}

async fn rolling_restarts_of_all_voters_lose_no_lock_and_let_nobody_in(mut on: Fixture) {
    let (ours, contender) = (on.client().await, on.client().await);
    let guard = ours.mutex("a").lock().await.unwrap();
    // Whatever was not heard of a voter before it forgot does not count until its quarantine ends.
    until!("all five have voted", guard.votes() == 5);
    for round in 0..on.rounds(10, (10, 2)) {
        for voter in 0..on.voters() {
            wipe(&mut on, (voter, round % 2 == 1), &guard, &contender).await;
        }
    }
    on.release(guard.release()).await;
    on.until_clean().await;
}
