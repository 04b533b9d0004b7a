//! Mutexes, and how a thread waits for a future.

use std::{
    pin::pin,
    process,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

/// Locks a mutex, also after a panic.
// A poisoned mutex would end all locks of the client. Nothing in this crate leaves a value half
// changed where it could panic, so the value is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of a process behind a mutex, for statics. A forked process begins with a new state.
// In the parent's state, a mutex that a thread had locked at the fork stays locked for ever, and
// the threads that the state needs are not in the child.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    /// The state of the process that used it first, with the id of that process.
    first: OnceLock<(u32, Mutex<T>)>,
    /// The states of processes that were forked from it.
    // A chain, not a table by process: a table would need a mutex, which the fork may have locked.
    forked: OnceLock<Box<Self>>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { first: OnceLock::new(), forked: OnceLock::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let process = process::id();
        let (of, state) = self.first.get_or_init(|| (process, Mutex::default()));
        if *of == process { lock(state) } else { self.forked.get_or_init(Box::default).lock() }
    }
}

impl<T: Default> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Wakes the thread that waits for a future.
pub(crate) struct CallerWaker {
    thread: Thread,
    // Beside the token of `park`: other code may unpark this thread too, or park it and take the
    // token.
    woken: AtomicBool,
}

impl CallerWaker {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), woken: AtomicBool::new(false) })
    }

    /// Whether the thread was woken since the last call of this.
    pub(crate) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::Acquire)
    }
}

impl Wake for CallerWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Runs a future on the calling thread, which does nothing else meanwhile.
pub(crate) fn wait_for<F: Future>(future: F) -> F::Output {
    let caller = CallerWaker::new();
    let waker = Waker::from(Arc::clone(&caller));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        while !caller.take() {
            thread::park();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use fork::{Fork, fork, waitpid};

    use super::*;

    static STATE: PerProcess<Vec<u32>> = PerProcess::new();

    /// Whether the state has these numbers, and adds one. Ends a process that waits for it.
    fn adds(number: u32, to: &[u32]) -> bool {
        thread::spawn(|| {
            thread::sleep(Duration::from_secs(20));
            process::exit(2);
        });
        let mut state = STATE.lock();
        let is_so = *state == *to;
        state.push(number);
        is_so
    }

    #[test]
    fn a_forked_process_has_state_of_its_own_although_the_parents_is_locked() {
        let mut locked = STATE.lock();
        locked.push(1);
        let Fork::Parent(child) = fork().expect("the system has room") else {
            let is_so = adds(2, &[]) && adds(3, &[2]);
            let locked = STATE.lock();
            let Fork::Parent(grandchild) = fork().expect("the system has room") else {
                process::exit(i32::from(!adds(4, &[])));
            };
            let is_so = is_so && waitpid(grandchild).expect("it ends") == 0 && *locked == [2, 3];
            process::exit(i32::from(!is_so));
        };
        assert_eq!(waitpid(child).expect("it ends"), 0, "1: it is the parent's; 2: it waits");
        assert_eq!(*locked, [1]);
    }
}
