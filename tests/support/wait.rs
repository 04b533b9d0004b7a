//! Waiting for a condition, with a bound that only a broken test reaches.

use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(5);
/// Between questions that several servers answer.
const LONG_PAUSE: Duration = Duration::from_millis(20);

/// Blocks this thread until `holds` answers true; panics with `what` after a minute.
///
/// On a current-thread runtime nothing else runs meanwhile: use [`eventually_async`] where the
/// condition depends on another task.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "real servers are waited for in real time")]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        thread::sleep(PAUSE);
    }
}

/// Waits until `holds` answers true, while other tasks run; panics with `what` after a minute.
pub async fn eventually_async(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !holds().await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    let in_time = tokio::time::timeout(LIMIT, polling).await.is_ok();
    assert!(in_time, "not within {LIMIT:?}: {what}");
}

/// Blocks this thread until `attempt` succeeds; panics with `what` and the last failure after a
/// minute.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "real servers are waited for in real time")]
pub fn succeeds<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(cause) => {
                assert!(started.elapsed() < LIMIT, "not within {LIMIT:?}: {what}: {cause}");
            }
        }
        thread::sleep(LONG_PAUSE);
    }
}

/// As [`succeeds`], while other tasks run.
#[expect(clippy::disallowed_methods, reason = "real servers are waited for in real time")]
pub async fn succeeds_async<T>(
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let started = Instant::now();
    loop {
        match attempt().await {
            Ok(value) => return value,
            Err(cause) => {
                assert!(started.elapsed() < LIMIT, "not within {LIMIT:?}: {what}: {cause}");
            }
        }
        tokio::time::sleep(LONG_PAUSE).await;
    }
}
