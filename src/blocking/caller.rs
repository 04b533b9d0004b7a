//! The calling thread: whether it may wait, and how it does.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::task::{coop, yield_now};

use crate::{
    client_thread,
    proto::{Error, ErrorKind},
    sync::{CallerWaker, wait_for},
};

const INSIDE_RUNTIME: &str = "a blocking call inside a future that tokio runs would block its \
     thread: use the async call there, or `tokio::task::spawn_blocking`";

/// Blocks the calling thread until the future completes. The future may use what the runtime of the
/// clients' thread has; it is polled on the calling thread, so it can borrow.
///
/// Fails, and polls nothing, inside a future that tokio runs.
pub(super) fn wait<F: Future>(future: F) -> Result<F::Output, Error> {
    check_may_wait()?;
    let runtime = client_thread::runtime()?;
    let _inside = runtime.enter();
    Ok(wait_for(future))
}

/// Fails inside a future that tokio runs. Not where a thread only has a handle to a runtime, as
/// those of `spawn_blocking` have: they may wait.
///
/// Tokio has no function that tells the two apart. What it does differently can be seen, so nothing
/// has to panic for it.
pub(super) fn check_may_wait() -> Result<(), Error> {
    if has_budget() || has_scheduler() {
        return Err(Error::refused(ErrorKind::InsideRuntime, INSIDE_RUNTIME));
    }
    Ok(())
}

/// Whether tokio limits how much is done before the next await. It does so for all that it polls,
/// and not in `spawn_blocking`, in `block_in_place` and on threads of the program.
///
/// It spends what is left, which fits in a byte: the task is to fail anyway.
fn has_budget() -> bool {
    let mut context = Context::from_waker(Waker::noop());
    (0..=u8::MAX).any(|_| match coop::poll_proceed(&mut context) {
        Poll::Ready(step) => {
            step.made_progress();
            false
        }
        Poll::Pending => true,
    })
}

/// Whether this thread runs tasks now; also for a task that `unconstrained` has freed from its
/// limit. A task that yields is woken by the scheduler of its thread later, or at once where there
/// is no scheduler.
fn has_scheduler() -> bool {
    let caller = CallerWaker::new();
    let waker = Waker::from(Arc::clone(&caller));
    let yielded = pin!(yield_now()).poll(&mut Context::from_waker(&waker));
    yielded.is_pending() && !caller.take()
}
