//! The way into a client, open until it is closed, and then empty before the voters are left; or
//! until its runtime ends. And how many attempts a client makes at once. Further callers wait for
//! their turn: if all asked at once, the answers would come after the voter deadline, and healthy
//! voters would seem silent.
//!
//! A process that is forked from that of a client has no task of it. So nobody renews there what
//! the client holds, nobody hears of its end, and what another thread had locked at the fork stays
//! locked for ever. There every hold has ended, and nothing of the client is used or dropped.

use std::{
    mem,
    pin::Pin,
    process,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Coordinator, line::Turn};
use crate::{
    proto::{Error, Kind, Limit, LockName},
    signal::Signal,
};

/// Counts who is inside.
#[derive(Debug)]
pub(crate) struct ClosingGate {
    places: Semaphore,
    /// The process that connected.
    process: u32,
    closing: Arc<Signal<bool>>,
}

/// Work that is done in the process that connected. In a forked one it fails.
struct Unforked<'a, F> {
    gate: &'a ClosingGate,
    /// Until it is done.
    work: Option<Pin<Box<F>>>,
}

impl<T, F: Future<Output = Result<T, Error>>> Future for Unforked<'_, F> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let is_forked = self.gate.is_forked();
        let Some(work) = self.work.as_mut().filter(|_| !is_forked) else {
            return Poll::Ready(Err(Error::closed()));
        };
        let done = work.as_mut().poll(context);
        if done.is_ready() {
            self.work = None;
        }
        done
    }
}

impl<F> Drop for Unforked<'_, F> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take()
            && self.gate.is_forked()
        {
            mem::forget(work);
        }
    }
}

/// Closes the way in when it is dropped: at the latest when its runtime ends.
struct EndOfRuntime(Arc<Signal<bool>>);

impl Drop for EndOfRuntime {
    fn drop(&mut self) {
        self.0.change(|closing| *closing = true);
    }
}

impl Drop for ClosingGate {
    /// Ends the task that watches the runtime.
    fn drop(&mut self) {
        self.closing.change(|closing| *closing = true);
    }
}

impl ClosingGate {
    pub(super) fn open() -> Self {
        let closing = Arc::new(Signal::new(false));
        Self { places: Semaphore::new(Self::most() as usize), process: process::id(), closing }
    }

    /// Whether nobody is let in any more.
    pub(super) fn closing(&self) -> &Arc<Signal<bool>> {
        &self.closing
    }

    /// To be run on the client's runtime, for as long as that goes on or the gate is open.
    pub(super) fn watch_runtime(&self) -> impl Future<Output = ()> + use<> {
        let watched = EndOfRuntime(Arc::clone(&self.closing));
        async move { watched.0.until(|closing| *closing).await }
    }

    fn most() -> u32 {
        u32::MAX >> 4
    }

    /// Whether this process is forked from the one that connected. It is asked each time: a fork
    /// may come at any moment.
    pub(crate) fn is_forked(&self) -> bool {
        self.process != process::id()
    }

    /// Does `work`, and fails in a process that is forked before it is done.
    pub(crate) fn unforked<'a, T>(
        &'a self,
        work: impl Future<Output = Result<T, Error>> + 'a,
    ) -> impl Future<Output = Result<T, Error>> {
        Unforked { gate: self, work: Some(Box::pin(work)) }
    }

    /// Does `work` inside; gives it up when the gate is closed.
    pub(crate) fn within<'a, T>(
        &'a self,
        work: impl Future<Output = Result<T, Error>> + 'a,
    ) -> impl Future<Output = Result<T, Error>> {
        // An async block has room twice for what it is given and awaits: for a pointer here.
        let work = Box::pin(work);
        self.unforked(async move {
            let _place: SemaphorePermit<'_> =
                self.places.try_acquire().map_err(|_| Error::closed())?;
            // Whoever was inside may still have to leave.
            if self.closing.read(|closing| *closing) {
                return Err(Error::closed());
            }
            tokio::select! {
                biased;
                done = work => done,
                () = self.closing.until(|closing| *closing) => Err(Error::closed()),
            }
        })
    }

    /// Lets nobody in, sends everybody out, and completes when all have left.
    pub(crate) async fn close(&self) {
        self.closing.change(|closing| *closing = true);
        if let Ok(all) = self.places.acquire_many(Self::most()).await {
            all.forget();
        }
        self.places.close();
    }
}

/// How many attempts gather a majority at the same time. Each has one request on its way to each
/// voter: more would only stand in line there, and be late. Two calls of 32 are under way to a
/// voter at a time: with fewer attempts there is not always a next one ready.
const MOST: usize = 128;

/// The turns of those who want to ask, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Admission(Semaphore);

/// Leave to make one attempt.
pub(crate) type Admitted<'a> = SemaphorePermit<'a>;

impl Admission {
    pub(super) fn new() -> Self {
        Self(Semaphore::new(MOST))
    }
}

impl Coordinator {
    /// Leave to make an attempt, if the caller does not have it: waited for until the limit. To be
    /// asked for before what an attempt needs is made: many may wait. The line of the caller's turn
    /// knows while that waits.
    pub(crate) async fn admit<'a>(
        &'a self,
        admitted: Option<Admitted<'a>>,
        lock: &LockName,
        limit: Limit,
        turn: Option<&Turn<'_>>,
    ) -> Result<Admitted<'a>, Error> {
        if let Some(admitted) = admitted.or_else(|| self.admission.0.try_acquire().ok()) {
            return Ok(admitted);
        }
        if let Some(turn) = turn {
            turn.hold_up();
        }
        let (started, leave) = (self.clock.now(), self.admission.0.acquire());
        let admitted = match limit {
            Limit::Once(until) | Limit::Until(until) => self.clock.in_time(until, leave).await,
            Limit::Never => Some(leave.await),
        };
        let late = || overloaded(lock.as_str(), self.clock.now().since(started));
        // The semaphore is never closed.
        let admitted = admitted.and_then(Result::ok).ok_or_else(late)?;
        if let Some(turn) = turn {
            turn.ask();
        }
        Ok(admitted)
    }
}

pub(super) fn overloaded(lock: &str, after: Duration) -> Error {
    Error::new(Kind::Overloaded { lock: lock.into(), most: MOST, after }, Vec::new())
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn closing_sends_out_who_is_inside_and_lets_nobody_in() {
        let gate = ClosingGate::open();
        let mut inside = Box::pin(gate.within(pending::<Result<(), Error>>()));
        assert!((&mut inside).now_or_never().is_none());
        let mut closed = Box::pin(gate.close());
        assert!((&mut closed).now_or_never().is_none(), "somebody is inside");
        assert!(gate.within(async { Ok(()) }).await.unwrap_err().is_closed());
        drop(closed);
        let late = gate.within(async { Ok(()) }).await;
        assert!(late.unwrap_err().is_closed(), "whoever closes does not wait for ever");
        assert!(inside.await.unwrap_err().is_closed());
        gate.close().await;
        gate.close().await;
        assert!(gate.within(async { Ok(()) }).await.unwrap_err().is_closed());
    }

    #[tokio::test]
    async fn the_end_of_the_runtime_sends_out_who_is_inside() {
        let gate = ClosingGate::open();
        let mut watching = Box::pin(gate.watch_runtime());
        assert!((&mut watching).now_or_never().is_none());
        let inside = gate.within(pending::<Result<(), Error>>());
        drop(watching);
        assert!(inside.await.unwrap_err().is_closed());
    }

    #[tokio::test]
    async fn whoever_watches_the_runtime_ends_with_the_gate() {
        let gate = ClosingGate::open();
        let watching = gate.watch_runtime();
        drop(gate);
        watching.await;
    }
}
