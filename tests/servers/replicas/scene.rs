//! Primaries with their replicas, and clients of them.

use std::{thread, time::Duration};

use quorate::{Builder, Cause, Error, Quorate, Verdict};

use tokio::task::spawn_blocking;

use quorate_support::{Proxy, RedisServer, Reply, eventually_async};
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
        let primary = RedisServer::start();
        let replicas = side_by_side(replicas, || primary.start_replica());
        Self { primary, replicas }
    }

    /// With one replica, that hears of everything through a proxy. Needs a runtime of several
    /// threads.
    pub(crate) async fn start_behind_proxy() -> (Self, Proxy) {
        let primary = spawn_blocking(RedisServer::start).await.expect("it starts");
        let proxy = Proxy::start(primary.port()).await;
        let port = proxy.port().to_string();
        let start = move || RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]);
        let replica = spawn_blocking(start).await.expect("it starts");
        let voter = Self { primary, replicas: vec![replica] };
        // A fence is no trace of a lock.
        let written: [&[&str]; 2] = [&["SET", "fence", "1"], &["WAIT", "1", "100"]];
        eventually_async("the replica follows", async || {
            let replies = voter.primary.commands(&written).expect("it answers");
            replies[1] == Ok(Reply::Int(1))
        })
        .await;
        (voter, proxy)
    }
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
