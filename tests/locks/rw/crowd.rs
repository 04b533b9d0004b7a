//! Waiters that die, and what waiting costs.

use quorate::embedded::{self, Machine};
use tokio::time::sleep;

use crate::rw::waiting::{read, release, until_waiting, write};
use quorate_tests::fixture::{Fixture, Stopwatch, ms, secs};

// The writer that waits dies right after a refresh; the reader behind it enters when the dead one's
// place ends.
#[tokio::test(start_paused = true)]
async fn a_dead_writer_holds_up_readers_for_one_waiter_deadline() {
    let voters = embedded::voters(5);
    let on = Fixture::of(&voters);
    let (ours, theirs) = (on.client().await, on.client().await);
    let reading = ours.rw_lock("a").read().await.unwrap();
    let machine = Machine::new("other");
    let doomed = on.builder().machine(&machine).connect().await.unwrap().rw_lock("a");
    let dead = tokio::spawn(machine.run(async move { drop(doomed.write().await) }));
    until_waiting(&ours, 1, 0).await;
    let reader = read(&theirs);
    until_waiting(&ours, 1, 1).await;
    sleep(secs(20)).await;
    machine.kill();
    let watch = Stopwatch::start();
    let second = reader.await.unwrap();
    assert!(watch.time() <= secs(5) + ms(10), "{:?}", watch.time());
    release(&on, second.release()).await;
    release(&on, reading.release()).await;
    dead.abort();
    on.until_clean().await;
}

// A reader that comes before a writer and dies: the writer enters when its place ends.
#[tokio::test(start_paused = true)]
async fn a_dead_reader_that_waits_holds_up_a_writer_for_one_waiter_deadline() {
    let voters = embedded::voters(5);
    let on = Fixture::of(&voters);
    let (ours, theirs) = (on.client().await, on.client().await);
    let writing = ours.rw_lock("a").write().await.unwrap();
    let machine = Machine::new("other");
    let doomed = on.builder().machine(&machine).connect().await.unwrap();
    let doomed = doomed.rw_lock("a").preference(quorate::Preference::Fair);
    let dead = tokio::spawn(machine.run(async move { drop(doomed.read().await) }));
    until_waiting(&ours, 0, 1).await;
    let writer = write(&theirs);
    until_waiting(&ours, 1, 1).await;
    machine.kill();
    let watch = Stopwatch::start();
    release(&on, writing.release()).await;
    let next = writer.await.unwrap();
    assert!(watch.time() <= secs(5) + ms(10), "{:?}", watch.time());
    release(&on, next.release()).await;
    dead.abort();
    on.until_clean().await;
}

// A writer that waits for readers asks as often as it refreshes its place, and once when the last
// reader has gone, however many there were.
#[tokio::test(start_paused = true)]
async fn a_writer_is_called_once_when_the_last_of_many_readers_has_gone() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let (ours, theirs) = (on.client().await, on.client().await);
    let mut guards = Vec::new();
    for _ in 0..100 {
        guards.push(ours.rw_lock("a").read().await.unwrap());
    }
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    let before = on.runs("rw/acquire").unwrap();
    for guard in guards {
        release(&on, guard.release()).await;
    }
    release(&on, writer.await.unwrap().release()).await;
    for (now, before) in on.runs("rw/acquire").unwrap().into_iter().zip(before) {
        assert_eq!(now - before, 1);
    }
    on.until_clean().await;
}

// Twenty readers behind a writer, and a writer behind them that has asked for longer: the hand-over
// from writer to writer wakes no reader.
#[tokio::test(start_paused = true)]
async fn a_hand_over_between_writers_wakes_no_reader() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let (ours, theirs) = (on.client().await, on.client().await);
    let writing = ours.rw_lock("a").write().await.unwrap();
    let readers: Vec<_> = (0..20).map(|_| read(&theirs)).collect();
    until_waiting(&ours, 0, 20).await;
    let second = write(&theirs);
    until_waiting(&ours, 1, 20).await;
    let before = on.runs("rw/acquire").unwrap();
    release(&on, writing.release()).await;
    let writing = second.await.unwrap();
    for (now, before) in on.runs("rw/acquire").unwrap().into_iter().zip(before) {
        assert_eq!(now - before, 1);
    }
    release(&on, writing.release()).await;
    for reader in readers {
        release(&on, reader.await.unwrap().release()).await;
    }
    on.until_clean().await;
}
