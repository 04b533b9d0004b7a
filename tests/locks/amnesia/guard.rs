//! Voters that come back without their data have no say in new holds for the longest lease.

use quorate_tests::prelude::*;

use crate::amnesia::inside::{LEASE, client, client_on, cut_off, kept_out, old_with_client};

// There is no await between the grant and the restart. The next renewal is due in ten seconds.
#[tokio::test(start_paused = true)]
async fn a_voter_that_comes_back_in_the_moment_of_the_grant_is_told_of_it_at_once() {
    let (voters, ada) = old_with_client(3).await;
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

// Of three voters Ada has had two, one has come back empty, and the third is new as well.
#[tokio::test(start_paused = true)]
async fn a_voter_that_forgets_in_its_first_seconds_counts_for_nobody_beside_one_that_is_late() {
    for time in [secs(2), ms(4_500)] {
        let voters = embedded::voters(3);
        voters[2].kill();
        let machine = Machine::new("ada");
        let ada = client_on(&machine, &voters).await;
        let guard = ada.mutex("a").lease_fixed(LEASE).lock().await.unwrap();
        for voter in &voters[1..] {
            cut_off(voter, &machine);
        }
        sleep(time).await;
        voters[1].restart_empty();
        voters[2].restart_empty();
        let ben = client(&voters).await;
        let tried = ben.mutex("a").try_lock().await;
        assert!(guard.is_held() && !matches!(tried, Ok(Some(_))), "{time:?}: {tried:?}");
        assert_eq!(kept_out(&ben, 1).await.0, Quarantine::Young);
    }
}

// The answer comes when the quarantine is over, but the voter may have granted before: it could
// have forgotten the vote of another hold that still stands. Ada renews every ten seconds.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_left_in_the_quarantine_does_not_count_when_its_answer_comes_after_it() {
    let (voters, ada) = old_with_client(3).await;
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

// The same of a new lock: another hold may have had the vote when the voter granted it.
#[tokio::test(start_paused = true)]
async fn a_vote_that_was_asked_for_in_the_quarantine_does_not_count_when_it_comes_after_it() {
    let (voters, ada) = old_with_client(3).await;
    voters[0].restart_empty();
    assert_eq!(kept_out(&ada, 0).await, (Quarantine::Restarted, LEASE));
    voters[2].kill();
    let _slow = voters[0].fault(Fault::Delay { there: ms(0), back: ms(50) });
    sleep(LEASE.saturating_sub(ms(20))).await;
    let early = ada.mutex("a").try_lock().await;
    assert!(early.is_err_and(|error| error.is_no_quorum()), "twenty milliseconds before the end");
    assert!(ada.mutex("a").try_lock().await.unwrap().is_some());
}
