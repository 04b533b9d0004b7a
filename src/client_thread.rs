//! The thread of the clients. It has their connections, and renews their holds whatever the threads
//! of the program do.

use std::{
    io, mem,
    panic::{self, AssertUnwindSafe},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::runtime::{self, Handle, Runtime};
use tracing::{Dispatch, dispatcher};

use crate::{proto::Error, sync::PerProcess};

// One for all, and not the caller's runtime: design 2.
static STARTED: PerProcess<Option<Runtime>> = PerProcess::new();

/// The runtime of the thread. The first call starts it, and it goes on until the process ends.
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

fn start() -> io::Result<Runtime> {
    // One worker, and not a runtime of the current thread: that would be woken by a call to the
    // system for each voter that is asked, though it is awake.
    let mut builder = runtime::Builder::new_multi_thread();
    // The threads after the first one do work that would block it. Work of this library ends soon
    // there. Functions of its users may not, so the limit for their number is tokio's.
    let is_first = AtomicBool::new(true);
    let name = move || {
        let is_first = is_first.swap(false, Ordering::Relaxed);
        if is_first { "quorate".into() } else { "quorate-pool".into() }
    };
    builder.worker_threads(1).thread_name_fn(name).enable_all();
    // No idle thread waits for work. With tokio's feature `parking_lot`, a waiting thread is in a
    // list of the whole process. A forked process inherits the list without the threads, puts its
    // own threads into their memory, and goes round in the list for ever.
    builder.thread_keep_alive(Duration::ZERO);
    // fred writes by the crate `log`. A subscriber that gets this may block the thread.
    builder.on_thread_start(|| mem::forget(dispatcher::set_default(&Dispatch::none())));
    // Tokio panics where the system gives it no thread.
    panic::catch_unwind(AssertUnwindSafe(|| builder.build()))
        .unwrap_or_else(|_| Err(io::Error::other("the system gives no further one")))
}

/// Runs code that needs a runtime: in the caller's, or else in that of the thread.
pub(crate) fn within_runtime<T>(make: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current().is_err().then(runtime).and_then(Result::ok);
    let _inside = runtime.as_ref().map(Handle::enter);
    make()
}
