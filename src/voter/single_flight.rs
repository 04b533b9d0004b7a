//! Work that blocks, shared by all who need what comes of it.

use std::{io, process, sync::Mutex, thread};

use futures::{FutureExt, future::BoxFuture};
use tokio::sync::watch;

use super::lock;

/// Work that may block for long, such as a look-up of a name or the read of a file. It runs on a
/// thread of its own, so that it holds up nothing else, and one run at a time: whoever needs the
/// outcome meanwhile waits for the same run. A run that never ends has one thread.
///
/// No pool of a runtime: its threads may all be taken, by the callers' own work or by what hangs.
pub(crate) struct SingleFlight<T>(Mutex<Option<Flight<T>>>);

/// The latest run.
struct Flight<T> {
    /// A forked process has none of its parent's threads.
    process: u32,
    outcome: watch::Receiver<Option<T>>,
}

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Starts the work, unless it is under way, or its last outcome `is_good` still. The outcome
    /// stays when nobody waits for it any more.
    pub(crate) fn outcome(
        &self,
        is_good: impl FnOnce(&T) -> bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> BoxFuture<'static, io::Result<T>> {
        let mut latest = lock(&self.0);
        let flight = latest.as_ref().filter(|flight| flight.is_of_use(is_good));
        let mut outcome = match flight {
            Some(flight) => flight.outcome.clone(),
            None => match start(work) {
                Ok(flight) => latest.insert(flight).outcome.clone(),
                Err(why) => return async { Err(why) }.boxed(),
            },
        };
        async move {
            let done = outcome.wait_for(Option::is_some).await.ok().and_then(|done| done.clone());
            done.ok_or_else(|| io::Error::other("its thread panicked"))
        }
        .boxed()
    }

    /// Whether it is under way, or its last outcome `is_good` still.
    pub(crate) fn is_of_use(&self, is_good: impl FnOnce(&T) -> bool) -> bool {
        let latest = lock(&self.0);
        latest.as_ref().is_some_and(|flight| flight.is_of_use(is_good))
    }
}

impl<T: Clone + Send + Sync + 'static> Default for SingleFlight<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Flight<T> {
    fn is_of_use(&self, is_good: impl FnOnce(&T) -> bool) -> bool {
        // Before the outcome, which comes before the end of the thread.
        let is_under_way = self.outcome.has_changed().is_ok();
        let outcome = self.outcome.borrow();
        self.process == process::id() && outcome.as_ref().map_or(is_under_way, is_good)
    }
}

fn start<T: Send + Sync + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Flight<T>> {
    let (tell, outcome) = watch::channel(None);
    let thread = thread::Builder::new().name("quorate-blocks".into());
    thread.spawn(move || drop(tell.send_replace(Some(work()))))?;
    Ok(Flight { process: process::id(), outcome })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_outcome_is_used_while_it_is_good() {
        let flight = SingleFlight::new();
        assert_eq!(flight.outcome(|_| true, || 1).await.unwrap(), 1);
        assert_eq!(flight.outcome(|one| *one == 1, || 2).await.unwrap(), 1);
        assert_eq!(flight.outcome(|one| *one == 2, || 2).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn after_a_panic_it_is_started_again() {
        let flight = SingleFlight::new();
        assert!(flight.outcome(|_| true, || panic!("as planned")).await.is_err());
        assert_eq!(flight.outcome(|_| true, || 1).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_forked_process_waits_for_no_thread_of_its_parent() {
        let flight = SingleFlight::new();
        let forever = || {
            loop {
                thread::park();
            }
        };
        assert!(flight.outcome(|_| true, forever).now_or_never().is_none());
        lock(&flight.0).as_mut().unwrap().process = 0;
        assert_eq!(flight.outcome(|_| true, || 1).await.unwrap(), 1);
    }
}
