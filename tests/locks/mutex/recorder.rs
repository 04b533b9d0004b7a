//! A recorder of metrics that panics costs nobody a lock.

use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use quorate_tests::prelude::*;
use tokio::time::advance;

/// Panics when a lock is lost.
struct Failing;

struct FailingCounter;

impl CounterFn for FailingCounter {
    fn increment(&self, value: u64) {
        assert_eq!(value, 0, "this recorder cannot count losses");
    }

    fn absolute(&self, _value: u64) {}
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

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
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
