//! Three servers, and what they know of a lock.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use quorate_support::{RedisServer, Reply, Settings};

use crate::program::quorate;

/// Of all locks here. The deadline of a voter is a tenth of it: no answer of a busy machine is
/// taken for silence.
pub(crate) const LEASE: Duration = Duration::from_secs(4);

/// Three servers.
#[derive(Debug)]
pub(crate) struct Voters(pub(crate) Vec<RedisServer>);

impl Voters {
    pub(crate) fn start() -> Self {
        Self(RedisServer::start_many(&Settings::new(), 3))
    }

    pub(crate) fn urls(&self) -> String {
        self.0.iter().map(RedisServer::url).collect::<Vec<_>>().join(" ")
    }

    /// `quorate` with these arguments and these voters.
    pub(crate) fn quorate(&self, arguments: &[&str]) -> Command {
        let mut command = quorate(arguments);
        command.env("QUORATE_VOTERS", self.urls()).env("QUORATE_VOTER_DEADLINE", "400ms");
        command
    }

    /// `quorate run` with these arguments in front of a script for the shell. It says its process
    /// id first.
    pub(crate) fn run(&self, arguments: &[&str], script: &str) -> Command {
        let script = format!("echo $$; {script}");
        let arguments = [&["run"], arguments, &["--", "sh", "-c", &script]].concat();
        self.quorate(&arguments)
    }

    /// Whether a majority has a holder of the mutex.
    pub(crate) fn is_held(&self, name: &str) -> bool {
        self.leases(name).len() >= 2
    }

    /// When a majority may give the mutex to somebody else: all but one vote have ended then.
    #[expect(clippy::disallowed_methods, reason = "real servers count real time")]
    pub(crate) fn deadline(&self, name: &str) -> Instant {
        let now = Instant::now();
        let mut leases = self.leases(name);
        leases.sort_unstable();
        assert_eq!(leases.len(), 3, "each has a vote to lose: {leases:?}");
        now + leases[1]
    }

    /// What is left of the votes.
    fn leases(&self, name: &str) -> Vec<Duration> {
        let key = format!("quorate:{{{name}}}");
        let left = |server: &RedisServer| match server.command(&["PTTL", &key]) {
            Ok(Reply::Int(left)) => u64::try_from(left).ok(),
            other => panic!("PTTL answers with a number: {other:?}"),
        };
        self.0.iter().filter_map(left).map(Duration::from_millis).collect()
    }
}
