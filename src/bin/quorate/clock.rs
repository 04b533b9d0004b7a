//! The one place of the program that reads the time.

use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};

/// What deadlines are told by: on Linux it also counts the time for which the machine was
/// suspended. All processes of a machine see the same.
pub(crate) const CLOCK: ClockId = {
    #[cfg(target_os = "linux")]
    {
        ClockId::CLOCK_BOOTTIME
    }
    #[cfg(not(target_os = "linux"))]
    {
        ClockId::CLOCK_MONOTONIC
    }
};

#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
pub(crate) fn now() -> Duration {
    // A clock that every kernel has.
    clock_gettime(CLOCK).map_or(Duration::MAX, Duration::from)
}

/// What the wall clock shows, since 1970; for others to read, nothing is decided by it.
#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
pub(crate) fn wall() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
