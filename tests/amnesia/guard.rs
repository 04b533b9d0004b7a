//! Voters that come back without their data have no say in new holds for the longest lease.

use quorate::{
    MutexGuard, Quarantine, Quorate, RestartGuard,
    embedded::{EmbeddedVoter, InFlight, Machine},
};
use tokio::time::sleep;

use crate::{
    fixture::{Stopwatch, ms, secs},
    inside::{
        LEASE, TRUSTED, blamed, builder, client, client_on, client_with, cut_off, kept_out,
        old_voters,
    },
};

/// Ada holds the lock for a whole lease by the first two of three voters, the second of which comes
/// back empty after ten seconds. She does not renew: nobody tells it again.
async fn forgotten_vote(voters: &[EmbeddedVoter]) -> (Quorate, MutexGuard, Stopwatch) {
    let machine = Machine::new("ada");
    let ada = client_on(&machine, voters).await;
    cut_off(&voters[2], &machine);
    let watch = Stopwatch::start();
    let guard = ada.mutex("a").lease_fixed(LEASE).lock().await.unwrap();
    sleep(secs(10)).await;
    voters[1].restart_empty();
    (ada, guard, watch)
}

/// Ben is refused while Ada holds, can see why, and is let in when she does not hold any more.
async fn gets_in_late(ben: &Quorate, held: &MutexGuard, watch: Stopwatch, why: Quarantine) {
    let mutex = ben.mutex("a");
    assert!(mutex.try_lock().await.unwrap().is_none());
    assert_eq!(kept_out(ben, 1).await, (why, LEASE));
    assert!(held.is_held());
    let guard = mutex.lock().await.unwrap();
    let waited = watch.time();
    // With the vote that Ada gives back he does without the one that forgot; a pause is at most
    // half a second and half of that more.
    assert!(waited >= TRUSTED && waited <= TRUSTED + ms(750), "{waited:?}");
    assert!(!held.is_held());
    guard.release().await.unwrap();
}

// CONFORMANCE 38
#[tokio::test(start_paused = true)]
async fn a_forgotten_vote_lets_nobody_in_who_saw_the_restart() {
    let voters = old_voters(3);
    let ben = client(&voters).await;
    let (_ada, guard, watch) = forgotten_vote(&voters).await;
    gets_in_late(&ben, &guard, watch, Quarantine::Restarted).await;
}

// CONFORMANCE 38
#[tokio::test(start_paused = true)]
async fn a_forgotten_vote_lets_nobody_in_who_comes_after_the_restart() {
    let voters = old_voters(3);
    let (_ada, guard, watch) = forgotten_vote(&voters).await;
    let ben = client(&voters).await;
    gets_in_late(&ben, &guard, watch, Quarantine::Young).await;
}

// Ben has only seen that the second started after the third, which then starts again.
#[tokio::test(start_paused = true)]
async fn a_voter_that_restarts_with_its_data_does_not_make_up_for_one_that_forgot() {
    let voters = old_voters(3);
    let (_ada, guard, watch) = forgotten_vote(&voters).await;
    voters[0].kill();
    let ben = client(&voters).await;
    let mutex = ben.mutex("a");
    assert_eq!(blamed(&mutex.try_lock().await.unwrap_err(), 1), (Quarantine::Young, LEASE));
    voters[2].restart();
    sleep(secs(1)).await;
    let tried = mutex.try_lock().await;
    assert!(!matches!(tried, Ok(Some(_))), "{tried:?}");
    assert_eq!(kept_out(&ben, 1).await, (Quarantine::Young, secs(29)));
    assert!(guard.is_held());
    let entered = mutex.lock().await.unwrap();
    let waited = watch.time();
    assert!(waited >= secs(10) + LEASE && !guard.is_held(), "{waited:?}");
    entered.release().await.unwrap();
}

// The same story, to show that the guard is what keeps him out.
#[tokio::test(start_paused = true)]
async fn without_a_restart_guard_a_forgotten_vote_lets_another_in() {
    let voters = old_voters(3);
    let ben = client_with(&voters, RestartGuard::Off).await;
    let (_ada, guard, _) = forgotten_vote(&voters).await;
    let second = ben.mutex("a").try_lock().await.unwrap();
    assert!(second.is_some_and(|second| second.is_held()) && guard.is_held());
}

// The vote counts for the hold that had it: renewed on the empty voter and one other.
#[tokio::test(start_paused = true)]
async fn whoever_had_a_vote_before_it_was_forgotten_renews_by_it() {
    let voters = old_voters(3);
    let (ben, ada) = (client(&voters).await, client(&voters).await);
    let guard = ada.mutex("a").lock().await.unwrap();
    sleep(secs(1)).await;
    assert_eq!(guard.votes(), 3);
    voters[2].kill();
    voters[1].restart_empty();
    for _ in 0..60 {
        sleep(secs(1)).await;
        assert!(guard.is_held());
        let entered = ben.mutex("a").try_lock().await;
        assert!(!matches!(entered, Ok(Some(_))), "{entered:?}");
    }
    assert_eq!(guard.votes(), 2);
    guard.release().await.unwrap();
    assert!(ben.mutex("a").try_lock().await.unwrap().is_some(), "the quarantine is over");
}

// There is no await between the grant and the restart. The next renewal is due in ten seconds.
#[tokio::test(start_paused = true)]
async fn a_voter_that_comes_back_in_the_moment_of_the_grant_is_told_of_it_at_once() {
    let voters = old_voters(3);
    let ada = client(&voters).await;
    let _guard = ada.mutex("a").lock().await.unwrap();
    voters[0].restart_empty();
    assert!(voters[0].keys().is_empty());
    sleep(ms(10)).await;
    assert!(voters[0].keys().contains(&"quorate:{a}".to_owned()));
}

// A grant that was given in quarantine is no such vote: the voter forgets it once more, and then
// renewals cannot build on it either.
#[tokio::test(start_paused = true)]
async fn a_vote_that_was_given_in_quarantine_does_not_outlive_the_next_restart() {
    let voters = old_voters(3);
    let ada = client(&voters).await;
    voters[0].restart_empty();
    sleep(secs(1)).await;
    let watch = Stopwatch::start();
    let guard = ada.mutex("a").lock().await.unwrap();
    sleep(secs(1)).await;
    assert_eq!(guard.votes(), 2, "the one in quarantine is none");
    voters[0].restart_empty();
    voters[1].kill();
    assert!(guard.lost().await.is_lost());
    // The one in quarantine granted all the time: its renewals did not count.
    let held = watch.time();
    assert!(held >= TRUSTED && held <= TRUSTED + secs(1), "{held:?}");
}

// All have started at once, and none of them writes to disk.
#[tokio::test(start_paused = true)]
async fn after_the_first_start_of_all_voters_a_lock_is_there_at_once_unless_the_guard_is_strict() {
    let voters = old_voters(3);
    voters.iter().for_each(EmbeddedVoter::restart_empty);
    let watch = Stopwatch::start();
    let strict = client_with(&voters, RestartGuard::Strict).await;
    let error = strict.mutex("a").try_lock().await.unwrap_err();
    assert_eq!(blamed(&error, 0), (Quarantine::Young, LEASE));

    let relative = client(&voters).await;
    assert!(relative.mutex("a").try_lock().await.unwrap().is_some());
    assert_eq!(watch.time(), ms(0));

    watch.sleep_until(LEASE.saturating_sub(ms(1))).await;
    assert!(strict.mutex("a").try_lock().await.is_err());
    watch.sleep_until(LEASE).await;
    assert!(strict.mutex("a").try_lock().await.unwrap().is_some());
}

// Whoever was there sees that all have forgotten.
#[tokio::test(start_paused = true)]
async fn after_a_restart_of_all_voters_who_saw_it_waits_for_the_longest_lease() {
    let voters = old_voters(3);
    let ben = client(&voters).await;
    let ada = client(&voters).await;
    let held = ada.mutex("a").lease_fixed(LEASE).lock().await.unwrap();
    voters.iter().for_each(EmbeddedVoter::restart_empty);
    let watch = Stopwatch::start();
    let error = ben.mutex("a").try_lock().await.unwrap_err();
    (0..2).for_each(|voter| assert_eq!(blamed(&error, voter), (Quarantine::Restarted, LEASE)));
    let guard = ben.mutex("a").lock().await.unwrap();
    assert!(watch.time() >= LEASE && watch.time() <= LEASE + ms(750), "{:?}", watch.time());
    assert!(guard.is_held() && !held.is_held());
}

// Both voters that are left are needed.
#[tokio::test(start_paused = true)]
async fn a_connection_that_was_cut_is_no_quarantine() {
    for in_flight in [InFlight::Lost, InFlight::Arrives] {
        let voters = old_voters(3);
        let ben = client(&voters).await;
        voters[2].kill();
        voters[..2].iter().for_each(|voter| voter.cut(in_flight));
        assert!(ben.mutex("a").try_lock().await.unwrap().is_some(), "{in_flight:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_forgets_nothing_is_no_quarantine() {
    let voters = old_voters(3);
    let (ben, ada) = (client(&voters).await, client(&voters).await);
    voters[2].kill();
    let guard = ada.mutex("a").lock().await.unwrap();
    voters[..2].iter().for_each(EmbeddedVoter::restart);
    for client in [&ben, &client(&voters).await] {
        assert!(client.mutex("a").try_lock().await.unwrap().is_none(), "the record is there");
        assert!(client.mutex("b").try_lock().await.unwrap().is_some());
    }
    guard.release().await.unwrap();
}

// The lease of one client is the longest of all: for so long the voter is kept out.
#[tokio::test(start_paused = true)]
async fn a_quarantine_takes_as_long_as_the_longest_lease_is_said_to_be() {
    for longest in [secs(2), secs(120)] {
        let voters = old_voters(3);
        let lease = secs(2);
        let settings = builder(&voters).lease(lease).longest_lease(longest).patience(2 * longest);
        let ben = settings.connect().await.unwrap();
        voters[2].kill();
        voters[1].restart_empty();
        let watch = Stopwatch::start();
        ben.mutex("a").lock().await.unwrap().release().await.unwrap();
        let waited = watch.time();
        assert!(waited >= longest && waited <= longest + ms(750), "{waited:?}");
    }
}
