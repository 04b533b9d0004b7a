//! The way into a client: open until it is closed, and then empty before the voters are left.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{signal::Signal, words::Error};

/// Counts who is inside.
#[derive(Debug)]
pub(crate) struct ClosingGate {
    places: Semaphore,
    closing: Signal<bool>,
}

impl ClosingGate {
    pub(super) fn open() -> Self {
        Self { places: Semaphore::new(Self::most() as usize), closing: Signal::new(false) }
    }

    fn most() -> u32 {
        u32::MAX >> 4
    }

    /// Does `work` inside; gives it up when the gate is closed.
    pub(crate) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let _place: SemaphorePermit<'_> = self.places.try_acquire().map_err(|_| Error::closed())?;
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
        assert!(inside.await.unwrap_err().is_closed());
        closed.await;
        gate.close().await;
        assert!(gate.within(async { Ok(()) }).await.unwrap_err().is_closed());
    }
}
