//! Readers and writers over real servers, some of them in processes of their own.

use std::path::Path;

use crate::rw::waiting::{read, until_waiting};
use quorate_support::Worker;
use quorate_tests::fixture::{Fixture, Stopwatch, secs};

/// A process that reads or writes `a`.
fn worker(on: &Fixture, way: &str) -> Worker {
    let arguments = [way.to_owned(), "a".to_owned()];
    Worker::start(Path::new(env!("CARGO_BIN_EXE_prices")), arguments.into_iter().chain(on.urls()))
}

// The default deadline of 5 s, and as long again for a busy machine; the first reader, which the
// writer waits for, reads on all the time.
#[tokio::test(flavor = "multi_thread")]
async fn when_a_process_that_waits_to_write_is_killed_the_readers_behind_it_enter() {
    let on = Fixture::real(5);
    let (ours, theirs) = (on.client().await, on.client().await);
    let reading = read(&ours).await.unwrap();
    let mut writer = worker(&on, "write");
    until_waiting(&ours, 1, 0).await;
    let behind = read(&theirs);
    let mut process = worker(&on, "read");
    until_waiting(&ours, 1, 2).await;
    writer.kill();
    let watch = Stopwatch::start();
    assert!(process.says().starts_with("entered "));
    let second = behind.await.unwrap();
    assert!(watch.time() < secs(10), "{:?}", watch.time());
    assert!(reading.is_held() && second.is_held());
    process.leave();
    on.release(second.release()).await;
    on.release(reading.release()).await;
    on.until_clean().await;
}
