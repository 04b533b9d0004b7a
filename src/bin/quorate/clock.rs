//! The one place of the program that reads the time.

use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};

/// By the library's own file, so that the program never trusts a lock for longer than the library.
#[cfg(target_os = "linux")]
#[path = "../../clock/steady.rs"]
mod steady;

/// What deadlines are told by: on Linux it also counts the time for which the machine was
/// suspended, and does not run slow while the clocks are being set right. Each process has its own.
pub(crate) fn now() -> Duration {
    #[cfg(target_os = "linux")]
    {
        use steady::{Reading, Steady};
        static STEADY: Steady = Steady::new();
        let raw = || shown(ClockId::CLOCK_MONOTONIC_RAW);
        STEADY.read(Reading { raw: raw(), boot: shared() }, raw)
    }
    #[cfg(not(target_os = "linux"))]
    shared()
}

/// The clock that all processes of a machine see alike.
pub(crate) fn shared() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::CLOCK_MONOTONIC;
    shown(clock)
}

/// The clock that other programs read, in any language. Like [`shared`], except on Linux, where it
/// stands still while the machine is suspended.
pub(crate) fn monotonic() -> Duration {
    shown(ClockId::CLOCK_MONOTONIC)
}

#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
fn shown(clock: ClockId) -> Duration {
    // Clocks that every kernel has. Without one, every deadline has come.
    clock_gettime(clock).map_or(Duration::from_nanos(u64::MAX / 4), Duration::from)
}

/// What the wall clock shows, since 1970; for others to read, nothing is decided by it.
#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
pub(crate) fn wall() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
