//! What a health endpoint is told.

use std::{sync::Arc, thread, time::Duration};

use quorate::{Cause, Quarantine, Quorate, Status, VoterStatus};

use quorate_support::eventually_async;
use quorate_tests::scene::{MS, builder, connect, servers};

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

// A server in any of these states answers PING.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_answer_and_take_no_votes_are_told_of_with_the_reason() {
    let servers = servers(3);
    for server in &servers {
        let user = ["ACL", "SETUSER", "quorate", "on", ">pw", "~*", "&*", "+@all"];
        server.command(&user).expect("there can be users");
    }
    let urls = servers.iter().map(|server| server.url_as("quorate", "pw"));
    let quorum = connect(Quorate::builder().voters(urls).voter_deadline(MS(2_000))).await;
    let all = |words: &[&str]| {
        for server in &servers {
            server.command(words).expect("it can be set");
        }
    };
    let refused = async |why: &str| {
        eventually_async(why, async || {
            let status = quorum.status().await;
            let tells = |voter: &VoterStatus| {
                voter.connection.is_ok()
                    && voter.refuses.as_ref().is_some_and(|told| told.contains(why))
            };
            status.voters.iter().all(tells) && !status.has_quorum()
        })
        .await;
        let status = quorum.status().await;
        assert!(status.to_string().contains("takes no new votes: "), "{status}");
        let error = quorum.mutex("a").try_lock().await.expect_err("nobody takes a vote");
        assert!(error.is_no_quorum() && error.to_string().contains(why), "{error}");
    };
    let counts = async || {
        eventually_async("all count", async || quorum.status().await.counting() == 3).await;
    };
    counts().await;
    for (set, why, reset) in [
        (["CONFIG", "SET", "maxmemory", "1"], "OOM", ["CONFIG", "SET", "maxmemory", "0"]),
        (
            ["CONFIG", "SET", "min-replicas-to-write", "1"],
            "NOREPLICAS",
            ["CONFIG", "SET", "min-replicas-to-write", "0"],
        ),
        (
            ["ACL", "SETUSER", "quorate", "-evalsha"],
            "NOPERM",
            ["ACL", "SETUSER", "quorate", "+evalsha"],
        ),
    ] {
        // Scripts leave by their hash only once they were answered.
        drop(quorum.status().await);
        quorum.mutex("a").lock().await.expect("all are up").release().await.expect("all confirm");
        all(&set);
        refused(why).await;
        all(&reset);
        counts().await;
    }
    // One alone: the others are enough.
    servers[0].command(&["CONFIG", "SET", "maxmemory", "1"]).expect("it can be set");
    let status = quorum.status().await;
    assert!(status.counting() == 2 && status.has_quorum(), "{status}");
}

// It does nothing else, and so does not answer anything but that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_busy_with_a_script_takes_no_votes() {
    let servers = Arc::new(servers(1));
    let busy = ["CONFIG", "SET", "lua-time-limit", "1"];
    servers[0].command(&busy).expect("it can be set");
    let quorum = connect(builder(&servers).voter_deadline(MS(2_000))).await;
    let running = thread::spawn({
        let servers = Arc::clone(&servers);
        // It ends with an error when it is killed.
        move || drop(servers[0].command(&["EVAL", "while true do end", "0"]))
    });
    eventually_async("it says so", async || {
        let status = quorum.status().await;
        status.voters[0].refuses.as_ref().is_some_and(|why| why.contains("BUSY"))
    })
    .await;
    assert!(!quorum.status().await.has_quorum());
    servers[0].command(&["SCRIPT", "KILL"]).expect("it is ended");
    running.join().expect("no panic");
    eventually_async("it counts", async || quorum.status().await.has_quorum()).await;
}
