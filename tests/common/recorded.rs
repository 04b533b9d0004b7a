//! What a client records of itself.

use std::collections::BTreeMap;

use metrics::LocalRecorderGuard;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

/// Whatever is recorded on this thread, for as long as the guard lives: a client of servers is to
/// live on it.
pub fn record() -> (Snapshotter, LocalRecorderGuard<'static>) {
    let recorder = Box::leak(Box::new(DebuggingRecorder::new()));
    (recorder.snapshotter(), metrics::set_default_local_recorder(recorder))
}

/// What was recorded of these metrics, by the values of the labels. Reading takes it all away: what
/// is not recorded again is zero.
pub fn recorded(snapshotter: &Snapshotter, names: &[&str]) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let value = match value {
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Counter(count) => f64::from(u32::try_from(count).expect("it is small")),
            DebugValue::Histogram(_) => continue,
        };
        if names.contains(&key.key().name()) {
            let labels: Vec<_> = key.key().labels().map(metrics::Label::value).collect();
            found.insert(labels.join(" "), value);
        }
    }
    found
}

/// Of what was counted, what has grown since.
pub fn counted(snapshotter: &Snapshotter, name: &str) -> BTreeMap<String, f64> {
    let mut counted = recorded(snapshotter, &[name]);
    counted.retain(|_, count| *count > 0.5);
    counted
}

/// What was added to a counter since then: all of it, or what has this label.
pub fn added(snapshotter: &Snapshotter, name: &str, label: Option<&str>) -> u64 {
    let counts = snapshotter.snapshot().into_vec().into_iter().filter_map(|(key, _, _, value)| {
        let has = |wanted| key.key().labels().any(|label| label.value() == wanted);
        match value {
            DebugValue::Counter(count) if key.key().name() == name => {
                label.is_none_or(has).then_some(count)
            }
            _ => None,
        }
    });
    counts.sum()
}
