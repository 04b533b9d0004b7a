//! Many who want several locks: nobody waits for ever, and no lock is anybody else's meanwhile.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
};

use futures::future::join_all;
use tokio::time::{sleep, timeout};

use crate::several::client;
use quorate::Quorate;
use quorate_tests::{
    claims,
    fixture::{Fixture, ms, secs},
};

claims!(everywhere:
    callers_that_name_two_locks_in_opposite_orders_all_have_their_turns,
    a_crowd_over_overlapping_sets_goes_through_and_never_two_at_once,
    who_wants_three_busy_locks_is_not_starved_by_those_who_want_one,
    of_ten_that_try_the_same_three_locks_at_once_one_has_them,
);

/// Each of these locks is somebody's, or nobody's.
#[derive(Default)]
struct Taken([AtomicBool; 4]);

impl Taken {
    fn take(&self, locks: &[usize]) {
        for lock in locks {
            assert!(!self.0[*lock].swap(true, SeqCst), "lock {lock} is held twice");
        }
    }

    fn leave(&self, locks: &[usize]) {
        for lock in locks {
            self.0[*lock].store(false, SeqCst);
        }
    }
}

/// Takes these, so many times.
async fn turns(
    on: Arc<Fixture>,
    quorum: Quorate,
    taken: Arc<Taken>,
    locks: Vec<usize>,
    turns: u64,
) {
    for _ in 0..turns {
        let names = locks.iter().map(|lock| quorum.mutex(lock.to_string()));
        let guard = quorum.lock_all(names).lock().await.expect("a majority answers");
        taken.take(&locks);
        sleep(ms(1)).await;
        assert!(guard.is_held());
        taken.leave(&locks);
        on.release(guard.release()).await;
    }
}

async fn all_have_their_turns(on: Fixture, sets: Vec<Vec<usize>>, count: u64) {
    let (on, taken) = (Arc::new(on), Arc::<Taken>::default());
    let mut tasks = Vec::new();
    for locks in sets {
        let quorum = client(&on).await;
        tasks.push(tokio::spawn(turns(Arc::clone(&on), quorum, Arc::clone(&taken), locks, count)));
    }
    let all = timeout(secs(600), join_all(tasks)).await.expect("nobody waits for ever");
    for one in all {
        one.expect("no panic");
    }
    on.until_clean().await;
}

async fn callers_that_name_two_locks_in_opposite_orders_all_have_their_turns(on: Fixture) {
    let count = on.rounds(100, (50, 10));
    all_have_their_turns(on, vec![vec![0, 1], vec![1, 0], vec![0, 1], vec![1, 0]], count).await;
}

async fn a_crowd_over_overlapping_sets_goes_through_and_never_two_at_once(on: Fixture) {
    let count = on.rounds(30, (15, 3));
    let sets = [&[0, 1][..], &[1, 2], &[2, 3], &[3, 0], &[0, 1, 2, 3], &[3, 1], &[2], &[0, 2, 1]];
    all_have_their_turns(on, sets.map(<[usize]>::to_vec).into(), count).await;
}

// Two clients for each of three locks take it again and again, so that none is ever free for long.
// Whoever wants all three has them ten times.
async fn who_wants_three_busy_locks_is_not_starved_by_those_who_want_one(on: Fixture) {
    let on = Arc::new(on);
    let (over, given) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let mut tasks = Vec::new();
    for number in 0..6 {
        let quorum = client(&on).await;
        let (on, over, given) = (Arc::clone(&on), Arc::clone(&over), Arc::clone(&given));
        tasks.push(tokio::spawn(async move {
            let mutex = quorum.mutex((number % 3).to_string());
            while !over.load(SeqCst) {
                let guard = mutex.lock().await.expect("a majority answers");
                given.fetch_add(1, SeqCst);
                sleep(ms(5)).await;
                on.release(guard.release()).await;
            }
        }));
    }
    let quorum = client(&on).await;
    for _ in 0..on.rounds(20, (10, 3)) {
        let all = quorum.lock_all(["0", "1", "2"].map(|name| quorum.mutex(name)));
        let guard = timeout(secs(60), all.lock()).await.expect("it is not starved").unwrap();
        on.release(guard.release()).await;
    }
    over.store(true, SeqCst);
    join_all(tasks).await.into_iter().for_each(|one| one.expect("no panic"));
    assert!(given.load(SeqCst) > 10, "the others had their turns too");
    on.until_clean().await;
}

async fn of_ten_that_try_the_same_three_locks_at_once_one_has_them(on: Fixture) {
    let mut clients = Vec::new();
    for _ in 0..10 {
        clients.push(client(&on).await);
    }
    for round in 0..20 {
        let names = ["a", "b", "c"].map(|name| format!("{name}{round}"));
        let tries = clients.iter().map(async |quorum| {
            quorum.lock_all(names.clone().map(|name| quorum.mutex(name))).try_lock().await
        });
        let got = join_all(tries).await.into_iter().map(|tried| tried.expect("all answer"));
        let got: Vec<_> = got.flatten().collect();
        assert_eq!(got.len(), 1, "in round {round}");
        for guard in got {
            on.release(guard.release()).await;
        }
    }
    on.until_clean().await;
}
