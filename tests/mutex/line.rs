//! The line of one client: what a fair mutex does not have.

use tokio::{task::JoinSet, time::sleep};

use crate::{
    claims,
    fixture::{Fixture, ms},
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
