//! The end of a hold, as something that can be waited for without a guard.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::select_all;

use super::{held::Hold, together::first_loss_of};
use crate::proto::Error;

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
    pub(super) fn of(hold: &Arc<Hold>) -> Self {
        let waiting = Arc::clone(hold);
        let wait = Box::pin(async move {
            waiting.until_lost().await;
            waiting.lost()
        });
        Self { holds: vec![Arc::clone(hold)], wait }
    }

    /// When one of them is over, and there is one at least.
    pub(super) fn of_any(holds: Vec<Arc<Hold>>) -> Self {
        let waiting = holds.clone();
        let wait = Box::pin(async move {
            let (why, ..) = select_all(waiting.iter().map(Self::of)).await;
            first_loss_of(&waiting).unwrap_or(why)
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
        match &*self.holds {
            [hold] => Self::of(hold),
            holds => Self::of_any(holds.to_vec()),
        }
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.holds.iter().map(|hold| hold.id()).collect();
        f.debug_struct("Lost").field("holds", &ids).finish_non_exhaustive()
    }
}
