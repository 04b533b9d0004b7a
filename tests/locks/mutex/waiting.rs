//! Waiting, giving up, and being cancelled.

use std::sync::atomic::{AtomicU64, Ordering};

use quorate_tests::prelude::*;

claims!(everywhere of both:
    a_release_wakes_a_waiter_of_another_client_without_polling,
    thirty_two_tasks_go_through_one_client,
);

// The lease has 30 s to go and the next poll is ten minutes away: only the message is sooner.
async fn a_release_wakes_a_waiter_of_another_client_without_polling(on: Fixture) {
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let theirs = on.connect(on.builder().poll_interval(secs(600))).await.mutex("a");
    let waiter = tokio::spawn(theirs.lock());
    on.until_queued().await;
    // Long enough for the answers to come, after which the waiter sleeps.
    sleep(ms(200)).await;
    let watch = Stopwatch::start();
    guard.release().await.unwrap();
    let entered = waiter.await.unwrap().unwrap();
    assert!(watch.time() <= on.at_most(ms(1)), "{:?}", watch.time());
    entered.release().await.unwrap();
    on.until_clean().await;
}

// The counter is exact only if each of the 32 x 5000 rounds (or the share of them that fits) was
// alone inside; a second client keeps the first one listening in between.
async fn thirty_two_tasks_go_through_one_client(on: Fixture) {
    let rounds = on.rounds(5000, (40, 20));
    let (on, counter) = (Arc::new(on), Arc::new(AtomicU64::new(0)));
    let (client, rival) = (on.client().await, on.client().await);
    let mut tasks = JoinSet::new();
    for task in 0..33 {
        let mutex = if task == 32 { rival.mutex("a") } else { client.mutex("a") };
        let (on, counter) = (Arc::clone(&on), Arc::clone(&counter));
        tasks.spawn(async move {
            for _ in 0..rounds {
                let guard = mutex.lock().await.unwrap();
                let count = counter.load(Ordering::Relaxed);
                tokio::task::yield_now().await;
                counter.store(count + 1, Ordering::Relaxed);
                on.release(guard.release()).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(counter.load(Ordering::Relaxed), 33 * rounds);
    on.until_clean().await;
}

// The client asks before it is known to listen, and the call is lost.
#[tokio::test(start_paused = true)]
async fn who_asks_before_its_client_listens_asks_again_once_it_does() {
    let voters = embedded::voters(3);
    let guard = client(&voters).await.mutex("a").lock().await.unwrap();
    let theirs = client(&voters).await;
    let late = Fault::Delay { there: Duration::ZERO, back: ms(150) };
    for voter in &voters {
        voter.fault_each(move |sent| match sent.script() {
            _ if sent.is_message() => vec![Fault::DropReplies],
            None => vec![late],
            Some(_) => Vec::new(),
        });
    }
    let waiter = tokio::spawn(theirs.mutex("a").lock());
    sleep(ms(50)).await;
    guard.release().await.unwrap();
    sleep(ms(50)).await;
    assert!(!waiter.is_finished(), "it was not called");
    let entered = timeout(ms(100), waiter).await.expect("it asks again").unwrap();
    entered.unwrap().release().await.unwrap();
}
