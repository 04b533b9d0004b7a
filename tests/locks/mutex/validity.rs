//! Trust counts from before the first request, whatever the voters took to answer.

use quorate_tests::prelude::*;

/// The default lease of 30 s less a hundredth and 2 ms.
const VALIDITY: Duration = Duration::from_millis(29_698);

/// A guard of three voters of which each takes 100 ms to answer, as long as the faults are kept.
async fn slow_lock() -> (MutexGuard, Vec<FaultGuard>) {
    let (voters, quorum) = with_client(3).await;
    let faults = all(&voters, Fault::Delay { there: MS(50), back: MS(50) });
    (quorum.mutex("a").lock().await.unwrap(), faults)
}

// The clock is paused, so nothing but the 100 ms on the way has passed.
#[tokio::test(start_paused = true)]
async fn a_lock_is_trusted_from_before_its_first_request() {
    let (guard, _slow) = slow_lock().await;
    assert_eq!(guard.remaining() + MS(100), VALIDITY);
    sleep(MS(5_000)).await;
    let _again = guard.reenter().await.unwrap();
    assert_eq!(guard.remaining() + MS(100), VALIDITY, "after a re-entry");
}

// The renewal begins 10 s after the first request, which was sent 100 ms before the lock was there;
// its answers come 100 ms later. 50 ms more have passed when the guard is asked.
#[tokio::test(start_paused = true)]
async fn a_renewal_is_trusted_from_before_its_first_request() {
    let (guard, _slow) = slow_lock().await;
    sleep(MS(10_050)).await;
    assert_eq!(guard.remaining() + MS(150), VALIDITY);
}
