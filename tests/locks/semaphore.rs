//! What users of the semaphore rely on. Each test's name is the claim; each claim is written once
//! and holds on voters inside the process (in paused time: fast and exact) and on real servers.

use std::sync::Mutex;

use quorate_tests::{doomed::Doomed, prelude::*};

// Clients that use one semaphore with different numbers of permits.

claims!(everywhere:
    the_smaller_number_counts_for_new_permits_and_nobody_is_thrown_out,
    the_smaller_number_is_forgotten_a_lease_after_it_was_last_asked_with,
    whoever_wants_more_than_others_allow_is_told_and_holds_up_nobody,
);

async fn the_smaller_number_counts_for_new_permits_and_nobody_is_thrown_out(on: Fixture) {
    let client = on.client().await;
    let (large, small) = (client.semaphore("a", 5), client.semaphore("a", 2));
    let mut guards = Vec::new();
    for _ in 0..3 {
        guards.push(large.acquire().await.unwrap());
    }
    on.must_be_refused(small.try_acquire().await);
    let waiting = wait(&client, 2, 1);
    until_waiting(&client, 1).await;
    until(&client, 5, "two count", |seen| (seen.permits, seen.free()) == (Some(2), Some(0))).await;
    // Also for those who ask with the larger number.
    on.must_be_refused(large.try_acquire().await);
    on.release(guards.pop().unwrap().release()).await;
    assert!(guards.iter().all(quorate::PermitGuard::is_held) && !waiting.is_finished());
    for guard in guards.drain(..) {
        on.release(guard.release()).await;
    }
    let entered = waiting.await.unwrap();
    assert!(entered.slot() < 2);
    on.release(entered.release()).await;
    on.until_clean().await;
}

async fn the_smaller_number_is_forgotten_a_lease_after_it_was_last_asked_with(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let (large, small) = (client.semaphore("a", 3), client.semaphore("a", 1));
    let one = small.acquire().await.unwrap();
    sleep(secs(5)).await;
    on.must_be_refused(large.try_acquire().await);
    on.release(one.release()).await;
    sleep(secs(4)).await;
    on.release(large.acquire_many(3).await.unwrap().release()).await;
}

async fn whoever_wants_more_than_others_allow_is_told_and_holds_up_nobody(on: Fixture) {
    let client = on.client().await;
    let one = client.semaphore("a", 2).acquire().await.unwrap();
    let error = client.semaphore("a", 5).try_acquire_many(3).await.unwrap_err();
    assert!(error.is_no_quorum(), "{error}");
    assert!(error.to_string().contains("3 permits are more than others have asked for"), "{error}");
    let waiting = wait(&client, 5, 3);
    let other = client.semaphore("a", 2).acquire().await.unwrap();
    waiting.abort();
    on.release(one.release()).await;
    on.release(other.release()).await;
}

// What cannot work is refused before anything is sent, with the values that are wrong.

#[tokio::test(start_paused = true)]
async fn permits_that_cannot_be_are_refused_by_every_call_and_nothing_is_sent() {
    let (on, client) = Fixture::with_client(3).await;
    let large = client.semaphore("a", 10_000);
    for permits in [0, 10_001, u32::MAX] {
        let message = format!("a semaphore has 1 to 10000 permits, not {permits}");
        let semaphore = client.semaphore("a", permits);
        assert_invalid(&semaphore.acquire().await.unwrap_err(), &message);
        assert_invalid(&semaphore.acquire_many(2).await.unwrap_err(), &message);
        assert_invalid(&semaphore.inspect().await.unwrap_err(), &message);
    }
    let semaphore = client.semaphore("a", 5);
    for (of, wanted, message) in [
        (&semaphore, 0, "0 permits cannot be had of a semaphore of 5"),
        (&semaphore, 6, "6 permits cannot be had of a semaphore of 5"),
        (&large, 257, "257 permits at once are over the most of 256"),
        (&large, 10_000, "10000 permits at once are over the most of 256"),
    ] {
        assert_invalid(&of.acquire_many(wanted).await.unwrap_err(), message);
        assert_invalid(&of.try_acquire_many(wanted).await.unwrap_err(), message);
        assert_invalid(&of.acquire_many_within(wanted, ms(5)).await.unwrap_err(), message);
        assert_invalid(&of.acquire_many_or_busy(wanted, ms(5)).await.unwrap_err(), message);
    }
    assert_invalid(&client.semaphore("", 5).acquire().await.unwrap_err(), "the lock name is empty");
    let long = semaphore.lease(secs(31)).acquire().await;
    assert_invalid(&long.unwrap_err(), "the lease of 31s is over the longest lease of 30s");
    assert_eq!(on.runs("semaphore/acquire").unwrap(), [0, 0, 0]);
    let most = large.acquire_many(256).await.unwrap();
    assert_eq!(most.permits(), 256);
    most.release().await.unwrap();
    on.until_clean().await;
}

// Each hold has a lease of its own.

claims!(everywhere:
    a_dead_holders_permits_come_back_at_its_own_deadline_although_others_renew,
    a_lease_can_be_extended,
    who_enters_again_for_a_shorter_time_shortens_nothing,
);

async fn a_dead_holders_permits_come_back_at_its_own_deadline_although_others_renew(on: Fixture) {
    let lease = secs(3);
    let watch = Stopwatch::start();
    let dead = Doomed::take(&on, lease, async move |client| {
        let semaphore = client.semaphore("a", 3).lease_fixed(lease);
        semaphore.acquire_many(2).await.expect("they are free")
    })
    .await;
    let after = Stopwatch::start();
    let client = on.client_with_lease(secs(3)).await;
    let live = client.semaphore("a", 3).acquire().await.unwrap();
    let waiting = wait(&client, 3, 2);
    until_waiting(&client, 1).await;
    dead.die();
    let next = waiting.await.unwrap();
    assert!(watch.time() >= lease, "{:?}", watch.time());
    assert!(after.time() <= on.at_most(lease + ms(20)), "{:?}", after.time());
    assert!(live.is_held() && next.is_held());
    on.release(next.release()).await;
    on.until_only(HELD).await;
    on.release(live.release()).await;
    on.until_clean().await;
}

async fn a_lease_can_be_extended(on: Fixture) {
    let client = on.client().await;
    let guard = client.semaphore("a", 2).lease_fixed(secs(8)).acquire_many(2).await.unwrap();
    guard.extend(secs(20)).await.unwrap();
    assert!(guard.remaining() > secs(15), "{:?}", guard.remaining());
    let slots = guard.slots();
    let again = guard.reenter().await.unwrap();
    assert_eq!(again.slots(), slots);
    drop(guard);
    again.keep_for(secs(8)).await.unwrap();
    on.must_be_refused(client.semaphore("a", 2).try_acquire().await);
}

async fn who_enters_again_for_a_shorter_time_shortens_nothing(on: Fixture) {
    let client = on.client().await;
    let semaphore = client.semaphore("a", 2).owner(&Owner::new());
    let long = semaphore.clone().lease_fixed(secs(25)).acquire_many(2).await.unwrap();
    let short = semaphore.lease_fixed(secs(8)).acquire_many(2).await.unwrap();
    assert_eq!(short.hold(), long.hold());
    let seen = client.semaphore("a", 2).inspect().await.unwrap();
    for view in &seen.voters {
        let Ok(state) = &view.state else { continue };
        assert!(state.holders.iter().all(|held| held.ttl > Some(secs(15))), "{seen:?}");
    }
    assert_eq!(seen.holders.len(), 1, "a majority said it");
}

// At most so many at once.

claims!(everywhere:
    no_more_hold_than_there_are_permits_and_each_has_slots_of_its_own,
    an_owner_enters_again_what_it_holds,
);

// Twelve tasks of three clients want one to three of four permits each, again and again. Whoever
// is in notes its slots: no other has one of them meanwhile.
async fn no_more_hold_than_there_are_permits_and_each_has_slots_of_its_own(on: Fixture) {
    let clients = [on.client().await, on.client().await, on.client().await];
    let taken = Arc::new(Mutex::new(BTreeSet::new()));
    let mut tasks = JoinSet::new();
    let rounds = on.rounds(20, (20, 5));
    for (number, client) in clients.iter().cycle().take(12).enumerate() {
        let (semaphore, taken) = (client.semaphore("a", 4), Arc::clone(&taken));
        tasks.spawn(async move {
            for round in 0..rounds {
                let wanted = if number == 0 { 3 } else { 1 + u32::try_from(round % 2).unwrap() };
                let guard = semaphore.acquire_many(wanted).await.unwrap();
                let slots = guard.slots();
                assert_eq!(slots.len(), wanted as usize);
                for slot in &slots {
                    assert!(*slot < 4 && taken.lock().unwrap().insert(*slot), "slot {slot}");
                }
                sleep(ms(1)).await;
                assert!(guard.is_held());
                for slot in &slots {
                    taken.lock().unwrap().remove(slot);
                }
                guard.release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    on.until_clean().await;
}

async fn an_owner_enters_again_what_it_holds(on: Fixture) {
    let client = on.client().await;
    let owner = quorate::Owner::new();
    let semaphore = client.semaphore("a", 2).owner(&owner);
    let first = semaphore.acquire().await.unwrap();
    let again = semaphore.acquire().await.unwrap();
    assert_eq!((first.hold(), first.slot()), (again.hold(), again.slot()));
    assert_eq!(again.count(), 2);
    let other = client.semaphore("a", 2).try_acquire().await.unwrap().expect("one is free");
    drop(first);
    on.must_be_refused(client.semaphore("a", 2).try_acquire().await);
    on.release(again.release()).await;
    on.release(other.release()).await;
    on.until_clean().await;
}

// Which slots: the same on a majority, whatever single voters know.

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
    assert_eq!((seen.holders.len(), seen.free()), (40, 0));
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

// Waiting for a condition on the semaphore `a`.

/// The keys of a semaphore that is held.
pub(crate) const HELD: &[&str] = &["quorate:{a}:semaphore:ends", "quorate:{a}:semaphore:slots"];

/// Waits until a majority says this about the semaphore, of so many permits.
pub(crate) async fn until(
    client: &Quorate,
    permits: u32,
    what: &str,
    says: impl Fn(&LockView) -> bool,
) {
    until!(what, client.semaphore("a", permits).inspect().await.is_ok_and(|seen| says(&seen)));
}

/// Waits until so many wait.
pub(crate) async fn until_waiting(client: &Quorate, count: usize) {
    until(client, 10_000, &format!("{count} wait"), |seen| seen.waiting.len() == count).await;
}

/// One who waits for so many permits.
pub(crate) fn wait(client: &Quorate, permits: u32, wanted: u32) -> JoinHandle<PermitGuard> {
    let semaphore = client.semaphore("a", permits);
    tokio::spawn(async move { semaphore.acquire_many(wanted).await.expect("a majority answers") })
}

// In the order of asking, however many permits each wants.

claims!(everywhere:
    whoever_wants_many_is_not_passed_by_those_who_want_one_and_lets_them_in_by_giving_up,
    every_release_lets_in_as_many_as_it_frees,
);

// Three of four are given back one by one: none of them goes to those behind.
async fn whoever_wants_many_is_not_passed_by_those_who_want_one_and_lets_them_in_by_giving_up(
    on: Fixture,
) {
    let (ours, theirs) = (on.client().await, on.client().await);
    for gives_up in [false, true] {
        let mut guards = Vec::new();
        for _ in 0..4 {
            guards.push(ours.semaphore("a", 4).acquire().await.unwrap());
        }
        let big = wait(&theirs, 4, 4);
        until_waiting(&ours, 1).await;
        let small = wait(&ours, 4, 1);
        until_waiting(&ours, 2).await;
        for guard in guards.split_off(1) {
            assert!(!big.is_finished() && !small.is_finished());
            on.release(guard.release()).await;
        }
        // Three are free, and kept for who has asked first.
        on.must_be_refused(ours.semaphore("a", 4).try_acquire().await);
        if gives_up {
            big.abort();
            on.release(small.await.unwrap().release()).await;
            assert!(guards[0].is_held());
            on.release(guards.remove(0).release()).await;
        } else {
            assert!(!big.is_finished() && !small.is_finished());
            on.release(guards.remove(0).release()).await;
            let big = big.await.unwrap();
            assert!(!small.is_finished(), "it asked later");
            on.release(big.release()).await;
            on.release(small.await.unwrap().release()).await;
        }
        on.until_clean().await;
    }
}

// One gives back three at once: three who wait enter, each called by the one before it.
async fn every_release_lets_in_as_many_as_it_frees(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    let all = ours.semaphore("a", 3).acquire_many(3).await.unwrap();
    let mut waiting = Vec::new();
    for number in 1..=4 {
        waiting.push(wait(&theirs, 3, 1));
        until_waiting(&ours, number).await;
    }
    on.release(all.release()).await;
    let mut last = waiting.pop().unwrap();
    let mut guards = Vec::new();
    for waiting in waiting {
        guards.push(timeout(on.at_most(ms(50)), waiting).await.expect("it is called").unwrap());
    }
    assert!(timeout(ms(20), &mut last).await.is_err(), "all three are taken");
    on.release(guards.remove(0).release()).await;
    guards.push(timeout(on.at_most(ms(50)), last).await.expect("it is called").unwrap());
    for guard in guards {
        on.release(guard.release()).await;
    }
    on.until_clean().await;
}
