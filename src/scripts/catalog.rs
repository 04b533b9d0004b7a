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

/// The scripts of the mutex.
pub(crate) mod mutex {
    use super::Script;

    pub(crate) static ACQUIRE: Script = script!(
        "mutex/acquire", ["expire", "claim", "each"],
        keys ["lock"], args ["hold", "count", "lease_ms"], votes true
    );
    pub(crate) static RENEW: Script = script!(
        "mutex/renew", ["expire", "claim", "each"],
        keys ["lock", "revoked"], args ["hold", "count", "lease_ms"], votes true
    );
    pub(crate) static RELEASE: Script = script!(
        "mutex/release", ["each"],
        keys ["lock"], args ["hold", "count", "channel"], votes false
    );
    pub(crate) static FORCE_RELEASE: Script = script!(
        "mutex/force_release", ["expire", "each"],
        keys ["lock", "revoked"], args ["hold", "marker_ms", "channel"], votes false
    );
    pub(crate) static INSPECT: Script = script!(
        "mutex/inspect", ["each"],
        keys ["lock"], args [], votes false
    );
}

/// All of them.
pub(crate) static ALL: [&Script; 5] =
    [&mutex::ACQUIRE, &mutex::RENEW, &mutex::RELEASE, &mutex::FORCE_RELEASE, &mutex::INSPECT];
