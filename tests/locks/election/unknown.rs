//! That nobody leads, and that it cannot be known who does.

use tokio::time::timeout;

use crate::election::{observed, until_led, until_vacant};
use quorate::{Cause, Observed, Verdict, embedded};
use quorate_tests::{
    claims,
    fixture::{Fixture, ms, secs},
};

claims!(minority: a_follower_tells_nobody_from_cannot_know);

async fn a_follower_tells_nobody_from_cannot_know(on: Fixture) {
    let mut on = on;
    let election = on.client().await.election("a");
    let mut observer = on.client().await.election("a").observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    let leadership = election.campaign("ada:1").await.unwrap();
    until_led(&mut observer, "ada:1").await;
    for voter in 0..2 {
        on.stop(voter);
    }
    assert_eq!(election.leader().await.unwrap().unwrap().text(), Some("ada:1"));
    on.stop(2);
    let error = election.leader().await.unwrap_err();
    assert!(error.is_no_quorum() && error.lock() == Some("a"), "{error}");
    assert_eq!(error.voters().len(), 5);
    let Observed::Unknown(error) = observed(&mut observer).await else { panic!("it is known") };
    assert!(error.is_no_quorum(), "{error}");
    for voter in 0..3 {
        on.resume(voter);
    }
    until_led(&mut observer, "ada:1").await;
    on.release(leadership.resign()).await;
    until_vacant(&mut observer).await;
    // A majority was enough for that. The others hear of it later.
    drop(observer);
    on.until_clean().await;
    on.kill(0);
    on.kill(1);
    assert_eq!(election.leader().await.unwrap(), None, "three say so");
}

// A leader had the votes of all. Two of three come back empty, and say that nobody leads: they may
// have forgotten it. The leader goes on, because they had voted for it before.
#[tokio::test(start_paused = true)]
async fn voters_that_may_have_forgotten_whom_they_voted_for_do_not_say_that_nobody_leads() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let (leads, follows) = (on.client().await.election("a"), on.client().await.election("a"));
    let mut observer = follows.observe();
    let leadership = leads.campaign("ada:1").await.unwrap();
    until_led(&mut observer, "ada:1").await;
    voters[0].restart_empty();
    tokio::time::sleep(secs(1)).await;
    voters[1].restart_empty();
    let error = follows.leader().await.unwrap_err();
    let suspected = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(Cause::Quarantined(_)));
    let counted = error.voters().iter().filter(|report| suspected(&report.verdict)).count();
    assert_eq!(counted, 2, "{error}");
    assert!(matches!(observed(&mut observer).await, Observed::Unknown(_)));
    assert!(leadership.is_held());
    // When the longest lease is over they count again.
    assert_eq!(until_led(&mut observer, "ada:1").await.token(), leadership.token());
}

// Nobody leads where two have one vote each and the third none: no hold can have a majority.
#[tokio::test(start_paused = true)]
async fn where_the_votes_are_split_nobody_leads() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let election = on.client().await.election("a");
    for (voter, hold) in [(0, "c:1"), (1, "c:2")] {
        on.command(voter, &["HSET", "quorate:{a}:election", hold, "1 - =x"]);
        on.command(voter, &["PEXPIRE", "quorate:{a}:election", "5000"]);
    }
    assert_eq!(election.leader().await.unwrap(), None);
    voters[2].stop();
    // The silent one may have voted for either.
    assert!(election.leader().await.unwrap_err().is_no_quorum());
    voters[2].resume();
    let leadership = timeout(secs(6), election.campaign("ada:1")).await.unwrap().unwrap();
    assert!(leadership.is_held());
    tokio::time::sleep(ms(10)).await;
}
