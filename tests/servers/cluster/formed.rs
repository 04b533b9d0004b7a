//! Clusters that a client has to find first.

use std::{io, time::Duration};

use quorate::{Cluster as Voters, Credentials, Quorate};
use tokio::time::sleep;

use quorate_support::{Cluster, Settings, eventually_async};
use quorate_tests::{
    scene::{MS, connect, patient},
    standing::until_given,
};

// The map is asked for every ten seconds where nothing is in doubt.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_made_while_a_client_connects_is_found() {
    let cluster = Cluster::start_blank(3);
    let builder = patient(Quorate::builder().cluster(Voters::new(cluster.urls()).voters(3)));
    let connecting = tokio::spawn(connect(builder.connect_timeout(MS(8_000))));
    eventually_async("one has told that it knows of nobody", async || {
        cluster.nodes().iter().any(|node| node.calls("cluster|nodes") > 0)
    })
    .await;
    cluster.form();
    let client = connecting.await.expect("it connects");
    until_given(&client, "a").await;
}

// As one that has lost its file about the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_know_of_no_cluster_are_not_believed_where_others_do() {
    let (blank, cluster) = (Cluster::start_blank(2), Cluster::start(3, 0));
    let urls = [blank.urls(), cluster.urls()[..1].to_vec()].concat();
    let client = connect(patient(Quorate::builder().cluster(Voters::new(urls)))).await;
    client.mutex("a").lock().await.unwrap().release().await.unwrap();
}

// Longer than a server may take to show its map; in real time, as the connections are.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_found_although_credentials_take_their_time() {
    let settings = Settings::new().users(&["slow on >secret +@all ~* &*"]);
    let cluster = Cluster::start_as(3, 0, &settings);
    let vault = |_: &str| async {
        sleep(Duration::from_millis(1_200)).await;
        Ok::<_, io::Error>(Credentials::new("slow", "secret"))
    };
    let builder =
        Quorate::builder().cluster(Voters::new(cluster.urls()).voters(3)).credentials(vault);
    let client = connect(builder.connect_timeout(MS(20_000))).await;
    client.mutex("a").lock().await.unwrap().release().await.unwrap();
}
