//! Each reader has a lease of its own.

use crate::rw::waiting::{READERS, read, until, until_waiting, write};
use quorate_tests::{
    claims,
    doomed::Doomed,
    fixture::{Fixture, Stopwatch, ms, secs, trusted},
    kind::Client,
};

claims!(everywhere:
    a_writer_enters_when_the_longest_read_lease_still_standing_ends,
    a_dead_reader_ends_at_its_own_deadline_although_others_renew,
    a_fixed_write_ends_and_the_readers_enter_without_any_message,
);

/// Clients whose voter deadline goes with leases of a few seconds, and who also take long ones.
async fn three_clients(on: &Fixture) -> [Client; 3] {
    let builder = || on.builder().lease(secs(3)).longest_lease(secs(600)).voter_deadline(ms(300));
    let client = async || on.connect(builder()).await;
    [client().await, client().await, client().await]
}

// The longest is given back before it ends.
async fn a_writer_enters_when_the_longest_read_lease_still_standing_ends(on: Fixture) {
    let clients = three_clients(&on).await;
    let watch = Stopwatch::start();
    let long = clients[0].rw_lock("a").lease_fixed(secs(600)).read().await.unwrap();
    let _short = clients[1].rw_lock("a").lease_fixed(secs(3)).read().await.unwrap();
    let writer = write(&clients[2]);
    until_waiting(&clients[0], 1, 0).await;
    on.release(long.release()).await;
    let writing = writer.await.unwrap();
    let entered = watch.time();
    assert!(entered >= trusted(secs(3)) && entered <= on.at_most(secs(3) + ms(10)), "{entered:?}");
    on.release(writing.release()).await;
}

// The dead one's lease is three seconds; another one renews its lease of one second all along.
async fn a_dead_reader_ends_at_its_own_deadline_although_others_renew(on: Fixture) {
    let lease = secs(3);
    let watch = Stopwatch::start();
    let dead = Doomed::take(&on, lease, async move |client| {
        client.rw_lock("a").lease_fixed(lease).read().await.expect("it is free")
    })
    .await;
    let after = Stopwatch::start();
    let client = on.client_with_lease(secs(3)).await;
    let live = client.rw_lock("a").read().await.unwrap();
    until(&client, "both read", |seen| seen.holders.len() == 2).await;
    dead.die();
    until(&client, "only the live one reads", |seen| {
        seen.holders.len() == 1 && seen.holders[0].hold == *live.hold()
    })
    .await;
    assert!(watch.time() >= lease, "{:?}", watch.time());
    assert!(after.time() <= on.at_most(lease + ms(10)), "{:?}", after.time());
    assert!(live.is_held());
    on.until_only(READERS).await;
    on.release(live.release()).await;
    on.until_clean().await;
}

async fn a_fixed_write_ends_and_the_readers_enter_without_any_message(on: Fixture) {
    let [ours, theirs, _] = three_clients(&on).await;
    let watch = Stopwatch::start();
    let writing = ours.rw_lock("a").lease_fixed(secs(2)).write().await.unwrap();
    let readers = [read(&theirs), read(&theirs)];
    for reader in readers {
        let reading = reader.await.unwrap();
        let entered = watch.time();
        assert!(entered >= trusted(secs(2)), "{entered:?}");
        assert!(entered <= on.at_most(secs(2) + ms(10)), "{entered:?}");
        on.release(reading.release()).await;
    }
    assert!(!writing.is_held());
    on.until_clean().await;
}
