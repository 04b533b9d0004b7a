//! Too few voters, and voters that come late.

use std::time::Duration;

use quorate::{Cause, Error, Verdict};

use quorate_support::{RedisServer, eventually_async};
use quorate_tests::scene::{MS, are_empty, builder, connect, leased, servers, timed, votes_for};

/// For so long a server that restarted empty is kept out of new holds: the tests wait for its end.
const LEASE: Duration = Duration::from_secs(8);

/// Every voter is named with a cause that says something, except so many that had not been heard
/// when the others had decided.
fn expect_causes(error: &Error, servers: &[RedisServer], mut unheard: usize) {
    assert!(error.is_no_quorum(), "{error}");
    assert_eq!(error.voters().len(), servers.len(), "{error}");
    for (report, server) in error.voters().iter().zip(servers) {
        assert!(report.voter.contains(&server.port().to_string()), "{error}");
        match &report.verdict {
            Verdict::Unknown(Cause::Unreachable(why) | Cause::Broken(why)) => {
                assert!(!why.is_empty(), "{error}");
            }
            Verdict::Unknown(Cause::TimedOut(_)) => {}
            Verdict::Unknown(Cause::Unheard) if unheard > 0 => unheard -= 1,
            other => panic!("{other:?} of a dead server: {error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_all_voters_down_the_error_has_each_cause_in_bounded_time() {
    let mut servers = servers(3);
    let patience = MS(700);
    let builder = builder(&servers).quorum_timeout(patience);
    let quorum = connect(leased(builder, LEASE)).await;
    servers.iter_mut().for_each(RedisServer::kill);
    let mutex = quorum.mutex("a");

    let (took, tried) = timed(mutex.try_lock()).await;
    expect_causes(&tried.expect_err("nobody can grant"), &servers, 1);
    assert!(took < MS(3000), "a try took {took:?}");

    let (took, locked) = timed(mutex.lock()).await;
    expect_causes(&locked.expect_err("nobody can grant"), &servers, 1);
    assert!(took >= patience && took < patience + MS(5000), "waiting took {took:?}");

    let (took, locked) = timed(mutex.lock_within(MS(300))).await;
    expect_causes(&locked.expect_err("nobody can grant"), &servers, 1);
    assert!(took < MS(4000), "waiting for 300 ms took {took:?}");

    let (took, inspected) = timed(mutex.inspect()).await;
    expect_causes(&inspected.expect_err("nobody can answer"), &servers, 0);
    assert!(took < MS(3000), "an inspection took {took:?}");

    servers.iter_mut().for_each(RedisServer::restart);
    eventually_async("locks work again", async || mutex.try_lock().await.is_ok()).await;
    eventually_async("no key is left", async || are_empty(&servers)).await;
}

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
