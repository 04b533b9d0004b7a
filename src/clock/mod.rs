//! The only place that reads the time.
//!
//! Leases are measured by a clock that does not move when the wall clock is set. On Linux it goes
//! on while the machine sleeps, and does not slow down while the wall clock is corrected: it
//! follows `CLOCK_BOOTTIME` or `CLOCK_MONOTONIC_RAW`, whichever goes further. On other systems it
//! is the monotonic clock.

// Voters may show that this clock stood still, as when a hypervisor paused the machine. Then leases
// end sooner, but the clock is not put forward. That would end quarantines early if in truth the
// clocks of some voters were set, and two clients held a lock.

#[cfg(feature = "embedded")]
mod machine;
#[cfg(target_os = "linux")]
mod steady;

use std::{panic, time::Duration};

use tokio::runtime::Handle;

use crate::client_thread::within_runtime;
pub(crate) use crate::proto::Moment;
#[cfg(feature = "embedded")]
pub use machine::Machine;

/// The source of a client's time.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// The clock of the system.
    System,
    /// Tokio's clock, which tests can pause; for voters inside the process.
    #[cfg(feature = "embedded")]
    Tokio(tokio::time::Instant),
    /// The clock of a machine that tests stall, suspend and kill.
    #[cfg(feature = "embedded")]
    Machine(Machine),
}

impl Clock {
    /// The longest sleep between two looks at the clock.
    // Tokio's timers stand still while the machine sleeps. After that a timer is late by up to this
    // step, which is the half second that guarantee 2 names. `is_held` needs no timer.
    const STEP: Duration = Duration::from_millis(500);

    #[cfg(feature = "embedded")]
    #[expect(clippy::disallowed_methods, reason = "this is the file that may")]
    pub(crate) fn tokio() -> Self {
        Self::Tokio(tokio::time::Instant::now())
    }

    #[cfg_attr(
        feature = "embedded",
        expect(clippy::disallowed_methods, reason = "this is the file that may")
    )]
    pub(crate) fn now(&self) -> Moment {
        match self {
            Self::System => system_now(),
            #[cfg(feature = "embedded")]
            Self::Tokio(origin) => Moment::BEGINNING + origin.elapsed(),
            #[cfg(feature = "embedded")]
            Self::Machine(machine) => machine.now(),
        }
    }

    /// The time since 1970 that the wall clock shows.
    // It may be wrong, and may be set. So no lease is measured by it. Tokens begin with it (design
    // 7).
    pub(crate) fn wall(&self) -> Duration {
        match self {
            Self::System => system_wall(),
            #[cfg(feature = "embedded")]
            Self::Tokio(_) => EPOCH + self.now().since(Moment::BEGINNING),
            #[cfg(feature = "embedded")]
            Self::Machine(machine) => machine.wall(),
        }
    }

    #[cfg(feature = "embedded")]
    pub(crate) fn machine(&self) -> Option<&Machine> {
        match self {
            Self::Machine(machine) => Some(machine),
            Self::System | Self::Tokio(_) => None,
        }
    }

    /// Starts a task of a client on a runtime. The task stops with the machine.
    pub(crate) fn spawn(&self, runtime: &Handle, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            #[cfg(feature = "embedded")]
            Self::Machine(machine) => drop(runtime.spawn(machine.run(task))),
            _ => drop(runtime.spawn(task)),
        }
    }

    /// Completes once this clock has reached `until`.
    pub(crate) async fn sleep_until(&self, until: Moment) {
        loop {
            let left = until.since(self.now());
            if left.is_zero() {
                return;
            }
            let length = match self {
                Self::System => left.min(Self::STEP),
                #[cfg(feature = "embedded")]
                Self::Tokio(_) => left,
                #[cfg(feature = "embedded")]
                Self::Machine(machine) => {
                    // Boxed, so that the futures of other clocks keep no room for it.
                    Box::pin(machine.sleep(left.min(Self::STEP))).await;
                    continue;
                }
            };
            let timer = within_runtime(|| tokio::time::sleep(length));
            timer.await;
        }
    }

    /// The output of `work`; `None` if it has none by `until`.
    pub(crate) async fn in_time<T>(
        &self,
        until: Moment,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            // Work that is done as its time ends counts as done, in every run of a simulation.
            biased;
            done = work => Some(done),
            () = self.sleep_until(until) => None,
        }
    }

    /// Completes when this much time has passed since the call, not since the first poll.
    pub(crate) fn sleep(&self, length: Duration) -> impl Future<Output = ()> {
        self.sleep_until(self.now() + length)
    }
}

/// Whether a runtime has timers.
pub(crate) fn has_timer(runtime: &Handle) -> bool {
    let _inside = runtime.enter();
    // Tokio panics if it has none, and has no other way to say so.
    panic::catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok()
}

/// The time that the wall clocks of embedded voters and of machines show at the beginning.
#[cfg(feature = "embedded")]
const EPOCH: Duration = Duration::from_secs(1_700_000_000);

#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
fn system_wall() -> Duration {
    use std::time::SystemTime;
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
fn system_now() -> Moment {
    use rustix::time::{ClockId, clock_gettime};
    use steady::{Reading, Steady};

    static STEADY: Steady = Steady::new();
    let shown = |clock| {
        let now = clock_gettime(clock);
        let part = |value: i64| u64::try_from(value).unwrap_or(0);
        Duration::from_secs(part(now.tv_sec)) + Duration::from_nanos(part(now.tv_nsec))
    };
    // In this order: the second reading of the raw clock then shows how long both readings took.
    let raw = shown(ClockId::MonotonicRaw);
    let boot = shown(ClockId::Boottime);
    let raw_after = || shown(ClockId::MonotonicRaw);
    Moment::BEGINNING + STEADY.read(Reading { raw, boot }, raw_after)
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
fn system_now() -> Moment {
    use std::{sync::OnceLock, time::Instant};
    static BEGINNING: OnceLock<Instant> = OnceLock::new();
    Moment::BEGINNING + BEGINNING.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_stops_at_the_ends_of_the_range() {
        assert_eq!(Moment::from_nanos(u64::MAX) + Duration::MAX, Moment::from_nanos(u64::MAX));
        assert_eq!(Moment::BEGINNING - Duration::from_secs(1), Moment::BEGINNING);
        assert_eq!(Moment::BEGINNING.since(Moment::from_nanos(5)), Duration::ZERO);
    }

    #[tokio::test]
    async fn the_system_clock_sleeps_until_the_moment_and_not_short_of_it() {
        let clock = Clock::System;
        let until = clock.now() + Duration::from_millis(3);
        clock.sleep_until(until).await;
        assert!(clock.now() >= until);
    }
}
