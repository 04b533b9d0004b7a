//! At most so many at once.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::semaphore::waiting::{until_waiting, wait};
use quorate_tests::{
    claims,
    fixture::{Fixture, ms},
};

claims!(everywhere:
    no_more_hold_than_there_are_permits_and_each_has_slots_of_its_own,
    an_owner_enters_again_what_it_holds,
    every_release_lets_in_as_many_as_it_frees,
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
