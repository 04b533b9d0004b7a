//! Servers that are reached by their Unix sockets.

use quorate_tests::{prelude::*, scene::until_queued};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_are_held_and_waited_for_through_unix_sockets() {
    let mut servers = servers(3);
    let urls = || patient(Quorate::builder().voters(servers.iter().map(RedisServer::socket_url)));
    let (ada, ben) = (connect(urls()).await, connect(urls()).await);
    let guard = ada.mutex("a").lock().await.expect("all are up");
    until!("all vote", guard.votes() == 3);
    assert!(ben.mutex("a").try_lock().await.expect("all are up").is_none());
    let waiting = tokio::spawn(async move { ben.mutex("a").lock().await });
    until_queued(&servers, 1).await;
    guard.release().await.expect("all confirm");
    let guard = waiting.await.expect("no panic").expect("all are up");
    servers[0].kill();
    let again = guard.reenter().await.expect("two of three are a quorum");
    again.release().await.expect("they confirm");
    guard.release().await.expect("they confirm");
}
