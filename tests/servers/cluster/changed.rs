//! A cluster whose locks have three voters, then five; and one that takes the place of servers.

use quorate::{Builder, Cluster as Voters, Quorate, Side, VoterSet};
use quorate_support::{Cluster, RedisServer, Settings};
use quorate_tests::scene::{connect, leased};

use super::scene::LEASE;

fn builder() -> Builder {
    leased(Quorate::builder(), LEASE)
}

/// Whether the clients exclude each other, whichever comes first.
async fn exclude_each_other(one: &Quorate, other: &Quorate) {
    for name in ["a", "b", "c"] {
        for (first, second) in [(one, other), (other, one)] {
            let held = first.mutex(name).lock().await.unwrap();
            assert!(second.mutex(name).try_lock().await.unwrap().is_none());
            assert!(second.fair_mutex(name).try_lock().await.unwrap().is_none());
            let token = held.token();
            held.release().await.unwrap();
            let held = second.fair_mutex(name).lock().await.unwrap();
            assert!(held.token() > token, "{:?} after {token:?}", held.token());
            held.release().await.unwrap();
            let read = first.rw_lock(name).read().await.unwrap();
            assert!(second.rw_lock(name).try_write().await.unwrap().is_none());
            read.release().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_voters_of_a_cluster_go_from_three_to_five() {
    let cluster = Cluster::start(5, 0);
    let voters = |count| Voters::new(cluster.urls()).voters(count);
    let with = |count| builder().cluster(voters(count));
    let old = connect(with(3).roster(1)).await;
    let both = connect(with(5).replacing(voters(3)).roster(2)).await;
    exclude_each_other(&old, &both).await;
    let status = both.status().await;
    let sides: Vec<_> = status.voters.iter().map(|voter| voter.side).collect();
    // Their keys differ, so no voter is in both sets, though they are on the same servers.
    let (new, replaced) = (Some(Side::New), Some(Side::Old));
    assert_eq!(sides, [new, new, new, new, new, replaced, replaced, replaced]);
    assert!(status.has_quorum(), "{status}");
    old.close().await;
    let new = connect(with(5).only_looks(true)).await;
    exclude_each_other(&both, &new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_make_place_for_a_cluster() {
    let (cluster, servers) = (Cluster::start(3, 0), RedisServer::start_many(&Settings::new(), 3));
    let voters = Voters::new(cluster.urls()).voters(3);
    let urls: Vec<_> = servers.iter().map(RedisServer::url).collect();
    let old = connect(builder().voters(&urls).roster(1)).await;
    let replaced = VoterSet::from(urls.as_slice());
    let both = builder().cluster(voters.clone()).replacing(replaced).roster(2);
    let both = connect(both).await;
    exclude_each_other(&old, &both).await;
    old.close().await;
    let new = connect(builder().cluster(voters).only_looks(true)).await;
    exclude_each_other(&both, &new).await;
}

#[tokio::test]
async fn the_same_votes_of_a_cluster_are_the_same_voters_whichever_of_its_servers_are_named() {
    let cluster = Cluster::start(3, 0);
    let urls = cluster.urls();
    let new = Voters::new(&urls[..2]).voters(3);
    let replaced = Voters::new(&urls[1..]).voters(3);
    let client = connect(builder().cluster(new).replacing(replaced)).await;
    let status = client.status().await;
    assert!(status.voters.iter().all(|voter| voter.side == Some(Side::Both)), "{status}");
    client.mutex("a").lock().await.unwrap().release().await.unwrap();
}
