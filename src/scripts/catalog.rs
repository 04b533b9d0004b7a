//! Every script with the names of its keys and arguments.
//!
//! Each takes a list of requests: all keys of the first, all of the second, and so on. Before the
//! arguments of the first stand those that all requests share. Each request adds as many entries
//! as the script is wide to the flat reply: `code, ms, id` and what else it has to say. Behind all
//! keys may stand the mark of the voter's data: then the last entry says what they are called.

use super::{Script, election, semaphore};

/// The scripts of every lock that one holds at a time.
pub(crate) mod mutex {
    use super::Script;

    pub(crate) static ACQUIRE: Script = Script {
        name: "mutex/acquire",
        source: source!(
            "mutex/acquire",
            ["expire", "time", "each"],
            rest "ask, number_after": [
                "fence", "holder", "vote", "queue", "call", "enter", "take", "bid", "ask"
            ]
        ),
        keys: &["lock", "queue", "alive", "fence"],
        shared: &["calls", "lease_ms", "keep_ms", "wait_ms"],
        args: &["hold", "floor", "ticket"],
        width: 5,
        votes: true,
    };

    pub(crate) static RENEW: Script = Script {
        name: "mutex/renew",
        source: source!(
            "mutex/renew",
            ["expire", "time", "fence", "holder", "vote", "renew", "each"]
        ),
        keys: &["lock", "revoked", "fence"],
        shared: &["lease_ms", "keep_ms"],
        args: &["hold", "count", "token", "known", "anew"],
        width: 3,
        votes: true,
    };

    pub(crate) static RELEASE: Script = Script {
        name: "mutex/release",
        source: source!(
            "mutex/release",
            ["publish", "each"],
            rest "release_any": [
                "time", "holder", "recount", "queue", "call", "tell", "release_any"
            ]
        ),
        keys: &["lock", "queue", "alive"],
        shared: &["calls", "aloud", "publish"],
        args: &["hold", "count", "place", "channel"],
        width: 3,
        votes: false,
    };

    pub(crate) static SHORTEN: Script = Script {
        name: "mutex/shorten",
        source: source!("mutex/shorten", ["time", "holder", "queue", "shorten_place", "each"]),
        keys: &["lock", "alive"],
        shared: &[],
        args: &["hold", "lease_ms"],
        width: 3,
        votes: false,
    };

    pub(crate) static FORCE_RELEASE: Script = Script {
        name: "mutex/force_release",
        source: source!(
            "mutex/force_release",
            ["expire", "time", "holder", "queue", "call", "publish", "tell", "each"]
        ),
        keys: &["lock", "revoked", "queue", "alive"],
        shared: &["calls", "aloud", "publish"],
        args: &["hold", "marker_ms", "channel"],
        width: 3,
        votes: false,
    };

    pub(crate) static CLEAR: Script = Script {
        name: "mutex/clear",
        source: source!("mutex/clear", ["clear", "each"]),
        keys: &["lock", "revoked", "fence", "queue", "alive"],
        shared: &[],
        args: &[],
        width: 3,
        votes: false,
    };

    pub(crate) static INSPECT: Script = Script {
        name: "mutex/inspect",
        source: source!("mutex/inspect", ["time", "holder", "queue", "list", "each"]),
        keys: &["lock", "queue", "alive", "fence"],
        shared: &[],
        args: &[],
        width: 5,
        votes: false,
    };
}

/// The scripts of the read/write lock.
pub(crate) mod rw {
    use super::Script;

    pub(crate) static ACQUIRE: Script = Script {
        name: "rw/acquire",
        source: source!(
            "rw/acquire",
            [
                "expire",
                "time",
                "fence",
                "holder",
                "vote",
                "queue",
                "call",
                "enter",
                "rw",
                "call_next",
                "each"
            ]
        ),
        keys: &["writer", "readers", "queue", "alive", "writers", "fence"],
        shared: &["calls", "mode", "turn", "lease_ms", "keep_ms", "wait_ms"],
        args: &["hold", "floor", "ticket"],
        width: 5,
        votes: true,
    };

    pub(crate) static RENEW: Script = Script {
        name: "rw/renew",
        source: source!(
            "rw/renew",
            ["expire", "time", "fence", "holder", "vote", "renew", "rw", "each"]
        ),
        keys: &["writer", "readers", "revoked", "fence"],
        shared: &["mode", "lease_ms", "keep_ms"],
        args: &["hold", "count", "token", "anew"],
        width: 3,
        votes: true,
    };

    pub(crate) static RELEASE: Script = Script {
        name: "rw/release",
        source: source!(
            "rw/release",
            ["time", "holder", "recount", "queue", "call", "rw", "call_next", "each"]
        ),
        keys: &["writer", "readers", "queue", "alive", "writers"],
        shared: &["calls"],
        args: &["hold", "count", "place"],
        width: 3,
        votes: false,
    };

    /// Of a read. A write is shortened as a mutex is.
    pub(crate) static SHORTEN: Script = Script {
        name: "rw/shorten",
        source: source!("rw/shorten", ["time", "queue", "shorten_place", "each"]),
        keys: &["readers", "alive"],
        shared: &[],
        args: &["hold", "lease_ms"],
        width: 3,
        votes: false,
    };

    pub(crate) static FORCE_RELEASE: Script = Script {
        name: "rw/force_release",
        source: source!(
            "rw/force_release",
            ["expire", "time", "holder", "queue", "call", "rw", "call_next", "each"]
        ),
        keys: &["writer", "readers", "revoked", "queue", "alive", "writers"],
        shared: &["calls"],
        args: &["hold", "marker_ms"],
        width: 3,
        votes: false,
    };

    pub(crate) static CLEAR: Script = Script {
        name: "rw/clear",
        source: source!("rw/clear", ["clear", "each"]),
        keys: &["writer", "readers", "revoked", "fence", "queue", "alive", "writers"],
        shared: &[],
        args: &[],
        width: 3,
        votes: false,
    };

    pub(crate) static INSPECT: Script = Script {
        name: "rw/inspect",
        source: source!("rw/inspect", ["time", "holder", "queue", "list", "each"]),
        keys: &["writer", "readers", "queue", "alive", "writers", "fence"],
        shared: &[],
        args: &[],
        width: 5,
        votes: false,
    };
}

/// Where programs in Java lock by the same records: what is asked about theirs, and the
/// read/write lock in their format.
pub(crate) mod redisson {
    use super::Script;

    pub(crate) static QUEUE: Script = Script {
        name: "redisson/queue",
        source: source!("redisson/queue", ["each"]),
        keys: &["waiting", "timeouts"],
        shared: &[],
        args: &[],
        width: 3,
        votes: false,
    };

    pub(crate) static RW_ACQUIRE: Script = Script {
        name: "redisson/rw_acquire",
        source: source!(
            "redisson/rw_acquire",
            ["expire", "time", "fence", "rw_java", "rw_java_give", "each"]
        ),
        keys: &["lock", "stem", "fence"],
        shared: &["lease_ms", "keep_ms"],
        args: &["hold", "floor"],
        width: 4,
        votes: true,
    };

    pub(crate) static RW_RENEW: Script = Script {
        name: "redisson/rw_renew",
        source: source!(
            "redisson/rw_renew",
            ["expire", "time", "fence", "rw_java", "rw_java_give", "renew", "each"]
        ),
        keys: &["lock", "stem", "revoked", "fence"],
        shared: &["lease_ms", "keep_ms"],
        args: &["hold", "count", "token", "anew"],
        width: 3,
        votes: true,
    };

    pub(crate) static RW_RELEASE: Script = Script {
        name: "redisson/rw_release",
        source: source!(
            "redisson/rw_release",
            ["recount", "rw_java", "publish", "rw_java_end", "each"]
        ),
        keys: &["lock", "stem"],
        shared: &["publish"],
        args: &["hold", "count", "channel"],
        width: 3,
        votes: false,
    };

    pub(crate) static RW_FORCE_RELEASE: Script = Script {
        name: "redisson/rw_force_release",
        source: source!(
            "redisson/rw_force_release",
            ["expire", "rw_java", "publish", "rw_java_end", "each"]
        ),
        keys: &["lock", "stem", "revoked"],
        shared: &["publish"],
        args: &["hold", "marker_ms", "channel"],
        width: 3,
        votes: false,
    };

    pub(crate) static RW_CLEAR: Script = Script {
        name: "redisson/rw_clear",
        source: source!("redisson/rw_clear", ["clear", "each"]),
        keys: &["lock", "revoked", "fence"],
        shared: &[],
        args: &[],
        width: 3,
        votes: false,
    };

    pub(crate) static RW_INSPECT: Script = Script {
        name: "redisson/rw_inspect",
        source: source!("redisson/rw_inspect", ["time", "rw_java", "list", "each"]),
        keys: &["lock", "stem", "fence"],
        shared: &[],
        args: &[],
        width: 5,
        votes: false,
    };
}

/// What is asked of a voter, and not of a lock.
pub(crate) mod voter {
    use super::Script;

    pub(crate) static LOOK: Script = Script {
        name: "voter/look",
        source: source!("voter/look", ["time", "each"]),
        keys: &["mark"],
        shared: &["keep_ms"],
        args: &["birth", "life", "durable", "lost"],
        width: 5,
        votes: false,
    };

    pub(crate) static ROSTER: Script = Script {
        name: "voter/roster",
        source: source!("voter/roster", ["time", "each"]),
        keys: &["roster"],
        shared: &["keep_ms"],
        args: &["mine", "counts_ms", "who", "heard"],
        width: 4,
        votes: false,
    };
}

/// All of them.
pub(crate) static ALL: [&Script; 33] = [
    &mutex::ACQUIRE,
    &mutex::RENEW,
    &mutex::RELEASE,
    &mutex::SHORTEN,
    &mutex::FORCE_RELEASE,
    &mutex::CLEAR,
    &mutex::INSPECT,
    &election::ACQUIRE,
    &election::RENEW,
    &election::LOOK,
    &rw::ACQUIRE,
    &rw::RENEW,
    &rw::RELEASE,
    &rw::SHORTEN,
    &rw::FORCE_RELEASE,
    &rw::CLEAR,
    &rw::INSPECT,
    &semaphore::ACQUIRE,
    &semaphore::RENEW,
    &semaphore::RELEASE,
    &semaphore::SHORTEN,
    &semaphore::FORCE_RELEASE,
    &semaphore::CLEAR,
    &semaphore::INSPECT,
    &redisson::QUEUE,
    &redisson::RW_ACQUIRE,
    &redisson::RW_RENEW,
    &redisson::RW_RELEASE,
    &redisson::RW_FORCE_RELEASE,
    &redisson::RW_CLEAR,
    &redisson::RW_INSPECT,
    &voter::LOOK,
    &voter::ROSTER,
];
