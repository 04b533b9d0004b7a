//! The way into a client: open until it is closed, and then empty before the voters are left; or
//! until its runtime ends.

use std::{process, sync::Arc};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{proto::Error, signal::Signal};

/// Counts who is inside.
#[derive(Debug)]
pub(crate) struct ClosingGate {
    places: Semaphore,
    /// The process that connected. What a forked one has of the client leads nowhere.
    process: u32,
    closing: Arc<Signal<bool>>,
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

    /// Does `work` inside; gives it up when the gate is closed.
    pub(crate) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if self.process != process::id() {
            return Err(Error::closed());
        }
        let _place: SemaphorePermit<'_> = self.places.try_acquire().map_err(|_| Error::closed())?;
        // Whoever was inside may still have to leave.
        if self.closing.read(|closing| *closing) {
            return Err(Error::closed());
        }
        tokio::select! {
            biased;
            done = work => done,
            () = self.closing.until(|closing| *closing) => Err(Error::closed()),
        }
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
