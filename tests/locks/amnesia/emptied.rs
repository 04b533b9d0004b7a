//! Voters that lose their data while they run, which nobody sees: by a command, or by a client of
//! another library that ends holds.

use std::time::Duration;

use quorate::{
    Error,
    embedded::{EmbeddedVoter, Fault},
};
use tokio::time::{sleep, timeout};

use crate::amnesia::inside::{LEASE, client, old_voters};
use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, ms, secs},
    kind::Client,
};

claims!(everywhere of both:
    a_hold_that_a_majority_has_lost_ends_at_its_next_renewal,
);
claims!(everywhere:
    a_read_and_a_write_that_a_majority_has_lost_end_at_their_next_renewals,
);
claims!(minority of both:
    what_a_minority_has_lost_comes_back_with_the_next_renewal,
);

/// A third of it passes before a renewal.
const SHORT: Duration = secs(6);

async fn until_all_have_it(on: &Fixture) {
    eventually_async("every voter has the record", async || {
        on.keys().iter().all(|keys| !keys.is_empty())
    })
    .await;
}

/// So many voters lose all that they know, as soon as each of them has the hold.
async fn empty(on: &Fixture, count: usize) {
    until_all_have_it(on).await;
    (0..count).for_each(|voter| on.command(voter, &["FLUSHALL"]));
}

/// A renewal finds it out, and not the deadline.
async fn is_told(on: &Fixture, lost: impl Future<Output = Error>) {
    let error = timeout(on.at_most(SHORT / 2), lost).await.expect("at the next renewal");
    let text = error.to_string();
    let why = "a majority of voters no longer had its vote";
    assert!(error.is_lost() && text.contains(why), "{text}");
}

async fn setup(on: &Fixture) -> (Client, usize) {
    (on.client_with_lease(SHORT).await, on.voters() / 2 + 1)
}

// Claim 10
// Between the loss and the renewal another client could have held the lock and released it. A voter
// that is alone is a majority.
async fn a_hold_that_a_majority_has_lost_ends_at_its_next_renewal(on: Fixture) {
    let (client, majority) = setup(&on).await;
    let guard = client.mutex("a").lock().await.unwrap();
    empty(&on, majority).await;
    is_told(&on, guard.lost()).await;
    assert!(!guard.is_held() && guard.release().await.unwrap_err().is_lost());
    on.until_clean().await;
    let again = client.mutex("a").lock().await.unwrap();
    on.release(again).await;
}

async fn a_read_and_a_write_that_a_majority_has_lost_end_at_their_next_renewals(on: Fixture) {
    let (client, majority) = setup(&on).await;
    let lock = client.rw_lock("a");
    let writing = lock.write().await.unwrap();
    empty(&on, majority).await;
    is_told(&on, writing.lost()).await;
    on.until_clean().await;
    let reading = lock.read().await.unwrap();
    empty(&on, majority).await;
    is_told(&on, reading.lost()).await;
    on.until_clean().await;
}

// Claim 10
// Also where it happens once more, to others: each time a majority still has the hold.
async fn what_a_minority_has_lost_comes_back_with_the_next_renewal(on: Fixture) {
    let (client, majority) = setup(&on).await;
    let guard = client.mutex("a").lock().await.unwrap();
    for voters in [0..majority - 1, majority - 1..on.voters() - 1] {
        until_all_have_it(&on).await;
        voters.for_each(|voter| on.command(voter, &["FLUSHALL"]));
        until_all_have_it(&on).await;
        assert!(guard.is_held());
    }
    on.release(guard).await;
    on.until_clean().await;
}

// The third voter hears of the hold for the first time in the renewal in which the second, which
// has lost it, has it again: the third has forgotten nothing.
#[tokio::test(start_paused = true)]
async fn a_voter_that_never_had_a_hold_has_not_forgotten_it() {
    let voters = old_voters(3);
    let ada = client(&voters).await;
    let deaf = voters[2].fault(Fault::DropRequests);
    let guard = ada.mutex("a").lock().await.unwrap();
    assert_eq!(guard.votes(), 2);
    drop(deaf);
    voters[1].wipe();
    sleep(LEASE / 2).await;
    assert!(guard.is_held() && guard.votes() == 3);
}

// An answer that nobody waited for counts too: the first two voters make a majority of the renewal
// before the third tells what it has lost.
#[tokio::test(start_paused = true)]
async fn a_late_answer_can_show_that_a_majority_has_lost_a_hold() {
    let voters = old_voters(3);
    let ada = client(&voters).await;
    let guard = ada.mutex("a").lock().await.unwrap();
    let _slow = voters[2].fault(Fault::Delay { there: ms(0), back: ms(50) });
    voters[1..].iter().for_each(EmbeddedVoter::wipe);
    let error = timeout(LEASE / 2, guard.lost()).await.expect("at the next renewal");
    assert!(error.is_lost(), "{error}");
}
