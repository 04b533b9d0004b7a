//! What a client counts.

use metrics_util::debugging::{DebugValue, Snapshotter};

/// What was added to a counter since this was asked last: all of it, or what has this label.
pub(crate) fn counted(snapshotter: &Snapshotter, name: &str, label: Option<&str>) -> u64 {
    let snapshot = snapshotter.snapshot().into_vec().into_iter();
    let counts = snapshot.filter_map(|(key, _, _, value)| {
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
