//! Voters that come back without their data have no say in new holds for the longest lease.

use quorate::{
    Quarantine,
    embedded::{self, Fault, Machine},
};
use tokio::time::sleep;

use crate::amnesia::inside::{
    LEASE, TRUSTED, builder, client, client_on, cut_off, kept_out, old_voters,
};
use quorate_tests::fixture::{Stopwatch, ms, secs};

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

// No client has known any of them for longer than it takes to start three servers.
#[tokio::test(start_paused = true)]
async fn a_voter_that_forgets_in_its_first_seconds_lets_nobody_in_who_comes_then() {
    for time in [secs(2), ms(4_500)] {
        let voters = embedded::voters(3);
        let machine = Machine::new("ada");
        let ada = client_on(&machine, &voters).await;
        cut_off(&voters[2], &machine);
        let guard = ada.mutex("a").lease_fixed(LEASE).lock().await.unwrap();
        sleep(time).await;
        voters[1].restart_empty();
        let ben = client(&voters).await;
        let tried = ben.mutex("a").try_lock().await;
        assert!(guard.is_held() && !matches!(tried, Ok(Some(_))), "{time:?}: {tried:?}");
        assert_eq!(kept_out(&ben, 1).await.0, Quarantine::Young);
    }
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

// The answer comes when the quarantine is over, but the voter may have granted before: it could
// have forgotten the vote of another hold that still stands. Ada renews every ten seconds.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_left_in_the_quarantine_does_not_count_when_its_answer_comes_after_it() {
    let voters = old_voters(3);
    let ada = client(&voters).await;
    voters[0].restart_empty();
    assert_eq!(kept_out(&ada, 0).await, (Quarantine::Restarted, LEASE));
    sleep(ms(9_990)).await;
    let guard = ada.mutex("a").lock().await.unwrap();
    sleep(secs(19)).await;
    let _slow = voters[0].fault(Fault::Delay { there: ms(0), back: ms(50) });
    sleep(ms(1_100)).await;
    assert_eq!(guard.votes(), 2, "the second renewal left ten milliseconds before the end");
    sleep(secs(10)).await;
    assert_eq!(guard.votes(), 3);
}

// The lease of one client is the longest of all: for so long the voter is kept out.
#[tokio::test(start_paused = true)]
async fn a_quarantine_takes_as_long_as_the_longest_lease_is_said_to_be() {
    for longest in [secs(2), secs(120)] {
        let voters = old_voters(3);
        let lease = secs(2);
        let settings =
            builder(&voters).lease(lease).longest_lease(longest).quorum_timeout(2 * longest);
        let ben = settings.connect().await.unwrap();
        voters[2].kill();
        voters[1].restart_empty();
        let watch = Stopwatch::start();
        ben.mutex("a").lock().await.unwrap().release().await.unwrap();
        let waited = watch.time();
        assert!(waited >= longest && waited <= longest + ms(750), "{waited:?}");
    }
}
