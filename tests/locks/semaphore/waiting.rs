//! Waiting for a condition on the semaphore `a`.

use quorate::{LockView, PermitGuard, Quorate};
use tokio::task::JoinHandle;

use quorate_support::eventually_async;

/// The keys of a semaphore that is held.
pub(crate) const HELD: &[&str] = &["quorate:{a}:semaphore:ends", "quorate:{a}:semaphore:slots"];

/// Waits until a majority says this about the semaphore, of so many permits.
pub(crate) async fn until(
    client: &Quorate,
    permits: u32,
    what: &str,
    says: impl Fn(&LockView) -> bool,
) {
    eventually_async(what, async || {
        client.semaphore("a", permits).inspect().await.is_ok_and(|seen| says(&seen))
    })
    .await;
}

/// Waits until so many wait.
pub(crate) async fn until_waiting(client: &Quorate, count: usize) {
    until(client, 10_000, &format!("{count} wait"), |seen| seen.waiting.len() == count).await;
}

/// One who waits for so many permits.
pub(crate) fn wait(client: &Quorate, permits: u32, wanted: u32) -> JoinHandle<PermitGuard> {
    let semaphore = client.semaphore("a", permits);
    tokio::spawn(async move { semaphore.acquire_many(wanted).await.expect("a majority answers") })
}
