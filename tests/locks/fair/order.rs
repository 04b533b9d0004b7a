//! First come, first served.

use std::{sync::Arc, time::Duration};

use quorate::{
    MutexGuard, Quorate, RestartGuard,
    embedded::{self, Machine},
};
use tokio::{sync::Notify, time::sleep};

use crate::fair::queue::{Waiters, release};
use quorate_tests::{
    claims,
    fixture::{Fixture, ms, secs},
    kind::{Client, Kind},
};

claims!(everywhere of FairMutex:
    ten_waiters_of_different_clients_enter_in_the_order_of_coming,
    ten_waiters_that_let_their_leases_run_out_enter_in_the_order_of_coming,
    waiters_of_one_client_enter_in_the_order_of_coming,
    a_hold_longer_than_any_waiters_deadline_does_not_change_the_order,
    nobody_passes_those_who_wait_not_even_for_a_moment,
);

/// Ends a hold as its lease does.
async fn let_it_run_out(guard: MutexGuard) {
    assert!(guard.lost().await.is_lost());
}

// Each stands on a majority before the next one asks; they come by ten connections to each voter.
async fn ten_waiters_of_different_clients_enter_in_the_order_of_coming(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let mut waiters = Waiters::of(&on).await;
    for _ in 0..10 {
        waiters.come(on.client().await.mutex("a"), release).await;
    }
    on.release(guard).await;
    waiters.must_enter_in_order().await;
    on.until_clean().await;
}

// Nobody releases: each hold ends with its lease, which is not renewed.
async fn ten_waiters_that_let_their_leases_run_out_enter_in_the_order_of_coming(on: Fixture) {
    // On servers a busy machine must be able to ask them all within a tenth of it.
    let lease = if on.is_real() { secs(3) } else { secs(1) };
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let mut waiters = Waiters::of(&on).await;
    for _ in 0..10 {
        let theirs = on.client_with_lease(lease).await.mutex("a").lease_fixed(lease);
        waiters.come(theirs, let_it_run_out).await;
    }
    on.release(guard).await;
    waiters.must_enter_in_order().await;
    on.until_clean().await;
}

async fn waiters_of_one_client_enter_in_the_order_of_coming(on: Fixture) {
    let client = on.client().await;
    let guard = client.mutex("a").lock().await.unwrap();
    let mut waiters = Waiters::of(&on).await;
    for _ in 0..10 {
        waiters.come(client.mutex("a"), release).await;
    }
    on.release(guard).await;
    waiters.must_enter_in_order().await;
    on.until_clean().await;
}

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
    on.release(guard).await;
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
        on.release(guard).await;
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
    let voters = embedded::voters(5);
    let on = Fixture::of(&voters).of_kind(Kind::FairMutex);
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
    on.release(guard).await;
    let entered = waiters.enter().await;
    let of = |slow: bool| -> Vec<usize> {
        let is_meant = |number: &usize| (CLOCKS_PPM[number % CLOCKS_PPM.len()] < 0) == slow;
        entered.iter().copied().filter(is_meant).collect()
    };
    assert_eq!((of(false), of(true)), (vec![0, 1, 3, 4, 5, 7], vec![2, 6]), "{entered:?}");
    on.until_clean().await;
}
