//! Too few voters, and voters that come late.

use std::time::Duration;

use quorate::{Cause, Error, Verdict};

use quorate_support::{RedisServer, eventually_async};
use quorate_tests::scene::{
    MS, are_empty, builder, connect, connections, leased, proxies, servers, timed, votes_for,
};

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

/// One server, one vote, however many addresses it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_address_of_a_server_that_comes_late_has_no_vote() {
    let mut servers = servers(2);
    let second = proxies(&servers[..1]).await.remove(0);
    second.refuse().await;
    let builder = builder(&servers).voter(second.url()).quorum_timeout(MS(300));
    let quorum = connect(leased(builder, LEASE)).await;
    second.accept();
    servers[1].kill();
    // One server is left, with two addresses: that is no majority of three.
    let first = servers[0].port().to_string();
    eventually_async("the second address is told", async || {
        let error = match quorum.mutex("a").try_lock().await {
            Ok(entered) => panic!("one server has two votes: {entered:?}"),
            Err(error) => error,
        };
        let told = |verdict: &Verdict| match verdict {
            Verdict::Unknown(Cause::Duplicate(of)) => of.contains(&first),
            _ => false,
        };
        error.is_no_quorum() && told(&error.voters()[2].verdict)
    })
    .await;
    let error = quorum.mutex("a").lock().await.expect_err("one server has one vote");
    assert!(error.to_string().contains("is the same server as"), "{error}");
    servers[1].restart();
    let mutex = quorum.mutex("a");
    eventually_async("two servers are a majority of three voters", async || {
        matches!(mutex.try_lock().await, Ok(Some(_)))
    })
    .await;
    quorum.close().await;
    eventually_async("no connection is left", async || {
        servers.iter().all(|server| connections(server) == 0)
    })
    .await;
}
