//! Clients that disagree about who the voters are.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use quorate::{
    Builder, Cause, KeyScheme, Quorate, Verdict,
    embedded::{self, EmbeddedVoter},
};
use quorate_tests::fixture::Stopwatch;
use tokio::time::sleep;

use super::{Changed, builder};

const SECS: fn(u64) -> Duration = Duration::from_secs;

/// For so long a voter tells of a client: the longest lease of 30 s and 45 s more.
const TOLD: Duration = Duration::from_secs(75);

fn on(voters: &[EmbeddedVoter]) -> Builder {
    builder().embedded(voters).roster(1)
}

async fn refused(builder: Builder) -> String {
    let error = builder.connect().await.expect_err("it is out of step");
    assert!(error.is_out_of_step(), "{error}");
    error.to_string()
}

// Claim 56
#[tokio::test(start_paused = true)]
async fn a_client_with_another_number_of_voters_does_not_connect_and_is_told_what_each_believes() {
    let voters = embedded::voters(5);
    let first = on(&voters[..3]).client_name("web-1").connect().await.unwrap();
    let told = refused(on(&voters)).await;
    let others = "this client is out of step with others of voter embedded-1: it has roster 1 with \
                  5 voters and a longest lease of 30s; others have roster 1 with 3 voters and a \
                  longest lease of 30s, last seen ";
    assert!(told.starts_with(others), "{told}");
    assert!(told.contains(" (web-1); "), "{told}");
    // Who was refused left nothing behind by which others would be refused.
    on(&voters[..3]).connect().await.unwrap();
    let held = first.mutex("m").lock().await.unwrap();
    sleep(TOLD).await;
    assert!(held.is_held());
    assert!(first.status().await.voters.iter().all(|voter| voter.out_of_step.is_none()));
}

// Claim 56
#[tokio::test(start_paused = true)]
async fn a_client_with_another_longest_lease_does_not_connect() {
    let voters = embedded::voters(3);
    let first = on(&voters).connect().await.unwrap();
    let told = refused(on(&voters).longest_lease(SECS(60))).await;
    assert!(told.contains("all clients need the same longest lease"), "{told}");
    // Nobody is there any more, for so long that nothing stands that was held.
    drop(first);
    sleep(SECS(60) + SECS(45) + SECS(1)).await;
    on(&voters).longest_lease(SECS(60)).connect().await.unwrap();
}

// Claim 56
#[tokio::test(start_paused = true)]
async fn clients_of_the_new_voters_start_when_those_of_the_old_have_been_gone_for_a_longest_lease()
{
    for (changed, carried) in [(Changed::of(2, 1, 0), false), (Changed::of(3, 0, 3), true)] {
        let old = builder().embedded(changed.old_ones()).roster(1).connect().await.unwrap();
        let both = changed.both_sets().roster(2).connect().await.unwrap();
        let new = || builder().embedded(changed.new_ones()).roster(2);
        // Where no voter is in both sets, the client of both carries it across.
        sleep(SECS(25)).await;
        let told = refused(new()).await;
        assert!(told.contains("it has roster 2 with 3 voters"), "{told}");
        assert!(told.contains("others have roster 1 with"), "{carried}: {told}");
        old.close().await;
        let gone = Stopwatch::start();
        let client = loop {
            match new().connect().await {
                Ok(client) => break client,
                Err(error) => assert!(error.is_out_of_step(), "{error}"),
            }
            sleep(SECS(1)).await;
        };
        let waited = gone.time();
        assert!(waited > SECS(30) && waited <= TOLD + SECS(1), "{carried}: {waited:?}");
        // All three steps have been made, each beside the one before.
        let held = client.mutex("m").lock().await.unwrap();
        assert!(both.mutex("m").try_lock().await.unwrap().is_none());
        held.release().await.unwrap();
    }
}

// Claim 56
#[tokio::test(start_paused = true)]
async fn a_client_that_is_there_for_a_moment_alone_carries_what_it_hears_across() {
    let changed = Changed::of(3, 0, 3);
    let _old = builder().embedded(changed.old_ones()).roster(1).connect().await.unwrap();
    let both = changed.both_sets().roster(2).connect().await.unwrap();
    both.close().await;
    let told = refused(builder().embedded(changed.new_ones()).roster(2)).await;
    assert!(told.contains("others have roster 1 with 3 voters"), "{told}");
}

// Claim 56
#[tokio::test(start_paused = true)]
async fn a_change_goes_back_as_it_came() {
    let changed = Changed::of(2, 1, 0);
    let both = || changed.both_sets().roster(2);
    let new = builder().embedded(changed.new_ones()).roster(2).connect().await.unwrap();
    let joint = both().connect().await.unwrap();
    assert!(
        refused(builder().embedded(changed.old_ones()).roster(1)).await.contains("roster 1 with 1")
    );
    new.close().await;
    sleep(TOLD + SECS(1)).await;
    let old = builder().embedded(changed.old_ones()).roster(1).connect().await.unwrap();
    joint.close().await;
    sleep(TOLD + SECS(1)).await;
    // And another change, of the same number, is tried.
    both().connect().await.unwrap();
    drop(old);
}

/// Clients that come to disagree: each was connected when the voter that both have was away.
async fn disagreeing(voters: &[EmbeddedVoter]) -> [Quorate; 2] {
    voters[2].stop();
    let connect = |voters| on(voters).voter_deadline(Duration::from_millis(100)).connect();
    let one = connect(&voters[..3]).await.unwrap();
    let other = connect(&voters[2..7]).await.unwrap();
    [one, other]
}

// Claim 57
#[tokio::test(start_paused = true)]
async fn who_finds_out_later_counts_no_vote_of_that_voter_for_new_holds_and_keeps_what_it_holds() {
    let voters = embedded::voters(7);
    let [one, other] = disagreeing(&voters).await;
    let held = one.mutex("held").lock().await.unwrap();
    voters[2].resume();
    sleep(SECS(30)).await;
    // The first one that came is well there; the other one is not.
    let states = [one.status().await, other.status().await].map(|status| {
        let found = status.voters.into_iter().find(|voter| voter.voter == "embedded-3");
        found.expect("both have it").out_of_step
    });
    let told: Vec<String> = states.into_iter().flatten().collect();
    assert!(!told.is_empty(), "nobody has found out");
    for text in &told {
        assert!(text.contains("roster 1 with 3 voters") && text.contains("roster 1 with 5 voters"));
    }
    assert!(held.is_held(), "what is held is not taken away");
    // It gives its vote, and that does not count: without another one there is no lock.
    voters[3].kill();
    voters[4].kill();
    sleep(SECS(1)).await;
    let error = other.mutex("m").lock_within(SECS(1)).await.unwrap_err();
    let out_of_step = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(Cause::OutOfStep(_)));
    assert!(error.voters().iter().any(|report| out_of_step(&report.verdict)), "{error}");
    held.release().await.unwrap();
}

// Claim 57
#[tokio::test(start_paused = true)]
async fn it_is_over_when_the_others_have_been_gone_for_a_while() {
    let voters = embedded::voters(7);
    let [one, other] = disagreeing(&voters).await;
    voters[2].resume();
    sleep(SECS(30)).await;
    one.close().await;
    sleep(TOLD + SECS(20)).await;
    let status = other.status().await;
    assert!(status.voters.iter().all(quorate::VoterStatus::counts), "{status}");
}

// Claim 57
#[tokio::test(start_paused = true)]
async fn clients_with_different_prefixes_do_not_meet() {
    let voters = embedded::voters(5);
    let _first = on(&voters[..3]).connect().await.unwrap();
    let prefix = KeyScheme::Prefix("billing".into());
    on(&voters).key_scheme(prefix).connect().await.unwrap();
}

// Claim 57
#[tokio::test(start_paused = true)]
async fn who_only_looks_connects_and_leaves_no_trace_and_sees_what_the_clients_believe() {
    let voters = embedded::voters(5);
    let first = on(&voters[..3]).client_name("web-1").connect().await.unwrap();
    let looks = on(&voters).only_looks(true).connect().await.unwrap();
    let roster = looks.survey().await.roster;
    assert_eq!(roster.len(), 1, "{roster:?}");
    let entry = &roster[0];
    assert_eq!((entry.number, entry.voters, entry.replaced), (1, 3, None));
    assert_eq!((entry.client_name.as_deref(), entry.clashes), (Some("web-1"), true));
    assert_eq!(first.survey().await.roster.len(), 1);
}

// Claim 57
#[tokio::test(start_paused = true)]
async fn voters_are_asked_every_15_seconds_and_never_on_the_way_of_a_lock() {
    let voters = embedded::voters(3);
    let (asked, start) = (Arc::<Mutex<Vec<u64>>>::default(), Stopwatch::start());
    let noted = Arc::clone(&asked);
    voters[0].observe(move |ran| {
        if ran.script() == "voter/roster" {
            noted.lock().unwrap().push(start.time().as_secs());
        }
    });
    let client = on(&voters).connect().await.unwrap();
    for _ in 0..10 {
        for _ in 0..20 {
            client.mutex("m").lock().await.unwrap().release().await.unwrap();
        }
        sleep(SECS(5)).await;
    }
    assert_eq!(*asked.lock().unwrap(), [0, 15, 30, 45]);
    // A voter that forgets it hears it again.
    voters[0].wipe();
    sleep(SECS(15)).await;
    assert!(voters[0].keys().iter().any(|key| key == "quorate:{%roster}"));
    client.close().await;
    sleep(SECS(3_601)).await;
    assert!(!voters[0].keys().iter().any(|key| key == "quorate:{%roster}"), "it expires");
}
