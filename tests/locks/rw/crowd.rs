//! Waiters that die, and what waiting costs.

use quorate::embedded::Machine;

use crate::rw::waiting::{read, until_waiting, write};
use quorate_tests::fixture::{Fixture, Stopwatch, ms, secs};

// A reader that comes before a writer and dies: the writer enters when its place ends.
#[tokio::test(start_paused = true)]
async fn a_dead_reader_that_waits_holds_up_a_writer_for_one_waiter_deadline() {
    let on = Fixture::embedded(5);
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
    on.release(writing.release()).await;
    let next = writer.await.unwrap();
    assert!(watch.time() <= secs(5) + ms(10), "{:?}", watch.time());
    on.release(next.release()).await;
    dead.abort();
    on.until_clean().await;
}

/// How often each voter was asked for the lock meanwhile.
async fn asked(on: &Fixture, work: impl Future<Output = ()>) -> Vec<u64> {
    let before = on.runs("rw/acquire").unwrap();
    work.await;
    let now = on.runs("rw/acquire").unwrap();
    now.into_iter().zip(before).map(|(now, before)| now - before).collect()
}

// A writer that waits for readers asks as often as it refreshes its place, and once when the last
// reader has gone, however many there were.
#[tokio::test(start_paused = true)]
async fn a_writer_is_called_once_when_the_last_of_many_readers_has_gone() {
    let on = Fixture::embedded(3);
    let (ours, theirs) = (on.client().await, on.client().await);
    let mut guards = Vec::new();
    for _ in 0..100 {
        guards.push(ours.rw_lock("a").read().await.unwrap());
    }
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    let all_leave = async {
        for guard in guards {
            on.release(guard.release()).await;
        }
        on.release(writer.await.unwrap().release()).await;
    };
    assert_eq!(asked(&on, all_leave).await, [1; 3]);
    on.until_clean().await;
}

// Twenty readers behind a writer, and a writer behind them that has asked for longer: the hand-over
// from writer to writer wakes no reader.
#[tokio::test(start_paused = true)]
async fn a_hand_over_between_writers_wakes_no_reader() {
    let on = Fixture::embedded(3);
    let (ours, theirs) = (on.client().await, on.client().await);
    let writing = ours.rw_lock("a").write().await.unwrap();
    let readers: Vec<_> = (0..20).map(|_| read(&theirs)).collect();
    until_waiting(&ours, 0, 20).await;
    let mut second = write(&theirs);
    until_waiting(&ours, 1, 20).await;
    let mut next = None;
    let hand_over = async {
        on.release(writing.release()).await;
        next = Some((&mut second).await.unwrap());
    };
    assert_eq!(asked(&on, hand_over).await, [1; 3]);
    on.release(next.expect("it has it").release()).await;
    for reader in readers {
        on.release(reader.await.unwrap().release()).await;
    }
    on.until_clean().await;
}
