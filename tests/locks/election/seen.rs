//! What metrics say about observers.

use quorate::{Observed, RestartGuard, metric};

use quorate_tests::{
    fixture::Fixture,
    recorded::{record, recorded},
};

#[tokio::test(start_paused = true)]
async fn observers_are_counted_and_what_they_are_told() {
    let (snapshotter, _recording) = record();
    let mut on = Fixture::embedded(3);
    let builder = on.builder().restart_guard(RestartGuard::Off).named_metrics(["named"]);
    let client = builder.connect().await.unwrap();
    let (mut one, mut other) = (client.election("a").observe(), client.election("named").observe());
    let seen = || recorded(&snapshotter, &[metric::OBSERVERS, metric::OBSERVED]);
    assert!(seen().is_empty(), "nobody has polled them");
    assert!(matches!(one.next().await, Some(Observed::NoLeader)));
    assert!(matches!(other.next().await, Some(Observed::NoLeader)));
    let leadership = client.election("a").campaign("x").await.unwrap();
    assert!(matches!(one.next().await, Some(Observed::Leader(_))));
    leadership.resign().await.unwrap();
    assert!(matches!(one.next().await, Some(Observed::NoLeader)));
    on.kill_all();
    assert!(matches!(one.next().await, Some(Observed::Unknown(_))));
    drop(other);
    // By the name of an election, and by what was told.
    let expected = [
        ("", 1.0),
        ("named", 0.0),
        ("leader", 1.0),
        ("no_leader", 2.0),
        ("unknown", 1.0),
        ("named no_leader", 1.0),
    ];
    assert_eq!(seen(), expected.map(|(labels, value)| (labels.to_owned(), value)).into());
    drop(one);
    let since = seen();
    assert_eq!(since.get(""), Some(&-1.0), "each look begins anew: {since:?}");
}
