//! Servers in two sets of voters.

use quorate::{Builder, Quorate, Side};
use quorate_support::RedisServer;
use quorate_tests::scene::{MS, connect, leased, servers};

fn builder() -> Builder {
    leased(Quorate::builder(), MS(12_000))
}

/// By another address of the same server.
fn also(server: &RedisServer) -> String {
    format!("redis://localhost:{}", server.port())
}

#[tokio::test]
async fn a_server_in_both_sets_is_named_alike_in_both() {
    let servers = servers(4);
    let urls: Vec<_> = servers.iter().map(RedisServer::url).collect();
    let both = builder().voters(&urls[1..]).replacing(&urls[..3]);
    let client = connect(both).await;
    let status = client.status().await;
    let sides: Vec<_> = status.voters.iter().map(|voter| voter.side).collect();
    let [new, both, old] = [Side::New, Side::Both, Side::Old].map(Some);
    assert_eq!(sides, [new, both, both, old]);

    let otherwise = [urls[0].clone(), also(&servers[1]), urls[2].clone()];
    let error = builder().voters(&urls[1..]).replacing(otherwise).connect().await;
    let error = error.expect_err("two voters are one server");
    assert!(error.is_invalid(), "{error}");
    let told = error.to_string();
    assert!(told.contains("are the same server, which has one vote"), "{told}");
    assert!(told.ends_with("; give the server the same address in both sets"), "{told}");
}
