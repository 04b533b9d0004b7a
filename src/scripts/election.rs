//! What an election does besides the scripts of a mutex, by which it ends and is inspected.

use super::script::{Arg, Script};

const HOLD: Arg = Arg::Text("hold");
const VALUE: Arg = Arg::Text("value");
const NEWS: Arg = Arg::Channel("news");
const LEASE_MS: Arg = Arg::Text("lease_ms");
const KEEP_MS: Arg = Arg::Text("keep_ms");

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
    shared: &[Arg::Channel("calls"), LEASE_MS, KEEP_MS, Arg::Text("wait_ms"), Arg::Publish],
    args: &[HOLD, Arg::Text("floor"), Arg::Text("ticket"), VALUE, NEWS],
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
    shared: &[LEASE_MS, KEEP_MS, Arg::Publish],
    args: &[HOLD, Arg::Text("token"), VALUE, NEWS, Arg::Text("anew")],
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
