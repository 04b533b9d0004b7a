//! Addresses that lead to the server of another voter.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use quorate::{Cause, Error, Quorate, Verdict};

use quorate_support::{RedisServer, eventually_async};
use quorate_tests::{
    scene::{DURABLE, builder, connect, connections, leased, servers_with},
    standing::until_given,
};

/// For so long a voter that has changed its server is kept out of new holds: the test waits for
/// the end of it.
const LEASE: Duration = Duration::from_secs(8);

/// From now on new connections by this way come to that server; those that stand are cut.
fn lead(way: &Path, server: &RedisServer, standing: &[RedisServer]) {
    let _ = fs::remove_file(way);
    symlink(server.socket(), way).expect("the folder is private");
    for server in standing {
        for kind in ["normal", "pubsub"] {
            server.command(&["CLIENT", "KILL", "TYPE", kind]).expect("they can be cut");
        }
    }
}

fn is_twin(error: &Error, voter: usize, of: &Path) -> bool {
    match &error.voters()[voter].verdict {
        Verdict::Unknown(Cause::Duplicate(other)) => **other == *of.to_string_lossy(),
        _ => false,
    }
}

// All servers write every change, so no restart is suspected where one comes back as another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_comes_back_as_the_server_of_another_has_no_vote_until_it_is_its_own_again() {
    let mut servers = servers_with(3, &DURABLE);
    let folder = tempfile::tempdir().expect("a temp dir");
    let ways: Vec<PathBuf> = (0..3).map(|way| folder.path().join(format!("way-{way}"))).collect();
    for (way, server) in ways.iter().zip(&servers) {
        lead(way, server, &[]);
    }
    let urls = || ways.iter().map(|way| format!("redis+unix://{}", way.display()));
    let ada = connect(leased(Quorate::builder().voters(urls()), LEASE)).await;
    let ben = connect(leased(builder(&servers), LEASE)).await;
    for client in [&ada, &ben] {
        eventually_async("all count", async || client.status().await.counting() == 3).await;
    }

    // Cleo meets the second for the first time when it is the first.
    fs::remove_file(&ways[1]).expect("it is there");
    let cleo = connect(leased(Quorate::builder().voters(urls()), LEASE)).await;
    fs::remove_file(&ways[2]).expect("it is there");
    lead(&ways[1], &servers[0], &servers[1..]);
    let mutex = ada.mutex("a");
    for mutex in [&mutex, &cleo.mutex("a")] {
        eventually_async("they are known to be one server", async || {
            match mutex.try_lock().await {
                Ok(entered) => panic!("one server is a majority of three: {entered:?}"),
                Err(error) => error.is_no_quorum() && is_twin(&error, 1, &ways[0]),
            }
        })
        .await;
    }
    let status = ada.status().await;
    assert!(matches!(status.voters[1].connection, Err(Cause::Duplicate(_))), "{status}");
    assert!(status.voters[0].counts && !status.has_quorum(), "{status}");
    until_given(&ben, "a").await;
    let guard = ben.mutex("a").lock().await.expect("all are up");
    let tried = mutex.try_lock().await;
    assert!(!matches!(tried, Ok(Some(_))), "{tried:?}");
    guard.release().await.expect("all confirm");

    lead(&ways[1], &servers[1], &servers[..1]);
    until_given(&ada, "a").await;
    servers[2].kill();
    eventually_async("and are needed", async || {
        ada.status().await.counting() == 2 && matches!(mutex.try_lock().await, Ok(Some(_)))
    })
    .await;
    for client in [ada, ben, cleo] {
        client.close().await;
    }
    eventually_async("no connection is left", async || {
        servers[..2].iter().all(|server| connections(server) == 0)
    })
    .await;
}
