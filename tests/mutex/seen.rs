//! What is seen from outside: every metric there is, with its labels.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use quorate::{
    Owner,
    embedded::{self, Fault},
};
use tokio::time::sleep;

use crate::fixture::{Fixture, ms, secs};

/// Where the names, labels and values are promised.
const PROMISES: &str = include_str!("../../src/words/metric.rs");

/// Every metric's labels, each with all the values it was seen or promised with.
type Labels = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Reads, from the comment above each name, `` `label` (value, value) ``.
fn promised() -> Labels {
    let (mut found, mut comment) = (Labels::new(), String::new());
    for line in PROMISES.lines() {
        if let Some(text) = line.strip_prefix("/// ") {
            comment += text;
            comment.push(' ');
        } else if let Some(name) = line.strip_prefix("pub(crate) const ") {
            let name = name.split('"').nth(1).expect("a name").to_owned();
            found.insert(name, labels(&comment));
            comment.clear();
        } else {
            comment.clear();
        }
    }
    found
}

fn labels(comment: &str) -> BTreeMap<String, BTreeSet<String>> {
    let Some((_, list)) = comment.split_once("Label") else { return BTreeMap::new() };
    let mut parts = list.split('`');
    let mut labels = BTreeMap::new();
    while let (Some(_), Some(label)) = (parts.next(), parts.next()) {
        let after = parts.clone().next().unwrap_or_default().trim_start();
        let values = after.strip_prefix('(').and_then(|rest| rest.split(')').next());
        let values = values.unwrap_or_default().split(", ").filter(|value| !value.is_empty());
        labels.insert(label.to_owned(), values.map(str::to_owned).collect());
    }
    labels
}

/// What was recorded, and each metric's unit and help.
fn recorded(snapshotter: &Snapshotter) -> (Labels, BTreeMap<String, f64>) {
    let (mut found, mut gauges) = (Labels::new(), BTreeMap::new());
    for (key, unit, help, value) in snapshotter.snapshot().into_vec() {
        let name = key.key().name().to_owned();
        assert!(unit.is_some() && help.is_some(), "{name} is not described");
        let labels = found.entry(name.clone()).or_default();
        for label in key.key().labels() {
            let values = labels.entry(label.key().to_owned()).or_default();
            values.insert(label.value().to_owned());
        }
        if let DebugValue::Gauge(value) = value {
            gauges.insert(name, value.into_inner());
        }
    }
    (found, gauges)
}

/// Grants, refusals, silence, a split, cancelling, renewals of every outcome, and a loss.
async fn everything_happens() {
    let mut on = Fixture::embedded(4);
    let (ours, theirs) = (on.client().await.mutex("a"), on.client().await.mutex("a"));
    let owner = Owner::new();

    // Granted and renewed, while others are refused, or give up.
    let guard = ours.clone().owner(&owner).lock().await.unwrap();
    assert!(theirs.try_lock().await.unwrap().is_none());
    assert!(theirs.lock().now_or_never().is_none());
    sleep(secs(11)).await;

    // A round that fails, one that is superseded, and an entry after that.
    on.kill_all();
    sleep(secs(11)).await;
    assert!(theirs.try_lock().await.unwrap_err().is_no_quorum());
    on.restart_all();
    sleep(secs(2)).await;
    assert!(theirs.force_release().await.unwrap());
    assert!(guard.lost().await.is_lost());
    assert!(ours.clone().owner(&owner).lock().await.unwrap_err().is_lost());
    drop(guard);

    // Two voters each for two strangers.
    for voter in 0..4 {
        let stranger = if voter < 2 { "stranger:1" } else { "stranger:2" };
        on.command(voter, &["DEL", "quorate:{a}:revoked"]);
        on.command(voter, &["HSET", "quorate:{b}", stranger, "1"]);
        on.command(voter, &["PEXPIRE", "quorate:{b}", "60000"]);
    }
    assert!(on.client().await.mutex("b").try_lock().await.unwrap().is_none());

    // What a voter answers late is an answer too, once those that restarted count again.
    sleep(secs(30)).await;
    on.delay(0, ms(20));
    theirs.lock().await.unwrap().release().await.unwrap();
    sleep(secs(1)).await;
}

/// Every reason for a quarantine but a restart, and a token that the others are told, or cannot be.
async fn voters_are_suspected_and_told_a_token() {
    let voters = embedded::voters(4);
    for voter in &voters {
        voter.set_uptime(secs(3600));
    }
    let on = Fixture::of(&voters);
    let mutex = on.client().await.mutex("c");

    let fence = ["SET", "quorate:{c}:fence", "1800000000000000"];
    voters[0].command(&fence).unwrap();
    mutex.lock().await.unwrap().release().await.unwrap();
    voters[0].command(&["SET", fence[1], "1900000000000000"]).unwrap();
    for voter in &voters {
        voter.fault_each(|sent| match sent.script() {
            Some("mutex/renew") => vec![Fault::DropRequests],
            _ => Vec::new(),
        });
    }
    assert!(mutex.try_lock().await.unwrap_err().is_no_quorum());

    voters[1].jump_clock(60_000_000);
    sleep(secs(1)).await;
    assert!(mutex.try_lock().await.is_err());
    // Only one who met it before knows that it has moved, and only who did not that it is young.
    voters[2].restart_empty();
    on.client().await;
}

#[tokio::test(start_paused = true)]
async fn every_metric_is_recorded_with_the_labels_that_are_promised() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let recording = metrics::set_default_local_recorder(&recorder);
    everything_happens().await;
    voters_are_suspected_and_told_a_token().await;
    drop(recording);

    let (mut seen, gauges) = recorded(&snapshotter);
    // The values of this label are the voters' addresses.
    let voters: BTreeSet<String> = (1..=4).map(|voter| format!("embedded-{voter}")).collect();
    for labels in seen.values_mut() {
        if let Some(values) = labels.get_mut("voter") {
            assert_eq!(*values, voters);
            values.clear();
        }
        if let Some(values) = labels.get_mut("kind") {
            assert_eq!(values.iter().collect::<Vec<_>>(), ["mutex"]);
            values.clear();
        }
    }
    // Voters inside the process have no replicas; `tests/replicas` sees this one.
    let mut promised = promised();
    promised.remove("quorate_unacknowledged_total").expect("it is promised");
    assert_eq!(seen, promised);
    assert!(seen.len() >= 9, "the promises were not read");

    // Whoever held or waited has gone.
    let left = gauges["quorate_held"].abs() + gauges["quorate_waiting"].abs();
    assert!(left < 0.5, "{gauges:?}");
}
