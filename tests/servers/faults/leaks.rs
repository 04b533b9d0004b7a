//! Votes that a voter may have kept though they were given back.

use quorate::{Quorate, metric};

use quorate_support::{RedisServer, Settings, eventually_async};
use quorate_tests::{
    recorded::{added, record},
    scene::{connect, patient},
};

// The user may acquire, and not release: the server says so, and to ask again would be no use.
#[tokio::test]
async fn a_release_that_the_server_refuses_is_counted_as_a_vote_that_it_may_have_kept() {
    let (snapshotter, _recording) = record();
    let leaked = || added(&snapshotter, metric::LEAKED_VOTES, None);
    let users = ["locker on >password ~* &* +@all -hdel"];
    let server = RedisServer::start_as(&Settings::new().users(&users));
    let voter = server.url_as("locker", "password");
    let quorum = connect(patient(Quorate::builder().voter(voter))).await;
    let guard = quorum.mutex("a").lock().await.expect("it may acquire");
    assert_eq!(leaked(), 0);
    let error = guard.release().await.expect_err("it may not release");
    // Of Redis up to 7.0, and of later ones.
    let words = ["can't run this command", "has no permissions to run the 'hdel' command"];
    assert!(words.iter().any(|words| error.to_string().contains(words)), "{error}");
    let mut counted = 0;
    eventually_async("it is counted", async || {
        counted += leaked();
        counted > 0
    })
    .await;
    quorum.close().await;
    assert_eq!(counted + leaked(), 1, "once");
}
