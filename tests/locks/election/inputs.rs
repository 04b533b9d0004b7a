//! What cannot work is refused before anything is sent.

use futures::StreamExt;
use quorate::{Error, Observed};

use quorate_tests::fixture::{Fixture, secs};

#[track_caller]
fn assert_invalid(error: &Error, message: &str) {
    assert!(error.is_invalid() && error.to_string().contains(message), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_too_long_and_a_name_that_cannot_be_used_are_refused_and_nothing_is_sent() {
    let on = Fixture::embedded(3);
    let client = on.client().await;
    let (long, told) =
        ("x".repeat(4097), "the value of a leader has 4097 bytes: 4096 are the most");
    let election = client.election("a");
    let within = election.campaign_within(&long, secs(1)).await.map(drop);
    for refused in [election.campaign(&long).await.map(drop), within] {
        assert_invalid(&refused.unwrap_err(), told);
    }
    for (name, message) in [("", "empty"), (&*"n".repeat(513), "513 bytes, the limit is 512")] {
        let election = client.election(name);
        assert_invalid(&election.campaign("a").await.unwrap_err(), message);
        assert_invalid(&election.leader().await.unwrap_err(), message);
        let observed: Vec<_> = election.observe().collect().await;
        let [Observed::Unknown(error)] = &observed[..] else { panic!("{observed:?}") };
        assert_invalid(error, message);
    }
    let lease = client.election("a").lease(secs(31)).campaign("a").await.unwrap_err();
    assert_invalid(&lease, "over the longest lease of 30s");
    for script in ["election/acquire", "election/look", "mutex/inspect"] {
        let asked = u64::from(script == "mutex/inspect");
        assert_eq!(on.runs(script).unwrap(), [asked; 3], "{script}: `connect` looks once");
    }
    // One that leads goes on with the value that it has.
    let leadership = election.campaign("short").await.unwrap();
    assert_invalid(&leadership.proclaim(&long).await.unwrap_err(), told);
    assert_eq!(on.runs("election/renew").unwrap(), [0; 3]);
    assert_eq!(election.leader().await.unwrap().unwrap().text(), Some("short"));
}
