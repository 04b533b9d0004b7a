//! Voters that lose their data while they run: all of them, or the record of a lock, as by a client
//! of another library that ends holds.

use std::time::Duration;

use futures::future::BoxFuture;
use quorate::{
    Error, Quarantine, Quorate, RestartGuard,
    embedded::{EmbeddedVoter, Fault, Machine},
};
use tokio::time::{sleep, timeout};

use crate::amnesia::inside::{
    LEASE, client, client_on, client_with, cut_off, heal, kept_out, old_voters,
};
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

/// So many voters lose all locks, as soon as each of them has the hold.
async fn empty(on: &Fixture, count: usize) {
    until_all_have_it(on).await;
    for (voter, keys) in on.keys().into_iter().enumerate().take(count) {
        for key in &keys {
            on.command(voter, &["DEL", key]);
        }
    }
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

// Also where it happens once more, to others: each time a majority still has the hold.
async fn what_a_minority_has_lost_comes_back_with_the_next_renewal(on: Fixture) {
    let (client, majority) = setup(&on).await;
    let guard = client.mutex("a").lock().await.unwrap();
    for voters in [0..majority - 1, majority - 1..on.voters() - 1] {
        until_all_have_it(&on).await;
        voters.for_each(|voter| on.command(voter, &["FLUSHALL"]));
        until_all_have_it(&on).await;
        // Others that lost it before this is heard of would make a majority.
        eventually_async("that is heard of", async || guard.votes() == on.voters()).await;
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

// Ada holds by the first two. Ben has met all three as they were; the second answers him with the
// name of other data.
#[tokio::test(start_paused = true)]
async fn what_a_voter_gives_after_its_data_were_deleted_counts_for_no_new_hold() {
    let voters = old_voters(3);
    let machine = Machine::new("ada");
    let ben = client(&voters).await;
    cut_off(&voters[2], &machine);
    let ada = client_on(&machine, &voters).await;
    let guard = ada.mutex("a").lock().await.unwrap();
    voters[1].wipe();
    let tried = ben.mutex("a").try_lock().await;
    assert!(!matches!(tried, Ok(Some(_))), "a second holder");
    assert_eq!(kept_out(&ben, 1).await, (Quarantine::Emptied, LEASE));
    assert!(guard.is_held());
    heal(&voters);
    // The holder has its vote again at its next renewal, and Ben waits for its release alone.
    sleep(LEASE / 2).await;
    assert!(guard.is_held() && guard.votes() == 3);
    sleep(LEASE / 2).await;
    guard.release().await.unwrap();
    assert!(ben.mutex("a").try_lock().await.unwrap().is_some());
}

/// Takes a lock, and completes when it is lost.
type Loss = BoxFuture<'static, Error>;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Mutex,
    Fair,
    Read,
    Write,
    Permit,
    Leader,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Mutex, Self::Fair, Self::Read, Self::Write, Self::Permit, Self::Leader];

    async fn take(self, client: &Quorate) -> Loss {
        let (rw, permits) = (client.rw_lock("a"), client.semaphore("a", 1));
        match self {
            Self::Mutex => {
                let guard = client.mutex("a").lock().await.unwrap();
                Box::pin(async move { guard.lost().await })
            }
            Self::Fair => {
                let guard = client.fair_mutex("a").lock().await.unwrap();
                Box::pin(async move { guard.lost().await })
            }
            Self::Read => {
                let guard = rw.read().await.unwrap();
                Box::pin(async move { guard.lost().await })
            }
            Self::Write => {
                let guard = rw.write().await.unwrap();
                Box::pin(async move { guard.lost().await })
            }
            Self::Permit => {
                let guard = permits.acquire().await.unwrap();
                Box::pin(async move { guard.lost().await })
            }
            Self::Leader => {
                let guard = client.election("a").campaign("").await.unwrap();
                Box::pin(async move { guard.lost().await })
            }
        }
    }

    /// Another has what excludes it, and gives it back.
    async fn pass(self, client: &Quorate) {
        let other = if matches!(self, Self::Read) { Self::Write } else { self };
        drop(other.take(client).await);
    }
}

// Each voter of a majority loses the lock, another has it and gives it back, and the voters answer
// the next renewal, unheard. What they gave in that renewal the one after it must not take for what
// the hold had before.
#[tokio::test(start_paused = true)]
async fn a_hold_that_a_majority_has_lost_is_told_though_the_answers_of_a_renewal_are_lost() {
    let guards = [RestartGuard::Off, RestartGuard::Relative, RestartGuard::Strict];
    let settings = Kind::ALL.into_iter().flat_map(|kind| [1, 2, 3, 5].map(|count| (kind, count)));
    for (kind, count) in settings {
        for (guard, all) in guards.into_iter().flat_map(|guard| [(guard, false), (guard, true)]) {
            let voters = old_voters(count);
            let ada = client_with(&voters, guard).await;
            let ben = client_with(&voters, guard).await;
            let loss = kind.take(&ada).await;
            sleep(secs(1)).await;
            for voter in &voters[..=count / 2] {
                if all {
                    voter.wipe();
                }
                for key in voter.keys() {
                    voter.command(&["DEL", &key]).unwrap();
                }
            }
            // Data that were deleted keep everybody out, and that is no more than it should be.
            if !all || guard == RestartGuard::Off {
                let passed = timeout(secs(1), kind.pass(&ben)).await;
                passed.unwrap_or_else(|_| panic!("{kind:?}, {count} voters, {guard:?}"));
            }
            let unheard: Vec<_> =
                voters.iter().map(|voter| voter.fault(Fault::DropReplies)).collect();
            sleep(LEASE / 3).await;
            drop(unheard);
            let told = timeout(secs(3), loss).await;
            let error = told.unwrap_or_else(|_| panic!("{kind:?}, {count} voters, {guard:?}"));
            assert!(error.is_lost(), "{error}");
        }
    }
}
