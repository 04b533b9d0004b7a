//! Taking out by force what keeps a lock from being acquired.

use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, secs},
};

claims!(everywhere of both:
    values_of_other_types_under_the_keys_of_a_lock_are_taken_out_by_force,
    a_place_that_nobody_waits_at_is_taken_out_by_force,
    a_place_that_counts_for_longer_than_any_can_does_not_count,
    clearing_a_lock_ends_the_hold_and_its_tokens_go_on,
);
claims!(inside of both: a_hold_outlives_what_is_planted_under_its_fence);
claims!(everywhere of FairMutex:
    who_waits_comes_back_to_a_queue_that_was_cleared,
);

/// Puts a place into the queue that counts for so long by the voter's own clock.
pub(crate) const STAND: &str = "redis.call('ZADD', KEYS[1], 1, 'ghost:1')
  return redis.call('ZADD', KEYS[2], redis.call('TIME')[1] * 1000 + ARGV[1], 'ghost:1')";

const HOUR_MS: &str = "3600000";
/// A lease is a day long at most.
const TOO_LONG_MS: &str = "90000000";

fn on_all(on: &Fixture, words: &[&str]) {
    (0..on.voters()).for_each(|voter| on.command(voter, words));
}

fn stand(on: &Fixture, ms: &str) {
    on_all(on, &["EVAL", STAND, "2", "quorate:{a}:queue", "quorate:{a}:alive", ms]);
}

// Each quarter of the fence memory a renewal looks at the token.
async fn a_hold_outlives_what_is_planted_under_its_fence(on: Fixture) {
    let memory = secs(8);
    let client = on.connect(on.builder().lease(secs(1)).fence_memory(memory)).await;
    let guard = client.mutex("a").lock().await.unwrap();
    let token = guard.token();
    let fence = "quorate:{a}:fence";
    for plant in [&["SET", fence, "text"][..], &["HSET", fence, "field", "1"]] {
        on_all(&on, &["DEL", fence]);
        on_all(&on, plant);
        let lost = tokio::time::timeout(memory / 4 + secs(1), guard.lost()).await;
        assert!(lost.is_err(), "{plant:?}: {lost:?}");
    }
    guard.release().await.unwrap();
    // Its number was stored again.
    assert!(client.mutex("a").lock().await.unwrap().token() > token);
}

async fn values_of_other_types_under_the_keys_of_a_lock_are_taken_out_by_force(on: Fixture) {
    let mutex = on.client().await.mutex("a");
    for (key, plant) in [
        ("quorate:{a}", &["SET", "quorate:{a}", "text"][..]),
        ("quorate:{a}", &["HSET", "quorate:{a}", "field", "no count"]),
        ("quorate:{a}", &["HSET", "quorate:{a}", "", "1"]),
        ("quorate:{a}", &["HSET", "quorate:{a}", "field", "1.5"]),
        ("quorate:{a}:fence", &["HSET", "quorate:{a}:fence", "field", "1"]),
        ("quorate:{a}:queue", &["SET", "quorate:{a}:queue", "text"]),
        ("quorate:{a}:alive", &["SET", "quorate:{a}:alive", "text"]),
    ] {
        on_all(&on, &["DEL", key]);
        on_all(&on, plant);
        if key.ends_with("alive") {
            on_all(&on, &["ZADD", "quorate:{a}:queue", "1", "ghost:1"]);
        }
        assert!(!matches!(mutex.try_lock().await, Ok(Some(_))), "{plant:?}");
        assert!(mutex.force_clear().await.unwrap(), "{plant:?}");
        let guard = mutex.try_lock().await.unwrap().unwrap_or_else(|| panic!("after {plant:?}"));
        guard.release().await.unwrap();
        on.until_clean().await;
        assert!(!mutex.force_clear().await.unwrap(), "nothing is left of {plant:?}");
    }
    on_all(&on, &["SET", "quorate:{a}:revoked", "text"]);
    let guard = mutex.lock().await.unwrap();
    assert!(mutex.force_release().await.unwrap_err().is_no_quorum());
    assert!(mutex.force_clear().await.unwrap());
    assert!(guard.release().await.unwrap_err().is_lost());
}

async fn a_place_that_nobody_waits_at_is_taken_out_by_force(on: Fixture) {
    let mutex = on.client().await.mutex("a");
    stand(&on, HOUR_MS);
    assert!(mutex.try_lock().await.unwrap().is_none(), "somebody seems to wait");
    assert!(!mutex.force_release().await.unwrap(), "nobody holds it");
    assert!(mutex.force_clear().await.unwrap());
    mutex.try_lock().await.unwrap().expect("nobody waits").release().await.unwrap();
    on.until_clean().await;
}

// As after the clock of a voter was ahead for a while.
async fn a_place_that_counts_for_longer_than_any_can_does_not_count(on: Fixture) {
    let mutex = on.client().await.mutex("a");
    stand(&on, TOO_LONG_MS);
    mutex.try_lock().await.unwrap().expect("nobody can wait").release().await.unwrap();
    on.until_clean().await;
}

async fn clearing_a_lock_ends_the_hold_and_its_tokens_go_on(on: Fixture) {
    let mutex = on.client_with_lease(secs(6)).await.mutex("a");
    let guard = mutex.lock().await.unwrap();
    assert!(on.client().await.mutex("a").force_clear().await.unwrap());
    let next = mutex.try_lock().await.unwrap().expect("it was freed");
    assert!(next.token() > guard.token());
    let why = guard.lost().await;
    assert!(why.is_lost() && why.to_string().contains("ended by force"), "{why}");
    next.release().await.unwrap();
}

async fn who_waits_comes_back_to_a_queue_that_was_cleared(on: Fixture) {
    let operator = on.client().await.mutex("a");
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let waiting = tokio::spawn({
        let mutex = on.client().await.mutex("a");
        async move { mutex.lock().await }
    });
    eventually_async("somebody waits", async || {
        operator.inspect().await.is_ok_and(|seen| !seen.queue().is_empty())
    })
    .await;
    assert!(operator.force_clear().await.unwrap());
    let entered = waiting.await.unwrap().expect("a majority answers");
    assert!(guard.release().await.unwrap_err().is_lost());
    entered.release().await.unwrap();
}
