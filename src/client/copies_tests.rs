//! Two processes that go on from one snapshot of a running one: the same client, which has made as
//! many hold ids.

use std::sync::Arc;

use super::Quorate;
use crate::embedded::{self, EmbeddedVoter};

/// What each of several processes goes on with.
async fn snapshot(voters: &[EmbeddedVoter]) -> Quorate {
    Quorate::builder().embedded(voters).seed(7).connect().await.unwrap()
}

/// The snapshot, as it goes on: it has the same ids, and draws from the operating system.
async fn copy(voters: &[EmbeddedVoter]) -> Quorate {
    let mut copy = snapshot(voters).await;
    let parts = Arc::get_mut(&mut copy.parts).expect("there is no lock yet");
    let coordinator =
        Arc::get_mut(&mut parts.coordinator).expect("it has not begun to do anything");
    coordinator.draw_ids_anew();
    copy
}

#[tokio::test(start_paused = true)]
async fn copies_of_a_process_exclude_each_other_from_every_kind_of_lock() {
    let voters = embedded::voters(3);
    let (one, other) = (copy(&voters).await, copy(&voters).await);

    let held = one.mutex("a").try_lock().await.unwrap().expect("it is free");
    assert!(other.mutex("a").try_lock().await.unwrap().is_none());
    let token = held.token();
    held.release().await.unwrap();
    let next = other.mutex("a").try_lock().await.unwrap().expect("it was given back");
    assert!(next.token() > token, "{:?} after {token:?}", next.token());

    let held = one.fair_mutex("b").try_lock().await.unwrap().expect("it is free");
    assert!(other.fair_mutex("b").try_lock().await.unwrap().is_none());
    drop(held);

    let held = one.rw_lock("c").try_write().await.unwrap().expect("it is free");
    assert!(other.rw_lock("c").try_write().await.unwrap().is_none());
    assert!(other.rw_lock("c").try_read().await.unwrap().is_none());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn copies_that_drew_the_same_would_hold_one_lock_at_once() {
    let voters = embedded::voters(3);
    let (one, other) = (snapshot(&voters).await, snapshot(&voters).await);
    let _held = one.mutex("a").try_lock().await.unwrap().expect("it is free");
    assert!(other.mutex("a").try_lock().await.unwrap().is_some(), "the test above proves nothing");
}
