//! Primaries with their replicas, and clients of them.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use quorate::{Builder, Cause, Error, Quorate, Verdict};

use tokio::task::spawn_blocking;

use quorate_support::{Proxy, RedisServer, Reply, eventually, eventually_async};
use quorate_tests::scene::patient;

/// A quarter of the voter deadline of [`patient`] clients, as nothing else is set.
pub(crate) const REPLICA_TIMEOUT: Duration = Duration::from_millis(500);

/// A primary and what copies it.
pub(crate) struct Voter {
    pub(crate) primary: RedisServer,
    pub(crate) replicas: Vec<RedisServer>,
}

impl Voter {
    /// Returns once the primary counts on all of its replicas.
    pub(crate) fn start(replicas: usize) -> Self {
        let primary = primary();
        let port = primary.port();
        let replicas = side_by_side(replicas, || replica_of(port));
        let voter = Self { primary, replicas };
        for what in FOLLOWED {
            eventually(what, || voter.is_followed());
        }
        voter
    }

    /// With one replica, that hears of everything through a proxy. Needs a runtime of several
    /// threads.
    pub(crate) async fn start_behind_proxy() -> (Self, Proxy) {
        let primary = spawn_blocking(primary).await.expect("it starts");
        let proxy = Proxy::start(primary.port()).await;
        let port = proxy.port();
        let replica = spawn_blocking(move || replica_of(port)).await.expect("it starts");
        let voter = Self { primary, replicas: vec![replica] };
        for what in FOLLOWED {
            eventually_async(what, async || voter.is_followed()).await;
        }
        (voter, proxy)
    }

    /// Whether all of them have what was written just now.
    pub(crate) fn is_followed(&self) -> bool {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let value = WRITTEN.fetch_add(1, Ordering::Relaxed).to_string();
        let asked = |server: &RedisServer, words: &[&str]| server.command(words).expect("answered");
        // A fence is no trace of a lock.
        asked(&self.primary, &["SET", "fence", &value]);
        self.replicas
            .iter()
            .all(|replica| asked(replica, &["GET", "fence"]) == Reply::Text(value.clone()))
    }
}

/// What was written first may have come with the copy of all data; the next has followed it.
const FOLLOWED: [&str; 2] = ["all replicas have the data", "all replicas follow"];

/// A replica that asks for the data gets it at once, not after waiting for others to ask.
fn primary() -> RedisServer {
    RedisServer::start_with(&["--repl-diskless-sync-delay", "0"])
}

/// A server that copies what listens on this port of 127.0.0.1.
fn replica_of(port: u16) -> RedisServer {
    RedisServer::start_with(&["--replicaof", "127.0.0.1", &port.to_string()])
}

pub(crate) fn voters(count: usize, replicas: usize) -> Vec<Voter> {
    side_by_side(count, || Voter::start(replicas))
}

fn side_by_side<T: Send>(count: usize, start: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let starts: Vec<_> = (0..count).map(|_| scope.spawn(&start)).collect();
        starts.into_iter().map(|start| start.join().expect("it starts")).collect()
    })
}

/// A client whose grants need so many replicas of each of its voters.
pub(crate) fn builder<'a>(voters: impl IntoIterator<Item = &'a Voter>, replicas: u32) -> Builder {
    let urls = voters.into_iter().map(|voter| voter.primary.url());
    patient(Quorate::builder().voters(urls).replica_acks(replicas))
}

/// Makes it a primary of its own.
pub(crate) fn promote(replica: &RedisServer) {
    replica.command(&["REPLICAOF", "NO", "ONE"]).expect("it is promoted");
}

/// What an error says that came of too few replicas, and of nothing else.
#[track_caller]
pub(crate) fn assert_too_few(error: &Error, acknowledged: u32, needed: u32, within: Duration) {
    let too_few = Verdict::Unknown(Cause::Unacknowledged { acknowledged, needed, within });
    assert!(error.voters().iter().all(|report| report.verdict == too_few), "{error}");
    let text = format!("{acknowledged} of {needed} replicas acknowledged within {within:?}");
    assert!(error.to_string().contains(&text), "{error}");
}
