//! A recorder of metrics that panics costs nobody a lock, nor does one that takes its time.

use std::{
    cell::RefCell,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
};

use futures::FutureExt;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use quorate::Lost;
use quorate_tests::prelude::*;
use tokio::time::advance;

/// Panics when a lock is lost, and when the age of the oldest hold is told.
struct Failing;

struct FailingCounter;

impl CounterFn for FailingCounter {
    fn increment(&self, value: u64) {
        assert_eq!(value, 0, "this recorder cannot count losses");
    }

    fn absolute(&self, _value: u64) {}
}

struct FailingGauge;

impl GaugeFn for FailingGauge {
    fn increment(&self, _value: f64) {}
    fn decrement(&self, _value: f64) {}

    fn set(&self, value: f64) {
        panic!("this recorder cannot set {value}");
    }
}

impl Recorder for Failing {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() == metric::LOST {
            return Counter::from_arc(Arc::new(FailingCounter));
        }
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        if key.name() == metric::OLDEST_HOLD_SECONDS {
            return Gauge::from_arc(Arc::new(FailingGauge));
        }
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

// The watchdog looks after both at the same moment: the first is lost then, the second is to be
// renewed.
#[tokio::test(start_paused = true)]
async fn a_recorder_that_panics_at_a_loss_ends_no_other_lock() {
    let _recording = metrics::set_default_local_recorder(&Failing);
    let (_voters, quorum) = with_client(3).await;
    let ends = quorum.mutex("a").lease_fixed(secs(10)).lock().await.unwrap();
    let stays = quorum.mutex("b").lock().await.unwrap();
    sleep(secs(1)).await;
    advance(secs(12)).await;
    sleep(secs(100)).await;
    assert!(ends.lost().await.is_lost());
    assert!(stays.is_held(), "{}", stays.lost().await);
    stays.release().await.unwrap();
}

// The gauge is set every five seconds while anything is held, and once more when nothing is.
#[tokio::test(start_paused = true)]
async fn a_recorder_that_panics_at_a_gauge_ends_no_lock() {
    let _recording = metrics::set_default_local_recorder(&Failing);
    let (_voters, quorum) = with_client(3).await;
    for _ in 0..2 {
        let guard = quorum.mutex("a").lock().await.unwrap();
        sleep(secs(100)).await;
        assert!(guard.is_held(), "{}", guard.lost().await);
        guard.release().await.unwrap();
        sleep(secs(10)).await;
    }
}

thread_local! {
    /// The hold at which the recorder looks.
    static LOOKED_AT: RefCell<Option<Lost>> = const { RefCell::new(None) };
}

/// Looks at a hold whenever it is told something: nothing that this needs may be taken.
struct Looking;

impl Looking {
    fn look() {
        let looked_at = LOOKED_AT.take();
        // It looks once at a time.
        if let Some(hold) = looked_at {
            let _ = hold.clone().now_or_never();
            LOOKED_AT.set(Some(hold));
        }
    }
}

impl CounterFn for Looking {
    fn increment(&self, _: u64) {
        Self::look();
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Looking {
    fn increment(&self, _: f64) {
        Self::look();
    }

    fn decrement(&self, _: f64) {
        Self::look();
    }

    fn set(&self, _: f64) {
        Self::look();
    }
}

impl HistogramFn for Looking {
    fn record(&self, _: f64) {
        Self::look();
    }
}

impl Recorder for Looking {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Self))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(Self))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Self))
    }
}

/// Each way in which a hold ends, and a handing on.
async fn all_ends() {
    let (_voters, quorum) = with_client(3).await;
    let mutex = quorum.mutex("a");
    let look_at = |guard: &MutexGuard| LOOKED_AT.set(Some(guard.lost()));
    let next = async || {
        let guard = mutex.lock().await.expect("it is free");
        look_at(&guard);
        guard
    };
    next().await.release().await.expect("they confirm");
    drop(next().await);
    next().await.keep_for(secs(1)).await.expect("they confirm");
    let (guard, waits) = (next().await, tokio::spawn(mutex.lock()));
    sleep(secs(1)).await;
    drop(guard);
    drop(waits.await.expect("no panic").expect("it is free"));
    let ends = quorum.mutex("b").lease_fixed(secs(1)).lock().await.expect("it is free");
    look_at(&ends);
    assert!(ends.lost().await.is_lost());
    let stays = next().await;
    sleep(secs(20)).await;
    drop(quorum.close().await);
    drop(stays);
    LOOKED_AT.set(None);
}

#[test]
fn a_recorder_is_called_while_nobody_keeps_a_hold_from_others() {
    let (done, ends) = mpsc::channel::<()>();
    let test = thread::spawn(move || {
        let (_recording, _done) = (metrics::set_default_local_recorder(&Looking), done);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().expect("a runtime");
        runtime.block_on(all_ends());
    });
    let ended = ends.recv_timeout(secs(60));
    assert_eq!(ended, Err(RecvTimeoutError::Disconnected), "it waits for itself");
    test.join().expect("it goes well");
}
