//! What the tasks of clients do: asking for locks, holding them, giving them up, as users' code
//! does through the public API.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use quorate::{Error, MutexGuard, Owner, Quorate};
use tokio::time::sleep;

use crate::{
    clients::Healed,
    either::Either,
    laws::{Law, answers, minority, order, told},
    plan::{Cancel, End, How, Lease, Meanwhile, Step},
    world::{World, lock_name, locked},
};

/// One task of one client.
pub(crate) struct Task {
    pub(crate) world: Arc<World>,
    pub(crate) client: usize,
    pub(crate) label: String,
    pub(crate) quorum: Quorate,
    pub(crate) owners: Vec<Owner>,
    pub(crate) healed: Arc<Healed>,
}

/// A future that was given up.
struct GivenUp;

impl Task {
    pub(crate) async fn run(self, steps: Vec<Step>) {
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
                "asks for {}{} ({:?}, {:?}, owner {:?}, {:?})",
                lock_name(step.lock),
                if step.fair { " in order" } else { "" },
                step.how,
                step.lease,
                step.owner,
                step.cancel
            )
        });
        let mutex = self.mutex(step);
        let before = order::who_stands(&self.world, step.lock);
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
                told::anothers(&self.world, self.client, step.lock, started_ms);
                Ok(None)
            }
            Ok(Ok(Some(guard))) => {
                self.say(|| format!("has {} for {:?}", guard.hold(), guard.remaining()));
                told::granted(&self.world, step, &guard);
                order::granted(&self.world, &before, guard.hold().as_str());
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

    fn mutex(&self, step: Step) -> Either {
        let mut mutex = Either::of(&self.quorum, &lock_name(step.lock), step.fair);
        if let Some(owner) = step.owner {
            mutex = mutex.owner(self.owners[owner]);
        }
        match step.lease {
            Lease::Default => mutex,
            Lease::Renewed(ms) => mutex.lease(Duration::from_millis(ms)),
            Lease::Fixed(ms) => mutex.lease_fixed(Duration::from_millis(ms)),
        }
    }

    async fn hold(&self, step: Step, guard: MutexGuard) {
        let guard = Arc::new(guard);
        self.world.watch(self.client, step, &guard);
        let mut inner = None;
        if step.reenters {
            match guard.reenter().await {
                Ok(again) => {
                    let again = Arc::new(again);
                    self.world.watch(self.client, step, &again);
                    self.say(|| format!("has {} again, count {}", again.hold(), again.count()));
                    told::entered_again(&self.world, step, &again);
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
            Meanwhile::Lost(ms) => self.wait_for_loss(step, ms, guard).await,
            Meanwhile::Inspect => {
                let seen = self.quorum.mutex(lock_name(step.lock)).inspect().await;
                match seen {
                    Ok(seen) => {
                        self.say(|| format!("sees {seen}"));
                        told::inspected(&self.world, guard, &seen);
                    }
                    Err(error) => self.failed(step, "inspecting", guard, &error),
                }
            }
            Meanwhile::Force => {
                let ended = self.quorum.mutex(lock_name(step.lock)).force_release().await;
                self.say(|| format!("ends it by force: {ended:?}"));
                if matches!(ended, Ok(true)) {
                    told::forced(&self.world, step, guard);
                    self.wait_for_loss(step, 3 * self.world.plan.longest_lease_ms(), guard).await;
                }
            }
        }
    }

    async fn wait_for_loss(&self, step: Step, ms: u64, guard: &Arc<MutexGuard>) {
        let waiting = answers::waits_for_loss(&self.world, self.client, guard);
        let told = tokio::select! {
            biased;
            () = self.healed.told() => None,
            error = guard.lost() => Some(error),
            () = sleep(Duration::from_millis(ms)) => None,
        };
        drop(waiting);
        let Some(error) = told else { return };
        if guard.is_held() {
            let what = format!("{} is told lost and held", guard.hold());
            self.world.breach(Law::TrustEndsEarly, None, what);
        }
        self.failed(step, "holding", guard, &error);
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
        if error.is_lost() {
            // Before its guard goes, which nobody may have looked at since.
            locked(&self.world.ledger).over.insert(hold.to_owned());
        }
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
