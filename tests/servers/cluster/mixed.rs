//! Voters of several kinds, replicas that acknowledge, and connections that nobody reads along.

use quorate::{Cluster as Voters, Quorate};

use crate::cluster::scene::LEASE;
use quorate_support::{
    Certificates, ClientCertificates, Cluster, RedisServer, Sentinels, Settings, eventually_async,
};
use quorate_tests::{
    scene::{MS, connect, patient},
    standing::until_given,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_a_primary_under_sentinel_and_a_cluster_decide_together() {
    let (mut server, cluster) = (RedisServer::start(), Cluster::start(3, 1));
    let watched = Sentinels::start();
    let address = format!(
        "redis-sentinel://{}/{}",
        watched.sentinel_addresses().join(","),
        watched.service()
    );
    let builder = Quorate::builder()
        .voter(server.url())
        .voter(address)
        .cluster(Voters::new(cluster.urls()))
        .lease(LEASE)
        .longest_lease(LEASE);
    let (ours, theirs) = (connect(builder.clone()).await, connect(builder).await);
    let guard = ours.mutex("a").lock().await.unwrap();
    eventually_async("all three vote", async || guard.votes() == 3).await;
    // Each is away in turn, and comes back to the hold.
    let comes_back = async || {
        assert!(theirs.mutex("a").try_lock().await.map_or(true, |given| given.is_none()));
        eventually_async("all three vote again", async || {
            // Where two are on their way back nobody confirms it: the hold is there all the same.
            drop(guard.reenter().await);
            assert!(guard.is_held());
            guard.votes() == 3
        })
        .await;
    };
    let slot = cluster.slot_of("quorate:{a}");
    cluster.failover(cluster.replicas_of(cluster.primary_of(slot))[0]).await;
    comes_back().await;
    watched.failover().await;
    comes_back().await;
    server.restart_empty();
    comes_back().await;
    guard.release().await.unwrap();
    // When the quarantines have ended.
    until_given(&theirs, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vote_of_a_cluster_counts_once_its_replica_has_it() {
    let mut cluster = Cluster::start(3, 1);
    let builder = Quorate::builder().cluster(Voters::new(cluster.urls()).voters(3)).replica_acks(1);
    let quorum = connect(patient(builder.quorum_timeout(MS(500)))).await;
    quorum.mutex("a").lock().await.unwrap().release().await.unwrap();
    for replica in [3, 4] {
        cluster[replica].kill();
    }
    let error = quorum.mutex("a").lock().await.unwrap_err();
    let told = "0 of 1 replicas acknowledged";
    assert!(error.is_no_quorum() && error.to_string().matches(told).count() == 2, "{error}");
    cluster[3].restart();
    until_given(&quorum, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_reached_by_tls_with_all_its_servers() {
    let certificates = Certificates::new();
    let settings = Settings::new().tls(&certificates, ClientCertificates::NotAsked);
    let cluster = Cluster::start_as(3, 0, &settings);
    let tls = quorate::Tls::new().ca_pem(&certificates.authority);
    for voters in [1, 3] {
        let voters = Voters::new(&cluster.urls()[..1]).voters(voters);
        let quorum = connect(patient(Quorate::builder().cluster(voters).tls(tls.clone()))).await;
        for name in ["a", "b", "c", "d"] {
            let guard = quorum.mutex(name).lock().await.unwrap();
            assert!(quorum.mutex(name).try_lock().await.unwrap().is_none());
            guard.release().await.unwrap();
        }
    }
}
