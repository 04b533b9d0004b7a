//! The rights that the README asks for.

use crate::{
    fixture::{Fixture, ms},
    queue::{Waiters, release, until_waiting},
};

// A user with these rights waits, enters, is inspected and ended by force, on both kinds of mutex.
#[tokio::test(flavor = "multi_thread")]
async fn the_rights_in_the_readme_are_enough() {
    let on = Fixture::restricted(3);
    let client = on.client().await;
    let guard = client.mutex("a").lock().await.unwrap();
    let mut waiters = Waiters::of(&on).await;
    waiters.come(client.mutex("a"), release).await;
    waiters.come(on.client().await.mutex("a"), release).await;
    assert!(client.mutex("a").lock_within(ms(50)).await.unwrap().is_none());
    until_waiting(&client, 2).await;
    assert!(quorate::Quorate::mutex(&client, "a").try_lock().await.unwrap().is_none());
    let again = guard.reenter().await.unwrap();
    assert!(client.mutex("a").force_release().await.unwrap());
    waiters.must_enter_in_order().await;
    drop((guard, again));
    let plain = quorate::Quorate::mutex(&client, "a").lock().await.unwrap();
    plain.release().await.unwrap();
}
