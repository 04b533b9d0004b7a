//! The scripts of the semaphore.

use super::Script;

pub(crate) static ACQUIRE: Script = Script {
    name: "semaphore/acquire",
    source: source!(
        "semaphore/acquire",
        ["expire", "time", "queue", "call", "enter", "slots", "served", "each"]
    ),
    keys: &["slots", "ends", "queue", "served", "alive", "permits"],
    shared: &["calls", "lease_ms", "wait_ms"],
    args: &["hold", "asked", "wanted", "start", "floors", "ticket"],
    width: 5,
    votes: true,
};

pub(crate) static RENEW: Script = Script {
    name: "semaphore/renew",
    source: source!(
        "semaphore/renew",
        ["expire", "time", "queue", "call", "enter", "slots", "served", "each"]
    ),
    keys: &["slots", "ends", "revoked", "queue", "served", "alive", "permits"],
    shared: &["calls", "lease_ms"],
    args: &["hold", "asked", "given", "anew"],
    width: 3,
    votes: true,
};

pub(crate) static RELEASE: Script = Script {
    name: "semaphore/release",
    source: source!(
        "semaphore/release",
        ["expire", "time", "queue", "call", "enter", "slots", "served", "each"]
    ),
    keys: &["slots", "ends", "queue", "served", "alive"],
    shared: &["calls"],
    args: &["hold", "count", "place"],
    width: 3,
    votes: false,
};

pub(crate) static SHORTEN: Script = Script {
    name: "semaphore/shorten",
    source: source!("semaphore/shorten", ["time", "slots", "each"]),
    keys: &["slots", "ends"],
    shared: &[],
    args: &["hold", "lease_ms", "wanted"],
    width: 3,
    votes: false,
};

pub(crate) static FORCE_RELEASE: Script = Script {
    name: "semaphore/force_release",
    source: source!(
        "semaphore/force_release",
        ["expire", "time", "queue", "call", "enter", "slots", "served", "each"]
    ),
    keys: &["slots", "ends", "revoked", "queue", "served", "alive"],
    shared: &["calls"],
    args: &["hold", "marker_ms"],
    width: 3,
    votes: false,
};

pub(crate) static CLEAR: Script = Script {
    name: "semaphore/clear",
    source: source!("semaphore/clear", ["clear", "each"]),
    keys: &["slots", "ends", "revoked", "queue", "served", "alive", "permits"],
    shared: &[],
    args: &[],
    width: 3,
    votes: false,
};

pub(crate) static INSPECT: Script = Script {
    name: "semaphore/inspect",
    source: source!("semaphore/inspect", ["time", "queue", "list", "slots", "each"]),
    keys: &["slots", "ends", "queue", "alive", "permits"],
    shared: &[],
    args: &["from"],
    width: 5,
    votes: false,
};
