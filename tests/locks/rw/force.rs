//! Ending holds by force.

use quorate::{Error, inspection::Access};

use crate::rw::waiting::{read, release, until_waiting, write};
use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, secs},
};

claims!(everywhere:
    ending_the_reads_by_force_lets_the_writer_in_and_the_readers_learn_of_it,
    ending_the_write_by_force_lets_the_readers_in_and_leaves_reads_alone,
    one_read_or_write_is_ended_by_its_id_and_no_other,
);

async fn until_marks_end(on: &Fixture) {
    eventually_async("the marks end too", async || on.keys().iter().all(Vec::is_empty)).await;
}

async fn must_end_by_force(lost: impl Future<Output = Error>) {
    let why = lost.await;
    assert!(why.is_lost() && why.to_string().contains("ended by force"), "{why}");
}

async fn ending_the_reads_by_force_lets_the_writer_in_and_the_readers_learn_of_it(on: Fixture) {
    let (ours, theirs) = (on.client_with_lease(secs(3)).await, on.client().await);
    let operator = on.client_with_lease(secs(3)).await.rw_lock("a");
    assert!(!operator.force_release(Access::Read).await.unwrap(), "nobody reads");
    let (one, other) = (read(&ours).await.unwrap(), read(&ours).await.unwrap());
    let writer = write(&theirs);
    until_waiting(&theirs, 1, 0).await;
    assert!(!operator.force_release(Access::Write).await.unwrap(), "nobody writes");
    assert!(operator.force_release(Access::Read).await.unwrap());
    let writing = writer.await.unwrap();
    for guard in [one, other] {
        must_end_by_force(guard.lost()).await;
    }
    assert!(writing.is_held());
    release(&on, writing.release()).await;
    until_marks_end(&on).await;
}

async fn ending_the_write_by_force_lets_the_readers_in_and_leaves_reads_alone(on: Fixture) {
    let (ours, theirs) = (on.client_with_lease(secs(3)).await, on.client().await);
    let operator = on.client_with_lease(secs(3)).await.rw_lock("a");
    let writing = write(&ours).await.unwrap();
    let own = writing.read().await.unwrap();
    let reader = read(&theirs);
    until_waiting(&theirs, 0, 1).await;
    assert!(operator.force_release(Access::Write).await.unwrap());
    let reading = reader.await.unwrap();
    must_end_by_force(writing.lost()).await;
    assert!(own.is_held() && reading.is_held());
    assert!(operator.try_write().await.unwrap().is_none(), "it is read");
    release(&on, own.release()).await;
    release(&on, reading.release()).await;
    until_marks_end(&on).await;
}

async fn one_read_or_write_is_ended_by_its_id_and_no_other(on: Fixture) {
    let (ours, operator) =
        (on.client_with_lease(secs(3)).await, on.client_with_lease(secs(3)).await.rw_lock("a"));
    let (one, other) = (read(&ours).await.unwrap(), read(&ours).await.unwrap());
    operator.force_release_hold(one.hold()).await.unwrap();
    must_end_by_force(one.lost()).await;
    assert!(other.is_held());
    let error = operator.force_release_hold(one.hold()).await.unwrap_err();
    assert!(error.is_not_holding(), "{error}");
    release(&on, other.release()).await;
    let writing = write(&ours).await.unwrap();
    assert_eq!(operator.inspect().await.unwrap().token(), Some(writing.token()));
    operator.force_release_hold(writing.hold()).await.unwrap();
    must_end_by_force(writing.lost()).await;
    until_marks_end(&on).await;
}
