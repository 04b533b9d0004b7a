//! Every script with the names of its keys and arguments.
//!
//! Each takes a list of requests: all keys of the first, all of the second, and so on. Before the
//! arguments of the first stand those that all requests share. Each request adds as many entries
//! as the script is wide to the flat reply: `code, ms, id` and what else it has to say. Behind all
//! keys may stand the mark of the voter's data: then the last entry says what they are called.

use super::Script;

/// The scripts of every lock that one holds at a time.
pub(crate) mod mutex {
    use super::Script;

    pub(crate) static ACQUIRE: Script = Script {
        keys: &["lock", "queue", "alive", "fence"],
        shared: &["calls", "lease_ms", "keep_ms", "wait_ms"],
        args: &["hold", "floor", "ticket"],
        width: 5,
        votes: true,
        ..script!(
            "mutex/acquire",
            ["expire", "time", "each"],
            rest "ask, number_after": [
                "fence", "holder", "vote", "queue", "call", "enter", "take", "bid", "ask"
            ]
        )
    };

    pub(crate) static RENEW: Script = Script {
        keys: &["lock", "revoked", "fence"],
        shared: &["lease_ms", "keep_ms"],
        args: &["hold", "count", "token", "known", "anew"],
        votes: true,
        ..script!("mutex/renew", ["expire", "time", "fence", "holder", "vote", "renew", "each"])
    };

    pub(crate) static RELEASE: Script = Script {
        keys: &["lock", "queue", "alive"],
        shared: &["calls", "aloud", "publish"],
        args: &["hold", "count", "place", "channel"],
        ..script!(
            "mutex/release",
            ["publish", "each"],
            rest "release_any": [
                "time", "holder", "recount", "queue", "call", "tell", "release_any"
            ]
        )
    };

    pub(crate) static SHORTEN: Script = Script {
        keys: &["lock", "alive"],
        args: &["hold", "lease_ms"],
        ..script!("mutex/shorten", ["time", "holder", "queue", "shorten_place", "each"])
    };

    pub(crate) static FORCE_RELEASE: Script = Script {
        keys: &["lock", "revoked", "queue", "alive"],
        shared: &["calls", "aloud", "publish"],
        args: &["hold", "marker_ms", "channel"],
        ..script!(
            "mutex/force_release",
            ["expire", "time", "holder", "queue", "call", "publish", "tell", "each"]
        )
    };

    pub(crate) static CLEAR: Script = Script {
        keys: &["lock", "revoked", "fence", "queue", "alive"],
        ..script!("mutex/clear", ["clear", "each"])
    };

    pub(crate) static INSPECT: Script = Script {
        keys: &["lock", "queue", "alive", "fence"],
        width: 5,
        ..script!("mutex/inspect", ["time", "holder", "queue", "list", "each"])
    };
}

/// What an election does besides the scripts of a mutex, by which it ends and is inspected.
pub(crate) mod election {
    use super::Script;

    pub(crate) static ACQUIRE: Script = Script {
        keys: &["lock", "queue", "alive", "fence"],
        shared: &["calls", "lease_ms", "keep_ms", "wait_ms", "publish"],
        args: &["hold", "floor", "ticket", "value", "news"],
        width: 5,
        votes: true,
        ..script!(
            "election/acquire",
            [
                "expire", "time", "fence", "holder", "vote", "queue", "call", "enter", "take",
                "bid", "ask", "publish", "each"
            ]
        )
    };

    pub(crate) static RENEW: Script = Script {
        keys: &["lock", "revoked", "fence"],
        shared: &["lease_ms", "keep_ms", "publish"],
        args: &["hold", "token", "value", "news", "anew"],
        votes: true,
        ..script!(
            "election/renew",
            ["expire", "time", "fence", "holder", "vote", "renew", "publish", "each"]
        )
    };

    pub(crate) static LOOK: Script = Script {
        keys: &["lock", "fence"],
        width: 5,
        ..script!("election/look", ["time", "holder", "list", "each"])
    };
}

/// The scripts of the read/write lock.
pub(crate) mod rw {
    use super::Script;

    pub(crate) static ACQUIRE: Script = Script {
        keys: &["writer", "readers", "queue", "alive", "writers", "fence"],
        shared: &["calls", "mode", "turn", "lease_ms", "keep_ms", "wait_ms"],
        args: &["hold", "floor", "ticket"],
        width: 5,
        votes: true,
        ..script!(
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
        )
    };

    pub(crate) static RENEW: Script = Script {
        keys: &["writer", "readers", "revoked", "fence"],
        shared: &["mode", "lease_ms", "keep_ms"],
        args: &["hold", "count", "token", "anew"],
        votes: true,
        ..script!("rw/renew", ["expire", "time", "fence", "holder", "vote", "renew", "rw", "each"])
    };

    pub(crate) static RELEASE: Script = Script {
        keys: &["writer", "readers", "queue", "alive", "writers"],
        shared: &["calls"],
        args: &["hold", "count", "place"],
        ..script!(
            "rw/release",
            ["time", "holder", "recount", "queue", "call", "rw", "call_next", "each"]
        )
    };

    /// Of a read. A write is shortened as a mutex is.
    pub(crate) static SHORTEN: Script = Script {
        keys: &["readers", "alive"],
        args: &["hold", "lease_ms"],
        ..script!("rw/shorten", ["time", "queue", "shorten_place", "each"])
    };

    pub(crate) static FORCE_RELEASE: Script = Script {
        keys: &["writer", "readers", "revoked", "queue", "alive", "writers"],
        shared: &["calls"],
        args: &["hold", "marker_ms"],
        ..script!(
            "rw/force_release",
            ["expire", "time", "holder", "queue", "call", "rw", "call_next", "each"]
        )
    };

    pub(crate) static CLEAR: Script = Script {
        keys: &["writer", "readers", "revoked", "fence", "queue", "alive", "writers"],
        ..script!("rw/clear", ["clear", "each"])
    };

    pub(crate) static INSPECT: Script = Script {
        keys: &["writer", "readers", "queue", "alive", "writers", "fence"],
        width: 5,
        ..script!("rw/inspect", ["time", "holder", "queue", "list", "each"])
    };
}

/// The scripts of the semaphore.
pub(crate) mod semaphore {
    use super::Script;

    pub(crate) static ACQUIRE: Script = Script {
        keys: &["slots", "ends", "queue", "served", "alive", "permits"],
        shared: &["calls", "lease_ms", "wait_ms"],
        args: &["hold", "asked", "wanted", "start", "floors", "ticket"],
        width: 5,
        votes: true,
        ..script!(
            "semaphore/acquire",
            ["expire", "time", "queue", "call", "enter", "slots", "served", "each"]
        )
    };

    pub(crate) static RENEW: Script = Script {
        keys: &["slots", "ends", "revoked", "queue", "served", "alive", "permits"],
        shared: &["calls", "lease_ms"],
        args: &["hold", "asked", "given", "anew"],
        votes: true,
        ..script!(
            "semaphore/renew",
            ["expire", "time", "queue", "call", "enter", "slots", "served", "each"]
        )
    };

    pub(crate) static RELEASE: Script = Script {
        keys: &["slots", "ends", "queue", "served", "alive"],
        shared: &["calls"],
        args: &["hold", "count", "place"],
        ..script!(
            "semaphore/release",
            ["expire", "time", "queue", "call", "enter", "slots", "served", "each"]
        )
    };

    pub(crate) static SHORTEN: Script = Script {
        keys: &["slots", "ends"],
        args: &["hold", "lease_ms", "wanted"],
        ..script!("semaphore/shorten", ["time", "slots", "each"])
    };

    pub(crate) static FORCE_RELEASE: Script = Script {
        keys: &["slots", "ends", "revoked", "queue", "served", "alive"],
        shared: &["calls"],
        args: &["hold", "marker_ms"],
        ..script!(
            "semaphore/force_release",
            ["expire", "time", "queue", "call", "enter", "slots", "served", "each"]
        )
    };

    pub(crate) static CLEAR: Script = Script {
        keys: &["slots", "ends", "revoked", "queue", "served", "alive", "permits"],
        ..script!("semaphore/clear", ["clear", "each"])
    };

    pub(crate) static INSPECT: Script = Script {
        keys: &["slots", "ends", "queue", "alive", "permits"],
        args: &["from"],
        width: 5,
        ..script!("semaphore/inspect", ["time", "queue", "list", "slots", "each"])
    };
}

/// Where programs in Java lock by the same records: what is asked about theirs, and the
/// read/write lock in their format.
pub(crate) mod redisson {
    use super::Script;

    pub(crate) static QUEUE: Script =
        Script { keys: &["waiting", "timeouts"], ..script!("redisson/queue", ["each"]) };

    pub(crate) static RW_ACQUIRE: Script = Script {
        keys: &["lock", "stem", "fence"],
        shared: &["lease_ms", "keep_ms"],
        args: &["hold", "floor"],
        width: 4,
        votes: true,
        ..script!(
            "redisson/rw_acquire",
            ["expire", "time", "fence", "rw_java", "rw_java_give", "each"]
        )
    };

    pub(crate) static RW_RENEW: Script = Script {
        keys: &["lock", "stem", "revoked", "fence"],
        shared: &["lease_ms", "keep_ms"],
        args: &["hold", "count", "token", "anew"],
        votes: true,
        ..script!(
            "redisson/rw_renew",
            ["expire", "time", "fence", "rw_java", "rw_java_give", "renew", "each"]
        )
    };

    pub(crate) static RW_RELEASE: Script = Script {
        keys: &["lock", "stem"],
        shared: &["publish"],
        args: &["hold", "count", "channel"],
        ..script!("redisson/rw_release", ["recount", "rw_java", "publish", "rw_java_end", "each"])
    };

    pub(crate) static RW_FORCE_RELEASE: Script = Script {
        keys: &["lock", "stem", "revoked"],
        shared: &["publish"],
        args: &["hold", "marker_ms", "channel"],
        ..script!(
            "redisson/rw_force_release",
            ["expire", "rw_java", "publish", "rw_java_end", "each"]
        )
    };

    pub(crate) static RW_CLEAR: Script = Script {
        keys: &["lock", "revoked", "fence"],
        ..script!("redisson/rw_clear", ["clear", "each"])
    };

    pub(crate) static RW_INSPECT: Script = Script {
        keys: &["lock", "stem", "fence"],
        width: 5,
        ..script!("redisson/rw_inspect", ["time", "rw_java", "list", "each"])
    };
}

/// What is asked of a voter, and not of a lock.
pub(crate) mod voter {
    use super::Script;

    pub(crate) static LOOK: Script = Script {
        keys: &["mark"],
        shared: &["keep_ms"],
        args: &["birth", "life", "durable", "lost"],
        width: 5,
        ..script!("voter/look", ["time", "each"])
    };

    pub(crate) static ROSTER: Script = Script {
        keys: &["roster"],
        shared: &["keep_ms"],
        args: &["mine", "counts_ms", "who", "heard"],
        width: 4,
        ..script!("voter/roster", ["time", "each"])
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
