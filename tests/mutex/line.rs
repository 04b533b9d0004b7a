//! The line of one client: what a fair mutex does not have.

use std::time::Duration;

use quorate::{
    Error, Mutex, Quorate,
    embedded::{self, EmbeddedVoter, Fault, FaultGuard},
};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use crate::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(inside: from_one_client_only_one_candidate_goes_out);

// CONFORMANCE 43
// The lock is another client's. Of the sixteen waiters only the first asks: once, and once more
// when it is known to hear the channel. The holder has asked once.
async fn from_one_client_only_one_candidate_goes_out(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let client = on.client().await;
    let mut waiting = JoinSet::new();
    for _ in 0..16 {
        let mutex = client.mutex("a");
        waiting.spawn(async move { mutex.lock().await.unwrap().release().await.unwrap() });
    }
    on.until_listening().await;
    sleep(ms(100)).await;
    assert_eq!(on.runs("mutex/acquire").unwrap(), vec![3; on.voters()]);
    guard.release().await.unwrap();
    while let Some(entered) = waiting.join_next().await {
        entered.unwrap();
    }
    on.until_clean().await;
}

/// A client with a patience of 2 s, and its voters.
async fn patient() -> (Vec<EmbeddedVoter>, Quorate) {
    let voters = embedded::voters(3);
    let client = Quorate::builder().embedded(&voters).patience(secs(2)).connect().await;
    (voters, client.expect("all voters answer"))
}

fn silence(voters: &[EmbeddedVoter]) -> Vec<FaultGuard> {
    voters.iter().map(|voter| voter.fault(Fault::DropRequests)).collect()
}

/// How a caller waits in line, and what it is told.
type Told = JoinHandle<(Result<bool, Error>, Duration)>;

/// Comes into line now; measures from its coming on.
async fn waits(mutex: Mutex, limit: Option<Duration>) -> Told {
    let watch = Stopwatch::start();
    let waiter = tokio::spawn(async move {
        let entered = match limit {
            Some(limit) => mutex.lock_within(limit).await.map(|guard| guard.is_some()),
            None => mutex.lock().await.map(|_| true),
        };
        (entered, watch.time())
    });
    sleep(ms(1)).await;
    waiter
}

/// That it was told of the silence between these times after its coming.
async fn must_hear_of_silence(told: Told, (least, most): (Duration, Duration)) {
    let (entered, after) = told.await.expect("no panic");
    let error = entered.expect_err("no voter answers");
    assert!(error.is_no_quorum() && error.voters().len() == 3, "{error}");
    assert!(after >= least && after <= most, "told after {after:?}: {error}");
}

// Another client holds the lock. One of this client's waits in the queue of the fair mutex of the
// same name, which is the same lock, and asks nobody on behalf of the line.
#[tokio::test(start_paused = true)]
async fn what_was_heard_long_ago_does_not_shorten_the_patience() {
    let (voters, client) = patient().await;
    let holder = Quorate::builder().embedded(&voters).connect().await.expect("all voters answer");
    let guard = holder.mutex("a").lock().await.expect("it is free");
    let fair = client.fair_mutex("a");
    let fair = tokio::spawn(async move { fair.lock().await });
    sleep(ms(10)).await;
    let short = silence(&voters);
    assert!(client.mutex("a").try_lock().await.expect_err("nobody answers").is_no_quorum());
    sleep(ms(50)).await;
    drop(short);
    sleep(secs(15)).await;
    let short = silence(&voters);
    let waiter = waits(client.mutex("a"), None).await;
    sleep(ms(300)).await;
    assert!(!waiter.is_finished(), "{:?}", waiter.await);
    drop(short);
    guard.release().await.expect("it is held");
    drop(fair.await.expect("no panic").expect("all voters answer"));
    assert!(waiter.await.expect("no panic").0.expect("all voters answer"));
}

// As the one before: that it was another's then says nothing now.
#[tokio::test(start_paused = true)]
async fn what_was_heard_long_ago_is_no_answer_to_a_hurried_caller() {
    let (voters, client) = patient().await;
    let holder = Quorate::builder().embedded(&voters).connect().await.expect("all voters answer");
    let _guard = holder.mutex("a").lock().await.expect("it is free");
    let fair = client.fair_mutex("a");
    let fair = tokio::spawn(async move { fair.lock().await });
    sleep(ms(10)).await;
    assert!(client.mutex("a").try_lock().await.expect("all voters answer").is_none());
    sleep(secs(15)).await;
    let _silence = silence(&voters);
    let hurried = waits(client.mutex("a"), Some(ms(100))).await;
    must_hear_of_silence(hurried, (ms(100), ms(101))).await;
    fair.abort();
}
