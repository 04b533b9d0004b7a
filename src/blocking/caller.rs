//! Whether the calling thread may block, and how it waits for a future.

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

/// Blocks the calling thread until the future completes. The future may borrow, as it is polled on
/// the calling thread.
///
/// Fails, and polls nothing, inside a future that tokio runs. A thread of `spawn_blocking` also has
/// a handle to a runtime, but may wait.
pub(super) fn wait<F: Future>(future: F) -> Result<F::Output, Error> {
    // Tokio has no function that tells the two apart, so each check looks for what tokio does only
    // for a task. Neither is enough alone: an `unconstrained` task has no budget
    // (`no_call_blocks_a_future`, `every_call_works_where_tokio_lets_a_thread_block`).
    if has_budget() || has_scheduler() {
        return Err(Error::refused(ErrorKind::InsideRuntime, INSIDE_RUNTIME));
    }
    // The future may set timers, and this thread may have no runtime.
    let runtime = client_thread::runtime()?;
    let _inside = runtime.enter();
    // Not by `Handle::block_on`: it panics on a thread that a runtime has entered, for example in a
    // destructor after a poll, where neither check can see the runtime.
    Ok(wait_for(future))
}

/// Whether tokio limits the work before the next await. It does so for all that it polls, and not
/// in `spawn_blocking`, in `block_in_place` and on threads of the program.
fn has_budget() -> bool {
    // A budget can only be seen when it is spent. It fits in a byte, and the call fails then, so
    // the task does not miss it.
    let mut context = Context::from_waker(Waker::noop());
    (0..=u8::MAX).any(|_| match coop::poll_proceed(&mut context) {
        Poll::Ready(step) => {
            step.made_progress();
            false
        }
        Poll::Pending => true,
    })
}

/// Whether this thread runs tasks now.
fn has_scheduler() -> bool {
    // A task that yields is woken later, by the scheduler of its thread. Without a scheduler it is
    // woken at once.
    let caller = CallerWaker::new();
    let waker = Waker::from(Arc::clone(&caller));
    let yielded = pin!(yield_now()).poll(&mut Context::from_waker(&waker));
    yielded.is_pending() && !caller.take()
}
