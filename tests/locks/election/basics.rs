//! One leads, and says what it is.

use quorate::{Leader, Leadership};

use quorate_tests::{
    claims,
    fixture::{Fixture, secs},
};

claims!(everywhere:
    of_two_candidates_one_leads_and_both_can_tell_which,
    a_value_may_be_any_4096_bytes_and_is_seen_by_whoever_asks_after_it_was_proclaimed,
    work_under_a_lead_is_done_and_a_lead_outlasts_its_lease,
);
claims!(inside: a_campaign_without_rivals_asks_each_voter_once);

/// What a leader and those who see it agree on.
#[track_caller]
fn is_that(leader: &Leader, leadership: &Leadership, value: &[u8]) {
    assert_eq!(leader.hold(), leadership.hold());
    assert_eq!(leader.token(), leadership.token());
    assert_eq!(leader.value(), value);
}

async fn of_two_candidates_one_leads_and_both_can_tell_which(on: Fixture) {
    let (ada, ben) = (on.client().await, on.client().await);
    assert_eq!(ada.election("a").leader().await.unwrap(), None);
    let leadership = ada.election("a").campaign("ada:1").await.unwrap();
    assert!(leadership.is_held() && leadership.remaining() > secs(20));
    assert_eq!(leadership.name(), "a");
    assert!(leadership.votes() > on.voters() / 2);
    assert!(ben.election("a").try_campaign("ben:1").await.unwrap().is_none());
    let seen = ben.election("a").inspect().await.unwrap();
    assert_eq!(seen.holder().unwrap().hold, *leadership.hold());
    assert!(seen.waiting.is_empty() && seen.token == Some(leadership.token()));
    for client in [&ada, &ben] {
        let leader = client.election("a").leader().await.unwrap().expect("somebody leads");
        is_that(&leader, &leadership, b"ada:1");
        assert_eq!(leader.text(), Some("ada:1"));
    }
    on.release(leadership.resign()).await;
    let leadership = ben.election("a").campaign("ben:1").await.unwrap();
    let leader = ada.election("a").leader().await.unwrap().expect("somebody leads");
    is_that(&leader, &leadership, b"ben:1");
    on.release(leadership.resign()).await;
    on.until_clean().await;
}

async fn a_value_may_be_any_4096_bytes_and_is_seen_by_whoever_asks_after_it_was_proclaimed(
    on: Fixture,
) {
    let (election, follows) = (on.client().await.election("a"), on.client().await.election("a"));
    let every_byte: Vec<u8> = (0..=u8::MAX).cycle().take(4096).collect();
    let blanks = " = # - 1 2\r\n\0".as_bytes();
    let long = "é".repeat(2048);
    for value in [&every_byte[..], &every_byte[128..130], blanks, long.as_bytes(), b""] {
        let leadership = election.campaign(value).await.unwrap();
        for value in [value, &every_byte, b"1", b"2", value] {
            leadership.proclaim(value).await.unwrap();
            let leader = follows.leader().await.unwrap().expect("somebody leads");
            is_that(&leader, &leadership, value);
            assert_eq!(leader.text(), std::str::from_utf8(value).ok());
        }
        on.release(leadership.resign()).await;
    }
    on.until_clean().await;
}

async fn work_under_a_lead_is_done_and_a_lead_outlasts_its_lease(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let leadership = client.election("a").campaign("ada:1").await.unwrap();
    let work = async { tokio::time::sleep(secs(4)).await };
    leadership.while_leader(work).await.unwrap();
    let failed = leadership.try_while_leader(async { "x".parse::<u32>().map_err(|_| Failed) });
    assert!(matches!(failed.await, Err(Failed)));
    let leader = client.election("a").leader().await.unwrap().expect("it leads still");
    is_that(&leader, &leadership, b"ada:1");
    on.release(leadership.resign()).await;
    on.until_clean().await;
}

#[derive(Debug)]
struct Failed;

impl From<quorate::Error> for Failed {
    fn from(error: quorate::Error) -> Self {
        panic!("it leads: {error}")
    }
}

async fn a_campaign_without_rivals_asks_each_voter_once(on: Fixture) {
    let election = on.client().await.election("a");
    let leadership = election.campaign("ada:1").await.unwrap();
    let once = vec![1; on.voters()];
    assert_eq!(on.runs("election/acquire").unwrap(), once);
    assert_eq!(on.runs("election/renew").unwrap(), vec![0; on.voters()]);
    leadership.resign().await.unwrap();
    assert_eq!(on.runs("mutex/release").unwrap(), once);
}
