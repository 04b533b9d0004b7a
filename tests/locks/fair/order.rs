//! First come, first served.

use std::{sync::Arc, time::Duration};

use quorate::{MutexGuard, Quorate, RestartGuard, embedded::Machine};
use tokio::{sync::Notify, time::sleep};

use crate::fair::queue::{Waiters, release, until_waiting};
use quorate_tests::{
    claims,
    fixture::{Fixture, ms, secs},
    kind::{Client, Kind},
};

claims!(everywhere of FairMutex:
    a_hold_longer_than_any_waiters_deadline_does_not_change_the_order,
    nobody_passes_those_who_wait_not_even_for_a_moment,
    who_waits_in_order_is_not_passed_by_who_asks_later_for_the_mutex,
);
claims!(inside of FairMutex: a_hand_over_costs_the_same_however_many_wait);

// Three deadlines pass, and so do nine refreshes of each place.
async fn a_hold_longer_than_any_waiters_deadline_does_not_change_the_order(on: Fixture) {
    let client = async || {
        let (voters, waiters) = (ms(200), ms(1_000));
        on.connect(on.builder().voter_deadline(voters).waiter_deadline(waiters)).await
    };
    let guard = client().await.mutex("a").lock().await.unwrap();
    let mut waiters = Waiters::of(&on).await;
    for _ in 0..5 {
        waiters.come(client().await.mutex("a"), release).await;
    }
    sleep(secs(3)).await;
    on.release(guard.release()).await;
    waiters.must_enter_in_order().await;
    on.until_clean().await;
}

// Somebody tries all the time, while the lock goes through five hands. The last one lets go of it
// only when nobody tries any more.
async fn nobody_passes_those_who_wait_not_even_for_a_moment(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let (last, over) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut waiters = Waiters::of(&on).await;
    for _ in 0..4 {
        waiters.come(on.client().await.mutex("a"), release).await;
    }
    let (entered, leave) = (Arc::clone(&last), Arc::clone(&over));
    let holds = async move |guard| {
        entered.notify_one();
        leave.notified().await;
        release(guard).await;
    };
    waiters.come(on.client().await.mutex("a"), holds).await;
    let theirs = on.client().await;
    let tries = async {
        loop {
            for tried in [theirs.mutex("a").try_lock().await, plain(&theirs).await] {
                assert!(tried.unwrap().is_none(), "somebody holds it, or waits");
            }
            sleep(ms(1)).await;
        }
    };
    let through = async {
        on.release(guard.release()).await;
        last.notified().await;
    };
    tokio::select! {
        () = tries => {}
        () = through => {}
    }
    over.notify_one();
    waiters.must_enter_in_order().await;
}

async fn plain(client: &Client) -> Result<Option<MutexGuard>, quorate::Error> {
    Quorate::mutex(client, "a").try_lock().await
}

/// How fast a client's clock runs; and it began to run at another time than the others.
const CLOCKS_PPM: [i32; 4] = [0, 1_000_000, -500_000, 300_000];

// No script is told a client's time. What differs is when clients refresh their places: twice as
// often as they should, or half as often, which is still in time. To such a client the clocks of
// all voters are wrong: with a restart guard it would never enter. One whose clock runs at half
// the rate finds with the grant that it has stood still for as long as a lease: that grant is too
// old for it, and it comes again behind all others.
#[tokio::test(start_paused = true)]
async fn a_client_with_a_wrong_clock_neither_jumps_the_queue_nor_empties_it() {
    let on = Fixture::embedded(5).of_kind(Kind::FairMutex);
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let mut waiters = Waiters::of(&on).await;
    for (number, ppm) in CLOCKS_PPM.into_iter().cycle().take(8).enumerate() {
        let machine = Machine::new("other");
        sleep(Duration::from_secs(3_600 * u64::from(number == 1))).await;
        machine.set_clock_rate(ppm);
        let builder = on.builder().machine(&machine).restart_guard(RestartGuard::Off);
        let client = Client::new(builder.connect().await.unwrap(), Kind::FairMutex);
        waiters.come(client.mutex("a"), release).await;
    }
    sleep(secs(60)).await;
    on.release(guard.release()).await;
    let entered = waiters.enter().await;
    let of = |slow: bool| -> Vec<usize> {
        let is_meant = |number: &usize| (CLOCKS_PPM[number % CLOCKS_PPM.len()] < 0) == slow;
        entered.iter().copied().filter(is_meant).collect()
    };
    assert_eq!((of(false), of(true)), (vec![0, 1, 3, 4, 5, 7], vec![2, 6]), "{entered:?}");
    on.until_clean().await;
}

async fn who_waits_in_order_is_not_passed_by_who_asks_later_for_the_mutex(on: Fixture) {
    let client = on.client().await;
    let guard = client.mutex("a").lock().await.unwrap();
    let fair = tokio::spawn(on.client().await.mutex("a").lock());
    until_waiting(&client, 1).await;
    let plain = tokio::spawn(Quorate::mutex(&*on.client().await, "a").lock());
    until_waiting(&client, 2).await;
    guard.release().await.unwrap();
    let fair = fair.await.unwrap().unwrap();
    assert!(!plain.is_finished());
    fair.release().await.unwrap();
    plain.await.unwrap().unwrap().release().await.unwrap();
    on.until_clean().await;
}

// Ten deep or a hundred: the release, one bid of the next one, and nothing else. The waiters have
// just refreshed their places, and do so again a second later.
async fn a_hand_over_costs_the_same_however_many_wait(on: Fixture) {
    for crowd in [10, 100] {
        let client = on.client().await;
        let guard = client.mutex("a").lock().await.unwrap();
        let mut waiters = Waiters::of(&on).await;
        for _ in 0..crowd {
            waiters.come(client.mutex("a"), release).await;
        }
        let runs = |script: &str| on.runs(script).expect("they count");
        let before = runs("mutex/acquire");
        // In paused time the whole line passes before the next refresh is due.
        on.release(guard.release()).await;
        waiters.must_enter_in_order().await;
        for (voter, before) in before.into_iter().enumerate() {
            assert_eq!(runs("mutex/acquire")[voter] - before, crowd, "of {crowd}, voter {voter}");
        }
        on.until_clean().await;
    }
}
