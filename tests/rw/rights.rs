//! The rights that the README asks for.

use quorate::Access;

use crate::{
    fixture::{Fixture, ms},
    waiting::{read, until_waiting, write},
};

// A user with these rights reads, writes, waits for either, is inspected and ended by force.
#[tokio::test(flavor = "multi_thread")]
async fn the_rights_in_the_readme_are_enough() {
    let on = Fixture::restricted(3);
    let client = on.client().await;
    let lock = client.rw_lock("a");
    let reading = lock.read().await.unwrap();
    let writer = write(&client);
    until_waiting(&client, 1, 0).await;
    let reader = read(&client);
    until_waiting(&client, 1, 1).await;
    assert!(lock.write_within(ms(50)).await.unwrap().is_none());
    reading.reenter().await.unwrap().release().await.unwrap();
    reading.release().await.unwrap();
    let reading = writer.await.unwrap().downgrade().await.unwrap();
    reader.await.unwrap().release().await.unwrap();
    assert!(lock.force_release(Access::Read).await.unwrap());
    drop(reading);
    lock.write().await.unwrap().release().await.unwrap();
}
