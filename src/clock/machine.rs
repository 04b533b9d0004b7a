//! A machine for clients of embedded voters. A test stalls, suspends or kills it, as operating
//! systems, hypervisors and power cuts do.

use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::sync::Notify;

use super::{Clock, EPOCH, Moment};
use crate::sync::lock;

/// Where clients of embedded voters run: it can be stalled, suspended and killed, and its clock can
/// be wrong. Clones are the same machine.
///
/// A client is put on it by [`Simulated::machine`](crate::embedded::Simulated::machine), and the
/// code that uses the client by [`run`](Self::run). Its time is made of the tokio runtime's, which
/// tests can pause.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), quorate::Error> {
/// use std::time::Duration;
///
/// use quorate::{
///     Quorate,
///     embedded::{self, Simulated as _},
/// };
///
/// let voters = embedded::voters(3);
/// let laptop = embedded::Machine::new("laptop");
/// let quorum = Quorate::builder().embedded(&voters).machine(&laptop).connect().await?;
/// let guard = quorum.mutex("invoice:42").lock().await?;
///
/// laptop.suspend(); // nothing renews the lock
/// tokio::time::sleep(Duration::from_secs(3600)).await;
/// laptop.resume();
/// assert!(!guard.is_held());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Machine(Arc<MachineInner>);

struct MachineInner {
    label: Arc<str>,
    true_time: Clock,
    /// Wakes the timers, which were set for the rate before.
    rate_changed: Notify,
    state: Mutex<MachineState>,
}

#[derive(Debug)]
struct MachineState {
    condition: MachineCondition,
    clock: Rate,
    /// By how many microseconds the wall clock was set forward, or back.
    wall_ahead_micros: i64,
    /// How long the machine was suspended so far, by its own clock.
    slept: Duration,
    /// The waker of each task, by its number.
    // Sorted, so that a simulation wakes them in the same order in each run.
    tasks: BTreeMap<u64, Waker>,
    /// How many tasks there have been.
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MachineCondition {
    Running,
    Stalled,
    /// Since this moment of the machine's own clock.
    Suspended(Moment),
    Dead,
}

/// A clock that runs faster or slower than the true time, but never backwards.
#[derive(Clone, Copy, Debug)]
struct Rate {
    ppm: i32,
    /// The true time at which this rate began, and what the clock showed then.
    since: Duration,
    showed: Duration,
}

impl Machine {
    /// Makes a machine that runs. Its clock begins now: where a test pauses the time, make it
    /// inside the test's runtime.
    pub fn new(label: impl Into<String>) -> Self {
        let state = MachineState {
            condition: MachineCondition::Running,
            clock: Rate::TRUE,
            wall_ahead_micros: 0,
            slept: Duration::ZERO,
            tasks: BTreeMap::new(),
            count: 0,
        };
        Self(Arc::new(MachineInner {
            label: label.into().into(),
            true_time: Clock::tokio(),
            rate_changed: Notify::new(),
            state: Mutex::new(state),
        }))
    }

    /// The machine's name.
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// Runs code on this machine. The code stands still with the machine. If the machine is killed,
    /// the code is dropped unfinished, and this never completes.
    pub fn run<F: Future>(&self, task: F) -> impl Future<Output = F::Output> + use<F> {
        let number = self.with_state(|state| {
            state.count += 1;
            state.count
        });
        OnMachine { machine: self.clone(), number, task: Some(Box::pin(task)) }
    }

    /// Stops all tasks, while the clocks go on: a long pause by a scheduler or a debugger.
    pub fn stall(&self) {
        self.stand_still(|_| MachineCondition::Stalled);
    }

    /// Stops all tasks and the timers, while the clock of leases goes on: a closed lid.
    pub fn suspend(&self) {
        self.stand_still(MachineCondition::Suspended);
    }

    fn stand_still(&self, how: impl FnOnce(Moment) -> MachineCondition) {
        let now = self.now();
        self.with_state(|state| {
            if state.condition == MachineCondition::Running {
                state.condition = how(now);
            }
        });
    }

    /// Goes on after a [stall](Self::stall) or a [suspension](Self::suspend).
    pub fn resume(&self) {
        let now = self.now();
        let woken = self.with_state(|state| {
            match state.condition {
                MachineCondition::Running | MachineCondition::Dead => return BTreeMap::new(),
                MachineCondition::Stalled => {}
                MachineCondition::Suspended(since) => state.slept += now.since(since),
            }
            state.condition = MachineCondition::Running;
            std::mem::take(&mut state.tasks)
        });
        woken.into_values().for_each(Waker::wake);
    }

    /// Ends all tasks without another step, as a power cut does. Requests that they have sent still
    /// arrive. Guards that they held release nothing.
    pub fn kill(&self) {
        let woken = self.with_state(|state| {
            state.condition = MachineCondition::Dead;
            std::mem::take(&mut state.tasks)
        });
        woken.into_values().for_each(Waker::wake);
    }

    /// Whether the machine runs: it is not stalled, suspended or killed.
    pub fn is_running(&self) -> bool {
        self.with_state(|state| state.condition == MachineCondition::Running)
    }

    /// From now on, the clocks run faster than the true time by this many millionths, or slower if
    /// it is negative. At -1 000 000 and below they stand still.
    pub fn set_clock_rate(&self, ppm: i32) {
        let now = self.true_time();
        self.with_state(|state| state.clock.change(ppm, now));
        self.0.rate_changed.notify_waiters();
    }

    /// Sets the wall clock forward by this many microseconds, or back if it is negative, but not to
    /// before 1970. Leases are measured by another clock.
    pub fn jump_wall_clock(&self, micros: i64) {
        let unset_micros = i64::try_from(self.unset_wall().as_micros()).unwrap_or(i64::MAX);
        self.with_state(|state| {
            let ahead_micros = state.wall_ahead_micros.saturating_add(micros);
            state.wall_ahead_micros = ahead_micros.max(-unset_micros);
        });
    }

    /// The time that the wall clock would show if nobody had set it.
    fn unset_wall(&self) -> Duration {
        EPOCH + self.now().since(Moment::BEGINNING)
    }

    pub(crate) fn wall(&self) -> Duration {
        let shown = self.unset_wall();
        let ahead_micros = self.with_state(|state| state.wall_ahead_micros);
        let ahead = Duration::from_micros(ahead_micros.unsigned_abs());
        if ahead_micros < 0 { shown.saturating_sub(ahead) } else { shown + ahead }
    }

    /// The clock that leases are measured by.
    pub(super) fn now(&self) -> Moment {
        let now = self.true_time();
        self.with_state(|state| Moment::BEGINNING + state.clock.shows(now))
    }

    /// Sleeps by the clock that stands still during a suspension, as timers of a system do.
    pub(super) async fn sleep(&self, length: Duration) {
        let due = self.awake() + length;
        loop {
            let left = due.saturating_sub(self.awake());
            if left.is_zero() {
                return;
            }
            // Registered before the rate is read: a change in between is not missed.
            let changed = self.0.rate_changed.notified();
            let length = self.with_state(|state| state.clock.takes(left));
            tokio::select! {
                biased;
                () = tokio::time::sleep(length) => {}
                () = changed => {}
            }
        }
    }

    /// How long the machine has been awake. To be called while it is.
    fn awake(&self) -> Duration {
        let now = self.true_time();
        self.with_state(|state| state.clock.shows(now).saturating_sub(state.slept))
    }

    fn true_time(&self) -> Duration {
        self.0.true_time.now().since(Moment::BEGINNING)
    }

    fn with_state<T>(&self, act: impl FnOnce(&mut MachineState) -> T) -> T {
        act(&mut lock(&self.0.state))
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Machine({})", self.label())
    }
}

impl Rate {
    const TRUE: Self = Self { ppm: 0, since: Duration::ZERO, showed: Duration::ZERO };

    /// The time that the clock shows at a true time.
    fn shows(self, at: Duration) -> Duration {
        let passed = at.saturating_sub(self.since).as_nanos() * self.per_million() / 1_000_000;
        self.showed.saturating_add(Duration::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX)))
    }

    /// How many units the clock goes on in a million units of true time.
    fn per_million(self) -> u128 {
        u128::try_from(1_000_000 + i64::from(self.ppm)).unwrap_or(0)
    }

    /// Sets another rate from a true time on.
    fn change(&mut self, ppm: i32, at: Duration) {
        *self = Self { ppm, since: at, showed: self.shows(at) };
    }

    /// How much true time passes until the clock has gone on by `length`.
    fn takes(self, length: Duration) -> Duration {
        // Rounded up: a timer that ends too soon would be set again and again for nothing.
        let nanos = (length.as_nanos() * 1_000_000).div_ceil(self.per_million().max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// A task that stops with its machine.
struct OnMachine<F> {
    machine: Machine,
    number: u64,
    // Boxed, so that `poll` can take it out and drop it, though it is pinned.
    task: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for OnMachine<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let number = self.number;
        let condition = self.machine.with_state(|state| {
            if state.condition != MachineCondition::Dead {
                state.tasks.insert(number, context.waker().clone());
            }
            state.condition
        });
        match (condition, &mut self.task) {
            (MachineCondition::Running, Some(task)) => task.as_mut().poll(context),
            (MachineCondition::Dead, task) => {
                // Outside of the machine's mutex: the drop of a task may read its clock.
                drop(task.take());
                Poll::Pending
            }
            _ => Poll::Pending,
        }
    }
}

impl<F> Drop for OnMachine<F> {
    fn drop(&mut self) {
        self.machine.with_state(|state| state.tasks.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn clock(machine: &Machine) -> Clock {
        Clock::Machine(machine.clone())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_machine_does_nothing_until_it_goes_on_and_then_all_that_is_due() {
        let machine = Machine::new("a");
        let clock = clock(&machine);
        let slept = tokio::spawn(machine.run(async move { clock.sleep(SECOND).await }));
        sleep(SECOND / 2).await;
        machine.stall();
        sleep(SECOND).await;
        assert!(!slept.is_finished());
        machine.resume();
        let resumed = Clock::tokio();
        slept.await.unwrap();
        assert_eq!(resumed.now(), Moment::BEGINNING, "it was due");
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_suspension_timers_are_late_and_decisions_are_not() {
        let machine = Machine::new("a");
        let clock = clock(&machine);
        let until = clock.now() + 60 * SECOND;
        let (told, own) = (clock.clone(), machine.clone());
        let slept = tokio::spawn(machine.run(async move {
            told.sleep_until(until).await;
            told.now()
        }));
        let short = tokio::spawn(machine.run(async move { own.sleep(2 * SECOND).await }));
        sleep(SECOND + SECOND / 4).await;
        machine.suspend();
        advance(3600 * SECOND).await;
        machine.resume();
        let resumed = Clock::tokio();
        let woken = clock.now();
        assert!(woken >= until);
        assert!(slept.await.unwrap() <= woken + Clock::STEP);
        assert!(!resumed.now().since(Moment::BEGINNING).is_zero(), "its timer had stood still");
        short.await.unwrap();
        assert_eq!(resumed.now(), Moment::BEGINNING + SECOND * 3 / 4, "so much of it was left");
    }

    #[tokio::test(start_paused = true)]
    async fn what_runs_on_a_killed_machine_is_dropped_without_another_step() {
        let machine = Machine::new("a");
        let (alive, gone) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(machine.run(async move {
            let _alive = alive;
            sleep(SECOND).await;
            unreachable!("it was killed");
        }));
        tokio::task::yield_now().await;
        machine.stall();
        machine.kill();
        machine.resume();
        assert!(gone.await.is_err(), "the sender was dropped");
        sleep(2 * SECOND).await;
        assert!(!task.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_clock_shows_more_and_its_timers_are_early() {
        let machine = Machine::new("a");
        machine.set_clock_rate(250_000);
        let clock = clock(&machine);
        let started = Clock::tokio();
        clock.sleep(10 * SECOND).await;
        assert_eq!(clock.now(), Moment::BEGINNING + 10 * SECOND);
        assert_eq!(started.now(), Moment::BEGINNING + 8 * SECOND);
        machine.set_clock_rate(-500_000);
        clock.sleep(SECOND).await;
        assert_eq!(started.now(), Moment::BEGINNING + 10 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_waits_goes_by_the_rate_that_the_clock_has_from_then_on() {
        let machine = Machine::new("a");
        let (clock, started) = (clock(&machine), Clock::tokio());
        let slept = tokio::spawn(async move { clock.sleep(2 * SECOND).await });
        sleep(SECOND).await;
        machine.set_clock_rate(-1_000_000);
        sleep(60 * SECOND).await;
        assert!(!slept.is_finished(), "the clock stands still");
        machine.set_clock_rate(0);
        slept.await.unwrap();
        assert_eq!(started.now(), Moment::BEGINNING + 62 * SECOND);
    }
}
