//! Counts: attempts by the library's own metric, the rest by the servers.

use std::sync::{Arc, atomic::AtomicU64};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    set_global_recorder,
};

use quorate_support::{RedisServer, Reply};

/// Attempts of all clients of this process to gather a majority. Records nothing else, so that the
/// times are not those of a recorder.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    pub fair: Arc<AtomicU64>,
    pub plain: Arc<AtomicU64>,
}

impl Attempts {
    pub fn record() -> Self {
        let attempts = Self::default();
        assert!(set_global_recorder(attempts.clone()).is_ok(), "it is the first recorder");
        attempts
    }
}

impl Recorder for Attempts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() != "quorate_attempts_total" {
            return Counter::noop();
        }
        let is_fair = key.labels().any(|label| label.value() == "fair_mutex");
        Counter::from_arc(Arc::clone(if is_fair { &self.fair } else { &self.plain }))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// How many scripts of locks all the servers have run, but for the first run of each: it carries
/// the source, as does the look at a server, which is no part of a lock.
pub fn scripts(servers: &[RedisServer]) -> u64 {
    servers.iter().map(|server| server.calls("evalsha")).sum()
}

/// How many commands all the servers have run, those inside of scripts included.
pub fn commands(servers: &[RedisServer]) -> u64 {
    let count = |server: &RedisServer| -> u64 {
        let reply = server.command(&["INFO", "stats"]).expect("it answers");
        let Reply::Text(stats) = reply else { panic!("no text: {reply:?}") };
        let line = stats.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
        line.expect("it is counted").trim().parse().expect("a number")
    };
    servers.iter().map(count).sum()
}
