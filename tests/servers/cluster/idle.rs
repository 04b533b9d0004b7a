//! What a client of a cluster costs that has nothing to do.

use std::{sync::Arc, time::Duration};

use tokio::task::spawn_blocking;

use crate::cluster::scene::builder;
use quorate_support::{Cluster, are_before_7};
use quorate_tests::scene::{connect, watched};

// One of the servers tells it the map, for all voters, on a connection that stands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_client_of_a_cluster_sends_no_more_but_for_the_map_that_one_server_tells() {
    let cluster = Arc::new(Cluster::start(3, 0));
    let client = connect(builder(&cluster.urls(), 3)).await;
    client.mutex("a").lock().await.expect("they are up").release().await.expect("they confirm");
    let count = cluster.nodes().len();
    let watching = (0..count).map(|node| {
        let cluster = Arc::clone(&cluster);
        spawn_blocking(move || {
            let server = &cluster.nodes()[node];
            let before = server.calls("config|get");
            let mut sent = watched(server, Duration::from_mins(1));
            let settings = server.calls("config|get") - before;
            sent.extend((0..settings).map(|_| "CONFIG".to_owned()));
            sent
        })
    });
    let (mut maps, mut all) = (0, 0);
    for watched in watching.collect::<Vec<_>>() {
        let sent = watched.await.expect("it is up");
        assert!(!sent.iter().any(|sent| sent == "HELLO"), "another connection: {sent:?}");
        let of_map = sent.iter().filter(|sent| *sent == "CLUSTER").count();
        assert!(sent.len() - of_map <= 17, "{sent:?}");
        (maps, all) = (maps + of_map, all + sent.len());
    }
    // Servers older than 7.0 show nobody that they are asked for it.
    assert!((5..=6).contains(&maps) || are_before_7(), "{maps}");
    // 18 in a minute for each of the three voters.
    assert!(all <= 3 * 18, "{all}");
    client.close().await;
}
