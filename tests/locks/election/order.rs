//! Candidates come in the order of asking.

use std::sync::{Arc, Mutex};

use tokio::{task::JoinSet, time::sleep};

use crate::election::{resign, until_candidates};
use quorate::embedded::{self, Machine};
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(everywhere: candidates_lead_in_the_order_of_asking);

async fn candidates_lead_in_the_order_of_asking(on: Fixture) {
    let on = Arc::new(on);
    let first = on.client().await.election("a");
    let leadership = first.campaign("first").await.unwrap();
    let (mut candidates, led) = (JoinSet::new(), Arc::new(Mutex::new(Vec::new())));
    for number in 0..6 {
        let election = on.client().await.election("a");
        let (on, led) = (Arc::clone(&on), Arc::clone(&led));
        candidates.spawn(async move {
            let leadership = election.campaign(number.to_string()).await.unwrap();
            led.lock().unwrap().push(number);
            resign(&on, leadership).await;
        });
        until_candidates(&first, number + 1).await;
    }
    assert!(first.try_campaign("passes").await.unwrap().is_none(), "six wait");
    resign(&on, leadership).await;
    candidates.join_all().await;
    assert_eq!(*led.lock().unwrap(), (0..6).collect::<Vec<_>>());
    on.until_clean().await;
}

// Nobody tells the first candidate; it asks when the lease ends.
#[tokio::test(start_paused = true)]
async fn a_leader_that_dies_is_replaced_when_its_lease_ends() {
    for lease in [secs(1), secs(30)] {
        let voters = embedded::voters(3);
        let on = Fixture::of(&voters);
        let machine = Machine::new("doomed");
        let doomed = on.builder().machine(&machine).connect().await.unwrap();
        let election = doomed.election("a").lease(lease);
        let campaign = machine.run(async move { election.campaign("doomed").await.unwrap() });
        let leadership = tokio::spawn(campaign).await.unwrap();
        let next = on.client().await.election("a");
        let candidate = next.clone();
        let waits = tokio::spawn(async move { candidate.campaign("next").await.unwrap() });
        until_candidates(&next, 1).await;
        machine.kill();
        let watch = Stopwatch::start();
        let after = waits.await.unwrap();
        assert!(watch.time() <= lease + ms(10), "{lease:?}: {:?}", watch.time());
        assert_eq!(next.leader().await.unwrap().unwrap().text(), Some("next"));
        assert!(after.token() > leadership.token());
        sleep(secs(1)).await;
    }
}
