//! One request to every voter.

use std::{sync::Arc, time::Duration};

use crate::{node::Call, scripts::Script, words::Token};

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

/// The token, or the least that it may be, and for how long it is remembered.
pub(super) fn fencing(token: Option<Token>, memory: Option<Duration>) -> (String, String) {
    match token.zip(memory) {
        Some((token, memory)) => (token.to_string(), millis(memory)),
        None => (String::new(), String::new()),
    }
}
