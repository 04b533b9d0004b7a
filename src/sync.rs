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

/// What a mutex keeps is whole at each moment, whoever panicked while it was locked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of a process behind a mutex, for statics. A forked process begins with a new one: in the
/// parent's, what a thread had locked at the fork stays locked, and what is in it needs threads
/// that are not here.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    /// Of the process that asked for it first.
    first: OnceLock<(u32, Mutex<T>)>,
    /// Of those that were forked from it.
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

/// Wakes the thread that waits.
pub(crate) struct CallerWaker {
    thread: Thread,
    /// Others may unpark the thread as well, or take away that it was unparked.
    woken: AtomicBool,
}

impl CallerWaker {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), woken: AtomicBool::new(false) })
    }

    /// Whether it was woken since this was asked last.
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
