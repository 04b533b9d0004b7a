//! What observers are told, and when.

use std::time::Duration;

use tokio::time::timeout;

use crate::election::{PATIENCE, led_by, observed, until_led, until_vacant};
use quorate::{
    LockKind, Observed,
    embedded::{self, Fault, InFlight},
};
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
    inside::all,
    standing::until_waiting,
};

claims!(everywhere:
    an_observer_is_told_who_leads_and_each_change_that_lasts,
    an_observer_that_is_dropped_listens_no_more,
    an_observer_ends_with_its_client,
    what_changed_before_it_is_polled_is_told_as_it_is_now,
);

async fn an_observer_is_told_who_leads_and_each_change_that_lasts(on: Fixture) {
    let client = on.client().await;
    let (ada, ben) = (client.election("a"), on.client().await.election("a"));
    let mut observer = on.client().await.election("a").observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    let leadership = ada.campaign("ada:1").await.unwrap();
    let leader = until_led(&mut observer, "ada:1").await;
    assert_eq!((leader.hold(), leader.token()), (leadership.hold(), leadership.token()));
    leadership.proclaim("ada:2").await.unwrap();
    // The hold and its token are the same.
    assert_eq!(until_led(&mut observer, "ada:2").await.hold(), leadership.hold());
    let waits = tokio::spawn(ben.campaign("ben:1"));
    until_waiting(&client, LockKind::Election, "a", 1).await;
    on.release(leadership.resign()).await;
    let leadership = waits.await.unwrap().unwrap();
    assert_eq!(until_led(&mut observer, "ben:1").await.token(), leadership.token());
    on.release(leadership.resign()).await;
    until_vacant(&mut observer).await;
    drop(observer);
    on.until_clean().await;
}

async fn an_observer_that_is_dropped_listens_no_more(on: Fixture) {
    let election = on.client().await.election("a");
    let mut observers = [election.observe(), election.observe()];
    assert!(on.lock_channels().iter().all(Vec::is_empty), "it was not polled yet");
    for observer in &mut observers {
        observed(observer).await;
    }
    on.until_listening().await;
    let [one, other] = observers;
    drop(one);
    let leadership = election.campaign("ada:1").await.unwrap();
    let mut other = other;
    until_led(&mut other, "ada:1").await;
    drop(other);
    on.release(leadership.resign()).await;
    on.until_clean().await;
}

async fn an_observer_ends_with_its_client(on: Fixture) {
    let client = on.client().await;
    let mut observer = client.election("a").observe();
    observed(&mut observer).await;
    let waits = tokio::spawn(async move { (observer.next().await.is_none(), observer) });
    client.close().await;
    let (ended, mut observer) = timeout(PATIENCE, waits).await.unwrap().unwrap();
    assert!(ended && observer.next().await.is_none());
    assert!(client.election("a").observe().next().await.is_none());
    assert!(client.election("a").leader().await.unwrap_err().is_closed());
    assert!(client.election("a").campaign("x").await.unwrap_err().is_closed());
}

async fn what_changed_before_it_is_polled_is_told_as_it_is_now(on: Fixture) {
    let election = on.client().await.election("a");
    let mut observer = on.client().await.election("a").observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    on.until_listening().await;
    for value in ["1", "2"] {
        let leadership = election.campaign(value).await.unwrap();
        on.release(leadership.resign()).await;
    }
    let leadership = election.campaign("3").await.unwrap();
    assert_eq!(led_by(&observed(&mut observer).await), Some("3"));
    on.release(leadership.resign()).await;
}

/// One way to a voter of these.
const WAY: Duration = ms(10);

// There with the request, back with the message, and a round trip to ask: four ways after it was
// asked for, where the caller has the answer after two. No time passes but on the way.
#[tokio::test(start_paused = true)]
async fn a_change_is_told_within_a_round_trip_of_it_without_a_timer() {
    let voters = embedded::voters(5);
    let on = Fixture::of(&voters);
    let (ada, observing) = (on.client().await.election("a"), on.client().await);
    let _weather = all(&voters, Fault::Delay { there: WAY, back: WAY });
    let mut observer = observing.election("a").observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    // It asks once more when it is known to listen.
    assert!(timeout(ms(100), observer.next()).await.is_err());
    let watch = Stopwatch::start();
    let campaign = tokio::spawn(ada.campaign("ada:1"));
    until_led(&mut observer, "ada:1").await;
    assert!(watch.time() <= 4 * WAY + ms(1), "{:?}", watch.time());
    let leadership = campaign.await.unwrap().unwrap();
    let watch = Stopwatch::start();
    let proclaimed = tokio::spawn(async move {
        leadership.proclaim("ada:2").await.unwrap();
        leadership
    });
    until_led(&mut observer, "ada:2").await;
    assert!(watch.time() <= 4 * WAY + ms(1), "{:?}", watch.time());
    let leadership = proclaimed.await.unwrap();
    let watch = Stopwatch::start();
    let resigned = tokio::spawn(leadership.resign());
    until_vacant(&mut observer).await;
    assert!(watch.time() <= 4 * WAY + ms(1), "{:?}", watch.time());
    resigned.await.unwrap().unwrap();
}

// Nothing changes for a minute: thirty polls of 2 s, and one question more when it listens. The
// renewals of the leader are told to nobody.
#[tokio::test(start_paused = true)]
async fn without_news_an_observer_asks_by_the_poll_interval_and_no_faster() {
    let on = Fixture::embedded(3);
    let election = on.client().await.election("a");
    let leadership = election.campaign("ada:1").await.unwrap();
    let mut observer = on.client().await.election("a").observe();
    until_led(&mut observer, "ada:1").await;
    assert!(timeout(secs(60), observer.next()).await.is_err(), "nothing has changed");
    for asked in on.runs("election/look").unwrap() {
        // The first renewal says what the token is.
        assert!((30..=34).contains(&asked), "{asked}");
    }
    leadership.resign().await.unwrap();
}

// The connections of the observer break while a leader comes: whatever was published meanwhile is
// lost. It asks as soon as it listens again, and not after 2 s.
#[tokio::test(start_paused = true)]
async fn what_is_lost_with_connections_is_told_right_after_they_stand_again() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let election = on.client().await.election("a");
    let mut observer = on.client().await.election("a").observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    assert!(timeout(secs(3), observer.next()).await.is_err());
    let leadership = election.campaign("ada:1").await.unwrap();
    for voter in &voters {
        voter.cut(InFlight::Arrives);
    }
    let watch = Stopwatch::start();
    until_led(&mut observer, "ada:1").await;
    assert!(watch.time() <= ms(100), "{:?}", watch.time());
    leadership.resign().await.unwrap();
}

// As for a waiter: pauses from 1 ms, doubled up to half a second.
#[tokio::test(start_paused = true)]
async fn a_voter_whose_connection_breaks_at_every_request_does_not_make_an_observer_spin() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let leadership = on.client().await.election("a").campaign("ada:1").await.unwrap();
    let mut observer = on.client().await.election("a").observe();
    until_led(&mut observer, "ada:1").await;
    let _fault = voters[0].fault(Fault::CutBeforeRun);
    assert!(timeout(secs(10), observer.next()).await.is_err(), "the others say who leads");
    let asked = voters[1].runs("election/look");
    assert!(asked < 60, "asked {asked} times in ten seconds");
    drop(leadership);
}

// It sees only what a majority has: one voter is free already, and another one still has the old
// value.
#[tokio::test(start_paused = true)]
async fn a_minority_changes_nothing_that_is_observed() {
    let voters = embedded::voters(5);
    let on = Fixture::of(&voters);
    let leadership = on.client().await.election("a").campaign("ada:1").await.unwrap();
    let mut observer = on.client().await.election("a").observe();
    let leader = until_led(&mut observer, "ada:1").await;
    voters[0].kill();
    voters[1].stop();
    leadership.proclaim("ada:2").await.unwrap();
    assert_eq!(until_led(&mut observer, "ada:2").await.token(), leader.token());
    voters[0].restart_empty();
    voters[1].resume();
    assert!(timeout(secs(60), observer.next()).await.is_err());
    assert!(leadership.is_held());
}
