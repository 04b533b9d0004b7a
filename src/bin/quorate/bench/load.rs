//! Tasks that take locks and release them, again and again.

use std::{
    process,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hdrhistogram::Histogram;
use quorate::{Error, Quorate};
use tokio::{sync::watch, task::JoinSet, time};

use crate::{
    clock,
    lock::{LockHeld, LockKind},
};

/// An hour, in nanoseconds: what takes longer counts as that.
const LONGEST: u64 = 3_600_000_000_000;

/// What is to be done, until it is stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) kind: LockKind<'static>,
    pub(super) tasks: usize,
    /// Among how many locks the tasks are spread.
    pub(super) locks: usize,
    /// For how long each lock is held.
    pub(super) hold: Duration,
}

/// Tasks at work.
#[derive(Debug)]
pub(super) struct Running {
    stopped: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// What the tasks have come to.
#[derive(Debug)]
pub(super) struct LoadTally(Mutex<(Measured, Option<Error>)>);

/// Times in nanoseconds.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) lock: Histogram<u64>,
    pub(super) release: Histogram<u64>,
    pub(super) failed: u64,
}

impl Load {
    pub(super) fn start(self, quorum: &Quorate, tally: &Arc<LoadTally>) -> Running {
        let (stopped, stop) = watch::channel(false);
        let run = format!("quorate-bench:{}-{}", process::id(), clock::wall().as_millis());
        let mut tasks = JoinSet::new();
        for task in 0..self.tasks {
            let name = format!("{run}:{}", task % self.locks);
            let (quorum, tally, stop) = (quorum.clone(), Arc::clone(tally), stop.clone());
            tasks.spawn(async move { self.repeat(&quorum, &name, &tally, stop).await });
        }
        Running { stopped, tasks }
    }

    /// The first time of each task is not counted: the servers do not have the scripts yet.
    async fn repeat(
        self,
        quorum: &Quorate,
        name: &str,
        tally: &LoadTally,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut is_warm = false;
        loop {
            let asked = clock::now();
            let taken = tokio::select! {
                biased;
                // Whoever stops it may have gone.
                _ = stop.wait_for(|is_stopped| *is_stopped) => return,
                taken = LockHeld::acquire(quorum, self.kind, name, None) => taken,
            };
            let waited = clock::now().saturating_sub(asked);
            let released = match taken {
                Ok(guard) => {
                    if self.hold > Duration::ZERO {
                        time::sleep(self.hold).await;
                    }
                    let asked = clock::now();
                    guard.release().await.map(|()| clock::now().saturating_sub(asked))
                }
                Err(error) => Err(error),
            };
            match released {
                Ok(released) if is_warm => tally.note(waited, released),
                Ok(_) => is_warm = true,
                Err(error) => tally.fail(error),
            }
        }
    }
}

impl Running {
    /// Returns when all that was taken is given back.
    pub(super) async fn stop(self) {
        self.stopped.send_replace(true);
        self.tasks.join_all().await;
    }
}

impl LoadTally {
    pub(super) fn new() -> Self {
        let times = || Histogram::new_with_max(LONGEST, 3).expect("it has room for them");
        Self(Mutex::new((Measured { lock: times(), release: times(), failed: 0 }, None)))
    }

    fn state(&self) -> MutexGuard<'_, (Measured, Option<Error>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, waited: Duration, released: Duration) {
        let (measured, _) = &mut *self.state();
        for (times, took) in [(&mut measured.lock, waited), (&mut measured.release, released)] {
            times.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    fn fail(&self, error: Error) {
        let (measured, latest) = &mut *self.state();
        measured.failed += 1;
        *latest = Some(error);
    }

    /// How often a lock was taken and released.
    pub(super) fn cycles(&self) -> u64 {
        self.state().0.lock.len()
    }

    /// What was measured, and the latest error.
    pub(super) fn end(self) -> (Measured, Option<Error>) {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
