//! A primary that is cut off together with a client goes on to vote for it beside its successor.

use quorate::Quorate;

use crate::sentinel::{address, make_deaf, named};
use quorate_support::{Proxy, Sentinels, eventually_async};
use quorate_tests::scene::{MS, connect, key, leased, now, patient, proxies, servers, since};

// Ada has the old primary and the second voter. Her renewals count there for seconds after the
// failover, each for a whole lease. Ben has the new primary and the third, from the failover on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_by_a_primary_that_was_replaced_is_alone_until_its_lease_ends() {
    let lease = MS(4_000);
    let (mut sentinels, servers) = (Sentinels::start(), servers(2));
    let to_sentinels = proxies(sentinels.sentinels()).await;
    let third = proxies(&servers[1..]).await.remove(0);
    third.refuse().await;
    let hosts: Vec<_> =
        to_sentinels.iter().map(|way| format!("127.0.0.1:{}", way.port())).collect();
    let ada = Quorate::builder().voter(named(&sentinels, &hosts)).voter(servers[0].url());
    let ada = connect(leased(patient(ada.voter(third.url())), lease)).await;
    let ben = Quorate::builder().voter(address(&sentinels)).voter(servers[0].url());
    let ben = connect(leased(patient(ben.voter(servers[1].url())), lease)).await;
    let entered = ben.mutex("b").lock().await.expect("all are up");
    eventually_async("ben reaches all", async || entered.votes() == 3).await;
    entered.release().await.expect("all are up");

    let guard = ada.mutex("a").lock().await.expect("two are up");
    to_sentinels.iter().for_each(Proxy::black_hole);
    let old = sentinels.primary();
    make_deaf(&sentinels[old]);
    let new = sentinels.failover().await;
    let failed_over = now();
    sentinels[new].command(&["DEL", &key("a")]).expect("it is a primary");
    let mut outlived = false;
    eventually_async("ben is let in", async || {
        let tried = ben.mutex("a").try_lock().await;
        let held = guard.is_held();
        assert!(!(held && matches!(tried, Ok(Some(_)))), "after {:?}", since(failed_over));
        outlived |= held && since(failed_over) > lease;
        matches!(tried, Ok(Some(_)))
    })
    .await;
    assert!(outlived, "the machine was too busy to show anything");
}
