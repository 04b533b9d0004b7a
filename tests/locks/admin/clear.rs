//! Taking out by force what keeps a lock from being acquired.

use quorate::LockKind;

use crate::cancel::kinds::{Access, Ask, Held};
use quorate_tests::{
    claims,
    fixture::{Fixture, secs},
    standing::until_waiting,
};

claims!(everywhere:
    whatever_is_planted_under_the_keys_of_a_lock_is_taken_out_by_force,
    a_place_that_nobody_waits_at_is_taken_out_by_force,
    clearing_a_lock_ends_all_its_holds_and_its_tokens_go_on,
    who_waits_comes_back_to_a_queue_that_was_cleared,
);
claims!(everywhere of both: a_place_that_counts_for_longer_than_any_can_does_not_count);
claims!(inside of both: a_hold_outlives_what_is_planted_under_its_fence);

/// Puts a place into the queue that counts for so long by the voter's own clock.
const STAND: &str = "redis.call('ZADD', KEYS[1], 1, 'ghost:1')
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

// Each is in the way, and nothing is left of it afterwards.
async fn whatever_is_planted_under_the_keys_of_a_lock_is_taken_out_by_force(on: Fixture) {
    use Access::{BothPermits, Lead, Lock, Write};

    let client = on.client().await;
    let ghost = |key| ["ZADD", key, "1", "ghost:1"];
    for (access, key, plant) in [
        (Lock, "quorate:{a}", &["SET", "", "text"][..]),
        (Lock, "quorate:{a}", &["HSET", "", "field", "no count"]),
        (Lock, "quorate:{a}", &["HSET", "", "", "1"]),
        (Lock, "quorate:{a}", &["HSET", "", "field", "1.5"]),
        (Lock, "quorate:{a}:fence", &["HSET", "", "field", "1"]),
        (Lock, "quorate:{a}:queue", &["SET", "", "text"]),
        (Lock, "quorate:{a}:alive", &["SET", "", "text"]),
        (Write, "quorate:{a}:rw:writer", &["HSET", "", "field", "no count"]),
        (Write, "quorate:{a}:rw:readers", &["HSET", "", "field", "no count"]),
        (Write, "quorate:{a}:rw:fence", &["HSET", "", "field", "no count"]),
        (Write, "quorate:{a}:rw:queue", &["HSET", "", "field", "no count"]),
        (BothPermits, "quorate:{a}:semaphore:slots", &["SET", "", "text"]),
        (Lead, "quorate:{a}:election", &["SET", "", "text"]),
    ] {
        let plant: Vec<_> =
            plant.iter().enumerate().map(|(at, word)| if at == 1 { key } else { word }).collect();
        on_all(&on, &["DEL", key]);
        on_all(&on, &plant);
        if key.ends_with("alive") {
            on_all(&on, &ghost("quorate:{a}:queue"));
        }
        let tried = access.ask(&client, Ask::Try, None).await;
        assert!(!matches!(tried, Ok(Some(_))), "{plant:?}");
        assert!(client.admin().clear(access.lock(), "a").await.unwrap(), "{plant:?}");
        let held = access.ask(&client, Ask::Try, None).await.unwrap();
        drop(held.unwrap_or_else(|| panic!("after {plant:?}")).release().await);
        on.until_clean().await;
        assert!(!client.admin().clear(access.lock(), "a").await.unwrap(), "{plant:?} is left");
    }
    on_all(&on, &["SET", "quorate:{a}:revoked", "text"]);
    let guard = client.mutex("a").lock().await.unwrap();
    let ended = client.admin().end(LockKind::Mutex, "a", guard.hold()).await;
    assert!(ended.unwrap_err().is_no_quorum());
    assert!(client.admin().clear(LockKind::Mutex, "a").await.unwrap());
    assert!(guard.release().await.unwrap_err().is_lost());
}

async fn a_place_that_nobody_waits_at_is_taken_out_by_force(on: Fixture) {
    let client = on.client().await;
    for (access, stem) in [(Access::Lock, "quorate:{a}"), (Access::Write, "quorate:{a}:rw")] {
        let [queue, alive, writers] =
            ["queue", "alive", "writers"].map(|part| format!("{stem}:{part}"));
        on_all(&on, &["EVAL", STAND, "2", &queue, &alive, HOUR_MS]);
        if access == Access::Write {
            on_all(&on, &["ZADD", &writers, "1", "ghost:1"]);
            assert!(client.rw_lock("a").try_read().await.unwrap().is_none());
        }
        let tried = access.ask(&client, Ask::Try, None).await.unwrap();
        assert!(tried.is_none(), "somebody seems to wait");
        let seen = client.admin().look(access.lock(), "a").await.unwrap();
        assert_eq!((seen.all_holders().len(), seen.waiting.len()), (0, 1));
        assert!(client.admin().clear(access.lock(), "a").await.unwrap());
        let held = access.ask(&client, Ask::Try, None).await.unwrap();
        drop(held.expect("nobody waits").release().await);
        on.until_clean().await;
    }
}

// As after the clock of a voter was ahead for a while.
async fn a_place_that_counts_for_longer_than_any_can_does_not_count(on: Fixture) {
    let mutex = on.client().await.mutex("a");
    stand(&on, TOO_LONG_MS);
    mutex.try_lock().await.unwrap().expect("nobody can wait").release().await.unwrap();
    on.until_clean().await;
}

// It is ended by its name: renewals do not bring it back.
async fn clearing_a_lock_ends_all_its_holds_and_its_tokens_go_on(on: Fixture) {
    use Access::{FairLock, Lead, Lock, Permit, Read};

    let client = on.client_with_lease(secs(6)).await;
    let admin = on.client().await.admin();
    let token = client.mutex("a").lock().await.unwrap().token();
    for (access, holds) in [(Lock, 1), (FairLock, 1), (Read, 2), (Permit, 2), (Lead, 1)] {
        let mut all = Vec::new();
        for _ in 0..holds {
            all.push(access.have(&client, None).await);
        }
        assert!(admin.clear(access.lock(), "a").await.unwrap(), "{access:?}");
        let next = access.excludes().ask(&client, Ask::Try, None).await.unwrap();
        let next = next.unwrap_or_else(|| panic!("{access:?} was freed"));
        if let Held::Mutex(guard) = &next {
            assert!(guard.token() > token);
        }
        for held in all {
            let why = held.lost().await;
            assert!(why.is_lost() && why.to_string().contains("ended by force"), "{why}");
        }
        drop(next.release().await);
    }
}

async fn who_waits_comes_back_to_a_queue_that_was_cleared(on: Fixture) {
    let client = on.client().await;
    let admin = client.admin();
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let waiting = tokio::spawn(client.fair_mutex("a").lock());
    until_waiting(&client, LockKind::Mutex, "a", 1).await;
    assert!(admin.clear(LockKind::Mutex, "a").await.unwrap());
    let entered = waiting.await.unwrap().expect("a majority answers");
    assert!(guard.release().await.unwrap_err().is_lost());
    entered.release().await.unwrap();
}
