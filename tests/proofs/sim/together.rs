//! Tasks that want several locks at once.

use std::{sync::Arc, time::Duration};

use quorate::{AllGuard, Error, Lockable};

use crate::sim::{
    asking::{Guard, Kind},
    laws::{answers, minority, order, tokens},
    locks::Lock,
    plan::{End, How, Meanwhile, Step},
    tasks::{GivenUp, Task, give_up},
};

/// The step of one of several.
fn part(step: Step, lock: Lock) -> Step {
    match lock {
        Lock::Rw(number) => Step { kind: Kind::Write, number, ..step },
        Lock::Mutex(number) | Lock::Election(number) | Lock::Semaphore(number) => {
            Step { kind: Kind::Plain, number, ..step }
        }
    }
}

impl Task {
    pub(crate) async fn enter_all(&self, step: Step) -> Result<Option<AllGuard>, Error> {
        let locks = step.locks();
        let _busy: Vec<_> = locks.iter().map(|lock| self.world.busy(self.client, *lock)).collect();
        self.say(|| format!("asks for {locks:?} ({:?}, {:?})", step.how, step.cancel));
        let before: Vec<_> = locks
            .iter()
            .map(|lock| order::who_stands(&self.world, *lock, part(step, *lock).kind))
            .collect();
        let lockable = |lock: &Lock| -> Lockable {
            match lock {
                Lock::Rw(_) => self.quorum.rw_lock(lock.name()).writing(),
                // Some are asked for in order.
                _ if step.number == 0 => self.quorum.fair_mutex(lock.name()).into(),
                _ => self.quorum.mutex(lock.name()).into(),
            }
        };
        let all = self.quorum.lock_all(locks.iter().map(lockable));
        let asked = async {
            match step.how {
                How::Try => all.try_lock().await,
                How::Within(ms) => all.lock_within(Duration::from_millis(ms)).await,
                How::Wait => all.lock().await.map(Some),
            }
        };
        match give_up(asked, step.cancel).await {
            Err(GivenUp) => {
                self.say(|| "gives up".into());
                Ok(None)
            }
            Ok(Ok(None)) => {
                self.say(|| "is told that others have some of them".into());
                Ok(None)
            }
            Ok(Ok(Some(guard))) => {
                self.say(|| format!("has {guard:?}"));
                for (before, (_, hold)) in before.iter().zip(guard.holds()) {
                    order::granted(&self.world, before, hold.as_str());
                }
                Ok(Some(guard))
            }
            Ok(Err(error)) => {
                self.say(|| format!("fails: {error}"));
                let deadline_ms = self.world.plan.times.voter_deadline_ms;
                let short = matches!(step.how, How::Within(ms) if ms < deadline_ms);
                if !(short && error.is_no_quorum()) {
                    minority::failed(&self.world, self.client, "asking for all", &error, None);
                }
                Err(error)
            }
        }
    }

    pub(crate) async fn hold_all(&self, step: Step, guard: AllGuard) {
        let (all, started_ms) = (Arc::new(guard), self.world.now_ms());
        let parts: Vec<_> = step
            .locks()
            .into_iter()
            .enumerate()
            .map(|(at, lock)| {
                let guard = Arc::new(Guard::Part { all: Arc::clone(&all), at });
                let step = part(step, lock);
                tokens::handed_out(&self.world, step, &guard, started_ms);
                self.world.watch(self.client, step, &guard);
                guard
            })
            .collect();
        match step.meanwhile {
            Meanwhile::Sleep(ms) | Meanwhile::Lost(ms) => self.pause(ms).await,
            Meanwhile::Work(ms) => {
                if let Err(error) = all.while_held(self.pause(ms)).await {
                    self.lost_all(&all, &error);
                }
            }
            Meanwhile::Inspect | Meanwhile::Force => {}
        }
        drop(parts);
        let locks = step.locks();
        let _busy: Vec<_> = locks.iter().map(|lock| self.world.busy(self.client, *lock)).collect();
        let holds: Vec<String> = all.holds().map(|(_, hold)| hold.to_string()).collect();
        let all = Arc::into_inner(all).expect("the parts are gone");
        let started_ms = self.world.now_ms();
        if step.end == End::Drop {
            self.say(|| format!("drops {holds:?}"));
            drop(all);
        } else {
            self.say(|| format!("releases {holds:?}"));
            let released = all.release().await;
            answers::released(&self.world, self.client, started_ms);
            if let Err(error) = released {
                self.say(|| format!("release fails: {error}"));
                let hold = error.hold().map(ToString::to_string);
                minority::failed(&self.world, self.client, "release", &error, hold.as_deref());
            }
        }
        self.world.changed.notify_one();
    }

    fn lost_all(&self, all: &AllGuard, error: &Error) {
        self.say(|| format!("work under {all:?} fails: {error}"));
        let hold = error.hold().map(ToString::to_string);
        minority::failed(&self.world, self.client, "work", error, hold.as_deref());
    }
}
