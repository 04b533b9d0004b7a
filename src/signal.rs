//! A value whose changes tasks wait for.

// tokio's `watch` wakes its waiters in an order of chance, so two runs of one seed of the
// simulation differed. This wakes them in the order in which they came. It also costs less: a
// `watch` walks eight lists at each change.

use std::{
    fmt,
    pin::pin,
    sync::{Mutex, MutexGuard},
};

use tokio::sync::Notify;

use crate::sync::lock;

pub(crate) struct Signal<T> {
    current: Mutex<Versioned<T>>,
    changed: Notify,
}

struct Versioned<T> {
    value: T,
    version: u64,
}

impl<T> Signal<T> {
    pub(crate) fn new(value: T) -> Self {
        let current = Mutex::new(Versioned { value, version: 0 });
        Self { current, changed: Notify::new() }
    }

    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.current().value)
    }

    /// Changes the value, and wakes all waiters.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        let mut current = self.current();
        change(&mut current.value);
        current.version += 1;
        // Free before the wake-ups: each waiter locks it at once.
        drop(current);
        self.changed.notify_waiters();
    }

    /// A number that grows with each change.
    pub(crate) fn version(&self) -> u64 {
        self.current().version
    }

    /// Completes when the value has changed since it had this version.
    pub(crate) fn changed_since(&self, version: u64) -> impl Future<Output = ()> {
        self.wait(move |current| current.version != version)
    }

    /// Completes when the condition holds.
    pub(crate) fn until(&self, is_so: impl Fn(&T) -> bool) -> impl Future<Output = ()> {
        self.wait(move |current| is_so(&current.value))
    }

    // Not an `async fn`: its future would have room for the arguments twice, and there may be one
    // for each of 10,000 waiters.
    fn wait(&self, is_so: impl Fn(&Versioned<T>) -> bool) -> impl Future<Output = ()> {
        let notify = &self.changed;
        async move {
            loop {
                let mut changed = pin!(notify.notified());
                // In the list before the look: a change in between would wake nobody.
                changed.as_mut().enable();
                if is_so(&self.current()) {
                    return;
                }
                changed.await;
            }
        }
    }

    fn current(&self) -> MutexGuard<'_, Versioned<T>> {
        lock(&self.current)
    }
}

impl<T: fmt::Debug> fmt::Debug for Signal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signal").field(&self.current().value).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn all_who_wait_are_woken_in_the_order_in_which_they_came() {
        let (signal, order) = (Arc::new(Signal::new(0)), Arc::new(Mutex::new(Vec::new())));
        let waiters: Vec<_> = (0..20)
            .map(|number| {
                let (signal, order) = (Arc::clone(&signal), Arc::clone(&order));
                tokio::spawn(async move {
                    signal.until(|value| *value > 0).await;
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        signal.change(|value| *value = 1);
        futures::future::join_all(waiters).await;
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_change_before_the_wait_counts_and_one_of_another_kind_does_not() {
        let signal = Signal::new(0);
        let version = signal.version();
        assert!(signal.changed_since(version).now_or_never().is_none());
        signal.change(|value| *value = 1);
        signal.changed_since(version).await;
        let mut two = Box::pin(signal.until(|value| *value == 2));
        assert!((&mut two).now_or_never().is_none());
        signal.change(|value| *value = 3);
        assert!((&mut two).now_or_never().is_none());
        signal.change(|value| *value = 2);
        two.await;
        assert_eq!(signal.read(|value| *value), 2);
    }
}
