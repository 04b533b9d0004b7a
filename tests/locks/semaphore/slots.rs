//! Which slots: the same on a majority, whatever single voters know.

use std::collections::BTreeSet;

use quorate::{PermitGuard, Quorate};

use crate::semaphore::waiting::until;
use quorate_tests::{
    claims,
    fixture::{Fixture, secs},
};

claims!(everywhere:
    ten_thousand_permits_are_taken_and_given_back,
);
claims!(three:
    voters_that_know_of_others_agree_on_a_slot,
    a_voter_that_has_other_slots_of_a_hold_is_put_right,
    a_voter_that_gave_other_slots_is_told_with_the_grant,
);

const SLOTS: &str = "quorate:{a}:semaphore:slots";
const ENDS: &str = "quorate:{a}:semaphore:ends";

/// Has a voter say that nobody has these slots but a hold of nobody's.
fn plant(on: &Fixture, voter: usize, slots: &[u32]) {
    let far = "9999999999999";
    for slot in slots {
        let hold = format!("nobody:{slot}");
        on.command(voter, &["ZADD", SLOTS, &slot.to_string(), &hold]);
        on.command(voter, &["ZADD", ENDS, far, &hold]);
    }
    for key in [SLOTS, ENDS] {
        on.command(voter, &["PEXPIRE", key, "600000"]);
    }
}

async fn ten_thousand_permits_are_taken_and_given_back(on: Fixture) {
    // A server on a busy machine may need longer than a voter has by default.
    let client = on.builder().voter_deadline(secs(2)).connect().await.unwrap();
    let semaphore = client.semaphore("a", 10_000);
    let (mut guards, mut slots) = (Vec::new(), BTreeSet::new());
    for _ in 0..39 {
        guards.push(semaphore.acquire_many(256).await.unwrap());
    }
    guards.push(semaphore.acquire_many(16).await.unwrap());
    for guard in &guards {
        slots.extend(guard.slots());
    }
    assert_eq!(slots, (0..10_000).collect());
    on.must_be_refused(semaphore.try_acquire().await);
    let seen = semaphore.inspect().await.unwrap();
    assert_eq!((seen.holders.len(), seen.free()), (40, Some(0)));
    on.release(guards.swap_remove(7).release()).await;
    on.release(semaphore.acquire_many(256).await.unwrap().release()).await;
    drop(guards);
    on.until_clean().await;
}

async fn until_all_agree(client: &Quorate, permits: u32, guards: &[&PermitGuard]) {
    until(client, permits, "every voter says the same", |seen| {
        guards.iter().all(|guard| {
            let mut slots = guard.slots();
            slots.sort_unstable();
            seen.voters.iter().all(|view| {
                let state = view.state.as_ref();
                state.is_ok_and(|state| {
                    let mut held = state.holders.iter();
                    held.any(|held| held.hold == *guard.hold() && held.slots == slots)
                })
            })
        })
    })
    .await;
}

// Of ten slots each voter has other ones: 9 is the only one that is free on all three, and 8 on two
// of them.
async fn voters_that_know_of_others_agree_on_a_slot(on: Fixture) {
    let client = on.client().await;
    plant(&on, 0, &[0, 2, 4, 6]);
    plant(&on, 1, &[1, 3, 5, 7]);
    plant(&on, 2, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let semaphore = client.semaphore("a", 10);
    let one = semaphore.acquire().await.unwrap();
    let other = semaphore.acquire().await.unwrap();
    assert_ne!(one.slot(), other.slot());
    assert!([one.slot(), other.slot()].iter().all(|slot| *slot >= 8));
    on.must_be_refused(semaphore.try_acquire().await);
    on.release(one.release()).await;
    on.release(other.release()).await;
    let both = semaphore.acquire_many(2).await.unwrap();
    assert_eq!(both.slots().into_iter().collect::<BTreeSet<_>>(), [8, 9].into());
    on.release(both.release()).await;
}

// A voter that has lost its data gives two holds each other's slots, as late requests would have
// it. Their renewals exchange them.
async fn a_voter_that_has_other_slots_of_a_hold_is_put_right(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let semaphore = client.semaphore("a", 4);
    let one = semaphore.acquire().await.unwrap();
    let two = semaphore.acquire_many(2).await.unwrap();
    until_all_agree(&client, 4, &[&one, &two]).await;
    for key in [SLOTS, ENDS] {
        on.command(0, &["DEL", key]);
    }
    let [first, second] = two.slots()[..] else { panic!("two") };
    let (hold, also) = (two.hold().as_str(), format!("{}+1", two.hold()));
    let swapped = [(first, one.hold().as_str()), (one.slot(), hold), (second, &*also)];
    for (slot, member) in swapped {
        on.command(0, &["ZADD", SLOTS, &slot.to_string(), member]);
        on.command(0, &["ZADD", ENDS, "9999999999999", member]);
    }
    for key in [SLOTS, ENDS] {
        on.command(0, &["PEXPIRE", key, "600000"]);
    }
    until_all_agree(&client, 4, &[&one, &two]).await;
    assert!(one.is_held() && two.is_held());
    on.release(one.release()).await;
    on.release(two.release()).await;
}

// Of four slots only the last is free on a majority, and all are free on the third voter, which
// mostly gives another. The leases are fixed, so no renewal tells it.
async fn a_voter_that_gave_other_slots_is_told_with_the_grant(on: Fixture) {
    let client = on.client().await;
    for voter in 0..2 {
        plant(&on, voter, &[0, 1, 2]);
    }
    let semaphore = client.semaphore("a", 4).lease_fixed(secs(30));
    for _ in 0..8 {
        let guard = semaphore.acquire().await.unwrap();
        assert_eq!(guard.slot(), 3);
        until_all_agree(&client, 4, &[&guard]).await;
        assert!(guard.is_held(), "its lease has ended");
        on.release(guard.release()).await;
    }
}
