//! Tasks that want several locks at once.

use quorate::{AllGuard, Lockable};

use crate::sim::{
    laws::{answers, minority, order, tokens},
    prelude::*,
    tasks::Task,
};

impl Task {
    pub(crate) async fn take_all(&self, step: Step) -> Result<(), Error> {
        let lockable = |lock: &Lock| -> Lockable {
            match lock {
                Lock::Rw(_) => self.quorum.rw_lock(&lock.name).writing(),
                // Some are asked for in order.
                _ if step.number == 0 => self.quorum.fair_mutex(&lock.name).into(),
                _ => self.quorum.mutex(&lock.name).into(),
            }
        };
        let all = self.quorum.lock_all(step.locks().iter().map(lockable));
        let asked = async {
            match step.how {
                How::Try => all.try_lock().await,
                How::Within(ms) | How::OrBusy(ms) => {
                    all.lock_within(Duration::from_millis(ms)).await
                }
                How::Wait => all.lock().await.map(Some),
            }
        };
        let Some((guard, before)) = self.ask(step, asked).await? else { return Ok(()) };
        for (before, (_, hold)) in before.iter().zip(guard.holds()) {
            order::granted(&self.world, before, hold.as_str());
        }
        self.hold_all(step, guard).await;
        Ok(())
    }

    async fn hold_all(&self, step: Step, guard: AllGuard) {
        let (all, started_ms) = (Arc::new(guard), self.world.now_ms());
        let parts: Vec<_> = step
            .locks()
            .into_iter()
            .enumerate()
            .map(|(at, lock)| {
                let guard = Arc::new(Guard::Part { all: Arc::clone(&all), at });
                let step = step.part(lock);
                tokens::handed_out(&self.world, step, &guard, started_ms, false);
                self.world.watch(self.client, step, &guard);
                guard
            })
            .collect();
        match step.meanwhile {
            Meanwhile::Sleep(ms) | Meanwhile::Lost(ms) => self.pause(ms).await,
            Meanwhile::Work(ms) => {
                if let Err(error) = all.while_held(self.pause(ms)).await {
                    self.fails("work", &error);
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
            answers::released(&self.world, self.client, started_ms, &released);
            if let Err(error) = released {
                self.fails("release", &error);
            }
        }
        self.world.changed.notify_one();
    }

    fn fails(&self, what: &str, error: &Error) {
        self.say(|| format!("{what} fails: {error}"));
        let hold = error.hold().map(ToString::to_string);
        minority::failed(&self.world, self.client, what, error, hold.as_deref());
    }
}
