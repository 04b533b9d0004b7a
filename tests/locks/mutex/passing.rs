//! From one task of a client to the next.

use futures::future::BoxFuture;
use quorate_tests::prelude::*;

/// Locks and gives back, and says when it had the lock.
type Turn = fn(Quorate, Stopwatch, Duration) -> BoxFuture<'static, Result<Duration, Error>>;

macro_rules! turn {
    ($lock:ident, $wait:ident) => {
        |client, watch, held| {
            Box::pin(async move {
                let guard = client.$lock("a").$wait().await?;
                let entered = watch.time();
                sleep(held).await;
                guard.release().await?;
                Ok(entered)
            })
        }
    };
}

const KINDS: [(&str, Turn); 3] = [
    ("mutex", turn!(mutex, lock)),
    ("fair mutex", turn!(fair_mutex, lock)),
    ("read/write lock", turn!(rw_lock, write)),
];

/// A way of 30 ms, there and back.
const TRIP: Duration = ms(60);
const HELD: Duration = ms(500);

async fn far_away() -> (Vec<EmbeddedVoter>, Vec<FaultGuard>, Quorate) {
    let (voters, client) = with_client(3).await;
    let far = all(&voters, Fault::Delay { there: TRIP / 2, back: TRIP / 2 });
    (voters, far, client)
}

// With a message in between it would be two trips. All turns are over before a place must be
// refreshed: the release would be heard only behind the answer to that.
#[tokio::test(start_paused = true)]
async fn the_next_task_of_a_client_has_the_lock_one_round_trip_after_the_release() {
    for (kind, turn) in KINDS {
        let (_voters, _far, client) = far_away().await;
        let watch = Stopwatch::start();
        let mut turns = Vec::new();
        for _ in 0..4 {
            turns.push(tokio::spawn(turn(client.clone(), watch, HELD)));
            // Until it has its place.
            sleep(ms(200)).await;
        }
        let entered = join_all(turns).await.into_iter();
        let entered = entered.map(|turn| turn.expect("no panic").expect("all voters answer"));
        let entered: Vec<Duration> = entered.collect();
        for pair in entered.windows(2) {
            let after = pair[1].saturating_sub(pair[0] + HELD);
            assert!(after <= TRIP + ms(2), "{kind}: {after:?} after the release, of {entered:?}");
        }
    }
}

// The second task stands before the other client, and has the lock at the first release. The third
// takes its place behind, when the second has left the line: so at the second release the other
// client is called, and nobody else asks.
#[tokio::test(start_paused = true)]
async fn where_another_client_waits_no_task_asks_in_vain() {
    for dropped in [false, true] {
        no_task_asks_in_vain(dropped).await;
    }
}

/// `dropped`: nobody waits for the answers to the first release.
async fn no_task_asks_in_vain(dropped: bool) {
    let on = Fixture::of(&embedded::voters(3));
    let (client, other) = (on.client().await.mutex("a"), on.client().await.mutex("a"));
    let guard = client.lock().await.expect("it is free");
    let second = tokio::spawn(client.lock());
    sleep(ms(50)).await;
    let (third, theirs) = (tokio::spawn(client.lock()), tokio::spawn(other.lock()));
    sleep(ms(50)).await;
    if dropped {
        drop(guard);
    } else {
        on.release(guard.release()).await;
    }
    let guard = second.await.expect("no panic").expect("all voters answer");
    // The third waits in vain for the second to hand the lock on, and then for its turn.
    sleep(ms(100)).await;
    let asked = on.runs("mutex/acquire").expect("it is counted");
    on.release(guard.release()).await;
    // Not behind the third, which would keep it.
    let guard = timeout(ms(50), theirs).await.expect("it is next");
    let guard = guard.expect("no panic").expect("all voters answer");
    sleep(ms(50)).await;
    let once_more = asked.iter().map(|asked| asked + 1).collect();
    assert_eq!(on.runs("mutex/acquire"), Some(once_more));
    on.release(guard.release()).await;
    on.release(third.await.expect("no panic").expect("all voters answer").release()).await;
    on.until_clean().await;
}
