//! What is seen from outside: every metric there is, with its labels.

use std::pin::pin;

use futures::FutureExt;
use metrics_util::debugging::{DebugValue, Snapshotter};
use quorate::metric::{self, Label, Metric, MetricKind};
use quorate_tests::{inside::drop_script, prelude::*};

use crate::amnesia::inside::old_voters;

/// Every metric's labels, each with all the values it was seen or promised with.
type Labels = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Without the label of locks that are named, and of mutexes only.
fn promised() -> Labels {
    let labels = |metric: &Metric| {
        let labels = metric.labels.iter().filter(|label| label.name != "lock");
        let values = |label: &Label| match label.name {
            "kind" => BTreeSet::from(["mutex".to_owned()]),
            _ => label.values.iter().map(|value| (*value).to_owned()).collect(),
        };
        labels.map(|label| (label.name.to_owned(), values(label))).collect()
    };
    metric::ALL.iter().map(|metric| (metric.name.to_owned(), labels(metric))).collect()
}

/// What was recorded, and each metric's unit and help.
fn recorded(snapshotter: &Snapshotter) -> (Labels, BTreeMap<String, f64>) {
    let (mut found, mut gauges) = (Labels::new(), BTreeMap::new());
    for (key, unit, help, value) in snapshotter.snapshot().into_vec() {
        let name = key.key().name().to_owned();
        assert!(unit.is_some() && help.is_some(), "{name} is not described");
        // Each counter begins at zero, whether or not it ever counts.
        if matches!(value, DebugValue::Counter(0)) {
            continue;
        }
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

    // A round that fails, and one that finds out that all voters have forgotten the hold.
    on.kill_all();
    sleep(secs(11)).await;
    assert!(theirs.try_lock().await.unwrap_err().is_no_quorum());
    on.restart_all();
    assert!(guard.lost().await.is_lost());
    drop(guard);

    // A round that is superseded, and an entry after that, once those that restarted count again.
    sleep(secs(31)).await;
    let guard = ours.clone().owner(&owner).lock().await.unwrap();
    assert!(on.client().await.admin().clear(LockKind::Mutex, "a").await.unwrap());
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
    let voters = old_voters(4);
    let on = Fixture::of(&voters);
    let mutex = on.client().await.mutex("c");

    let fence = ["SET", "quorate:{c}:fence", "1800000000000000"];
    voters[0].command(&fence).unwrap();
    mutex.lock().await.unwrap().release().await.unwrap();
    voters[0].command(&["SET", fence[1], "1900000000000000"]).unwrap();
    drop_script(&voters, "mutex/renew");
    assert!(mutex.try_lock().await.unwrap_err().is_no_quorum());

    voters[1].jump_clock(60_000_000);
    sleep(secs(1)).await;
    assert!(mutex.try_lock().await.is_err());
    // Only one who met it before knows that it has moved, and only who did not that it is young.
    voters[2].restart_empty();
    on.client().await;
    // And only who comes when the clock is right again does not know that it has moved.
    voters[1].jump_clock(-60_000_000);
    on.client().await;
    voters[3].wipe();
    voters[3].cut(InFlight::Lost);
    sleep(secs(1)).await;
    voters[3].restart_with_copy_of(&voters[0]);
}

/// Every other way to lose a lock, every reason to ask again, and votes that nobody gives back.
async fn holds_are_lost_and_waiters_are_called() {
    let voters = embedded::voters(4);
    let on = Fixture::of(&voters);
    let other = on.client().await;
    let (ours, theirs) = (on.client().await.mutex("d"), other.mutex("d"));
    let everywhere = |words: &[&str]| {
        for voter in &voters {
            voter.command(words).unwrap();
        }
    };

    // One task hands the lock on to the next.
    let take = async || drop(ours.lock().await.unwrap());
    tokio::join!(take(), take());

    let guard = ours.clone().lease_fixed(secs(5)).lock().await.unwrap();
    assert!(guard.lost().await.is_lost());
    let guard = ours.clone().hold_at_most(secs(20)).lock().await.unwrap();
    assert!(guard.lost().await.is_lost());
    let guard = ours.lock().await.unwrap();
    everywhere(&["DEL", "quorate:{d}"]);
    everywhere(&["HSET", "quorate:{d}", "stranger:1", "1"]);
    assert!(guard.lost().await.is_lost());
    everywhere(&["DEL", "quorate:{d}"]);
    let guard = ours.lock().await.unwrap();
    everywhere(&["DEL", "quorate:{d}"]);
    assert!(guard.release().await.unwrap_err().is_lost());

    // One of two that are held together is ended.
    let quorum: &quorate::Quorate = &other;
    let both = quorum.lock_all([quorum.mutex("f"), quorum.mutex("g")]).lock().await.unwrap();
    assert!(quorum.admin().clear(LockKind::Mutex, "f").await.unwrap());
    assert!(both.lost().await.is_lost());

    // All of a client's tasks end, as when the runtime ends on which it lives.
    let machine = Machine::new("gone");
    let gone = on.builder().machine(&machine).connect().await.unwrap();
    let guard = gone.mutex("e").lock().await.unwrap();
    machine.kill();
    assert!(guard.lost().await.to_string().contains("runtime"));

    // A client that believes otherwise of the voters has been there.
    let builder = on.builder().voter_configuration(1);
    let astray = builder.connect().await.unwrap();
    let guard = astray.mutex("h").lock().await.unwrap();
    everywhere(&["HSET", "quorate:{%roster}", "2 of a later release", "9999999999999 60000 it"]);
    assert!(guard.lost().await.to_string().contains("clients disagree about the voters"));
    drop(astray.close().await);

    // One waits until the next poll, one whose connections break, and one until the release.
    let guard = ours.lock().await.unwrap();
    assert!(theirs.lock_within(secs(3)).await.unwrap().is_none());
    let waits = tokio::spawn(theirs.lock_within(secs(9)));
    sleep(ms(100)).await;
    // Another one stands behind it in the queue for a moment.
    assert!(on.client().await.mutex("d").lock_within(ms(50)).await.unwrap().is_none());
    for voter in &voters {
        voter.cut(InFlight::Lost);
    }
    sleep(ms(900)).await;
    guard.release().await.unwrap();
    let guard = waits.await.unwrap().unwrap().expect("it is its own now");

    voters.iter().for_each(EmbeddedVoter::kill);
    assert!(guard.lost().await.is_lost());
    sleep(secs(60)).await;
    // It cannot give back what it had.
    drop(other.close().await);
    voters.iter().for_each(EmbeddedVoter::restart_empty);
}

#[tokio::test(start_paused = true)]
async fn every_metric_is_recorded_with_the_labels_that_are_promised() {
    let (snapshotter, recording) = record();
    everything_happens().await;
    voters_are_suspected_and_told_a_token().await;
    holds_are_lost_and_waiters_are_called().await;
    drop(recording);

    let (mut seen, gauges) = recorded(&snapshotter);
    // The values of this label are the voters' addresses.
    let voters: BTreeSet<String> = (1..=4).map(|voter| format!("embedded-{voter}")).collect();
    for labels in seen.values_mut() {
        if let Some(values) = labels.get_mut("voter") {
            assert_eq!(*values, voters);
            values.clear();
        }
    }
    // Voters inside the process have no replicas; `tests/servers/replicas.rs` sees this one.
    let mut promised = promised();
    promised.remove("quorate_unacknowledged_total").expect("it is promised");
    // Nor a limit of their memory; `tests/house/prometheus` queries this one.
    promised.remove("quorate_memory_ratio").expect("it is promised");
    // Nor does a mutex have observers; `tests/locks/election.rs` has some.
    // Nor TLS; `tests/servers/secure/tls.rs` sees the certificate.
    for name in [
        "quorate_observers",
        "quorate_observed_total",
        "quorate_certificate_start_seconds",
        "quorate_certificate_end_seconds",
    ] {
        promised.remove(name).expect("it is promised");
    }
    assert_eq!(seen, promised);
    assert!(seen.len() >= 20, "there are promises");

    // Whoever held or waited has gone.
    let left = gauges["quorate_held"].abs() + gauges["quorate_waiting"].abs();
    assert!(left < 0.5, "{gauges:?}");
}

/// The table of the book: name, type, and labels with their values.
fn in_the_book() -> BTreeMap<String, (String, String)> {
    let page = quorate_support::read_file("docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `quorate_"));
    rows.map(|row| {
        let mut cells = row.split(" | ");
        let mut cell = || cells.next().expect("a cell").to_owned();
        let name = format!("quorate_{}", cell().trim_end_matches('`'));
        (name, (cell(), cell()))
    })
    .collect()
}

#[test]
fn the_book_lists_every_metric_with_its_type_and_labels() {
    let row = |metric: &Metric| {
        let labels = metric.labels.iter().filter(|label| label.name != "lock");
        let labels = labels.map(|label| match label.name {
            name @ ("kind" | "voter") => format!("`{name}`"),
            name => format!("`{name}`: {}", label.values.join(", ")),
        });
        let kind = format!("{:?}", metric.kind).to_lowercase();
        (metric.name.to_owned(), (kind, labels.collect::<Vec<_>>().join(", ")))
    };
    assert_eq!(in_the_book(), metric::ALL.iter().map(row).collect());
}

/// The counters that are there, all of them at zero: those of voters with `voter` and the others by
/// the kind of lock.
fn begun(snapshotter: &Snapshotter) -> BTreeSet<(String, String)> {
    let mut begun = BTreeSet::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let kind = key.key().labels().find(|label| label.key() == "kind");
        let kind = kind.map_or("voter", |kind| kind.value()).to_owned();
        if let DebugValue::Counter(0) = value {
            begun.insert((kind, key.key().name().to_owned()));
        }
    }
    begun
}

// A dashboard shows the first event as an increase, and nothing of locks that nobody uses.
#[tokio::test(start_paused = true)]
async fn counters_begin_at_zero_and_those_of_a_kind_with_its_first_lock() {
    let (snapshotter, _recording) = record();
    let (_voters, quorum) = with_client(3).await;
    let of = |kind: &str, label: &str| {
        let counters = metric::ALL.iter().filter(|metric| metric.kind == MetricKind::Counter);
        let counters = counters.filter(|metric| metric.labels.iter().any(|one| one.name == label));
        counters.map(|metric| (kind.to_owned(), metric.name.to_owned())).collect::<BTreeSet<_>>()
    };
    assert_eq!(begun(&snapshotter), of("voter", "voter"));
    let guard = quorum.fair_mutex("a").try_lock().await.unwrap().expect("it is free");
    let begun = begun(&snapshotter);
    assert!(begun.is_superset(&of("fair_mutex", "kind")), "{begun:?}");
    let kinds: BTreeSet<_> = begun.iter().map(|(kind, _)| &**kind).collect();
    assert_eq!(kinds, BTreeSet::from(["fair_mutex", "voter"]));
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn locks_are_named_only_where_that_was_asked_for() {
    let (snapshotter, _recording) = record();
    let voters = embedded::voters(3);
    let quorum = Quorate::builder().embedded(&voters).named_metrics(["report", "invoice:*"]);
    let quorum = quorum.connect().await.unwrap();
    for name in ["report", "invoice:1", "invoice:2", "secret"] {
        let guard = quorum.mutex(name).lock().await.unwrap();
        assert!(quorum.mutex(name).lock_within(secs(15)).await.unwrap().is_none());
        guard.release().await.unwrap();
    }
    let (mut labels, mut grants) = (Labels::new(), BTreeMap::<_, usize>::new());
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let lock = key.key().labels().find(|label| label.key() == "lock");
        let lock = lock.map_or("none", |lock| lock.value()).to_owned();
        if let DebugValue::Histogram(values) = &value
            && key.key().name() == metric::WAIT_SECONDS
        {
            *grants.entry(lock.clone()).or_default() += values.len();
        }
        if value != DebugValue::Counter(0) && key.key().labels().any(|one| one.key() == "kind") {
            let seen = labels.entry(key.key().name().to_owned()).or_default();
            seen.entry("lock".to_owned()).or_default().insert(lock);
        }
    }
    let expected = [("invoice:*", 2), ("none", 1), ("report", 1)];
    assert_eq!(grants, expected.map(|(lock, count)| (lock.to_owned(), count)).into());
    for (name, seen) in &labels {
        assert_eq!(
            seen["lock"].iter().collect::<Vec<_>>(),
            ["invoice:*", "none", "report"],
            "{name}"
        );
    }
    assert!(labels.len() >= 11, "all that have a kind and happened: {labels:?}");
}

/// The values of a histogram, of a gauge or of a counter, all labels together.
fn values(snapshotter: &Snapshotter, name: &str) -> Vec<f64> {
    let mut found = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        if key.key().name() == name {
            match value {
                DebugValue::Histogram(values) => {
                    found.extend(values.into_iter().map(f64::from));
                }
                DebugValue::Gauge(value) => found.push(value.into_inner()),
                DebugValue::Counter(count) => {
                    found.push(f64::from(u32::try_from(count).expect("it is small")));
                }
            }
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_is_gone_at_two_releases_is_lost_once() {
    let (snapshotter, _recording) = record();
    let on = Fixture::embedded(3);
    let one = on.client().await.mutex("a").lock().await.unwrap();
    let two = one.reenter().await.unwrap();
    (0..on.voters()).for_each(|voter| on.command(voter, &["FLUSHALL"]));
    let (one, two) = tokio::join!(one.release(), two.release());
    assert!(one.unwrap_err().is_lost() && two.unwrap_err().is_lost());
    let lost: f64 = values(&snapshotter, metric::LOST).into_iter().sum();
    assert!((lost - 1.0).abs() < 0.5, "{lost} holds are lost");
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_the_validity_is_seen_at_grants_and_renewals() {
    let (snapshotter, _recording) = record();
    let on = Fixture::embedded(3);
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let [left] = values(&snapshotter, metric::GRANT_VALIDITY)[..] else { panic!("one") };
    assert!(left > 0.999, "no time has passed: {left}");
    sleep(secs(11)).await;
    let [left] = values(&snapshotter, metric::RENEWAL_VALIDITY)[..] else { panic!("one") };
    assert!((0.65..0.67).contains(&left), "a third of the lease has passed: {left}");
    guard.release().await.unwrap();
    // Where its limit is near, renewals are as good as ever.
    let limited = on.client().await.mutex("a").hold_at_most(secs(25)).lock().await.unwrap();
    sleep(secs(21)).await;
    let left = values(&snapshotter, metric::RENEWAL_VALIDITY);
    assert!(left.len() == 2 && left.iter().all(|left| (0.65..0.67).contains(left)), "{left:?}");
    assert!(limited.remaining() <= secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_counted_by_its_reason_and_among_the_verdicts() {
    let (snapshotter, _recording) = record();
    let on = Fixture::embedded(3);
    let (ours, theirs) = (on.client().await.fair_mutex("a"), on.client().await.fair_mutex("a"));
    let others = on.client().await.fair_mutex("a");
    // Reading takes it all away: the refusals since, by reason, and those among the verdicts.
    let refused = || {
        let (mut reasons, mut verdicts) = (BTreeMap::<String, u64>::new(), 0);
        for (key, _, _, value) in snapshotter.snapshot().into_vec() {
            let DebugValue::Counter(count) = value else { continue };
            let label = |name| key.key().labels().find(|label| label.key() == name);
            if key.key().name() == metric::REFUSALS && count > 0 {
                let reason = label("reason").expect("it has a reason").value();
                *reasons.entry(reason.to_owned()).or_default() += count;
            }
            if label("verdict").is_some_and(|verdict| verdict.value() == "refused") {
                verdicts += count;
            }
        }
        assert_eq!(reasons.values().sum::<u64>(), verdicts, "{reasons:?}");
        reasons.into_keys().collect::<Vec<_>>()
    };

    let guard = ours.lock().await.unwrap();
    assert_eq!(refused(), [""; 0]);
    assert!(theirs.try_lock().await.unwrap().is_none());
    assert_eq!(refused(), ["held"]);
    let mut first = pin!(theirs.lock());
    assert!(timeout(ms(100), &mut first).await.is_err());
    assert_eq!(refused(), ["held"]);
    assert!(others.lock_within(ms(100)).await.unwrap().is_none());
    assert_eq!(refused(), ["behind"]);
    guard.release().await.unwrap();
    let guard = first.await.unwrap();
    refused();

    // A hold that one voter forgets is renewed, and gets that vote anew.
    on.command(0, &["DEL", "quorate:{a}"]);
    sleep(secs(11)).await;
    assert_eq!(refused(), ["absent"]);
    assert!(on.client().await.admin().clear(LockKind::Mutex, "a").await.unwrap());
    assert!(guard.lost().await.is_lost());
    assert_eq!(refused(), ["forced"]);
}

#[tokio::test(start_paused = true)]
async fn connections_are_counted_as_they_stand() {
    let (snapshotter, _recording) = record();
    let voters = embedded::voters(1);
    // Reading takes it all away: what is seen is by how much it has changed.
    let changed_by = |by: f64| {
        let seen: f64 = values(&snapshotter, metric::CONNECTIONS).into_iter().sum();
        assert!((seen - by).abs() < 0.5, "{seen} more, not {by}");
    };
    let first = client(&voters).await;
    changed_by(1.0);
    let second = client(&voters).await;
    changed_by(1.0); // of all clients together
    voters[0].cut(InFlight::Lost);
    changed_by(0.0); // they stand again
    voters[0].kill();
    changed_by(-2.0);
    voters[0].restart_empty();
    changed_by(2.0);
    drop(first.close().await);
    sleep(ms(1)).await;
    changed_by(-1.0);
    drop(second);
    sleep(ms(1)).await;
    changed_by(-1.0);
}

#[tokio::test(start_paused = true)]
async fn who_is_closed_or_gone_counts_no_more() {
    let (snapshotter, _recording) = record();
    let voters = embedded::voters(3);
    // Reading takes it all away: what is seen is by how much it has changed, over all voters.
    let changed_by = |clients: f64, quarantined: f64| {
        let mut gauges = BTreeMap::<String, f64>::new();
        for (key, _, _, value) in snapshotter.snapshot().into_vec() {
            if let DebugValue::Gauge(value) = value {
                *gauges.entry(key.key().name().to_owned()).or_default() += value.into_inner();
            }
        }
        let seen = |name| gauges.get(name).copied().unwrap_or_default();
        let wrong = (seen(metric::CLIENTS) - clients).abs()
            + (seen(metric::QUARANTINED) - quarantined).abs();
        assert!(wrong < 0.5, "{gauges:?}, not {clients} and {quarantined}");
    };
    let (first, second) = (client(&voters).await, client(&voters).await);
    changed_by(6.0, 0.0);
    voters[0].restart_empty();
    sleep(ms(1)).await;
    changed_by(0.0, 2.0);
    drop(first.close().await);
    drop(first.close().await);
    changed_by(-3.0, -1.0);
    drop(second);
    sleep(ms(1)).await;
    changed_by(-3.0, -1.0);
    // A quarantine that ends later ends nothing any more.
    sleep(secs(60)).await;
    changed_by(0.0, 0.0);
    drop(first);
    sleep(ms(1)).await;
    changed_by(0.0, 0.0);
}
