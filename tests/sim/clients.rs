//! The clients and what their tasks do: asking for locks, holding them, giving them up, as users'
//! code does through the public API.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use quorate::{Error, MutexGuard, Owner, Quorate};
use rand::RngExt;
use tokio::{sync::Notify, task::JoinHandle, time::sleep};

use crate::{
    laws::{Law, answers, minority},
    plan::{Cancel, End, How, Lease, Meanwhile, Step, Times},
    voters::chance,
    world::{World, lock_name, locked},
};

/// The clients of a schedule, as they come and go.
pub(crate) struct Clients {
    connected: Vec<Mutex<Option<Quorate>>>,
    healed: Arc<Healed>,
}

/// Whether the faults have ended: then everybody finishes.
#[derive(Default)]
struct Healed {
    is_so: AtomicBool,
    told: Notify,
}

impl Healed {
    fn is_so(&self) -> bool {
        self.is_so.load(Ordering::Relaxed)
    }

    async fn told(&self) {
        let mut told = pin!(self.told.notified());
        told.as_mut().enable();
        if !self.is_so() {
            told.await;
        }
    }
}

/// One task of one client.
struct Task {
    world: Arc<World>,
    client: usize,
    label: String,
    quorum: Quorate,
    owners: Vec<Owner>,
    healed: Arc<Healed>,
}

/// A future that was given up.
struct GivenUp;

impl Clients {
    pub(crate) fn new(world: &World) -> Self {
        let connected = world.plan.clients.iter().map(|_| Mutex::default()).collect();
        Self { connected, healed: Arc::default() }
    }

    /// The faults have ended.
    pub(crate) fn heal(&self) {
        self.healed.is_so.store(true, Ordering::Relaxed);
        self.healed.told.notify_waiters();
    }

    /// Starts one client and its tasks, all on its machine; completes when all have finished.
    pub(crate) fn start(self: &Arc<Self>, world: &Arc<World>, client: usize) -> JoinHandle<()> {
        let (clients, world) = (Arc::clone(self), Arc::clone(world));
        let machine = world.machines[client].clone();
        tokio::spawn(async move { machine.clone().run(clients.live(world, client)).await })
    }

    async fn live(self: Arc<Self>, world: Arc<World>, client: usize) {
        let plan = world.plan.clients[client].clone();
        world.machines[client].set_clock_rate(plan.clock_ppm);
        world.sleep_until_ms(plan.starts_at_ms).await;
        let label = world.machines[client].label().to_owned();
        let seed = chance(&world.plan, client).random();
        let quorum = loop {
            let builder = builder(world.plan.times).embedded(&world.voters).seed(seed);
            match builder.machine(&world.machines[client]).connect().await {
                Ok(quorum) => break quorum,
                Err(error) => {
                    minority::failed(&world, client, "connecting", &error, None);
                    world.note(&label, || format!("does not connect: {error}"));
                }
            }
        };
        *locked(&self.connected[client]) = Some(quorum.clone());
        let owners: Vec<Owner> = (0..2).map(|_| Owner::new()).collect();
        let tasks: Vec<JoinHandle<()>> = (0..plan.tasks.len())
            .map(|number| {
                let task = Task {
                    world: Arc::clone(&world),
                    client,
                    label: format!("{label}.{number}"),
                    quorum: quorum.clone(),
                    owners: owners.clone(),
                    healed: Arc::clone(&self.healed),
                };
                let steps = plan.tasks[number].clone();
                tokio::spawn(world.machines[client].run(task.run(steps)))
            })
            .collect();
        for task in tasks {
            // A panic is reported by the hook that sees all of them.
            let _ = task.await;
        }
    }

    /// Closes a client, if it is connected, in the background.
    pub(crate) fn close(&self, world: &World, client: usize) -> Option<JoinHandle<()>> {
        let quorum = locked(&self.connected[client]).take()?;
        let closing = async move { quorum.close().await };
        Some(tokio::spawn(world.machines[client].run(closing)))
    }

    /// Lets a client go without closing it.
    pub(crate) fn leave(&self, client: usize) {
        let gone = locked(&self.connected[client]).take();
        drop(gone);
    }
}

/// The settings of all clients.
pub(crate) fn builder(times: Times) -> quorate::Builder {
    Quorate::builder()
        .lease(Duration::from_millis(times.lease_ms))
        .voter_deadline(Duration::from_millis(times.voter_deadline_ms))
        .poll(Duration::from_millis(times.poll_ms))
        .patience(Duration::from_millis(times.patience_ms))
}

impl Task {
    async fn run(self, steps: Vec<Step>) {
        for step in steps {
            self.pause(step.pause_ms).await;
            if self.healed.is_so() {
                break;
            }
            match self.enter(step).await {
                Ok(Some(guard)) => self.hold(step, guard).await,
                Ok(None) => {}
                Err(error) if error.is_closed() => break,
                // Where a voter is asked in vain without a pause, no time would pass.
                Err(_) => self.pause(1).await,
            }
        }
        self.say(|| "has finished".into());
    }

    fn say(&self, what: impl FnOnce() -> String) {
        self.world.note(&self.label, what);
    }

    /// Waits, but not beyond the end of the faults.
    async fn pause(&self, ms: u64) {
        tokio::select! {
            biased;
            () = self.healed.told() => {}
            () = sleep(Duration::from_millis(ms)) => {}
        }
    }

    async fn enter(&self, step: Step) -> Result<Option<MutexGuard>, Error> {
        let _busy = self.world.busy(self.client, step.lock);
        let started_ms = self.world.now_ms();
        self.say(|| {
            format!(
                "asks for {} ({:?}, {:?}, owner {:?}, {:?})",
                lock_name(step.lock),
                step.how,
                step.lease,
                step.owner,
                step.cancel
            )
        });
        let mut mutex = self.quorum.mutex(lock_name(step.lock));
        if let Some(owner) = step.owner {
            mutex = mutex.owner(&self.owners[owner]);
        }
        mutex = match step.lease {
            Lease::Default => mutex,
            Lease::Renewed(ms) => mutex.lease(Duration::from_millis(ms)),
            Lease::Fixed(ms) => mutex.lease_fixed(Duration::from_millis(ms)),
        };
        let asked = async {
            match step.how {
                How::Try => mutex.try_lock().await,
                How::Within(ms) => mutex.lock_within(Duration::from_millis(ms)).await,
                How::Wait => mutex.lock().await.map(Some),
            }
        };
        let outcome = give_up(asked, step.cancel).await;
        answers::asked(&self.world, self.client, step.how, started_ms);
        match outcome {
            Err(GivenUp) => {
                self.say(|| "gives up".into());
                Ok(None)
            }
            Ok(Ok(None)) => {
                self.say(|| "is told that another has it".into());
                Ok(None)
            }
            Ok(Ok(Some(guard))) => {
                self.say(|| format!("has {} for {:?}", guard.hold(), guard.remaining()));
                Ok(Some(guard))
            }
            Ok(Err(error)) => {
                self.say(|| format!("fails: {error}"));
                // Whoever gives voters less time than they may take has to put up with that. So has
                // a re-entry while others ask for what a voter that is gone leaves.
                let deadline_ms = self.world.plan.times.voter_deadline_ms;
                let short = matches!(step.how, How::Within(ms) if ms < deadline_ms);
                if !(error.is_unconfirmed() || short && error.is_no_quorum()) {
                    minority::failed(&self.world, self.client, "asking", &error, None);
                }
                Err(error)
            }
        }
    }

    async fn hold(&self, step: Step, guard: MutexGuard) {
        let guard = Arc::new(guard);
        self.world.watch(self.client, step.lock, &guard);
        let mut inner = None;
        if step.reenters {
            match guard.reenter().await {
                Ok(again) => {
                    let again = Arc::new(again);
                    self.world.watch(self.client, step.lock, &again);
                    self.say(|| format!("has {} again, count {}", again.hold(), again.count()));
                    inner = Some(again);
                }
                // With a voter gone, others that ask may have a vote that it needs for a while.
                Err(error) if error.is_unconfirmed() => {
                    self.say(|| format!("does not enter again: {error}"));
                }
                Err(error) => self.failed(step, "entering again", &guard, &error),
            }
        }
        self.meanwhile(step, &guard).await;
        if let Some(inner) = inner {
            self.end(step, inner).await;
        }
        self.end(step, guard).await;
    }

    async fn meanwhile(&self, step: Step, guard: &Arc<MutexGuard>) {
        match step.meanwhile {
            Meanwhile::Sleep(ms) => self.pause(ms).await,
            Meanwhile::Work(ms) => {
                let world = Arc::clone(&self.world);
                let work = async {
                    let mut left_ms = ms;
                    while left_ms > 0 && !self.healed.is_so() {
                        let part_ms = left_ms.min(7);
                        sleep(Duration::from_millis(part_ms)).await;
                        left_ms -= part_ms;
                        if !guard.is_held() {
                            let what = format!("work goes on under {}", guard.hold());
                            world.breach(Law::TrustEndsEarly, None, what);
                        }
                    }
                };
                if let Err(error) = guard.while_held(work).await {
                    self.failed(step, "work", guard, &error);
                }
            }
            Meanwhile::Lost(ms) => {
                let told = {
                    let waiting = answers::waits_for_loss(&self.world, self.client, guard);
                    let told = tokio::select! {
                        biased;
                        () = self.healed.told() => None,
                        error = guard.lost() => Some(error),
                        () = sleep(Duration::from_millis(ms)) => None,
                    };
                    drop(waiting);
                    told
                };
                if let Some(error) = told {
                    if guard.is_held() {
                        let what = format!("{} is told lost and held", guard.hold());
                        self.world.breach(Law::TrustEndsEarly, None, what);
                    }
                    self.failed(step, "holding", guard, &error);
                }
            }
            Meanwhile::Inspect => {
                let seen = self.quorum.mutex(lock_name(step.lock)).inspect().await;
                match seen {
                    Ok(seen) => self.say(|| format!("sees {seen}")),
                    Err(error) => self.failed(step, "inspecting", guard, &error),
                }
            }
            Meanwhile::Force => {
                let ended = self.quorum.mutex(lock_name(step.lock)).force_release().await;
                self.say(|| format!("ends it by force: {ended:?}"));
            }
        }
    }

    async fn end(&self, step: Step, guard: Arc<MutexGuard>) {
        let _busy = self.world.busy(self.client, step.lock);
        let Some(guard) = Arc::into_inner(guard) else { unreachable!("nobody else keeps it") };
        let started_ms = self.world.now_ms();
        let hold = guard.hold().as_str().to_owned();
        match step.end {
            End::Drop => {
                self.say(|| format!("drops {hold}"));
                drop(guard);
            }
            End::Release => {
                self.say(|| format!("releases {hold}"));
                let released = guard.release().await;
                answers::released(&self.world, self.client, started_ms);
                if let Err(error) = released {
                    self.say(|| format!("release of {hold} fails: {error}"));
                    self.lost(step, "release", &hold, &error);
                }
            }
            End::CancelledRelease(polls) => {
                self.say(|| format!("releases {hold} and gives up after {polls} polls"));
                let cancel = Cancel::AfterPolls(polls);
                let _: Result<_, GivenUp> = give_up(guard.release(), cancel).await;
            }
        }
        self.world.changed.notify_one();
    }

    fn failed(&self, step: Step, what: &str, guard: &MutexGuard, error: &Error) {
        self.say(|| format!("{what} under {} fails: {error}", guard.hold()));
        self.lost(step, what, guard.hold().as_str(), error);
    }

    fn lost(&self, step: Step, what: &str, hold: &str, error: &Error) {
        // A fixed lease ends; so does one that an owner's other task fixed.
        let fixed = matches!(step.lease, Lease::Fixed(_)) || step.owner.is_some();
        if !(fixed && error.is_lost()) {
            minority::failed(&self.world, self.client, what, error, Some(hold));
        }
    }
}

/// Drops a future early.
async fn give_up<F: Future>(future: F, cancel: Cancel) -> Result<F::Output, GivenUp> {
    match cancel {
        Cancel::Never => Ok(future.await),
        Cancel::AfterMs(ms) => tokio::select! {
            biased;
            output = future => Ok(output),
            () = sleep(Duration::from_millis(ms)) => Err(GivenUp),
        },
        Cancel::AfterPolls(polls) => {
            let mut future = pin!(future);
            let mut left = polls;
            poll_fn(|context| {
                if left == 0 {
                    return Poll::Ready(Err(GivenUp));
                }
                left -= 1;
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => Poll::Ready(Ok(output)),
                    // What was sent with the last poll is under way.
                    Poll::Pending if left == 0 => Poll::Ready(Err(GivenUp)),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await
        }
    }
}
