//! Voters that lose their data while they run: all of them, or the record of a lock, as by a client
//! of another library that ends holds.

use quorate_tests::{inside, prelude::*};

use crate::{
    amnesia::inside::{LEASE, client_with, old_voters, old_with_client},
    cancel::kinds::Access::{BothPermits, FairLock, Lead, Lock, Read, Write},
};

claims!(everywhere: a_hold_that_a_majority_has_lost_ends_at_its_next_renewal);
claims!(minority of both: what_a_minority_has_lost_comes_back_with_the_next_renewal);

/// A third of it passes before a renewal.
const SHORT: Duration = secs(6);

async fn until_all_have_it(on: &Fixture) {
    until!("every voter has the record", on.keys().iter().all(|keys| !keys.is_empty()));
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

async fn setup(on: &Fixture) -> (Client, usize) {
    (on.client_with_lease(SHORT).await, on.voters() / 2 + 1)
}

// Between the loss and the renewal another client could have held the lock and released it. A voter
// that is alone is a majority.
async fn a_hold_that_a_majority_has_lost_ends_at_its_next_renewal(on: Fixture) {
    let (client, majority) = setup(&on).await;
    for access in [Lock, FairLock, Read, Write] {
        let held = access.have(&client, None).await;
        empty(&on, majority).await;
        // A renewal finds it out, and not the deadline.
        let error = timeout(on.at_most(SHORT / 2), held.lost()).await.expect("at the next renewal");
        let text = error.to_string();
        let why = "a majority of voters no longer had its vote";
        assert!(error.is_lost() && text.contains(why), "{access:?}: {text}");
        assert!(!held.is_held() && held.release().await.unwrap_err().is_lost());
        on.until_clean().await;
        drop(access.have(&client, None).await);
        on.until_clean().await;
    }
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
        until!("that is heard of", guard.votes() == on.voters());
        assert!(guard.is_held());
    }
    on.release(guard.release()).await;
    on.until_clean().await;
}

// The third voter hears of the hold for the first time in the renewal in which the second, which
// has lost it, has it again: the third has forgotten nothing.
#[tokio::test(start_paused = true)]
async fn a_voter_that_never_had_a_hold_has_not_forgotten_it() {
    let (voters, ada) = old_with_client(3).await;
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
    let (voters, ada) = old_with_client(3).await;
    let guard = ada.mutex("a").lock().await.unwrap();
    let _slow = voters[2].fault(Fault::Delay { there: ms(0), back: ms(50) });
    voters[1..].iter().for_each(EmbeddedVoter::wipe);
    let error = timeout(LEASE / 2, guard.lost()).await.expect("at the next renewal");
    assert!(error.is_lost(), "{error}");
}

// Each voter of a majority loses the lock, another has it and gives it back, and the voters answer
// the next renewal, unheard. What they gave in that renewal the one after it must not take for what
// the hold had before.
#[tokio::test(start_paused = true)]
async fn a_hold_that_a_majority_has_lost_is_told_though_the_answers_of_a_renewal_are_lost() {
    let guards = [RestartGuard::Off, RestartGuard::Relative, RestartGuard::Strict];
    let kinds = [Lock, FairLock, Read, Write, BothPermits, Lead].into_iter();
    let settings = kinds.flat_map(|kind| [1, 2, 3, 5].map(|count| (kind, count)));
    for (kind, count) in settings {
        for (guard, all) in guards.into_iter().flat_map(|guard| [(guard, false), (guard, true)]) {
            let voters = old_voters(count);
            let ada = client_with(&voters, guard).await;
            let ben = client_with(&voters, guard).await;
            let held = kind.have(&ada, None).await;
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
                let other = kind.excludes().enter_and_leave(ben.clone());
                let passed = timeout(secs(1), other).await;
                assert!(matches!(passed, Ok(Ok(()))), "{kind:?}, {count} voters, {guard:?}");
            }
            let unheard = inside::all(&voters, Fault::DropReplies);
            sleep(LEASE / 3).await;
            drop(unheard);
            let told = timeout(secs(3), held.lost()).await;
            let error = told.unwrap_or_else(|_| panic!("{kind:?}, {count} voters, {guard:?}"));
            assert!(error.is_lost(), "{error}");
        }
    }
}
