//! The gate through which all calls of a client pass, and how many attempts it makes at once.
//!
//! A client is closed in this order: nobody is let in, everybody inside is sent out, and only then
//! the voters' tasks end. An undo or a release that is queued behind that end is never sent, and
//! the lock stays taken for a lease.
//!
//! A forked process has no task of its parent's client. So nobody there renews a hold or notices
//! its loss, and a mutex that another thread had locked at the fork stays locked for ever. In a
//! forked process every hold has ended, and nothing of the client is used or dropped.

use std::{
    mem,
    pin::Pin,
    process,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Coordinator, local_queue::Turn};
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
    closing: ClosesOnDrop,
}

/// Closes the gate when it is dropped.
#[derive(Debug)]
struct ClosesOnDrop(Arc<Signal<bool>>);

impl Drop for ClosesOnDrop {
    fn drop(&mut self) {
        self.0.change(|closing| *closing = true);
    }
}

/// Work that fails in a forked process.
struct Unforked<'a, F> {
    gate: &'a ClosingGate,
    /// Until it is done.
    work: Option<Pin<Box<F>>>,
}

impl<T, F: Future<Output = Result<T, Error>>> Future for Unforked<'_, F> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // At each poll: a future may be begun before the fork and polled after it.
        let is_forked = self.gate.is_forked();
        let Some(work) = self.work.as_mut().filter(|_| !is_forked) else {
            return Poll::Ready(Err(Error::closed()));
        };
        let done = work.as_mut().poll(context);
        // What has ended is dropped here, as the drop below may leak it.
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
            // To drop it would undo its request, and lock mutexes that may be locked for ever.
            mem::forget(work);
        }
    }
}

impl ClosingGate {
    pub(super) fn open() -> Self {
        // Dropped with the gate, it ends the task that watches the runtime.
        let closing = ClosesOnDrop(Arc::new(Signal::new(false)));
        Self { places: Semaphore::new(Self::PLACES as usize), process: process::id(), closing }
    }

    /// True once nobody is let in any more.
    pub(super) fn closing(&self) -> &Arc<Signal<bool>> {
        &self.closing.0
    }

    /// Runs on the client's runtime until the gate is closed. If the runtime ends before, the gate
    /// is closed by the drop.
    pub(super) fn watch_runtime(&self) -> impl Future<Output = ()> + use<> {
        let watched = ClosesOnDrop(Arc::clone(self.closing()));
        async move { watched.0.until(|closing| *closing).await }
    }

    /// A caller takes one place, and closing takes all.
    // A semaphore has room for as many, also on a machine with words of 32 bits.
    const PLACES: u32 = u32::MAX >> 4;

    /// Whether this process is forked from the one that connected.
    // Asked each time, which costs a call to the system of some 0.1 us: without unsafe code nothing
    // else notices a fork.
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

    /// Does `work` inside. Gives it up when the gate is closed.
    pub(crate) fn within<'a, T>(
        &'a self,
        work: impl Future<Output = Result<T, Error>> + 'a,
    ) -> impl Future<Output = Result<T, Error>> {
        // An async block has room twice for what it is given and awaits. Without the box, 8.6 KiB
        // were moved to the heap for each lock.
        let work = Box::pin(work);
        self.unforked(async move {
            let _place: SemaphorePermit<'_> =
                self.places.try_acquire().map_err(|_| Error::closed())?;
            // Until the last caller has left, there are still places.
            if self.closing().read(|closing| *closing) {
                return Err(Error::closed());
            }
            tokio::select! {
                biased;
                done = work => done,
                () = self.closing().until(|closing| *closing) => Err(Error::closed()),
            }
        })
    }

    /// Lets nobody in, sends everybody out, and completes when all have left.
    pub(crate) async fn close(&self) {
        self.closing().change(|closing| *closing = true);
        if let Ok(all) = self.places.acquire_many(Self::PLACES).await {
            all.forget();
        }
        self.places.close();
    }
}

/// How many attempts a client makes at once. Further callers wait for leave.
// If all callers asked at once, answers would come after the voter deadline, and healthy voters
// would seem silent. With fewer than 128 a voter would at times wait for work: two calls of 32
// requests are on their way to it, and as many should be ready behind them.
pub(super) const MAX_ATTEMPTS: usize = 128;

/// Leave to make one attempt.
pub(crate) type Admitted<'a> = SemaphorePermit<'a>;

impl Coordinator {
    /// Waits for leave to make an attempt until the limit, unless the caller has it. `turn`: the
    /// local queue learns of it while the task with the turn waits.
    // Asked for before an attempt is made: of 10,000 tasks that wait for leave, each took twice the
    // memory when it had its place, its listener and its timer already.
    pub(crate) async fn admit<'a>(
        &'a self,
        admitted: Option<Admitted<'a>>,
        lock: &LockName,
        limit: Limit,
        turn: Option<&Turn<'_>>,
    ) -> Result<Admitted<'a>, Error> {
        if let Some(admitted) = admitted.or_else(|| self.attempts.try_acquire().ok()) {
            return Ok(admitted);
        }
        if let Some(turn) = turn {
            turn.wait_for_leave();
        }
        let (started, leave) = (self.clock.now(), self.attempts.acquire());
        let admitted = match limit {
            Limit::Once(until) | Limit::Until(until) => self.clock.in_time(until, leave).await,
            Limit::Never => Some(leave.await),
        };
        let late = || overloaded(lock.as_str(), self.clock.now().since(started));
        // The semaphore is never closed, so only the limit ends the wait without leave.
        let admitted = admitted.and_then(Result::ok).ok_or_else(late)?;
        if let Some(turn) = turn {
            turn.ask();
        }
        Ok(admitted)
    }
}

pub(super) fn overloaded(lock: &str, after: Duration) -> Error {
    Error::new(Kind::Overloaded { lock: lock.into(), most: MAX_ATTEMPTS, after }, Vec::new())
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
