//! What the tasks of clients do: asking for locks, holding them, giving them up, as users' code
//! does through the public API.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use quorate::{Leadership, Observed};

use crate::sim::{
    clients::Healed,
    laws::{
        answers, leaders, minority,
        order::{self, Before},
        tokens, told,
    },
    prelude::*,
    steps,
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
pub(crate) struct GivenUp;

impl Task {
    pub(crate) async fn run(self, steps: Vec<Step>) {
        for step in steps {
            self.pause(step.pause_ms).await;
            if self.healed.is_so() {
                break;
            }
            let outcome = match step.kind {
                Kind::All => self.take_all(step).await,
                _ => self.take(step).await,
            };
            match outcome {
                Ok(()) => {}
                Err(error) if error.is_closed() => break,
                // Where a voter is asked in vain without a pause, no time would pass.
                Err(_) => self.pause(1).await,
            }
        }
        self.say(|| "has finished".into());
    }

    pub(crate) fn say(&self, what: impl FnOnce() -> String) {
        self.world.note(&self.label, what);
    }

    /// Waits, but not beyond the end of the faults.
    pub(crate) async fn pause(&self, ms: u64) {
        tokio::select! {
            biased;
            () = self.healed.told() => {}
            () = sleep(Duration::from_millis(ms)) => {}
        }
    }

    async fn take(&self, step: Step) -> Result<(), Error> {
        let started_ms = self.world.now_ms();
        let lock = self.lock(step);
        let Some((guard, before)) = self.ask(step, lock.ask(step.how)).await? else {
            return Ok(());
        };
        tokens::handed_out(&self.world, step, &guard, started_ms, false);
        told::granted(&self.world, step, &guard);
        steps::won(&self.world, step, &guard);
        leaders::leads(&self.world, step.lock(), guard.hold().as_str());
        order::granted(&self.world, &before[0], guard.hold().as_str());
        self.hold(step, guard).await;
        Ok(())
    }

    /// What was asked for, and who stood before it for each of its locks.
    pub(crate) async fn ask<G: fmt::Debug>(
        &self,
        step: Step,
        asked: impl Future<Output = Result<Option<G>, Error>>,
    ) -> Result<Option<(G, Vec<Before>)>, Error> {
        let locks = step.locks();
        let _busy: Vec<_> = locks.iter().map(|lock| self.world.busy(self.client, *lock)).collect();
        let started_ms = self.world.now_ms();
        self.say(|| format!("asks for {locks:?}: {step:?}"));
        let stands = |lock: &Lock| order::who_stands(&self.world, *lock, step.part(*lock).kind);
        let before = locks.iter().map(stands).collect();
        let outcome = give_up(asked, step.cancel).await;
        let is_one = step.kind != Kind::All;
        if is_one {
            answers::asked(&self.world, self.client, step.how, started_ms);
        }
        match outcome {
            Err(GivenUp) => {
                self.say(|| "gives up".into());
                Ok(None)
            }
            Ok(Ok(None)) => {
                self.say(|| "is told that another has it".into());
                if is_one {
                    told::anothers(&self.world, self.client, step.lock(), started_ms);
                }
                Ok(None)
            }
            Ok(Ok(Some(guard))) => {
                self.say(|| format!("has {guard:?}"));
                Ok(Some((guard, before)))
            }
            Ok(Err(error)) => {
                self.say(|| format!("fails: {error}"));
                // Whoever gives voters less time than they may take has to put up with that. So has
                // a re-entry while others ask for what a voter that is gone leaves.
                let deadline_ms = self.world.plan.times.voter_deadline_ms;
                let short = matches!(step.how, How::Within(ms) if ms < deadline_ms);
                if error.is_deadlock() {
                    told::deadlock(&self.world, self.client, step);
                } else if !(error.is_not_entered() || short && error.is_no_quorum()) {
                    minority::failed(&self.world, self.client, "asking", &error, None);
                }
                Err(error)
            }
        }
    }

    fn lock(&self, step: Step) -> Asking {
        let lock = Asking::of(&self.quorum, &step.lock().name, step.kind).lease(step.lease);
        match step.owner {
            Some(owner) => lock.owner(self.owners[owner]),
            None => lock,
        }
    }

    async fn hold(&self, step: Step, guard: Guard) {
        let guard = Arc::new(guard);
        self.world.watch(self.client, step, &guard);
        let inner = self.further(step, &guard).await;
        self.meanwhile(step, &guard).await;
        match (inner, step.further) {
            (Some(inner), Further::ReadsOn(ms)) => {
                self.end(step, guard).await;
                self.pause(ms).await;
                self.end(step, inner).await;
            }
            (inner, _) => {
                if let Some(inner) = inner {
                    self.end(step, inner).await;
                }
                self.end(step, guard).await;
            }
        }
    }

    /// Enters again, or reads under the own write.
    async fn further(&self, step: Step, guard: &Arc<Guard>) -> Option<Arc<Guard>> {
        let entered = match (step.further, &**guard) {
            (Further::Nothing, _) => return None,
            (_, Guard::Lead(lead)) => {
                self.proclaim(step, guard, lead).await;
                return None;
            }
            (Further::Again, _) => guard.reenter().await,
            (Further::Reads | Further::ReadsOn(_), _) => {
                let _busy = self.world.busy(self.client, step.lock());
                match give_up(guard.read(), step.cancel).await {
                    Ok(entered) => entered,
                    Err(GivenUp) => return None,
                }
            }
        };
        match entered {
            Ok(inner) => {
                let inner = Arc::new(inner);
                self.world.watch(self.client, step, &inner);
                self.say(|| format!("has {} as well, count {}", inner.hold(), inner.count()));
                tokens::handed_out(&self.world, step, &inner, self.world.now_ms(), true);
                told::entered_again(&self.world, step, &inner);
                Some(inner)
            }
            Err(error) => {
                self.not_entered(step, guard, &error);
                None
            }
        }
    }

    /// Says three times something new of itself.
    async fn proclaim(&self, step: Step, guard: &Guard, lead: &Leadership) {
        for number in 1..=3 {
            match lead.proclaim(number.to_string()).await {
                Ok(()) => {
                    self.say(|| format!("has proclaimed {number} under {}", guard.hold()));
                    leaders::proclaimed(&self.world, step.lock(), guard.hold().as_str(), number);
                }
                Err(error) => return self.not_entered(step, guard, &error),
            }
        }
    }

    /// Watches an election until the faults have ended.
    pub(crate) async fn watch(self, election: Lock) {
        let mut observer = self.quorum.election(&election.name).observe();
        let mut seen = leaders::Seen::default();
        loop {
            let observed = tokio::select! {
                biased;
                () = self.healed.told() => return,
                observed = observer.next() => observed,
            };
            let Some(observed) = observed else { return };
            self.say(|| format!("observes {observed:?} in {election:?}"));
            match &observed {
                Observed::Leader(leader) => leaders::observed(&self.world, &mut seen, leader),
                Observed::NoLeader => leaders::nobody_observed(&self.world, election),
                _ => {}
            }
        }
    }

    fn not_entered(&self, step: Step, guard: &Guard, error: &Error) {
        // With a voter gone, others that ask may have a vote that it needs for a while.
        if error.is_not_entered() && self.world.plan.mood != Mood::Calm {
            self.say(|| format!("does not enter again: {error}"));
        } else {
            self.failed(step, "entering again", guard, error);
        }
    }

    async fn meanwhile(&self, step: Step, guard: &Arc<Guard>) {
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
                let lock = step.lock();
                let seen = self.quorum.admin().look(lock.kind(), &lock.name).await;
                match seen {
                    Ok(seen) => {
                        self.say(|| format!("sees {seen:?}"));
                        told::inspected(&self.world, guard, &seen);
                    }
                    Err(error) => self.failed(step, "inspecting", guard, &error),
                }
            }
            Meanwhile::Force => {
                let lock = step.lock();
                let ended = self.quorum.admin().end(lock.kind(), &lock.name, guard.hold()).await;
                self.say(|| format!("ends it by force: {ended:?}"));
                if ended.is_ok() {
                    told::forced(&self.world, step, guard);
                    self.wait_for_loss(step, 3 * self.world.plan.longest_lease_ms(), guard).await;
                }
            }
        }
    }

    async fn wait_for_loss(&self, step: Step, ms: u64, guard: &Arc<Guard>) {
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

    async fn end(&self, step: Step, guard: Arc<Guard>) {
        if let Some(read) = self.leave(step, guard).await {
            let ms = if let End::Downgrade(ms, _) = step.end { ms } else { 0 };
            self.pause(ms).await;
            let _busy = self.world.busy(self.client, step.lock());
            drop(read);
        }
        self.world.changed.notify_one();
    }

    /// Ends a guard; what it was made of a write is left.
    async fn leave(&self, step: Step, guard: Arc<Guard>) -> Option<Arc<Guard>> {
        let _busy = self.world.busy(self.client, step.lock());
        let Some(guard) = Arc::into_inner(guard) else { unreachable!("nobody else keeps it") };
        let started_ms = self.world.now_ms();
        let hold = guard.hold().as_str().to_owned();
        self.say(|| format!("ends {hold}: {:?}", step.end));
        let (becomes_read, cancel) = match step.end {
            End::Drop => {
                drop(guard);
                return None;
            }
            End::Release(cancel) => (false, cancel),
            End::Downgrade(_, cancel) => (guard.access() == Access::Write, cancel),
        };
        if becomes_read {
            let downgraded = give_up(guard.downgrade(), cancel).await.ok()?;
            if cancel != Cancel::Never {
                return None;
            }
            answers::downgraded(&self.world, self.client, started_ms);
            return self.has_downgraded(step, &hold, downgraded);
        }
        let released = give_up(guard.release(), cancel).await.ok()?;
        if cancel == Cancel::Never {
            answers::released(&self.world, self.client, started_ms, &released);
            if let Err(error) = released {
                self.say(|| format!("release of {hold} fails: {error}"));
                self.lost(step, "release", &hold, &error);
            }
        }
        None
    }

    fn has_downgraded(
        &self,
        step: Step,
        hold: &str,
        downgraded: Result<Option<Guard>, Error>,
    ) -> Option<Arc<Guard>> {
        match downgraded {
            Ok(read) => {
                let read = Arc::new(read?);
                self.say(|| format!("has {} for {:?}", read.hold(), read.remaining()));
                self.world.watch(self.client, step, &read);
                Some(read)
            }
            Err(error) => {
                self.say(|| format!("downgrade of {hold} fails: {error}"));
                if !error.is_not_entered() || self.world.plan.mood == Mood::Calm {
                    self.lost(step, "downgrade", hold, &error);
                }
                None
            }
        }
    }

    fn failed(&self, step: Step, what: &str, guard: &Guard, error: &Error) {
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
pub(crate) async fn give_up<F: Future>(future: F, cancel: Cancel) -> Result<F::Output, GivenUp> {
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
