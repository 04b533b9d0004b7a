//! Clocks of voters that jump or drift.

use quorate_tests::prelude::*;

use crate::amnesia::inside::{
    LEASE, TRUSTED, blamed, client, client_on, cut_off, kept_out, old_voters, old_with_client,
};

const MINUTE: Duration = Duration::from_mins(1);
const MINUTE_MICROS: i64 = 60_000_000;

/// Ada holds the lock for a whole lease by the first two of three voters; the clock of the second
/// jumps after ten seconds. Forward, so that her vote there has expired.
async fn vote_that_jumped(voters: &[EmbeddedVoter]) -> (Quorate, MutexGuard, Stopwatch) {
    let machine = Machine::new("ada");
    let ada = client_on(&machine, voters).await;
    cut_off(&voters[2], &machine);
    let watch = Stopwatch::start();
    let guard = ada.mutex("a").lease_fixed(LEASE).lock().await.unwrap();
    sleep(secs(10)).await;
    voters[1].jump_clock(MINUTE_MICROS);
    (ada, guard, watch)
}

/// Whether it is a minute, but for what the drift allows.
fn is_a_minute(by: Duration) -> bool {
    by.abs_diff(MINUTE) < secs(1)
}

/// Ben gets the lock once Ada's hold is over: with the vote that she gives back he does without the
/// one that jumped.
async fn enters_after(ben: &Quorate, guard: &MutexGuard, watch: Stopwatch) {
    let second = ben.mutex("a").lock().await.unwrap();
    assert!(second.is_held() && !guard.is_held());
    let waited = watch.time();
    assert!(waited >= TRUSTED && waited <= TRUSTED + ms(750), "{waited:?}");
}

// The grant itself carries the clock that shows it. To who comes then two clocks agree with each
// other and the third does not.
#[tokio::test(start_paused = true)]
async fn a_voter_whose_clock_jumps_gives_no_lock_twice_to_who_saw_its_clock_before_or_comes_then() {
    for comes_then in [false, true] {
        let (voters, before) = old_with_client(3).await;
        let (_ada, guard, watch) = vote_that_jumped(&voters).await;
        let ben = if comes_then { client(&voters).await } else { before };
        assert!(ben.mutex("a").try_lock().await.unwrap().is_none());
        let (why, left) = kept_out(&ben, 1).await;
        let by = match why {
            Quarantine::ClockMoved(by) if !comes_then => by,
            Quarantine::ClockApart(by) if comes_then => by,
            _ => panic!("{why:?}"),
        };
        assert!(is_a_minute(by) && left == LEASE, "{why:?}, {left:?}");
        enters_after(&ben, &guard, watch).await;
    }
}

// Ben is the first to look at the second voter again, and Cleo comes when he has gone. A clock is
// often right because its machine has started again.
#[tokio::test(start_paused = true)]
async fn a_voter_whose_clock_was_ahead_gives_no_lock_twice_to_who_comes_when_it_is_right_again() {
    for restarts in [false, true] {
        let voters = old_voters(3);
        let (_ada, guard, watch) = vote_that_jumped(&voters).await;
        // Her client has looked at it meanwhile.
        sleep(secs(11)).await;
        if restarts {
            voters[1].kill();
        }
        voters[1].jump_clock(-MINUTE_MICROS);
        if restarts {
            voters[1].restart();
        }
        let ben = client(&voters).await;
        assert!(ben.mutex("a").try_lock().await.unwrap().is_none());
        let (why, left) = kept_out(&ben, 1).await;
        let is_right = match why {
            Quarantine::ClockSetBack(by) => !restarts && by > MINUTE / 2 && by < MINUTE,
            // Ada's client, which has connected again, has given the data another name.
            why => restarts && why == Quarantine::Young,
        };
        assert!(is_right && left == LEASE, "{why:?}, {left:?}");
        drop(ben.close().await);
        sleep(secs(1)).await;
        let cleo = client(&voters).await;
        assert!(cleo.mutex("a").try_lock().await.unwrap().is_none());
        assert_eq!(kept_out(&cleo, 1).await, (Quarantine::Young, secs(29)));
        enters_after(&cleo, &guard, watch).await;
    }
}

// Who was connected all the time learns why the data have another name.
#[tokio::test(start_paused = true)]
async fn all_clients_hear_that_a_clock_was_set_back_from_the_first_that_looks() {
    let (voters, ada) = old_with_client(3).await;
    sleep(secs(1)).await;
    voters[1].jump_clock(MINUTE_MICROS);
    drop(client(&voters).await.close().await);
    voters[1].jump_clock(-MINUTE_MICROS);
    // She has asked nothing meanwhile, so her clocks show nothing.
    drop(client(&voters).await.close().await);
    drop(ada.mutex("a").try_lock().await);
    let (why, left) = kept_out(&ada, 1).await;
    assert!(matches!(why, Quarantine::ClockSetBack(by) if is_a_minute(by)), "{why:?}");
    assert_eq!(left, LEASE);
}

// The third voter is away, so nobody knows which of the two clocks is wrong.
#[tokio::test(start_paused = true)]
async fn of_two_clocks_that_disagree_neither_gives_a_lock_twice_while_the_third_voter_is_away() {
    let voters = old_voters(3);
    let (_ada, guard, watch) = vote_that_jumped(&voters).await;
    voters[0].kill();
    let ben = client(&voters).await;
    let error = ben.mutex("a").try_lock().await.unwrap_err();
    for voter in [1, 2] {
        let (why, left) = blamed(&error, voter);
        assert!(matches!(why, Quarantine::ClockApart(by) if is_a_minute(by)), "{why:?}");
        assert_eq!(left, LEASE);
    }
    let second = ben.mutex("a").lock().await.unwrap();
    assert!(second.is_held() && !guard.is_held() && watch.time() >= TRUSTED);
}

// Set back, the voter keeps its vote for a minute longer, and forgets what it gives then when it is
// set right again.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_back_is_as_suspicious_as_one_that_jumps_forward() {
    let (voters, ben) = old_with_client(3).await;
    voters[2].kill();
    voters[1].jump_clock(-MINUTE_MICROS);
    let error = ben.mutex("a").try_lock().await.unwrap_err();
    let (why, _) = blamed(&error, 1);
    assert!(matches!(why, Quarantine::ClockMoved(by) if is_a_minute(by)), "{why:?}");
    sleep(LEASE / 2).await;
    voters[1].jump_clock(MINUTE_MICROS);
    let error = ben.mutex("a").try_lock().await.unwrap_err();
    assert_eq!(blamed(&error, 1).1, LEASE, "it begins anew");
    sleep(LEASE).await;
    assert!(ben.mutex("a").try_lock().await.unwrap().is_some());
}

// Ada holds by two voters whose clocks are right, and one of them has come back empty. On Ben's
// machine another client sees the clocks of all of its own voters step, by more than a lease.
#[tokio::test(start_paused = true)]
async fn clocks_of_other_voters_that_step_end_no_quarantine_and_no_hold() {
    let (voters, others) = (old_voters(3), old_voters(3));
    let (far, machine) = (Machine::new("ada"), Machine::new("ben"));
    let (ada, beside) = (client_on(&far, &voters).await, client_on(&machine, &others).await);
    cut_off(&voters[2], &far);
    sleep(secs(1)).await;
    let ben = client_on(&machine, &voters).await;
    let own = ben.mutex("b").lock().await.unwrap();
    let guard = ada.mutex("a").lease_fixed(LEASE).lock().await.unwrap();
    voters[1].restart_empty();
    sleep(secs(1)).await;
    for voter in &others {
        voter.jump_clock(MINUTE_MICROS);
    }
    drop(beside.mutex("c").try_lock().await);
    let tried = ben.mutex("a").try_lock().await;
    assert!(guard.is_held() && !matches!(tried, Ok(Some(_))), "{tried:?}");
    assert_eq!(kept_out(&ben, 1).await.0, Quarantine::Restarted);
    assert!(own.is_held());
}

// Half of what may differ during a lease, for as long as locks are taken all the time; and for an
// hour without one what a clock is off by that is being set right.
#[tokio::test(start_paused = true)]
async fn clocks_that_drift_as_allowed_are_nothing_and_one_that_drifts_further_is_suspicious() {
    let (voters, ours) = old_with_client(3).await;
    voters[0].kill();
    voters[1].set_clock_rate(5_000);
    voters[2].set_clock_rate(-5_000);
    for _ in 0..100 {
        sleep(secs(10)).await;
        let entered = ours.mutex("a").try_lock().await;
        entered.expect("both count").expect("it is free").release().await.unwrap();
    }
    voters[1].set_clock_rate(450);
    voters[2].set_clock_rate(-450);
    sleep(secs(3600)).await;
    assert!(ours.mutex("a").try_lock().await.expect("both count").is_some());
    // Twice as much is too much.
    voters[1].set_clock_rate(20_000);
    sleep(secs(10)).await;
    let error = ours.mutex("b").try_lock().await.unwrap_err();
    let (why, _) = blamed(&error, 1);
    assert!(matches!(why, Quarantine::ClockMoved(by) if by < ms(200)), "{why:?}");
}
