//! Clocks that jump: the voters' and the clients'.

use std::time::Duration;

use quorate::{
    MutexGuard, Quarantine, Quorate, RestartGuard,
    embedded::{EmbeddedVoter, Machine},
};
use tokio::time::sleep;

use crate::amnesia::{
    growth::Way,
    inside::{
        LEASE, TRUSTED, blamed, client, client_on, client_with, cut_off, kept_out, old_voters,
    },
};
use quorate_tests::fixture::{Stopwatch, ms, secs};

const MINUTE: Duration = Duration::from_mins(1);
const MINUTE_MICROS: i64 = 60_000_000;
const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;

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

// The grant itself carries the clock that shows it.
#[tokio::test(start_paused = true)]
async fn a_voter_whose_clock_jumps_gives_no_lock_twice_to_who_saw_its_clock_before() {
    let voters = old_voters(3);
    let ben = client(&voters).await;
    let (_ada, guard, watch) = vote_that_jumped(&voters).await;
    assert!(ben.mutex("a").try_lock().await.unwrap().is_none());
    let (why, left) = kept_out(&ben, 1).await;
    assert!(matches!(why, Quarantine::ClockMoved(by) if is_a_minute(by)), "{why:?}");
    assert_eq!(left, LEASE);
    enters_after(&ben, &guard, watch).await;
}

// Two clocks agree with each other and the third does not.
#[tokio::test(start_paused = true)]
async fn a_voter_whose_clock_jumps_gives_no_lock_twice_to_who_comes_then() {
    let voters = old_voters(3);
    let (_ada, guard, watch) = vote_that_jumped(&voters).await;
    let ben = client(&voters).await;
    assert!(ben.mutex("a").try_lock().await.unwrap().is_none());
    let (why, left) = kept_out(&ben, 1).await;
    assert!(matches!(why, Quarantine::ClockApart(by) if is_a_minute(by)), "{why:?}");
    assert_eq!(left, LEASE);
    enters_after(&ben, &guard, watch).await;
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

// The same story, to show that the guard is what keeps him out.
#[tokio::test(start_paused = true)]
async fn without_a_restart_guard_a_clock_that_jumps_lets_another_in() {
    let voters = old_voters(3);
    let ben = client_with(&voters, RestartGuard::Off).await;
    let (_ada, guard, _) = vote_that_jumped(&voters).await;
    let second = ben.mutex("a").try_lock().await.unwrap();
    assert!(second.is_some_and(|second| second.is_held()) && guard.is_held());
}

// Set back, the voter keeps its vote for a minute longer, and forgets what it gives then when it is
// set right again.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_back_is_as_suspicious_as_one_that_jumps_forward() {
    let voters = old_voters(3);
    let ben = client(&voters).await;
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

// Whoever holds by it goes on: its vote is told again at the next renewal, as nobody else asks in
// the same moment.
#[tokio::test(start_paused = true)]
async fn a_hold_outlives_the_jumps_of_its_voters() {
    let voters = old_voters(3);
    let (ada, ben) = (client(&voters).await, client(&voters).await);
    let guard = ada.mutex("a").lock().await.unwrap();
    for (voter, micros) in [(0, 1), (1, -1), (2, 1), (0, -1), (1, 1)] {
        voters[voter].jump_clock(micros * MINUTE_MICROS);
        for _ in 0..20 {
            sleep(ms(950)).await;
            let tried = ben.mutex("a").try_lock().await;
            assert!(guard.is_held() && !matches!(tried, Ok(Some(_))), "{tried:?}");
        }
        sleep(secs(11)).await;
        assert_eq!(guard.votes(), 3);
    }
}

// Half of what may differ during a lease, for as long as locks are taken all the time; and for an
// hour without one what a clock is off by that is being set right.
#[tokio::test(start_paused = true)]
async fn clocks_that_drift_as_allowed_are_nothing() {
    let voters = old_voters(3);
    let ours = client(&voters).await;
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
}

// Twice as much is too much: the claim above can fail.
#[tokio::test(start_paused = true)]
async fn a_clock_that_drifts_beyond_what_is_allowed_is_suspicious() {
    let voters = old_voters(3);
    let ours = client(&voters).await;
    voters[0].kill();
    voters[1].set_clock_rate(20_000);
    sleep(secs(10)).await;
    let error = ours.mutex("a").try_lock().await.unwrap_err();
    let (why, _) = blamed(&error, 1);
    assert!(matches!(why, Quarantine::ClockMoved(by) if by < ms(200)), "{why:?}");
}

// Leases are measured by another clock, and the tokens before and after come from two.
#[tokio::test(start_paused = true)]
async fn a_clients_wall_clock_that_steps_by_an_hour_ends_trust_on_time_and_takes_no_token_back() {
    for micros in [HOUR_MICROS, -HOUR_MICROS] {
        let voters = old_voters(3);
        let machine = Machine::new("ada");
        let (ada, ben) = (client_on(&machine, &voters).await, client(&voters).await);
        let watch = Stopwatch::start();
        let guard = ada.mutex("a").lease_fixed(LEASE).lock().await.unwrap();
        let mut last = guard.token();
        sleep(secs(5)).await;
        machine.jump_wall_clock(micros);
        watch.sleep_until(TRUSTED.saturating_sub(ms(1))).await;
        assert!(guard.is_held() && guard.remaining() == ms(1));
        assert!(!matches!(ben.mutex("a").try_lock().await, Ok(Some(_))));
        assert!(guard.lost().await.is_lost());
        assert_eq!(watch.time(), TRUSTED);
        for client in [&ada, &ben, &ada, &ben] {
            let token = Way::Mutex.token(client).await;
            assert!(token > last, "{token:?} after {last:?}, {micros}");
            last = token;
        }
    }
}

// It steps while the requests are on their way, and back while the next ones are.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_steps_during_an_acquisition_takes_no_token_back() {
    let voters = old_voters(3);
    let there = quorate::embedded::Fault::Delay { there: ms(20), back: ms(20) };
    let _slow: Vec<_> = voters.iter().map(|voter| voter.fault(there)).collect();
    let machine = Machine::new("ada");
    let (ada, ben) = (client_on(&machine, &voters).await, client(&voters).await);
    let mut last = None;
    for micros in [HOUR_MICROS, -HOUR_MICROS, -HOUR_MICROS, HOUR_MICROS] {
        let step = async {
            sleep(ms(10)).await;
            machine.jump_wall_clock(micros);
        };
        let (token, ()) = tokio::join!(Way::Fair.token(&ada), step);
        for token in [token, Way::Mutex.token(&ben).await] {
            assert!(Some(token) > last, "{token:?} after {last:?}, {micros}");
            last = Some(token);
        }
    }
}
