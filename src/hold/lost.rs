//! What a task without a guard can see of a hold; and how to wait for the end of a hold, or of
//! several that are lost together.

use std::{
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::select_all};

use super::{Entry, Hold};
use crate::proto::{Error, HoldId};

/// A hold, for work under it that has no guard: it can ask whether the lock is still held.
///
/// It borrows nothing, so it can be spawned and can outlive the guards. It keeps no lock alive, and
/// dropping it has no effect on one.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), quorate::Error> {
/// # async fn next_page() -> Option<String> { None }
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
/// let read = quorum.rw_lock("prices").run_read(async |reading| {
///     let mut pages = Vec::new();
///     while let Some(page) = next_page().await {
///         println!("{} more for {}", reading.remaining().as_secs(), reading.hold());
///         pages.push(page);
///     }
///     Ok::<_, quorate::Error>(pages)
/// });
/// read.await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HoldView(pub(super) Arc<Hold>);

impl HoldView {
    /// The lock's name.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The hold, as voters store it and as the errors of other clients name it.
    pub fn hold(&self) -> &HoldId {
        &self.0.id
    }

    /// Whether the lock may still be relied on: false as soon as it is lost, or the last guard of
    /// the hold has left. As [`MutexGuard::is_held`](crate::MutexGuard::is_held).
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// The time for which the lock may be relied on if no renewal succeeds; zero once the hold is
    /// over.
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// Completes when the hold is over, with the reason.
    pub fn lost(&self) -> Lost {
        Lost::of(vec![Arc::clone(&self.0)])
    }
}

impl fmt::Debug for HoldView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HoldView")
            .field("name", &self.name())
            .field("hold", self.hold())
            .field("remaining", &self.remaining())
            .finish()
    }
}

/// Completes when a hold is over, or one of several, with the reason:
/// [`Lost`](crate::ErrorKind::Lost), or [`Released`](crate::ErrorKind::Released) by its last guard.
///
/// It borrows nothing, so it can be spawned and can outlive the guards. Clones wait for the same
/// holds. It keeps no lock alive, and dropping it has no effect on one.
///
/// # Examples
///
/// Passing the end on, as to a `tokio_util::sync::CancellationToken`:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), quorate::Error> {
/// # let voters = quorate::embedded::voters(3);
/// # let quorum = quorate::Quorate::builder().embedded(&voters).connect().await?;
/// let (cancel, cancelled) = tokio::sync::oneshot::channel();
/// let guard = quorum.mutex("invoice:42").lock().await?;
/// let lost = guard.lost();
/// tokio::spawn(async move { cancel.send(lost.await) });
/// guard.release().await?;
/// assert!(cancelled.await.expect("the task goes on").is_released());
/// # Ok(())
/// # }
/// ```
#[must_use = "it does nothing until it is awaited"]
pub struct Lost {
    holds: Vec<Arc<Hold>>,
    wait: Pin<Box<dyn Future<Output = Error> + Send + Sync>>,
}

impl Lost {
    /// Completes when this hold is not parked any more.
    pub(crate) fn of_parked(hold: Arc<Hold>) -> Self {
        Self::of(vec![hold])
    }

    /// Completes when one of these holds is over. There is one at least.
    pub(super) fn of(holds: Vec<Arc<Hold>>) -> Self {
        let waiting = holds.clone();
        let wait = Box::pin(async move {
            let end = async {
                let ends = waiting.iter().map(|hold| Box::pin(hold.until_lost()));
                let ((), first, _) = select_all(ends).await;
                Ok(first_loss_of(&waiting).unwrap_or_else(|| waiting[first].lost()))
            };
            waiting[0].unforked(end).await.unwrap_or_else(|closed| closed)
        });
        Self { holds, wait }
    }
}

impl Future for Lost {
    type Output = Error;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Error> {
        self.wait.as_mut().poll(context)
    }
}

impl Clone for Lost {
    fn clone(&self) -> Self {
        Self::of(self.holds.clone())
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.holds.iter().map(|hold| &hold.id).collect();
        f.debug_struct("Lost").field("holds", &ids).finish_non_exhaustive()
    }
}

// Several holds that are lost together.

/// Ends all of these holds as lost as soon as one of them is.
// Otherwise others would wait for locks that are of no use without the lost one
// (`others_outlive_the_lost_one`). The guard of all need not wait for this task: it asks each hold.
pub(crate) fn lose_together(entries: &[Entry]) {
    if entries.len() < 2 || crate::mutant!("others_outlive_the_lost_one") {
        return;
    }
    let holds = holds(entries);
    let coordinator = Arc::clone(&holds[0].coordinator);
    coordinator.spawn(async move {
        if !Lost::of(holds.clone()).await.is_released() {
            for hold in &holds {
                hold.forsake();
            }
        }
    });
}

/// Completes when one of them is lost, with the reason.
pub(crate) fn one_is_lost(entries: &[Entry]) -> Lost {
    Lost::of(holds(entries))
}

/// Why they are lost: the error of the one that took the others along.
pub(crate) fn first_loss(entries: &[Entry]) -> Option<Error> {
    if entries.iter().all(Entry::is_held) {
        return None;
    }
    first_loss_of(&holds(entries))
}

/// Does the work as long as all of them are held.
pub(crate) async fn while_held<F: Future>(entries: &[Entry], work: F) -> Result<F::Output, Error> {
    let done = until_lost(entries, work).await?;
    // The work may have blocked its thread since one was lost: then nothing could drop it, and what
    // it returned may have been done beside another holder
    // (`work_that_ends_after_the_loss_is_told_so`).
    first_loss(entries).map_or(Ok(done), Err)
}

/// The same with work that can fail.
// If both the work and the lock failed, the caller gets the error of the work: it came first, and
// says why.
pub(crate) async fn try_while_held<T, E: From<Error>>(
    entries: &[Entry],
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let done = until_lost(entries, work).await??;
    first_loss(entries).map_or(Ok(done), |lost| Err(lost.into()))
}

/// Does the work, and drops it the moment one of the holds is lost.
async fn until_lost<F: Future>(entries: &[Entry], work: F) -> Result<F::Output, Error> {
    let (mut lost, mut work) = (one_is_lost(entries), pin!(work));
    poll_fn(|context| {
        // The clock first: a timer may be late, and no work may be done after the deadline.
        if !crate::mutant!("work_outlives_the_deadline")
            && let Some(error) = first_loss(entries)
        {
            return Poll::Ready(Err(error));
        }
        if let Poll::Ready(error) = lost.poll_unpin(context) {
            return Poll::Ready(Err(error));
        }
        work.as_mut().poll(context).map(Ok)
    })
    .await
}

fn first_loss_of(holds: &[Arc<Hold>]) -> Option<Error> {
    let mut lost: Vec<_> = holds.iter().filter(|hold| !hold.is_held()).collect();
    // A hold that ends with the others is no cause.
    lost.sort_by_key(|hold| hold.is_forsaken());
    lost.first().map(|hold| hold.lost())
}

fn holds(entries: &[Entry]) -> Vec<Arc<Hold>> {
    entries.iter().map(|entry| Arc::clone(&entry.hold)).collect()
}
