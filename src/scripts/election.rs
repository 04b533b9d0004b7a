//! What an election does besides the scripts of a mutex, by which it ends and is inspected.

use super::Script;

pub(crate) static ACQUIRE: Script = Script {
    name: "election/acquire",
    source: source!(
        "election/acquire",
        [
            "expire", "time", "fence", "holder", "vote", "queue", "call", "enter", "take", "bid",
            "ask", "publish", "each"
        ]
    ),
    keys: &["lock", "queue", "alive", "fence"],
    shared: &["calls", "lease_ms", "keep_ms", "wait_ms", "publish"],
    args: &["hold", "floor", "ticket", "value", "news"],
    width: 5,
    votes: true,
};

pub(crate) static RENEW: Script = Script {
    name: "election/renew",
    source: source!(
        "election/renew",
        ["expire", "time", "fence", "holder", "vote", "renew", "publish", "each"]
    ),
    keys: &["lock", "revoked", "fence"],
    shared: &["lease_ms", "keep_ms", "publish"],
    args: &["hold", "token", "value", "news", "anew"],
    width: 3,
    votes: true,
};

pub(crate) static LOOK: Script = Script {
    name: "election/look",
    source: source!("election/look", ["time", "holder", "list", "each"]),
    keys: &["lock", "fence"],
    shared: &[],
    args: &[],
    width: 5,
    votes: false,
};
