//! Whom a reader lets pass.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use quorate::{Preference, Quorate};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use crate::rw::waiting::{read, until_waiting, write};
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(everywhere:
    a_reader_of_readers_passes_a_writer_that_waits,
    a_reader_of_writers_comes_behind_every_writer,
    in_fair_order_readers_between_two_writers_enter_together,
);

fn read_as(client: &Quorate, preference: Preference) -> JoinHandle<quorate::ReadGuard> {
    let lock = client.rw_lock("a").preference(preference);
    tokio::spawn(async move { lock.read().await.unwrap() })
}

async fn a_reader_of_readers_passes_a_writer_that_waits(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    let reading = ours.rw_lock("a").read().await.unwrap();
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    let lock = ours.rw_lock("a").preference(Preference::Readers);
    let other = lock.read().await.unwrap();
    let third = lock.try_read().await.unwrap().expect("only a writer that holds refuses it");
    on.release(reading.release()).await;
    on.release(third.release()).await;
    assert!(!writer.is_finished(), "it is still read");
    on.release(other.release()).await;
    let writing = writer.await.unwrap();
    // Readers that wait come before the next writer.
    let second = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    let waiting = read_as(&ours, Preference::Readers);
    until_waiting(&ours, 1, 1).await;
    on.release(writing.release()).await;
    let reading = waiting.await.unwrap();
    assert!(!second.is_finished());
    on.release(reading.release()).await;
    on.release(second.await.unwrap().release()).await;
    on.until_clean().await;
}

async fn a_reader_of_writers_comes_behind_every_writer(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    let reading = ours.rw_lock("a").read().await.unwrap();
    let first = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    assert!(ours.rw_lock("a").try_read().await.unwrap().is_none(), "a writer waits");
    let reader = read(&ours);
    until_waiting(&ours, 1, 1).await;
    let second = write(&theirs);
    until_waiting(&ours, 2, 1).await;
    on.release(reading.release()).await;
    let writing = first.await.unwrap();
    assert!(!reader.is_finished() && !second.is_finished());
    on.release(writing.release()).await;
    let writing = second.await.unwrap();
    assert!(!reader.is_finished(), "it asked before the second writer, and comes behind it");
    on.release(writing.release()).await;
    on.release(reader.await.unwrap().release()).await;
    on.until_clean().await;
}

// Two writers, two readers, a writer, a reader: seen in the order of entering, the readers between
// two writers in any order among themselves, and both inside at the same time.
async fn in_fair_order_readers_between_two_writers_enter_together(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    let writing = ours.rw_lock("a").write().await.unwrap();
    let entered = Arc::new(Mutex::new(Vec::new()));
    let together = Arc::new(tokio::sync::Barrier::new(2));
    let mut tasks = JoinSet::new();
    let (mut writers, mut readers) = (0, 0);
    for (number, writes) in [true, true, false, false, true, false].into_iter().enumerate() {
        let client = if number % 2 == 0 { &ours } else { &theirs };
        let lock = client.rw_lock("a").preference(Preference::Fair);
        let (entered, together) = (Arc::clone(&entered), Arc::clone(&together));
        tasks.spawn(async move {
            if writes {
                let guard = lock.write().await.unwrap();
                entered.lock().unwrap().push(number);
                guard.release().await.unwrap();
            } else {
                let guard = lock.read().await.unwrap();
                entered.lock().unwrap().push(number);
                if number < 5 {
                    together.wait().await;
                }
                guard.release().await.unwrap();
            }
        });
        *(if writes { &mut writers } else { &mut readers }) += 1;
        until_waiting(&ours, writers, readers).await;
    }
    on.release(writing.release()).await;
    tasks.join_all().await;
    let mut entered = entered.lock().unwrap().clone();
    entered[2..4].sort_unstable();
    assert_eq!(entered, [0, 1, 2, 3, 4, 5]);
    on.until_clean().await;
}

// A hundred readers that come and go. One reads for 50 ms: that is what the writer has to wait for,
// and then it enters.
#[tokio::test(start_paused = true)]
async fn a_writer_enters_promptly_among_readers_that_come_and_go() {
    for preference in [Preference::Writers, Preference::Fair] {
        let on = Fixture::embedded(5);
        let clients = [on.client().await, on.client().await];
        let over = Arc::new(AtomicBool::new(false));
        let mut readers = JoinSet::new();
        for number in 0..100 {
            let lock = clients[usize::from(number % 2 == 0)].rw_lock("a").preference(preference);
            let over = Arc::clone(&over);
            readers.spawn(async move {
                sleep(ms(number)).await;
                while !over.load(Ordering::SeqCst) {
                    let guard = lock.read().await.unwrap();
                    sleep(ms(50)).await;
                    guard.release().await.unwrap();
                }
            });
        }
        sleep(secs(1)).await;
        let watch = Stopwatch::start();
        let writing = clients[0].rw_lock("a").write().await.unwrap();
        assert!(watch.time() <= ms(60), "{preference:?}: {:?}", watch.time());
        over.store(true, Ordering::SeqCst);
        drop(writing);
        readers.join_all().await;
        on.until_clean().await;
    }
}
