//! Every script. What it takes stands in its header.
//!
//! Each takes a list of requests: all keys of the first, all of the second, and so on. Before the
//! arguments of the first stand those that all requests share. Each request adds as many entries
//! as the script is wide to the flat reply: `code, ms, id` and what else it has to say. Behind all
//! keys may stand the mark of the voter's data: then the last entry says what they are called.

use super::Script;

/// A module for each kind of lock, with a static for each script; and all of them in one list.
macro_rules! catalog {
    ($(
        $(#[$doc:meta])*
        $kind:ident { $($name:ident($($script:tt)*) $($votes:ident)?;)* }
    )*) => {
        $(
            $(#[$doc])*
            pub(crate) mod $kind {
                use super::Script;

                $(
                    pub(crate) static $name: Script = script!($($script)*)$(.$votes())?;
                )*
            }
        )*

        /// All of them.
        pub(crate) static ALL: &[&Script] = &[$($(&$kind::$name,)*)*];
    };
}

catalog! {
    /// The scripts of every lock that one holds at a time.
    mutex {
        ACQUIRE("mutex/acquire", ["expire", "time", "each"], rest "ask, number_after": ["fence",
            "holder", "vote", "queue", "call", "enter", "take", "bid", "ask"]) that_votes;
        RENEW("mutex/renew", ["expire", "time", "fence", "holder", "vote", "renew", "each"])
            that_votes;
        RELEASE("mutex/release", ["publish", "each"], rest "release_any": ["time", "holder",
            "recount", "queue", "call", "tell", "release_any"]);
        SHORTEN("mutex/shorten", ["time", "holder", "queue", "shorten_place", "each"]);
        FORCE_RELEASE("mutex/force_release", ["expire", "mark_ended", "time", "holder",
            "queue", "call", "publish", "tell", "each"]);
        CLEAR("mutex/clear", ["clear", "each"]);
        INSPECT("mutex/inspect", ["time", "holder", "queue", "list", "each"]);
    }

    /// What an election does besides the scripts of a mutex, by which it ends and is inspected.
    election {
        ACQUIRE("election/acquire", ["expire", "time", "fence", "holder", "vote", "queue", "call",
            "enter", "take", "bid", "ask", "publish", "each"]) that_votes;
        RENEW("election/renew", ["expire", "time", "fence", "holder", "vote", "renew", "publish",
            "each"]) that_votes;
        LOOK("election/look", ["time", "holder", "list", "each"]);
    }

    /// The scripts of the read/write lock.
    rw {
        ACQUIRE("rw/acquire", ["expire", "time", "fence", "holder", "vote", "queue", "call",
            "enter", "rw", "call_next", "each"]) that_votes;
        RENEW("rw/renew", ["expire", "time", "fence", "holder", "vote", "renew", "rw", "each"])
            that_votes;
        RELEASE("rw/release", ["time", "holder", "recount", "queue", "call", "rw", "call_next",
            "each"]);
        SHORTEN("rw/shorten", ["time", "queue", "shorten_place", "each"]);
        FORCE_RELEASE("rw/force_release", ["expire", "mark_ended", "time", "holder", "queue",
            "call", "rw", "call_next", "each"]);
        CLEAR("rw/clear", ["clear", "each"]);
        INSPECT("rw/inspect", ["time", "holder", "queue", "list", "each"]);
    }

    /// The scripts of the semaphore.
    semaphore {
        ACQUIRE("semaphore/acquire", ["expire", "time", "queue", "call", "enter", "slots",
            "served", "each"]) that_votes;
        RENEW("semaphore/renew", ["expire", "time", "queue", "call", "enter", "slots", "served",
            "each"]) that_votes;
        RELEASE("semaphore/release", ["expire", "time", "queue", "call", "enter", "slots",
            "served", "each"]);
        SHORTEN("semaphore/shorten", ["time", "slots", "each"]);
        FORCE_RELEASE("semaphore/force_release", ["expire", "mark_ended", "time", "queue",
            "call", "enter", "slots", "served", "each"]);
        CLEAR("semaphore/clear", ["clear", "each"]);
        INSPECT("semaphore/inspect", ["time", "queue", "list", "slots", "each"]);
    }

    /// Where programs in Java lock by the same records: what is asked about theirs, and the
    /// read/write lock in their format.
    redisson {
        QUEUE("redisson/queue", ["each"]);
        RW_ACQUIRE("redisson/rw_acquire", ["expire", "time", "fence", "rw_java", "rw_java_give",
            "each"]) that_votes;
        RW_RENEW("redisson/rw_renew", ["expire", "time", "fence", "rw_java", "rw_java_give",
            "renew", "each"]) that_votes;
        RW_RELEASE("redisson/rw_release", ["recount", "rw_java", "publish", "rw_java_end", "each"]);
        RW_FORCE_RELEASE("redisson/rw_force_release", ["expire", "mark_ended", "rw_java", "publish",
            "rw_java_end", "each"]);
        RW_CLEAR("redisson/rw_clear", ["clear", "each"]);
        RW_INSPECT("redisson/rw_inspect", ["time", "rw_java", "list", "each"]);
    }

    /// What is asked of a voter, and not of a lock.
    voter {
        LOOK("voter/look", ["time", "each"]);
        ROSTER("voter/roster", ["time", "each"]);
    }
}
