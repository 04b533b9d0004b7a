//! A minority of the voters fails: users do not notice.

use std::time::Duration;

use quorate::Quorate;

use quorate_support::{RedisServer, eventually_async, without_lasting};
use quorate_tests::scene::{are_empty, builder, connect, median, servers, timed};

/// What a silent voter may take: whoever waits for it is far above what is prompt, also on a busy
/// machine.
const SILENCE: Duration = Duration::from_secs(3);
const PROMPT: Duration = Duration::from_secs(1);
const ROUNDS: usize = 20;

/// The medians of acquiring and releasing are prompt.
async fn expect_prompt(quorum: &Quorate) {
    let (mut acquires, mut releases) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (took, guard) = timed(quorum.mutex("a").lock()).await;
        acquires.push(took);
        let (took, released) = timed(guard.expect("a majority is up").release()).await;
        releases.push(took);
        released.expect("a majority confirms");
    }
    let (acquire, release) = (median(acquires), median(releases));
    assert!(acquire < PROMPT, "an acquire took {acquire:?}");
    assert!(release < PROMPT, "a release took {release:?}");
}

async fn eventually_empty<'a>(servers: impl IntoIterator<Item = &'a RedisServer> + Clone) {
    eventually_async("no key is left", async || are_empty(servers.clone())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_three_refused_slows_nothing_and_orphans_no_key() {
    let mut servers = servers(3);
    servers[0].kill();
    let quorum = connect(builder(&servers).voter_deadline(SILENCE)).await;
    expect_prompt(&quorum).await;
    eventually_empty(&servers[1..]).await;
    // Nor later, when the one that was away hears of what was asked meanwhile.
    servers[0].restart();
    let guard = quorum.mutex("a").lock().await.expect("a majority is up");
    let on_all = async || servers.iter().all(|server| !without_lasting(server.keys()).is_empty());
    eventually_async("the voter that came back votes", async || {
        let again = guard.reenter().await.expect("a majority is up");
        again.release().await.expect("a majority confirms");
        on_all().await
    })
    .await;
    guard.release().await.expect("a majority confirms");
    eventually_empty(&servers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_minority_slows_nothing() {
    for (voters, stopped) in [(3, 1), (5, 1), (5, 2)] {
        let servers = servers(voters);
        let quorum = connect(builder(&servers).voter_deadline(SILENCE)).await;
        servers[..stopped].iter().for_each(RedisServer::stop);
        expect_prompt(&quorum).await;
        eventually_empty(&servers[stopped..]).await;
        // What they were sent meanwhile they run now, in its order.
        servers[..stopped].iter().for_each(RedisServer::resume);
        let guard = quorum.mutex("a").lock().await.expect("all are up");
        guard.release().await.expect("a majority confirms");
        eventually_empty(&servers).await;
    }
}
