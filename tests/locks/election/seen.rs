//! What metrics say about observers.

use std::collections::BTreeMap;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use quorate::{Observed, RestartGuard, metric};

use quorate_tests::fixture::Fixture;

#[tokio::test(start_paused = true)]
async fn observers_are_counted_and_what_they_are_told() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let mut on = Fixture::embedded(3);
    let builder = on.builder().restart_guard(RestartGuard::Off).named_metrics(["named"]);
    let client = builder.connect().await.unwrap();
    let (mut one, mut other) = (client.election("a").observe(), client.election("named").observe());
    assert_eq!(counted(&snapshotter), Counted::new(), "nobody has polled them");
    assert!(matches!(one.next().await, Some(Observed::NoLeader)));
    assert!(matches!(other.next().await, Some(Observed::NoLeader)));
    let leadership = client.election("a").campaign("x").await.unwrap();
    assert!(matches!(one.next().await, Some(Observed::Leader(_))));
    leadership.resign().await.unwrap();
    assert!(matches!(one.next().await, Some(Observed::NoLeader)));
    on.kill_all();
    assert!(matches!(one.next().await, Some(Observed::Unknown(_))));
    drop(other);
    let told = |lock: &str, outcome: &str| (lock.to_owned(), outcome.to_owned());
    let expected = Counted::from([
        (told("", ""), 1.0),
        (told("named", ""), 0.0),
        (told("", "leader"), 1.0),
        (told("", "no_leader"), 2.0),
        (told("", "unknown"), 1.0),
        (told("named", "no_leader"), 1.0),
    ]);
    assert_eq!(counted(&snapshotter), expected);
    drop(one);
    let since = counted(&snapshotter);
    assert_eq!(since.get(&told("", "")), Some(&-1.0), "each look begins anew: {since:?}");
}

/// By the name of an election and by what was told, `""` for how many observe.
type Counted = BTreeMap<(String, String), f64>;

fn counted(snapshotter: &Snapshotter) -> Counted {
    let mut found = Counted::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let value = match (key.key().name(), value) {
            (metric::OBSERVERS, DebugValue::Gauge(value)) => value.into_inner(),
            (metric::OBSERVED, DebugValue::Counter(count)) => {
                f64::from(u32::try_from(count).expect("it is small"))
            }
            _ => continue,
        };
        let label = |name| {
            let label = key.key().labels().find(|label| label.key() == name);
            label.map_or_else(String::new, |label| label.value().to_owned())
        };
        found.insert((label("lock"), label("outcome")), value);
    }
    found
}
