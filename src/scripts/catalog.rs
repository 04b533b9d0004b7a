//! Every script. What it takes stands in its header.
//!
//! Each takes a list of requests: all keys of the first, all of the second, and so on. Before the
//! arguments of the first stand those that all requests share. Each request adds as many entries
//! as the script is wide to the flat reply: `code, ms, id` and what else it has to say. Behind all
//! keys may stand the fingerprint of the voter's data: then the last entry says what they are
//! called.

use super::Script;

/// A module for each file of `lua/`, with a static for each script in it; and all of them in one
/// list.
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

        /// All of them.
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
