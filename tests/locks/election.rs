//! What users of elections rely on. Each test's name is the claim; each claim is written once and
//! holds on voters inside the process and on real servers.

use futures::StreamExt;
use quorate::{Leader, Leadership, Observer};
use quorate_tests::{inside::fault_client, prelude::*};

/// What the leader is called that the voters name.
fn led_by(observed: &Observed) -> Option<&str> {
    match observed {
        Observed::Leader(leader) => leader.text(),
        other => panic!("no leader: {other:?}"),
    }
}

/// The next that is observed; a busy machine may take its time.
async fn observed(observer: &mut Observer) -> Observed {
    let next = timeout(Duration::from_mins(1), observer.next()).await;
    next.expect("something is observed").expect("the client is open")
}

/// Waits until this is observed. What is so for a moment only may be seen on the way.
async fn until_led(observer: &mut Observer, value: &str) -> Leader {
    loop {
        match observed(observer).await {
            Observed::Leader(leader) if leader.text() == Some(value) => return leader,
            _ => {}
        }
    }
}

async fn until_vacant(observer: &mut Observer) {
    while !matches!(observed(observer).await, Observed::NoLeader) {}
}

/// A minute passes in no time on embedded voters.
const PATIENCE: Duration = secs(60);

// One leads, and says what it is.

claims!(everywhere:
    of_two_candidates_one_leads_and_both_can_tell_which,
    a_value_may_be_any_4096_bytes_and_is_seen_by_whoever_asks_after_it_was_proclaimed,
    work_under_a_lead_is_done_and_a_lead_outlasts_its_lease,
);
claims!(inside: a_campaign_without_rivals_asks_each_voter_once_and_confirms_it_once);

/// What a leader and those who see it agree on.
#[track_caller]
fn is_that(leader: &Leader, leadership: &Leadership, value: &[u8]) {
    assert_eq!(leader.hold(), leadership.hold());
    assert_eq!(leader.token(), leadership.token());
    assert_eq!(leader.value(), value);
}

async fn of_two_candidates_one_leads_and_both_can_tell_which(on: Fixture) {
    let (ada, ben) = (on.client().await, on.client().await);
    assert_eq!(ada.election("a").leader().await.unwrap(), None);
    let leadership = ada.election("a").campaign("ada:1").await.unwrap();
    assert!(leadership.is_held() && leadership.remaining() > secs(20));
    assert_eq!(leadership.name(), "a");
    assert!(leadership.votes() > on.voters() / 2);
    assert!(ben.election("a").try_campaign("ben:1").await.unwrap().is_none());
    let seen = ben.election("a").inspect().await.unwrap();
    assert_eq!(seen.holder().unwrap().hold, *leadership.hold());
    assert!(seen.waiting.is_empty() && seen.token == Some(leadership.token()));
    for client in [&ada, &ben] {
        let leader = client.election("a").leader().await.unwrap().expect("somebody leads");
        is_that(&leader, &leadership, b"ada:1");
        assert_eq!(leader.text(), Some("ada:1"));
    }
    on.release(leadership.resign()).await;
    let leadership = ben.election("a").campaign("ben:1").await.unwrap();
    let leader = ada.election("a").leader().await.unwrap().expect("somebody leads");
    is_that(&leader, &leadership, b"ben:1");
    on.release(leadership.resign()).await;
    on.until_clean().await;
}

async fn a_value_may_be_any_4096_bytes_and_is_seen_by_whoever_asks_after_it_was_proclaimed(
    on: Fixture,
) {
    let (election, follows) = (on.client().await.election("a"), on.client().await.election("a"));
    let every_byte: Vec<u8> = (0..=u8::MAX).cycle().take(4096).collect();
    let blanks = " = # - 1 2\r\n\0".as_bytes();
    let long = "é".repeat(2048);
    for value in [&every_byte[..], &every_byte[128..130], blanks, long.as_bytes(), b""] {
        let leadership = election.campaign(value).await.unwrap();
        for value in [value, &every_byte, b"1", b"2", value] {
            leadership.proclaim(value).await.unwrap();
            let leader = follows.leader().await.unwrap().expect("somebody leads");
            is_that(&leader, &leadership, value);
            assert_eq!(leader.text(), std::str::from_utf8(value).ok());
        }
        on.release(leadership.resign()).await;
    }
    on.until_clean().await;
}

async fn work_under_a_lead_is_done_and_a_lead_outlasts_its_lease(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let leadership = client.election("a").campaign("ada:1").await.unwrap();
    let work = async { tokio::time::sleep(secs(4)).await };
    leadership.while_leader(work).await.unwrap();
    let failed = leadership.try_while_leader(async { "x".parse::<u32>().map_err(|_| Failed) });
    assert!(matches!(failed.await, Err(Failed)));
    let leader = client.election("a").leader().await.unwrap().expect("it leads still");
    is_that(&leader, &leadership, b"ada:1");
    on.release(leadership.resign()).await;
    on.until_clean().await;
}

#[derive(Debug)]
struct Failed;

impl From<quorate::Error> for Failed {
    fn from(error: quorate::Error) -> Self {
        panic!("it leads: {error}")
    }
}

async fn a_campaign_without_rivals_asks_each_voter_once_and_confirms_it_once(on: Fixture) {
    let election = on.client().await.election("a");
    let leadership = election.campaign("ada:1").await.unwrap();
    let once = vec![1; on.voters()];
    assert_eq!(on.runs("election/acquire").unwrap(), once);
    // Nobody waits for the confirmation, and it comes long before the first renewal.
    assert_eq!(on.runs("election/renew").unwrap(), vec![0; on.voters()]);
    tokio::time::sleep(ms(1)).await;
    assert_eq!(on.runs("election/renew").unwrap(), once);
    leadership.resign().await.unwrap();
    assert_eq!(on.runs("election/renew").unwrap(), once);
    assert_eq!(on.runs("mutex/release").unwrap(), once);
}

// How a lead ends, and what a late word of an old leader does.

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

// Two of three voters stand still until a candidate has given up. When they go on, they run what it
// had asked for, and hear that it has given up only when its client reaches them again.
claims!(three: a_candidate_that_has_given_up_is_never_seen_to_lead);

async fn a_candidate_that_has_given_up_is_never_seen_to_lead(on: Fixture) {
    let [ada, ben, follows] =
        [on.client().await, on.client().await, on.client().await].map(|it| it.election("a"));
    let mut observer = follows.observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    on.until_listening().await;
    on.stop(0);
    on.stop(1);
    let gave_up = ada.campaign_within("ada:1", secs(16)).await.map(drop);
    assert!(gave_up.unwrap_err().is_no_quorum());
    on.resume(0);
    on.resume(1);
    let leads = tokio::spawn(ben.campaign("ben:1"));
    loop {
        match observed(&mut observer).await {
            Observed::Leader(leader) if leader.text() == Some("ben:1") => break,
            Observed::Leader(leader) => panic!("nobody leads, and it observes {leader:?}"),
            _ => {}
        }
    }
    on.release(leads.await.unwrap().unwrap().resign()).await;
    drop(observer);
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn votes_that_their_candidate_has_not_heard_of_make_no_leader() {
    not_seen_to_lead(&[], WAY + WAY / 2).await;
}

// The voters have counted apart, so the candidate has its token stored by a majority before it has
// won. It dies when they have done so.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_stored_before_its_candidate_has_won_makes_no_leader() {
    not_seen_to_lead(&["1800000000000000", "1800000000001000"], 3 * WAY + WAY / 2).await;
}

/// The machine of a candidate dies when its votes are given and it has not heard so. They stay for
/// their lease of 30 s, in which it cannot be known that nobody leads.
async fn not_seen_to_lead(numbers: &[&str], dies_after: Duration) {
    let voters = embedded::voters(3);
    let (on, machine) = (Fixture::of(&voters), Machine::new("dies"));
    let dies = Quorate::builder().embedded(&voters).machine(&machine).connect().await.unwrap();
    for (voter, number) in numbers.iter().enumerate() {
        on.command(voter, &["SET", "quorate:{a}:election:fence", number]);
    }
    let election = on.client().await.election("a");
    let mut observer = election.observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    on.until_listening().await;
    let weather = all(&voters, Fault::Delay { there: WAY, back: WAY });
    let asks = tokio::spawn(dies.election("a").campaign("ada:1"));
    tokio::time::sleep(dies_after).await;
    machine.kill();
    drop(weather);
    let watch = Stopwatch::start();
    assert!(on.keys().iter().all(|keys| keys.contains(&"quorate:{a}:election".to_owned())));
    let stored = on.runs("election/renew").unwrap().into_iter().max();
    assert_eq!(stored, Some(u64::from(!numbers.is_empty())));
    let error = election.leader().await.unwrap_err();
    assert!(error.is_no_quorum() && error.voters().len() == 3, "{error}");
    assert!(matches!(observed(&mut observer).await, Observed::Unknown(_)));
    let seen = election.inspect().await.unwrap();
    assert!(seen.leader.is_none() && seen.holder().is_some(), "{seen:?}");
    let before = on.runs("election/look").unwrap();
    until_vacant(&mut observer).await;
    assert!(watch.time() > secs(29), "{:?}", watch.time());
    // Each time it has asked by the poll interval, and a few times more in case it is confirmed.
    for (asked, before) in on.runs("election/look").unwrap().into_iter().zip(before) {
        assert!(asked - before < 120, "{}", asked - before);
    }
    asks.abort();
    assert_eq!(election.leader().await.unwrap(), None);
}

/// Nobody waits for the lead, so no voter tells that its lease has ended.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_dead_leader_shows_with_its_lease() {
    let voters = embedded::voters(3);
    let machine = Machine::new("old");
    let builder = || Quorate::builder().embedded(&voters).poll_interval(secs(60));
    let old = builder().machine(&machine).connect().await.unwrap();
    let (next, watch) = (builder().connect().await.unwrap(), Stopwatch::start());
    let _leadership = old.election("a").campaign("old:1").await.unwrap();
    let mut observer = next.election("a").observe();
    until_led(&mut observer, "old:1").await;
    machine.kill();
    until_vacant(&mut observer).await;
    let late = watch.time().saturating_sub(secs(30));
    assert!(late < ms(20), "{late:?}");
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

// The first message by which the leader says so is lost on its way to every voter. It says so again
// when no answer has come, and not with its first renewal after 10 s, or when observers next ask.
#[tokio::test(start_paused = true)]
async fn a_confirmation_that_is_lost_is_sent_again() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let builder = on.builder().poll_interval(secs(60));
    let (ada, observing) = (on.client().await.election("a"), on.connect(builder).await);
    let mut observer = observing.election("a").observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    assert!(timeout(secs(1), observer.next()).await.is_err());
    for voter in &voters {
        let mut is_lost = false;
        voter.fault_each(move |sent| {
            let is_first = sent.script() == Some("election/renew") && !is_lost;
            is_lost |= is_first;
            if is_first { vec![Fault::DropRequests] } else { Vec::new() }
        });
    }
    let leadership = ada.campaign("ada:1").await.unwrap();
    let watch = Stopwatch::start();
    let leader = until_led(&mut observer, "ada:1").await;
    is_that(&leader, &leadership, b"ada:1");
    assert!(watch.time() > ms(200) && watch.time() < secs(1), "{:?}", watch.time());
}

// What cannot work is refused before anything is sent.

#[tokio::test(start_paused = true)]
async fn a_value_that_is_too_long_and_a_name_that_cannot_be_used_are_refused_and_nothing_is_sent() {
    let (on, client) = Fixture::with_client(3).await;
    let (long, told) =
        ("x".repeat(4097), "the value of a leader has 4097 bytes: 4096 are the most");
    let election = client.election("a");
    let within = election.campaign_within(&long, secs(1)).await.map(drop);
    for refused in [election.campaign(&long).await.map(drop), within] {
        assert_invalid(&refused.unwrap_err(), told);
    }
    for (name, message) in [("", "empty"), (&*"n".repeat(513), "513 bytes, the limit is 512")] {
        let election = client.election(name);
        assert_invalid(&election.campaign("a").await.unwrap_err(), message);
        assert_invalid(&election.leader().await.unwrap_err(), message);
        let observed: Vec<_> = election.observe().collect().await;
        let [Observed::Unknown(error)] = &observed[..] else { panic!("{observed:?}") };
        assert_invalid(error, message);
    }
    let lease = client.election("a").lease(secs(31)).campaign("a").await.unwrap_err();
    assert_invalid(&lease, "over the longest lease of 30s");
    for script in ["election/acquire", "election/look", "mutex/inspect"] {
        let asked = u64::from(script == "mutex/inspect");
        assert_eq!(on.runs(script).unwrap(), [asked; 3], "{script}: `connect` looks once");
    }
    // One that leads goes on with the value that it has.
    let leadership = election.campaign("short").await.unwrap();
    assert_invalid(&leadership.proclaim(&long).await.unwrap_err(), told);
    assert_eq!(on.runs("election/renew").unwrap(), [0; 3]);
    assert_eq!(election.leader().await.unwrap().unwrap().text(), Some("short"));
}

// What observers are told, and when.

claims!(everywhere:
    an_observer_that_is_dropped_listens_no_more,
    an_observer_ends_with_its_client,
    what_changed_before_it_is_polled_is_told_as_it_is_now,
);

async fn an_observer_that_is_dropped_listens_no_more(on: Fixture) {
    let election = on.client().await.election("a");
    let mut observers = [election.observe(), election.observe()];
    assert!(on.lock_channels().iter().all(Vec::is_empty), "it was not polled yet");
    for observer in &mut observers {
        observed(observer).await;
    }
    on.until_listening().await;
    let [one, other] = observers;
    drop(one);
    let leadership = election.campaign("ada:1").await.unwrap();
    let mut other = other;
    until_led(&mut other, "ada:1").await;
    drop(other);
    on.release(leadership.resign()).await;
    on.until_clean().await;
}

async fn an_observer_ends_with_its_client(on: Fixture) {
    let client = on.client().await;
    let mut observer = client.election("a").observe();
    observed(&mut observer).await;
    let waits = tokio::spawn(async move { (observer.next().await.is_none(), observer) });
    drop(client.close().await);
    let (ended, mut observer) = timeout(PATIENCE, waits).await.unwrap().unwrap();
    assert!(ended && observer.next().await.is_none());
    assert!(client.election("a").observe().next().await.is_none());
    assert!(client.election("a").leader().await.unwrap_err().is_closed());
    assert!(client.election("a").campaign("x").await.unwrap_err().is_closed());
}

async fn what_changed_before_it_is_polled_is_told_as_it_is_now(on: Fixture) {
    let election = on.client().await.election("a");
    let mut observer = on.client().await.election("a").observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    on.until_listening().await;
    for value in ["1", "2"] {
        let leadership = election.campaign(value).await.unwrap();
        on.release(leadership.resign()).await;
    }
    let leadership = election.campaign("3").await.unwrap();
    assert_eq!(led_by(&observed(&mut observer).await), Some("3"));
    on.release(leadership.resign()).await;
}

/// One way to a voter of these.
const WAY: Duration = ms(10);

// There with the request, back with the message, and a round trip to ask: four ways after the leader
// has sent it. It says that it leads when it has won, a round trip after it asked for the votes. No
// time passes but on the way.
#[tokio::test(start_paused = true)]
async fn a_change_is_told_within_a_round_trip_of_it_without_a_timer() {
    let voters = embedded::voters(5);
    let on = Fixture::of(&voters);
    let (ada, observing) = (on.client().await.election("a"), on.client().await);
    let _weather = all(&voters, Fault::Delay { there: WAY, back: WAY });
    let mut observer = observing.election("a").observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    // It asks once more when it is known to listen.
    assert!(timeout(ms(100), observer.next()).await.is_err());
    let watch = Stopwatch::start();
    let leadership = ada.campaign("ada:1").await.unwrap();
    assert!(watch.time() <= 2 * WAY + ms(1), "{:?}", watch.time());
    let watch = Stopwatch::start();
    until_led(&mut observer, "ada:1").await;
    assert!(watch.time() <= 4 * WAY + ms(1), "{:?}", watch.time());
    let watch = Stopwatch::start();
    let proclaimed = tokio::spawn(async move {
        leadership.proclaim("ada:2").await.unwrap();
        leadership
    });
    until_led(&mut observer, "ada:2").await;
    assert!(watch.time() <= 4 * WAY + ms(1), "{:?}", watch.time());
    let leadership = proclaimed.await.unwrap();
    let watch = Stopwatch::start();
    let resigned = tokio::spawn(leadership.resign());
    until_vacant(&mut observer).await;
    assert!(watch.time() <= 4 * WAY + ms(1), "{:?}", watch.time());
    resigned.await.unwrap().unwrap();
}

// The votes are given after 80 ms, and confirmed after 240. Who begins to observe in between asks
// again when the voters tell it, and not some time later.
#[tokio::test(start_paused = true)]
async fn an_observer_that_has_asked_too_soon_is_told_of_the_confirmation() {
    let voters = embedded::voters(3);
    let (on, machine) = (Fixture::of(&voters), Machine::new("far"));
    let ada = Quorate::builder().embedded(&voters).machine(&machine).connect().await.unwrap();
    let follows = on.client().await.election("a");
    fault_client(&voters, "far", Fault::Delay { there: ms(80), back: ms(80) });
    let watch = Stopwatch::start();
    let campaign = tokio::spawn(ada.election("a").campaign("ada:1"));
    watch.sleep_until(ms(130)).await;
    let leader = until_led(&mut follows.observe(), "ada:1").await;
    assert!(watch.time() >= ms(240) && watch.time() <= ms(242), "{:?}", watch.time());
    is_that(&leader, &campaign.await.unwrap().unwrap(), b"ada:1");
}

// Nothing changes for a minute: thirty polls of 2 s, and one question more when it listens. The
// renewals of the leader are told to nobody.
#[tokio::test(start_paused = true)]
async fn without_news_an_observer_asks_by_the_poll_interval_and_no_faster() {
    let on = Fixture::embedded(3);
    let election = on.client().await.election("a");
    let leadership = election.campaign("ada:1").await.unwrap();
    let mut observer = on.client().await.election("a").observe();
    until_led(&mut observer, "ada:1").await;
    assert!(timeout(secs(60), observer.next()).await.is_err(), "nothing has changed");
    for asked in on.runs("election/look").unwrap() {
        // It may ask again until the leader has said that it leads.
        assert!((30..=34).contains(&asked), "{asked}");
    }
    leadership.resign().await.unwrap();
}

// The connections of the observer break while a leader comes: whatever was published meanwhile is
// lost. It asks as soon as it listens again, and not after 2 s.
#[tokio::test(start_paused = true)]
async fn what_is_lost_with_connections_is_told_right_after_they_stand_again() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let election = on.client().await.election("a");
    let mut observer = on.client().await.election("a").observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    assert!(timeout(secs(3), observer.next()).await.is_err());
    let leadership = election.campaign("ada:1").await.unwrap();
    for voter in &voters {
        voter.cut(InFlight::Arrives);
    }
    let watch = Stopwatch::start();
    until_led(&mut observer, "ada:1").await;
    assert!(watch.time() <= ms(100), "{:?}", watch.time());
    leadership.resign().await.unwrap();
}

// As for a waiter: pauses from 1 ms, doubled up to half a second.
#[tokio::test(start_paused = true)]
async fn a_voter_whose_connection_breaks_at_every_request_does_not_make_an_observer_spin() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let leadership = on.client().await.election("a").campaign("ada:1").await.unwrap();
    let mut observer = on.client().await.election("a").observe();
    until_led(&mut observer, "ada:1").await;
    let _fault = voters[0].fault(Fault::CutBeforeRun);
    assert!(timeout(secs(10), observer.next()).await.is_err(), "the others say who leads");
    let asked = voters[1].runs("election/look");
    assert!(asked < 60, "asked {asked} times in ten seconds");
    drop(leadership);
}

// It sees only what a majority has: one voter is free already, and another one still has the old
// value.
#[tokio::test(start_paused = true)]
async fn a_minority_changes_nothing_that_is_observed() {
    let voters = embedded::voters(5);
    let on = Fixture::of(&voters);
    let leadership = on.client().await.election("a").campaign("ada:1").await.unwrap();
    let mut observer = on.client().await.election("a").observe();
    let leader = until_led(&mut observer, "ada:1").await;
    voters[0].kill();
    voters[1].stop();
    leadership.proclaim("ada:2").await.unwrap();
    assert_eq!(until_led(&mut observer, "ada:2").await.token(), leader.token());
    voters[0].restart_empty();
    voters[1].resume();
    assert!(timeout(secs(60), observer.next()).await.is_err());
    assert!(leadership.is_held());
}

// What metrics say about observers.

#[tokio::test(start_paused = true)]
async fn observers_are_counted_and_what_they_are_told() {
    let (snapshotter, _recording) = record();
    let mut on = Fixture::embedded(3);
    let builder = on.builder().restart_guard(RestartGuard::Off).named_metrics(["named"]);
    let client = builder.connect().await.unwrap();
    let (mut one, mut other) = (client.election("a").observe(), client.election("named").observe());
    let seen = || recorded(&snapshotter, &[metric::OBSERVERS, metric::OBSERVED]);
    assert!(seen().is_empty(), "nobody has polled them");
    assert!(matches!(one.next().await, Some(Observed::NoLeader)));
    assert!(matches!(other.next().await, Some(Observed::NoLeader)));
    let leadership = client.election("a").campaign("x").await.unwrap();
    assert!(matches!(one.next().await, Some(Observed::Leader(_))));
    leadership.resign().await.unwrap();
    assert!(matches!(one.next().await, Some(Observed::NoLeader)));
    on.kill_all();
    assert!(matches!(one.next().await, Some(Observed::Unknown(_))));
    drop(other);
    // By the name of an election, and by what was told.
    let expected = [
        ("", 1.0),
        ("named", 0.0),
        ("leader", 1.0),
        ("no_leader", 2.0),
        ("unknown", 1.0),
        ("named no_leader", 1.0),
    ];
    assert_eq!(seen(), expected.map(|(labels, value)| (labels.to_owned(), value)).into());
    drop(one);
    let since = seen();
    assert_eq!(since.get(""), Some(&-1.0), "each look begins anew: {since:?}");
}

// That nobody leads, and that it cannot be known who does.

claims!(minority: a_follower_tells_nobody_from_cannot_know);

async fn a_follower_tells_nobody_from_cannot_know(on: Fixture) {
    let mut on = on;
    let election = on.client().await.election("a");
    let mut observer = on.client().await.election("a").observe();
    assert!(matches!(observed(&mut observer).await, Observed::NoLeader));
    let leadership = election.campaign("ada:1").await.unwrap();
    until_led(&mut observer, "ada:1").await;
    for voter in 0..2 {
        on.stop(voter);
    }
    assert_eq!(election.leader().await.unwrap().unwrap().text(), Some("ada:1"));
    on.stop(2);
    let error = election.leader().await.unwrap_err();
    assert!(error.is_no_quorum() && error.lock() == Some("a"), "{error}");
    assert_eq!(error.voters().len(), 5);
    let Observed::Unknown(error) = observed(&mut observer).await else { panic!("it is known") };
    assert!(error.is_no_quorum(), "{error}");
    for voter in 0..3 {
        on.resume(voter);
    }
    until_led(&mut observer, "ada:1").await;
    on.release(leadership.resign()).await;
    until_vacant(&mut observer).await;
    // A majority was enough for that. The others hear of it later.
    drop(observer);
    on.until_clean().await;
    on.kill(0);
    on.kill(1);
    assert_eq!(election.leader().await.unwrap(), None, "three say so");
}

// A leader had the votes of all. Two of three come back empty, and say that nobody leads: they may
// have forgotten it. The leader goes on, because they had voted for it before.
#[tokio::test(start_paused = true)]
async fn voters_that_may_have_forgotten_whom_they_voted_for_do_not_say_that_nobody_leads() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let (leads, follows) = (on.client().await.election("a"), on.client().await.election("a"));
    let mut observer = follows.observe();
    let leadership = leads.campaign("ada:1").await.unwrap();
    until_led(&mut observer, "ada:1").await;
    voters[0].restart_empty();
    tokio::time::sleep(secs(1)).await;
    voters[1].restart_empty();
    let error = follows.leader().await.unwrap_err();
    let suspected = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(Cause::Quarantined(_)));
    let counted = error.voters().iter().filter(|report| suspected(&report.verdict)).count();
    assert_eq!(counted, 2, "{error}");
    assert!(matches!(observed(&mut observer).await, Observed::Unknown(_)));
    assert!(leadership.is_held());
    // When the longest lease is over they count again.
    assert_eq!(until_led(&mut observer, "ada:1").await.token(), leadership.token());
}

// Nobody leads where two have one vote each and the third none: no hold can have a majority.
#[tokio::test(start_paused = true)]
async fn where_the_votes_are_split_nobody_leads() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let election = on.client().await.election("a");
    for (voter, hold) in [(0, "c:1"), (1, "c:2")] {
        on.command(voter, &["HSET", "quorate:{a}:election", hold, "1 - =x"]);
        on.command(voter, &["PEXPIRE", "quorate:{a}:election", "5000"]);
    }
    assert_eq!(election.leader().await.unwrap(), None);
    voters[2].stop();
    // The silent one may have voted for either.
    assert!(election.leader().await.unwrap_err().is_no_quorum());
    voters[2].resume();
    let leadership = timeout(secs(6), election.campaign("ada:1")).await.unwrap().unwrap();
    assert!(leadership.is_held());
    tokio::time::sleep(ms(10)).await;
}
