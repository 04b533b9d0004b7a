//! Schedules of fair mutexes that broke a law or a promise; each test's name is the claim.

use quorate::{
    FairMutex, Quorate,
    embedded::{self, EmbeddedVoter, Fault},
};

async fn fair(voters: &[EmbeddedVoter]) -> FairMutex {
    let client = Quorate::builder().embedded(voters).connect().await;
    client.expect("all voters answer").fair_mutex("a")
}

/// The second run found the vote taken, by the very hold that it ran for.
#[tokio::test(start_paused = true)]
async fn a_request_that_runs_twice_does_not_queue_whom_it_gave_the_vote() {
    let voters = embedded::voters(3);
    let twice: Vec<_> = voters.iter().map(|voter| voter.fault(Fault::RunTwice)).collect();
    let guard = fair(&voters).await.lock().await.expect("it is free");
    drop(twice);
    for voter in &voters {
        assert_eq!(voter.keys(), ["quorate:{a}"]);
    }
    drop(guard);
}
