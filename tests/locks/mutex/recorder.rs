//! A recorder of metrics that panics costs nobody a lock.

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit,
};
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
