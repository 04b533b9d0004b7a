//! Candidates come in the order of asking.

use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;

use crate::election::{resign, until_candidates};
use quorate_tests::{claims, fixture::Fixture};

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
