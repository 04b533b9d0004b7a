//! Who may enter again, and who may not.

use quorate::Owner;

use crate::rw::waiting::{READERS, WRITER, read, until_waiting, write};
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(everywhere:
    a_reader_that_wants_to_write_is_refused_at_once_with_its_own_error,
    whoever_reads_enters_again_past_writers_that_wait,
    a_writer_reads_at_once_and_reads_on_when_the_write_ends,
    a_writer_that_has_read_writes_on_and_again,
    a_write_that_waits_is_refused_when_its_owner_comes_to_read,
    a_lost_read_does_not_hide_the_write_of_its_owner,
);

async fn a_reader_that_wants_to_write_is_refused_at_once_with_its_own_error(on: Fixture) {
    let owner = Owner::new();
    let client = on.client().await;
    let lock = client.rw_lock("a").owner(&owner);
    let reading = lock.read().await.unwrap();
    let watch = Stopwatch::start();
    for refused in [
        lock.write().await.map(drop),
        lock.try_write().await.map(drop),
        lock.write_within(secs(60)).await.map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(error.is_deadlock() && !error.is_invalid(), "{error}");
        assert!(error.to_string().contains(reading.hold().as_str()), "{error}");
    }
    assert!(watch.time() <= on.at_most(ms(2)), "{:?}", watch.time());
    assert!(reading.is_held());
    on.until_only(READERS).await;
    // Another owner may ask, and waits.
    assert!(client.rw_lock("a").owner(&Owner::new()).try_write().await.unwrap().is_none());
    on.release(reading.release()).await;
    on.release(lock.write().await.unwrap().release()).await;
    on.until_clean().await;
}

async fn whoever_reads_enters_again_past_writers_that_wait(on: Fixture) {
    let owner = Owner::new();
    let (ours, theirs) = (on.client().await, on.client().await);
    let lock = ours.rw_lock("a").owner(&owner);
    let outer = lock.read().await.unwrap();
    let writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    assert!(ours.rw_lock("a").try_read().await.unwrap().is_none(), "a writer waits");
    let inner = lock.read().await.unwrap();
    let third = inner.reenter().await.unwrap();
    assert_eq!((inner.hold(), third.count()), (outer.hold(), 3));
    for guard in [outer, inner, third] {
        assert!(!writer.is_finished());
        on.release(guard.release()).await;
    }
    on.release(writer.await.unwrap().release()).await;
    on.until_clean().await;
}

async fn a_writer_reads_at_once_and_reads_on_when_the_write_ends(on: Fixture) {
    let owner = Owner::new();
    let (ours, theirs, last) = (on.client().await, on.client().await, on.client().await);
    let lock = ours.rw_lock("a").owner(&owner);
    let writing = lock.write().await.unwrap();
    let reader = read(&theirs);
    until_waiting(&ours, 0, 1).await;
    let reading = lock.read().await.unwrap();
    assert!(!reader.is_finished(), "it is written");
    let watch = Stopwatch::start();
    on.release(writing.release()).await;
    let other = reader.await.unwrap();
    assert!(watch.time() <= on.at_most(ms(20)), "{:?}", watch.time());
    assert!(reading.is_held());
    assert!(last.rw_lock("a").try_write().await.unwrap().is_none(), "it is still read");
    on.release(other.release()).await;
    assert!(last.rw_lock("a").try_write().await.unwrap().is_none(), "it is still read");
    assert!(lock.write().await.unwrap_err().is_deadlock(), "the owner only reads now");
    on.release(reading.release()).await;
    on.release(last.rw_lock("a").write().await.unwrap().release()).await;
    on.until_clean().await;
}

// The write outlives two of its leases after the read has gone.
async fn a_writer_that_has_read_writes_on_and_again(on: Fixture) {
    let owner = Owner::new();
    let (ours, theirs) = (on.client_with_lease(secs(3)).await, on.client().await);
    let lock = ours.rw_lock("a").owner(&owner);
    let (outer, reading) = (lock.write().await.unwrap(), lock.read().await.unwrap());
    tokio::time::sleep(secs(4)).await;
    on.release(reading.release()).await;
    on.until_only(WRITER).await;
    tokio::time::sleep(secs(7)).await;
    assert!(outer.is_held());
    assert!(theirs.rw_lock("a").try_read().await.unwrap().is_none(), "it is still written");
    let reading = lock.read().await.unwrap();
    let inner = lock.write().await.expect("it writes already, so it waits for nobody");
    assert_eq!((outer.count(), inner.hold()), (2, outer.hold()));
    on.release(outer.release()).await;
    on.release(inner.release()).await;
    assert!(lock.try_write().await.unwrap_err().is_deadlock());
    on.release(reading.release()).await;
    on.until_clean().await;
}

// Both are asked for at once, and whoever waits for both would wait for ever. Which of them comes
// first is not said.
async fn a_write_that_waits_is_refused_when_its_owner_comes_to_read(on: Fixture) {
    let client = on.client().await;
    let lock = client.rw_lock("a").owner(&Owner::new());
    let (reading, writing) = tokio::join!(lock.read(), lock.write());
    let reading = reading.expect("nobody else has it");
    match writing {
        Ok(writing) => on.release(writing.release()).await,
        Err(error) => assert!(error.is_deadlock(), "{error}"),
    }
    on.release(reading.release()).await;
    // As sure: the read comes while the write waits for another reader.
    let other = on.client().await.rw_lock("a").read().await.unwrap();
    let waiting = tokio::spawn(lock.write());
    until_waiting(&client, 1, 0).await;
    let passing = lock.clone().preference(quorate::Preference::Readers);
    let reading = passing.read().await.unwrap();
    assert!(waiting.await.unwrap().unwrap_err().is_deadlock());
    on.release(reading.release()).await;
    on.release(other.release()).await;
    on.until_clean().await;
}

async fn a_lost_read_does_not_hide_the_write_of_its_owner(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let lock = client.rw_lock("a").owner(&Owner::new());
    let writing = lock.write().await.unwrap();
    let ended = lock.clone().lease_fixed(secs(3)).read().await.unwrap();
    ended.lost().await;
    let reading = lock.read().await.expect("it writes, so it may read");
    assert!(reading.is_held() && writing.is_held() && !ended.is_held());
    on.release(reading.release()).await;
    on.release(writing.release()).await;
    // What was lost is told where nothing else lets the owner in.
    assert!(lock.read().await.unwrap_err().is_lost());
    drop(ended);
    on.until_clean().await;
}
