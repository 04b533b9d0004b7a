//! The thread of the clients. Their connections live on it, and it renews what they hold, whatever
//! the threads of the program do meanwhile.

use std::{
    io, mem,
    panic::{self, AssertUnwindSafe},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::runtime::{self, Handle, Runtime};
use tracing::{Dispatch, dispatcher};

use crate::{proto::Error, sync::PerProcess};

// One for all, and not the caller's runtime: decision 2 of `docs/design.md`.
static STARTED: PerProcess<Option<Runtime>> = PerProcess::new();

/// The runtime of the thread, which begins when it is asked for first and goes on until the process
/// ends.
pub(crate) fn runtime() -> Result<Handle, Error> {
    let mut started = STARTED.lock();
    if let Some(runtime) = &*started {
        return Ok(runtime.handle().clone());
    }
    let runtime = start().map_err(|why| {
        Error::invalid(format!("the thread of the clients cannot be started: {why}"))
    })?;
    Ok(started.insert(runtime).handle().clone())
}

/// One worker, and not a runtime of the current thread: that would be woken by a call to the system
/// for each voter that is asked, though it is awake.
fn start() -> io::Result<Runtime> {
    let mut builder = runtime::Builder::new_multi_thread();
    // Those that come after the first do what must not block it, and end soon. Nothing of this
    // library stays on one for long: functions of its users may, so their number is tokio's own.
    let is_first = AtomicBool::new(true);
    let name = move || {
        let is_first = is_first.swap(false, Ordering::Relaxed);
        if is_first { "quorate".into() } else { "quorate-pool".into() }
    };
    builder.worker_threads(1).thread_name_fn(name).enable_all();
    // None waits for more to do. With tokio's feature `parking_lot`, which `full` has, a thread that
    // waits is in a list of the whole process. A forked one has the list without the threads, puts
    // its own into their memory, and goes round in it for ever.
    builder.thread_keep_alive(Duration::ZERO);
    // What fred writes by the crate `log` could come to a subscriber here, which may block.
    builder.on_thread_start(|| mem::forget(dispatcher::set_default(&Dispatch::none())));
    // Tokio panics where the system gives it no thread.
    panic::catch_unwind(AssertUnwindSafe(|| builder.build()))
        .unwrap_or_else(|_| Err(io::Error::other("the system gives no further one")))
}

/// Makes what needs a runtime to be made: in the caller's, or else in that of the thread, for
/// callers that are not of tokio.
pub(crate) fn within_runtime<T>(make: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current().is_err().then(runtime).and_then(Result::ok);
    let _inside = runtime.as_ref().map(Handle::enter);
    make()
}
