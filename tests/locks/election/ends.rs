//! How a lead ends, and what a late word of an old leader does.

use tokio::time::timeout;

use crate::election::until_led;
use quorate::embedded::{self, Fault};
use quorate_tests::{
    fixture::{Fixture, Stopwatch, ms, secs, trusted},
    inside::all,
};

// The client of the leader is cut off, and its lease ends. What it proclaimed is still on its way
// to two voters, and arrives when another leads.
#[tokio::test(start_paused = true)]
async fn a_late_word_of_an_old_leader_never_shows() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let lease = secs(4);
    let old = on.client_with_lease(lease).await;
    let (next, follows) = (on.client().await.election("a"), on.client().await.election("a"));
    let leadership = old.election("a").campaign("old:1").await.unwrap();
    let mut observer = follows.observe();
    until_led(&mut observer, "old:1").await;
    let weather = all(&voters, Fault::Delay { there: 2 * lease, back: ms(0) });
    let proclaimed = leadership.proclaim("old:2").await.unwrap_err();
    assert!(proclaimed.is_not_entered(), "{proclaimed}");
    assert!(proclaimed.to_string().starts_with("a new value of lock `a` not confirmed"));
    drop(weather);
    let watch = Stopwatch::start();
    assert!(leadership.lost().await.is_lost());
    assert!(watch.time() <= trusted(lease));
    assert!(leadership.proclaim("old:3").await.unwrap_err().is_lost());
    let leads = next.campaign("next:1").await.unwrap();
    until_led(&mut observer, "next:1").await;
    // By now what was on its way has arrived.
    assert!(timeout(3 * lease, observer.next()).await.is_err(), "nothing has changed");
    let leader = follows.leader().await.unwrap().unwrap();
    assert_eq!((leader.hold(), leader.text()), (leads.hold(), Some("next:1")));
}

// A renewal with the old value is on its way to one voter when the new value comes by another
// connection. The voter has it last, and keeps the new one.
#[tokio::test(start_paused = true)]
async fn a_late_renewal_does_not_bring_an_old_value_back() {
    let on = Fixture::embedded(1);
    let election = on.client().await.election("a");
    let leadership = election.campaign("1").await.unwrap();
    let (hold, token) = (leadership.hold().to_string(), leadership.token().to_string());
    leadership.proclaim("2").await.unwrap();
    let (_, source) =
        quorate::scripts().find(|(name, _)| *name == "election/renew").expect("it is there");
    let record = "quorate:{a}:election";
    let keys =
        [record, &format!("{record}:revoked"), &format!("{record}:fence")].map(str::to_owned);
    for said in ["1 - =1".to_owned(), format!("2 {token} =1")] {
        let mut words = vec!["EVAL", source, "3", &keys[0], &keys[1], &keys[2]];
        words.extend(["30000", "600000", "PUBLISH", &hold, &token, &said, "news"]);
        on.command(0, &words);
        assert_eq!(election.leader().await.unwrap().unwrap().text(), Some("2"));
    }
    assert!(leadership.is_held());
}
