//! Taking out by force what keeps a read/write lock from being acquired.

use crate::mutex::clear::STAND;
use quorate_tests::{claims, fixture::Fixture};

claims!(everywhere:
    values_of_other_types_under_the_keys_of_a_read_write_lock_are_taken_out_by_force,
    a_writer_that_does_not_wait_is_taken_out_of_the_queue_by_force,
    clearing_a_read_write_lock_ends_all_reads,
);

fn on_all(on: &Fixture, words: &[&str]) {
    (0..on.voters()).for_each(|voter| on.command(voter, words));
}

async fn values_of_other_types_under_the_keys_of_a_read_write_lock_are_taken_out_by_force(
    on: Fixture,
) {
    let lock = on.client().await.rw_lock("a");
    for part in ["writer", "readers", "fence", "queue"] {
        let key = format!("quorate:{{a}}:rw:{part}");
        on_all(&on, &["DEL", &key]);
        on_all(&on, &["HSET", &key, "field", "no count"]);
        assert!(!matches!(lock.try_write().await, Ok(Some(_))), "{part}");
        assert!(lock.force_clear().await.unwrap(), "{part}");
        lock.try_write().await.unwrap().expect(part).release().await.unwrap();
        on.until_clean().await;
        assert!(!lock.force_clear().await.unwrap(), "nothing is left of {part}");
    }
}

async fn a_writer_that_does_not_wait_is_taken_out_of_the_queue_by_force(on: Fixture) {
    let lock = on.client().await.rw_lock("a");
    let [queue, alive, writers] =
        ["queue", "alive", "writers"].map(|part| format!("quorate:{{a}}:rw:{part}"));
    on_all(&on, &["EVAL", STAND, "2", &queue, &alive, "3600000"]);
    on_all(&on, &["ZADD", &writers, "1", "ghost:1"]);
    assert!(lock.try_read().await.unwrap().is_none() && lock.try_write().await.unwrap().is_none());
    assert!(lock.force_clear().await.unwrap());
    lock.try_write().await.unwrap().expect("nobody waits").release().await.unwrap();
}

async fn clearing_a_read_write_lock_ends_all_reads(on: Fixture) {
    let (ours, theirs) = (on.client().await.rw_lock("a"), on.client().await.rw_lock("a"));
    let guards = [ours.read().await.unwrap(), ours.read().await.unwrap()];
    assert!(theirs.force_clear().await.unwrap());
    theirs.try_write().await.unwrap().expect("nobody reads").release().await.unwrap();
    for guard in guards {
        assert!(guard.release().await.unwrap_err().is_lost());
    }
}
