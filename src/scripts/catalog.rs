//! Every script with the names of its keys and arguments.
//!
//! Each takes a list of requests: all keys of the first, all of the second, and so on; the
//! arguments likewise. Each request adds three entries to the flat reply: `code, ms, text`.

/// One Lua script.
#[derive(Debug)]
pub(crate) struct Script {
    /// Its path under `lua/`, without the ending.
    pub(crate) name: &'static str,
    /// The text that is loaded into the server.
    pub(crate) source: &'static str,
    /// What one request puts into KEYS.
    pub(crate) keys: &'static [&'static str],
    /// What one request puts into ARGV.
    pub(crate) args: &'static [&'static str],
    /// Whether its answers are votes.
    pub(crate) votes: bool,
}

/// Two scripts are the same when they are the same static.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Script {}

macro_rules! script {
    ($name:literal, [$($lib:literal),*], keys $keys:expr, args $args:expr, votes $votes:expr) => {
        Script {
            name: $name,
            source: concat!(
                $(include_str!(concat!("../../lua/lib/", $lib, ".lua")),)*
                include_str!(concat!("../../lua/", $name, ".lua"))
            ),
            keys: &$keys,
            args: &$args,
            votes: $votes,
        }
    };
}

/// The scripts of every lock that one holds at a time.
pub(crate) mod mutex {
    use super::Script;

    pub(crate) static ACQUIRE: Script = script!(
        "mutex/acquire", ["expire", "time", "fence", "claim", "queue", "each"],
        keys ["lock", "queue", "alive", "fence"],
        args ["hold", "count", "lease_ms", "floor", "keep_ms"], votes true
    );
    pub(crate) static RENEW: Script = script!(
        "mutex/renew", ["expire", "time", "fence", "claim", "each"],
        keys ["lock", "revoked", "fence"],
        args ["hold", "count", "lease_ms", "token", "keep_ms"], votes true
    );
    pub(crate) static RELEASE: Script = script!(
        "mutex/release", ["time", "queue", "each"],
        keys ["lock", "queue", "alive"],
        args ["hold", "count", "place", "channel", "publish", "calls"], votes false
    );
    pub(crate) static FORCE_RELEASE: Script = script!(
        "mutex/force_release", ["expire", "time", "queue", "each"],
        keys ["lock", "revoked", "queue", "alive"],
        args ["hold", "marker_ms", "channel", "publish", "calls"], votes false
    );
    pub(crate) static CLEAR: Script = script!(
        "mutex/clear", ["clear", "each"],
        keys ["lock", "revoked", "fence", "queue", "alive"], args [], votes false
    );
    pub(crate) static INSPECT: Script = script!(
        "mutex/inspect", ["time", "queue", "each"],
        keys ["lock", "queue", "alive"], args [], votes false
    );
}

/// What the fair mutex does besides.
pub(crate) mod fair {
    use super::Script;

    pub(crate) static ACQUIRE: Script = script!(
        "fair/acquire", ["expire", "time", "fence", "claim", "queue", "enter", "each"],
        keys ["lock", "queue", "alive", "fence"],
        args ["hold", "count", "lease_ms", "floor", "keep_ms", "ticket", "wait_ms", "calls"],
        votes true
    );
}

/// The scripts of the read/write lock.
pub(crate) mod rw {
    use super::Script;

    pub(crate) static ACQUIRE: Script = script!(
        "rw/acquire", ["expire", "time", "fence", "claim", "queue", "enter", "rw", "each"],
        keys ["writer", "readers", "queue", "alive", "writers", "fence"],
        args [
            "hold", "mode", "count", "lease_ms", "floor", "keep_ms", "ticket", "turn", "wait_ms",
            "calls"
        ],
        votes true
    );
    pub(crate) static RENEW: Script = script!(
        "rw/renew", ["expire", "time", "fence", "claim", "queue", "rw", "each"],
        keys ["writer", "readers", "revoked", "fence"],
        args ["hold", "mode", "count", "lease_ms", "token", "keep_ms"], votes true
    );
    pub(crate) static RELEASE: Script = script!(
        "rw/release", ["expire", "time", "claim", "queue", "rw", "each"],
        keys ["writer", "readers", "queue", "alive", "writers"],
        args ["hold", "count", "place", "calls"], votes false
    );
    pub(crate) static FORCE_RELEASE: Script = script!(
        "rw/force_release", ["expire", "time", "claim", "queue", "rw", "each"],
        keys ["writer", "readers", "revoked", "queue", "alive", "writers"],
        args ["hold", "marker_ms", "calls"], votes false
    );
    pub(crate) static CLEAR: Script = script!(
        "rw/clear", ["clear", "each"],
        keys ["writer", "readers", "revoked", "fence", "queue", "alive", "writers"], args [],
        votes false
    );
    pub(crate) static INSPECT: Script = script!(
        "rw/inspect", ["time", "queue", "each"],
        keys ["writer", "readers", "queue", "alive", "writers"], args [], votes false
    );
}

/// What is asked of a voter, and not of a lock.
pub(crate) mod voter {
    use super::Script;

    pub(crate) static LOOK: Script = script!(
        "voter/look", ["time", "each"],
        keys ["mark"], args ["birth", "life", "keep_ms"], votes false
    );
}

/// All of them.
pub(crate) static ALL: [&Script; 14] = [
    &mutex::ACQUIRE,
    &mutex::RENEW,
    &mutex::RELEASE,
    &mutex::FORCE_RELEASE,
    &mutex::CLEAR,
    &mutex::INSPECT,
    &fair::ACQUIRE,
    &rw::ACQUIRE,
    &rw::RENEW,
    &rw::RELEASE,
    &rw::FORCE_RELEASE,
    &rw::CLEAR,
    &rw::INSPECT,
    &voter::LOOK,
];
