//! What clients are called, and who is told.

use std::{process, time::Duration};

use quorate::inspection::Inspection;

use quorate_support::eventually_async;
use quorate_tests::{claims, fixture::Fixture};

claims!(everywhere of both:
    operators_and_whoever_is_refused_are_told_the_name_of_the_holder,
);
claims!(everywhere:
    operators_are_told_the_names_of_readers_writers_and_waiters,
);

fn name_of(seen: &Inspection) -> Option<String> {
    seen.holder()?.hold.client_name().map(str::to_owned)
}

async fn operators_and_whoever_is_refused_are_told_the_name_of_the_holder(on: Fixture) {
    let holder = on.connect(on.builder().client_name("web-1.4711")).await;
    let other = on.connect(on.builder().client_name("Web_2")).await;
    let guard = holder.mutex("a").lock().await.unwrap();
    assert_eq!(guard.hold().client_name(), Some("web-1.4711"));
    let error = other.mutex("a").lock_or_busy(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.holder().and_then(|hold| hold.client_name()), Some("web-1.4711"), "{error}");
    assert!(error.to_string().starts_with("lock `a` is taken by web-1.4711@"), "{error}");
    let seen = other.mutex("a").inspect().await.unwrap();
    assert_eq!(name_of(&seen).as_deref(), Some("web-1.4711"));
    assert!(seen.to_string().contains("held by web-1.4711@"), "{seen}");
    guard.release().await.unwrap();
    on.until_clean().await;
}

async fn operators_are_told_the_names_of_readers_writers_and_waiters(on: Fixture) {
    let ours = on.connect(on.builder().client_name("ours")).await.rw_lock("a");
    let theirs = on.connect(on.builder().client_name("theirs")).await.rw_lock("a");
    let operator = on.client().await.rw_lock("a");
    let read = ours.read().await.unwrap();
    let writer = tokio::spawn(async move { theirs.write().await });
    eventually_async("both are seen", async || {
        let Ok(seen) = operator.inspect().await else { return false };
        let (reader, waiting) = (seen.readers().pop(), seen.waiting_writers().pop());
        let reader = reader.is_some_and(|it| it.hold.client_name() == Some("ours"));
        reader && waiting.is_some_and(|it| it.place.client_name() == Some("theirs"))
    })
    .await;
    read.release().await.unwrap();
    let write = writer.await.unwrap().unwrap();
    let writer = operator.inspect().await.unwrap().writer().expect("it is written");
    assert_eq!(writer.hold.client_name(), Some("theirs"));
    write.release().await.unwrap();
    on.until_clean().await;
}

#[tokio::test]
async fn a_client_of_servers_is_called_by_its_host_and_process() {
    let on = Fixture::real(1);
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let name = guard.hold().client_name().expect("it has one");
    let (host, process) = name.rsplit_once('.').expect("two parts");
    assert!(!host.is_empty());
    assert_eq!(process, process::id().to_string());
    guard.release().await.unwrap();
}
