//! Voters that come late.

use std::time::Duration;

use quorate_support::eventually_async;
use quorate_tests::scene::{builder, connect, leased, servers, votes_for};

/// For so long a server that restarted empty is kept out of new holds: the tests wait for its end.
const LEASE: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_was_down_at_connecting_joins_when_it_comes() {
    let mut servers = servers(3);
    servers[2].kill();
    let quorum = connect(leased(builder(&servers), LEASE)).await;
    let guard = quorum.mutex("a").lock().await.expect("two of three are up");
    servers[2].restart();
    let hold = guard.hold().as_str();
    // At the next renewal.
    eventually_async("the late voter votes", async || votes_for(&servers[2], "a", hold)).await;
    // It is one of a majority now.
    servers[0].kill();
    assert!(quorum.mutex("b").try_lock().await.expect("two of three are up").is_some());
    guard.release().await.expect("two of three confirm");
}
