//! One request to every voter.

use std::{sync::Arc, time::Duration};

use crate::{node::Call, scripts::Script};

/// `deadline`: how long each voter has to answer.
pub(super) fn request<const K: usize, const A: usize>(
    script: &'static Script,
    deadline: Duration,
    keys: [&Arc<str>; K],
    args: [&str; A],
) -> Call {
    debug_assert_eq!((K, A), (script.keys.len(), script.args.len()), "{}", script.name);
    Call {
        script,
        keys: keys.into_iter().cloned().collect(),
        args: args.into_iter().map(Arc::from).collect(),
        deadline,
    }
}

/// The settings see to it that leases are whole milliseconds.
pub(super) fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}
