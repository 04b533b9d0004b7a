//! A token stands on a majority before its hold is handed out, and takes a second trip only where
//! the voters differ.

use metrics_util::debugging::Snapshotter;
use quorate::embedded::Reply;
use quorate_tests::{inside::drop_script, prelude::*};

use crate::{
    amnesia::{
        growth::token_of,
        inside::{builder, client, old_voters, old_with_client},
    },
    cancel::kinds::Access,
};

/// Far ahead of all clocks, as after a grant to one that is wrong.
const AHEAD: u64 = 2_000_000_000_000_000;
const FENCE: &str = "quorate:{a}:fence";

fn set_ahead(voter: &EmbeddedVoter, fence: &str) {
    voter.command(&["SET", fence, &AHEAD.to_string()]).unwrap();
}

/// How many voters store just this token.
fn stored(voters: &[EmbeddedVoter], token: Token) -> usize {
    let text = Reply::Text(token.to_string());
    voters.iter().filter(|voter| voter.command(&["GET", FENCE]) == Ok(text.clone())).count()
}

/// How long it takes until all three of them do.
async fn until_all_store(voters: &[EmbeddedVoter], token: Token) -> Duration {
    let watch = Stopwatch::start();
    while stored(voters, token) < 3 {
        sleep(ms(100)).await;
    }
    watch.time()
}

fn renewals(voters: &[EmbeddedVoter], script: &str) -> u64 {
    voters.iter().map(|voter| voter.runs(script)).sum()
}

/// Repairs of tokens since the last call, by kind and outcome.
fn repairs(snapshotter: &Snapshotter) -> BTreeMap<String, f64> {
    counted(snapshotter, metric::TOKEN_REPAIRS)
}

#[tokio::test(start_paused = true)]
async fn where_one_voter_knows_a_higher_one_the_others_are_told_once() {
    let (snapshotter, _recording) = record();
    for (way, fence, renew, kind) in [
        (Access::Lock, FENCE, "mutex/renew", "mutex"),
        (Access::FairLock, FENCE, "mutex/renew", "fair_mutex"),
        (Access::Write, "quorate:{a}:rw:fence", "rw/renew", "write"),
    ] {
        let (voters, ours) = old_with_client(5).await;
        set_ahead(&voters[0], fence);
        assert_eq!(u64::from(token_of(way, &ours).await), AHEAD + 64, "{way:?}");
        assert_eq!(renewals(&voters, renew), 4, "{way:?}: all but the one that knows");
        assert_eq!(repairs(&snapshotter), BTreeMap::from([(format!("{kind} stored"), 1.0)]));
        assert_eq!(u64::from(token_of(way, &ours).await), AHEAD + 2 * 64);
        assert_eq!(renewals(&voters, renew), 4, "now all know it");
        assert_eq!(repairs(&snapshotter), BTreeMap::new());
    }
}

// One voter of three is ahead, and the others cannot be told.
#[tokio::test(start_paused = true)]
async fn nobody_gets_a_lock_whose_token_no_majority_could_store_and_nothing_is_left_of_it() {
    let (snapshotter, _recording) = record();
    let voters = old_voters(3);
    let (on, ours) = (Fixture::of(&voters), client(&voters).await);
    set_ahead(&voters[0], FENCE);
    drop_script(&voters, "mutex/renew");
    let tried = ours.mutex("a").try_lock().await;
    assert!(tried.as_ref().is_err_and(quorate::Error::is_no_quorum), "{tried:?}");
    assert_eq!(repairs(&snapshotter), BTreeMap::from([("mutex failed".to_owned(), 1.0)]));
    sleep(ms(1)).await;
    on.until_clean().await;
}

// Of three that grant one is ahead, and one does not answer when it is told; the other two of the
// five are a rival's for a moment. A majority answers: that is contention, and no outage.
#[tokio::test(start_paused = true)]
async fn a_token_that_a_rival_keeps_from_being_stored_is_no_lack_of_a_quorum() {
    let (snapshotter, _recording) = record();
    for kind in [Kind::Mutex, Kind::FairMutex] {
        let voters = old_voters(5);
        let ours = builder(&voters).quorum_timeout(secs(2)).connect().await.unwrap();
        set_ahead(&voters[0], FENCE);
        for voter in &voters[3..] {
            voter.command(&["HSET", "quorate:{a}", "rival:1", "1"]).unwrap();
            voter.command(&["PEXPIRE", "quorate:{a}", "20000"]).unwrap();
        }
        drop_script(&voters[2..3], "mutex/renew");
        let tried = ours.mutex("a").try_lock().await;
        assert!(matches!(tried, Ok(None)), "{tried:?}");
        let watch = Stopwatch::start();
        let mutex = Client::new(ours, kind).mutex("a");
        let waited = mutex.lock_within(ms(500)).await;
        assert!(matches!(waited, Ok(None)), "{kind:?}: {waited:?}");
        assert!(watch.time() <= ms(502), "{kind:?}: {:?}", watch.time());
        // For ten times as long as the patience; then the rival's votes have ended.
        let waited = mutex.lock_within(secs(60)).await.expect("a majority answers");
        let guard = waited.expect("it is free at last");
        assert!(watch.time() <= secs(21), "{kind:?}: {:?}", watch.time());
        let seen = counted(&snapshotter, metric::ATTEMPTS);
        let asked: f64 = seen.values().sum();
        assert!((10.0..100.0).contains(&asked), "with pauses of up to 750 ms: {seen:?}");
        let lacking = seen.keys().find(|labels| labels.ends_with("no_quorum"));
        assert_eq!(lacking, None);
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_the_lock_when_a_majority_can_store_its_token() {
    for kind in [Kind::Mutex, Kind::FairMutex] {
        let voters = old_voters(3);
        let (on, ours) = (Fixture::of(&voters), client(&voters).await);
        set_ahead(&voters[0], FENCE);
        drop_script(&voters, "mutex/renew");
        let watch = Stopwatch::start();
        let waiting = tokio::spawn(Client::new(ours, kind).mutex("a").lock());
        sleep(secs(3)).await;
        assert!(!waiting.is_finished(), "{kind:?}");
        heal(&voters);
        let guard = waiting.await.unwrap().unwrap();
        assert!(watch.time() <= secs(5), "{:?}", watch.time());
        assert!(u64::from(guard.token()) > AHEAD);
        assert!(stored(&voters, guard.token()) >= 2);
        guard.release().await.unwrap();
        on.until_clean().await;
    }
}

// A renewal that finds its vote looks at nothing else, and each quarter of the fence memory one
// looks at all.
#[tokio::test(start_paused = true)]
async fn a_token_that_a_voter_has_lost_is_back_after_a_quarter_of_the_fence_memory() {
    let voters = old_voters(3);
    let ours = builder(&voters).fence_memory(secs(240)).connect().await.unwrap();
    let guard = ours.mutex("a").lock().await.unwrap();
    sleep(secs(25)).await;
    voters[0].command(&["DEL", FENCE]).unwrap();
    let (took, renewal) = (until_all_store(&voters, guard.token()).await, secs(10));
    assert!(took > renewal && took <= secs(60) + renewal, "{took:?}");
    guard.release().await.unwrap();
}

// A voter that restarts with old data may have the vote, and a token from before it.
#[tokio::test(start_paused = true)]
async fn a_voter_that_restarts_is_told_the_token_within_two_renewals() {
    let (voters, ours) = old_with_client(3).await;
    let guard = ours.mutex("a").lock().await.unwrap();
    sleep(secs(25)).await;
    voters[0].restart_empty();
    for words in [
        &["HSET", "quorate:{a}", guard.hold().as_str(), "1"][..],
        &["PEXPIRE", "quorate:{a}", "15000"],
        &["SET", FENCE, "7"],
    ] {
        voters[0].command(words).unwrap();
    }
    let took = until_all_store(&voters, guard.token()).await;
    assert!(took <= secs(21), "{took:?}");
    guard.release().await.unwrap();
}

// With a lease of 30 s: one that is half as long as a token is remembered, and one twice as long.
#[tokio::test(start_paused = true)]
async fn no_token_is_forgotten_while_its_hold_is_renewed() {
    for memory in [secs(60), secs(15)] {
        expect_tokens_kept(memory).await;
    }
}

async fn expect_tokens_kept(memory: Duration) {
    let voters = old_voters(3);
    let ours = builder(&voters).fence_memory(memory).connect().await.unwrap();
    let (mutex, election, lock) = (ours.mutex("a"), ours.election("a"), ours.rw_lock("a"));
    let (mutex, write) = (mutex.lock().await.unwrap(), lock.write().await.unwrap());
    let leads = election.campaign(b"").await.unwrap();
    let fences = [FENCE, "quorate:{a}:election:fence", "quorate:{a}:rw:fence"];
    for _ in 0..300 {
        sleep(secs(1)).await;
        for (fence, token) in fences.into_iter().zip([mutex.token(), leads.token(), write.token()])
        {
            let kept = Ok(Reply::Text(token.to_string()));
            assert!(voters.iter().all(|voter| voter.command(&["GET", fence]) == kept), "{fence}");
        }
    }
    mutex.release().await.unwrap();
    write.release().await.unwrap();
    leads.resign().await.unwrap();
}
