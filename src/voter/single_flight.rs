//! Blocking work whose result several tasks share.

use std::{io, thread};

use futures::{FutureExt, future::BoxFuture};
use tokio::sync::watch;

use crate::sync::PerProcess;

/// Work that may block for long, such as a look-up of a name or the read of a file. One run at a
/// time, on a thread of its own; all who need the outcome meanwhile wait for the same run.
// Not in a runtime's pool. An attempt to connect gives up after seconds, while its look-up goes on:
// one name whose name servers do not answer took every thread of the pool, and no voter was
// reached again (guarantee 5). Here such a name has one thread, however often it is asked for.
pub(crate) struct SingleFlight<T>(PerProcess<Option<Flight<T>>>);

/// The outcome of the latest run.
type Flight<T> = watch::Receiver<Option<T>>;

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    pub(crate) const fn new() -> Self {
        Self(PerProcess::new())
    }

    /// The outcome of the run that is under way, or of the last one if it `is_good` still, or else
    /// of a new run.
    pub(crate) fn outcome(
        &self,
        is_good: impl FnOnce(&T) -> bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> BoxFuture<'static, io::Result<T>> {
        let mut latest = self.0.lock();
        let mut outcome = match latest.as_ref().filter(|flight| is_of_use(flight, is_good)) {
            Some(flight) => flight.clone(),
            None => match start(work) {
                Ok(flight) => latest.insert(flight).clone(),
                Err(why) => return async { Err(why) }.boxed(),
            },
        };
        // The run goes on if this future is dropped: its outcome is there for the next caller.
        async move {
            let done = outcome.wait_for(Option::is_some).await.ok().and_then(|done| done.clone());
            done.ok_or_else(|| io::Error::other("its thread panicked"))
        }
        .boxed()
    }

    /// Whether a run is under way, or the last outcome `is_good` still.
    pub(crate) fn is_of_use(&self, is_good: impl FnOnce(&T) -> bool) -> bool {
        self.0.lock().as_ref().is_some_and(|flight| is_of_use(flight, is_good))
    }
}

fn is_of_use<T>(flight: &Flight<T>, is_good: impl FnOnce(&T) -> bool) -> bool {
    // Read before the outcome. The other way round, the thread could set the outcome and end in
    // between: the run would count as one that panicked, and start again.
    let is_under_way = flight.has_changed().is_ok();
    flight.borrow().as_ref().map_or(is_under_way, is_good)
}

fn start<T: Send + Sync + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Flight<T>> {
    let (sender, outcome) = watch::channel(None);
    let thread = thread::Builder::new().name("quorate-blocks".into());
    // If the work panics, the sender is dropped: who waits then gets an error.
    thread.spawn(move || drop(sender.send_replace(Some(work()))))?;
    Ok(outcome)
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
}
