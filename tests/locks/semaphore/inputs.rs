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
    let large = client.semaphore("a", 10_000);
    for permits in [0, 10_001, u32::MAX] {
        let message = format!("a semaphore has 1 to 10000 permits, not {permits}");
        let semaphore = client.semaphore("a", permits);
        assert_invalid(semaphore.acquire().await, &message);
        assert_invalid(semaphore.acquire_many(2).await, &message);
        assert_invalid(semaphore.inspect().await, &message);
    }
    let semaphore = client.semaphore("a", 5);
    for (of, wanted, message) in [
        (&semaphore, 0, "0 permits cannot be had of a semaphore of 5"),
        (&semaphore, 6, "6 permits cannot be had of a semaphore of 5"),
        (&large, 257, "257 permits at once are over the most of 256"),
        (&large, 10_000, "10000 permits at once are over the most of 256"),
    ] {
        assert_invalid(of.acquire_many(wanted).await, message);
        assert_invalid(of.try_acquire_many(wanted).await, message);
        assert_invalid(of.acquire_many_within(wanted, ms(5)).await, message);
        assert_invalid(of.acquire_many_or_busy(wanted, ms(5)).await, message);
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
