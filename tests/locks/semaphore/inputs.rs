//! What cannot work is refused before anything is sent, with the values that are wrong.

use quorate::Error;

use quorate_tests::fixture::{Fixture, ms, secs};

#[track_caller]
fn assert_invalid<T>(refused: Result<T, Error>, message: &str) {
    let Err(error) = refused else { panic!("it is not refused") };
    assert!(error.is_invalid(), "{error}");
    assert!(error.to_string().contains(message), "{error}");
    assert!(error.voters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn permits_that_cannot_be_are_refused_by_every_call_and_nothing_is_sent() {
    let on = Fixture::embedded(3);
    let client = on.client().await;
    for permits in [0, 10_001, 65_537, u32::MAX] {
        let message = format!("a semaphore has 1 to 10000 permits, not {permits}");
        let semaphore = client.semaphore("a", permits);
        assert_invalid(semaphore.acquire().await, &message);
        assert_invalid(semaphore.try_acquire().await, &message);
        assert_invalid(semaphore.acquire_within(secs(1)).await, &message);
        assert_invalid(semaphore.acquire_or_busy(secs(1)).await, &message);
        assert_invalid(semaphore.acquire_many(2).await, &message);
        assert_invalid(semaphore.inspect().await, &message);
        assert_invalid(semaphore.force_release().await, &message);
        assert_invalid(semaphore.force_clear().await, &message);
    }
    let semaphore = client.semaphore("a", 5);
    for wanted in [0, 6, u32::MAX] {
        let message = format!("{wanted} permits cannot be had of a semaphore of 5");
        assert_invalid(semaphore.acquire_many(wanted).await, &message);
        assert_invalid(semaphore.try_acquire_many(wanted).await, &message);
        assert_invalid(semaphore.acquire_many_within(wanted, ms(5)).await, &message);
        assert_invalid(semaphore.acquire_many_or_busy(wanted, ms(5)).await, &message);
    }
    let large = client.semaphore("a", 10_000);
    for wanted in [257, 10_000] {
        let message = format!("{wanted} permits at once are over the most of 256");
        assert_invalid(large.acquire_many(wanted).await, &message);
        assert_invalid(large.try_acquire_many(wanted).await, &message);
        assert_invalid(large.acquire_many_within(wanted, ms(5)).await, &message);
        assert_invalid(large.acquire_many_or_busy(wanted, ms(5)).await, &message);
    }
    assert_invalid(client.semaphore("", 5).acquire().await, "the lock name is empty");
    let long = semaphore.lease(secs(31)).acquire().await;
    assert_invalid(long, "the lease of 31s is over the longest lease of 30s");
    assert_eq!(on.runs("semaphore/acquire").unwrap(), [0, 0, 0]);
    let most = large.acquire_many(256).await.unwrap();
    assert_eq!(most.permits(), 256);
    most.release().await.unwrap();
    on.until_clean().await;
}

// One call to each voter for each acquisition, and one for each release: whatever is taken.
#[tokio::test(start_paused = true)]
async fn a_free_permit_costs_one_call_to_each_voter() {
    let on = Fixture::embedded(3);
    let (ours, theirs) = (on.client().await, on.client().await);
    let mut guards = Vec::new();
    for number in 0..50 {
        let client = if number % 2 == 0 { &ours } else { &theirs };
        guards.push(client.semaphore("a", 50).acquire().await.unwrap());
    }
    assert_eq!(on.runs("semaphore/acquire").unwrap(), [50, 50, 50]);
    assert_eq!(on.runs("semaphore/renew").unwrap(), [0, 0, 0]);
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert_eq!(on.runs("semaphore/release").unwrap(), [50, 50, 50]);
    on.until_clean().await;
}
