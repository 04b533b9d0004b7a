//! Every script. Its header in `lua/` says its keys and arguments.
//!
//! Each script takes several requests. KEYS has all keys of the first request, then all of the
//! second, and so on. ARGV begins with the arguments that all requests share. The reply is a flat
//! list with the same number of entries for each request: `code, ms, id`, and more for some
//! scripts. If the fingerprint stands behind all keys, the reply ends with the name of the voter's
//! data.
// Several requests in one call, as a script call costs a server more than its commands: a lock and
// its release take 21.7 µs of its processor alone, and 8.4 µs in calls of 32 (design 3).

use super::Script;

/// A module for each file of `lua/` with a static for each script in it, and a list of all.
// A script for each operation, and not one for each kind of lock: a server builds all functions of
// a script again at each call, which took longer than its commands (design 3).
macro_rules! catalog {
    ($($kind:ident { $($name:ident: $script:literal $($votes:ident)?,)* })*) => {
        $(
            pub(crate) mod $kind {
                use super::Script;

                const FILE: &str = include_str!(concat!("../../lua/", stringify!($kind), ".lua"));

                $(
                    pub(crate) static $name: Script =
                        Script::new(concat!(stringify!($kind), "/", $script), FILE)$(.$votes())?;
                )*
            }
        )*

        pub(crate) static ALL: &[&Script] = &[$($(&$kind::$name,)*)*];
    };
}

catalog! {
    mutex {
        ACQUIRE: "acquire" that_votes,
        PASS: "pass" that_votes,
        RENEW: "renew" that_votes,
        RELEASE: "release",
        SHORTEN: "shorten",
        FORCE_RELEASE: "force_release",
        CLEAR: "clear",
        INSPECT: "inspect",
    }
    election {
        ACQUIRE: "acquire" that_votes,
        RENEW: "renew" that_votes,
        LOOK: "look",
    }
    once {
        NOTE: "note",
        FORGET: "forget",
    }
    rw {
        ACQUIRE: "acquire" that_votes,
        RENEW: "renew" that_votes,
        RELEASE: "release",
        SHORTEN: "shorten",
        FORCE_RELEASE: "force_release",
        CLEAR: "clear",
        INSPECT: "inspect",
    }
    semaphore {
        ACQUIRE: "acquire" that_votes,
        RENEW: "renew" that_votes,
        RELEASE: "release",
        SHORTEN: "shorten",
        FORCE_RELEASE: "force_release",
        CLEAR: "clear",
        INSPECT: "inspect",
    }
    redisson {
        QUEUE: "queue",
        RW_ACQUIRE: "rw_acquire" that_votes,
        RW_RENEW: "rw_renew" that_votes,
        RW_RELEASE: "rw_release",
        RW_FORCE_RELEASE: "rw_force_release",
        RW_CLEAR: "rw_clear",
        RW_INSPECT: "rw_inspect",
    }
    voter {
        LOOK: "look",
        CONFIGURATION: "configuration",
    }
}
