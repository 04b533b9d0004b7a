//! The thread of a client: it drives connections and timers, renews, and cleans up.

use std::{convert::Infallible, io, sync::Arc, thread, time::Duration};

use tokio::{
    runtime::{self, Handle},
    sync::oneshot,
};

use super::caller;
use crate::proto::Error;

/// How often the thread looks whether everything is settled, once nobody has the client any more.
const LOOK: Duration = Duration::from_millis(10);

/// A runtime with a thread of its own, which ends when this is dropped and no task is left.
#[derive(Debug)]
pub(super) struct ClientThread {
    runtime: Handle,
    /// Dropped with the last of those who share this.
    _last: oneshot::Sender<Infallible>,
}

impl ClientThread {
    pub(super) fn start() -> Result<Arc<Self>, Error> {
        let started = Self::started();
        let (this, _) = started.map_err(|why| {
            Error::invalid(format!("the thread of a blocking client cannot be started: {why}"))
        })?;
        Ok(Arc::new(this))
    }

    fn started() -> io::Result<(Self, thread::JoinHandle<()>)> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (last, over) = oneshot::channel();
        let this = Self { runtime: runtime.handle().clone(), _last: last };
        let body = move || {
            runtime.block_on(until_settled(over));
            // A name that is still being resolved keeps nobody waiting.
            runtime.shutdown_background();
        };
        let running = thread::Builder::new().name("quorate-client".into()).spawn(body)?;
        Ok((this, running))
    }

    /// Blocks the calling thread until the future completes. The future may use what this runtime
    /// has; it is polled on the calling thread, so it can borrow.
    ///
    /// Fails, and polls nothing, inside a future that tokio runs.
    pub(super) fn wait<F: Future>(&self, future: F) -> Result<F::Output, Error> {
        caller::check_may_wait()?;
        let _inside = self.runtime.enter();
        Ok(caller::wait_for(future))
    }
}

/// Completes when nobody has the client any more, and its tasks have ended: they do once nothing is
/// owed to the voters.
async fn until_settled(over: oneshot::Receiver<Infallible>) {
    // Nothing is ever sent.
    let _ = over.await;
    while Handle::current().metrics().num_alive_tasks() > 0 {
        tokio::time::sleep(LOOK).await;
    }
}
