//! One writes, or many read.

use std::sync::Arc;

use tokio::{task::JoinSet, time::timeout};

use crate::rw::waiting::{read, release, until_waiting, write};
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms},
};

claims!(everywhere:
    readers_share_and_a_writer_waits_for_all_of_them,
    readers_wait_for_a_writer_and_enter_together_when_it_leaves,
);

async fn readers_share_and_a_writer_waits_for_all_of_them(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    let readings = [&ours, &theirs, &ours].map(|client| read(client));
    let mut guards = Vec::new();
    for reading in readings {
        guards.push(reading.await.unwrap());
    }
    let mut writer = write(&theirs);
    until_waiting(&ours, 1, 0).await;
    for guard in guards {
        assert!(timeout(ms(20), &mut writer).await.is_err(), "somebody reads");
        release(&on, guard.release()).await;
    }
    let writing = writer.await.unwrap();
    assert!(ours.rw_lock("a").try_read().await.unwrap().is_none());
    release(&on, writing.release()).await;
    on.until_clean().await;
}

// All twenty hold at the same time: each waits for the others before it leaves.
async fn readers_wait_for_a_writer_and_enter_together_when_it_leaves(on: Fixture) {
    let clients = [on.client().await, on.client().await];
    let writing = clients[0].rw_lock("a").write().await.unwrap();
    let together = Arc::new(tokio::sync::Barrier::new(20));
    let mut readers = JoinSet::new();
    for number in 0..20 {
        let (lock, together) = (clients[number % 2].rw_lock("a"), Arc::clone(&together));
        readers.spawn(async move {
            let guard = lock.read().await.unwrap();
            together.wait().await;
            assert!(guard.is_held());
            guard
        });
    }
    until_waiting(&clients[0], 0, 20).await;
    let watch = Stopwatch::start();
    release(&on, writing.release()).await;
    let guards = readers.join_all().await;
    assert!(watch.time() <= on.at_most(ms(20)), "{:?}", watch.time());
    assert_eq!(clients[1].rw_lock("a").inspect().await.unwrap().holders.len(), 20);
    for guard in guards {
        release(&on, guard.release()).await;
    }
    on.until_clean().await;
}
