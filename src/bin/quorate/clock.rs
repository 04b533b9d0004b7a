//! The one place of the program that reads the time.

use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};

// The library's own file. When the watcher went by `CLOCK_BOOTTIME` alone, which a time service
// slows down by up to 8.3 %, it killed a command 1.7 s late.
#[cfg(target_os = "linux")]
#[path = "../../clock/steady.rs"]
mod steady;

/// The clock of deadlines, which each process has for itself. On Linux it goes on while the machine
/// is suspended, and does not run slow while a time service corrects the clocks.
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

/// The clock by which two processes of a machine can talk about a moment.
pub(crate) fn shared() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::CLOCK_MONOTONIC;
    shown(clock)
}

/// The clock of the deadlines that clients of the agent get.
// Every language can read it. On Linux it stands still while the machine is suspended. After that
// the library ends the hold, and the agent says so.
pub(crate) fn monotonic() -> Duration {
    shown(ClockId::CLOCK_MONOTONIC)
}

#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
fn shown(clock: ClockId) -> Duration {
    // Every kernel has these clocks. If one could not be read, a time far in the future is safe:
    // every deadline has come.
    clock_gettime(clock).map_or(Duration::from_nanos(u64::MAX / 4), Duration::from)
}

/// The wall clock, since 1970. Nothing about a lock is decided by it.
#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
pub(crate) fn wall() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
