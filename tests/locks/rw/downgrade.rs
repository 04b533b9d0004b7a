//! From a write to a read.

use quorate::{
    Owner, RestartGuard,
    embedded::{self, Fault, Machine},
};

use crate::rw::waiting::{READERS, read, until, until_waiting, write};
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(everywhere:
    a_downgrade_lets_readers_in_at_once_and_no_writer_in_between,
    a_guard_reads_without_an_owner,
);
claims!(minority: a_read_under_a_write_passes_the_queue_where_the_write_was_not_heard);

// Two wait to read; another comes to write when they have gone. Then one that has waited for longer
// than the read: it enters when the read has ended.
async fn a_downgrade_lets_readers_in_at_once_and_no_writer_in_between(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    let writing = ours.rw_lock("a").write().await.unwrap();
    let readers = [read(&theirs), read(&theirs)];
    until_waiting(&ours, 0, 2).await;
    let watch = Stopwatch::start();
    let reading = writing.downgrade().await.unwrap();
    for reader in readers {
        on.release(reader.await.unwrap().release()).await;
    }
    assert!(watch.time() <= on.at_most(ms(20)), "{:?}", watch.time());
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    assert!(reading.is_held() && !writer.is_finished());
    on.release(reading.release()).await;
    let writing = writer.await.unwrap();
    let writer = write(&ours);
    until_waiting(&ours, 1, 0).await;
    let reading = writing.downgrade().await.unwrap();
    assert!(ours.rw_lock("a").try_read().await.unwrap().is_none(), "others stand behind it");
    assert!(reading.is_held() && !writer.is_finished());
    on.release(reading.release()).await;
    on.release(writer.await.unwrap().release()).await;
    on.until_clean().await;
}

async fn a_guard_reads_without_an_owner(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let lock = client.rw_lock("a");
    let writing = lock.write().await.unwrap();
    let reading = writing.read().await.unwrap();
    let under = format!("{}/", writing.hold());
    assert!(reading.hold().as_str().starts_with(&under), "{}", reading.hold());
    on.release(writing.release()).await;
    // By then it has been renewed, where the write is no more.
    tokio::time::sleep(secs(5)).await;
    assert!(reading.is_held());
    on.until_only(READERS).await;
    let other = lock.try_read().await.unwrap().expect("it is only read");
    on.release(other.release()).await;
    on.release(reading.release()).await;
    on.until_clean().await;
}

// Two voters are away while the write is acquired, and come back when another waits to write; then
// two of those that gave it their votes go. The two that never heard of the write are needed:
// nobody who guards against restarts would count those yet.
async fn a_read_under_a_write_passes_the_queue_where_the_write_was_not_heard(mut on: Fixture) {
    let client = async || on.connect(on.builder().restart_guard(RestartGuard::Off)).await;
    let (ours, theirs) = (client().await, client().await);
    on.stop(3);
    on.stop(4);
    let writing = ours.rw_lock("a").write().await.unwrap();
    on.kill(3);
    on.kill(4);
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    on.restart(3);
    on.restart(4);
    let waits_everywhere = |seen: &quorate::LockView| {
        let states = seen.voters.iter().filter_map(|view| view.state.as_ref().ok());
        states.filter(|state| state.waiting.len() == 1).count() == 5
    };
    until(&ours, "it waits on every voter", waits_everywhere).await;
    on.kill(1);
    on.kill(2);
    let reading = writing.read().await.expect("it passes the queue on the two that are new");
    assert!(!writer.is_finished() && reading.is_held());
    on.release(writing.release()).await;
    on.release(reading.release()).await;
    on.release(writer.await.unwrap().release()).await;
}

// The request is on its way while the lease of the write ends, and another writes meanwhile. The
// read that the voters then give is no continuation of the write, so it is not given to the caller.
#[tokio::test(start_paused = true)]
async fn a_read_that_comes_after_the_write_has_ended_is_none() {
    for downgrades in [false, true] {
        let voters = embedded::voters(3);
        let on = Fixture::of(&voters);
        let machine = Machine::new("slow");
        let builder = on.builder().lease(secs(1)).voter_deadline(ms(100));
        let ours = on.connect(builder.machine(&machine)).await;
        let writing = ours.rw_lock("a").lease_fixed(secs(1)).write().await.unwrap();
        let theirs = on.client().await.rw_lock("a");
        let other = tokio::spawn(async move { theirs.write().await.unwrap().release().await });
        until_waiting(&ours, 1, 0).await;
        tokio::time::sleep(ms(930)).await;
        for voter in &voters {
            voter.fault_each(|sent| match (sent.client(), sent.script()) {
                ("slow", Some("rw/acquire")) => {
                    vec![Fault::Delay { there: ms(80), back: ms(0) }]
                }
                _ => Vec::new(),
            });
        }
        assert!(writing.is_held());
        let error = if downgrades {
            writing.downgrade().await.unwrap_err()
        } else {
            writing.read().await.unwrap_err()
        };
        assert!(error.is_lost(), "{error}");
        other.await.unwrap().unwrap();
        on.until_clean().await;
    }
}

// The answers do not come: the write is as it was, and can be released. The caller's limit is
// shorter than the deadline of the voters, which have their time.
#[tokio::test(start_paused = true)]
async fn a_read_that_too_few_confirm_leaves_the_write_as_it_is() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let lock = on.client().await.rw_lock("a").owner(&Owner::new());
    let writing = lock.write().await.unwrap();
    voters[0].stop();
    voters[1].stop();
    let watch = Stopwatch::start();
    for refused in [writing.read().await, lock.read_within(ms(30)).await.map(|it| it.unwrap())] {
        let error = refused.unwrap_err();
        assert!(error.is_not_entered() && writing.is_held(), "{error}");
        assert_eq!(error.voters().len(), 3);
    }
    assert_eq!(watch.time(), ms(400));
    voters[0].resume();
    voters[1].resume();
    writing.read().await.unwrap().release().await.unwrap();
    writing.release().await.unwrap();
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_lost_gives_no_read() {
    let on = Fixture::embedded(3);
    let client = on.client().await;
    let owner = Owner::new();
    let lock = client.rw_lock("a").owner(&owner).lease_fixed(secs(1));
    let writing = lock.write().await.unwrap();
    writing.lost().await;
    assert!(writing.read().await.unwrap_err().is_lost());
    assert!(lock.read().await.unwrap_err().is_lost(), "the owner still has a guard of it");
    assert!(writing.downgrade().await.unwrap_err().is_lost());
    lock.read().await.unwrap().release().await.unwrap();
    on.until_clean().await;
}
