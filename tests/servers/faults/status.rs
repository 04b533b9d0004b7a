//! What a health endpoint is told.

use std::time::Duration;

use quorate::{Cause, Quarantine, Status};

use quorate_support::eventually_async;
use quorate_tests::scene::{builder, connect, servers};

fn connected(status: &Status) -> Vec<bool> {
    status.voters.iter().map(|voter| voter.connection.is_ok()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_hang_or_die_are_told_of_and_so_is_their_return() {
    let mut servers = servers(3);
    let quorum = connect(builder(&servers)).await;
    eventually_async("all are connected", async || connected(&quorum.status().await) == [true; 3])
        .await;
    let labels: Vec<String> =
        servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    let status = quorum.status().await;
    assert!(status.voters.iter().map(|voter| &voter.voter).eq(&labels));
    assert_eq!((status.needed(), status.counting(), status.has_quorum()), (2, 3, true));

    servers[0].stop();
    eventually_async("the first hangs", async || {
        connected(&quorum.status().await) == [false, true, true]
    })
    .await;
    assert!(quorum.status().await.has_quorum());
    servers[1].kill();
    eventually_async("the second is dead", async || {
        connected(&quorum.status().await) == [false, false, true]
    })
    .await;
    let status = quorum.status().await;
    assert!(!status.has_quorum());
    let shown = status.to_string();
    let why = status.voters[0].connection.clone().expect_err("it hangs");
    let begin = format!("1 of 3 votes count, 2 are needed ({}: {why}; ", labels[0]);
    assert!(shown.starts_with(&begin) && shown.ends_with(": connected)"), "{shown}");

    servers[0].resume();
    servers[1].restart_empty();
    eventually_async("both are back, and one of them has forgotten", async || {
        let status = quorum.status().await;
        connected(&status) == [true; 3] && status.counting() == 2
    })
    .await;
    let status = quorum.status().await;
    let quarantined = status.voters[1].quarantine.expect("it has forgotten");
    assert_eq!(quarantined.why, Quarantine::Restarted);
    assert!(quarantined.left <= Duration::from_secs(30) && status.has_quorum());

    quorum.close().await;
    let status = quorum.status().await;
    let closed = |connection: &Result<(), Cause>| matches!(connection, Err(Cause::Unreachable(_)));
    assert!(status.voters.iter().all(|voter| closed(&voter.connection)), "{status}");
}
