//! A hold goes to another client by its ticket, and to one only.

use quorate::{ErrorKind, HoldTicket};
use quorate_tests::{prelude::*, scene::rounds};

const MINUTES: Duration = secs(600);
const LEASE: Duration = secs(30);

/// A ticket as another process gets it.
async fn ticket(client: &Client) -> HoldTicket {
    let guard = client.mutex("a").lock().await.expect("it is free");
    sent(&guard.detach_for(MINUTES).await.expect("a majority stores it"))
}

fn sent(ticket: &HoldTicket) -> HoldTicket {
    ticket.to_string().parse().expect("it is read as it is shown")
}

#[track_caller]
fn assert_ended(error: &Error, why: &str) {
    assert!(error.is_ticket_ended() && error.is_permanent(), "{error}");
    assert!(error.to_string().contains(why), "{error}");
}

claims!(everywhere of both: a_hold_goes_from_client_to_client_and_nobody_comes_between);

async fn a_hold_goes_from_client_to_client_and_nobody_comes_between(on: Fixture) {
    let (api, worker, other) = (on.client().await, on.client().await, on.client().await);
    let guard = api.mutex("a").lock().await.unwrap();
    let (first, token, view) = (guard.hold().clone(), guard.token(), guard.view());
    let ticket = sent(&guard.detach_for(MINUTES).await.unwrap());
    assert!(!view.is_held() && ticket.lock() == "a" && *ticket.hold() != first);
    let busy = other.mutex("a").lock_or_busy(Duration::ZERO).await.unwrap_err();
    assert_eq!(
        (busy.holder(), busy.holder_kind()),
        (Some(ticket.hold()), Some(HolderKind::Parked))
    );
    let seen = other.mutex("a").inspect().await.unwrap();
    assert_eq!(seen.holder().map(|held| held.kind), Some(HolderKind::Parked));

    let resumed = worker.resume(&ticket).await.unwrap();
    assert!(resumed.is_held() && resumed.token() > token && *resumed.hold() != first);
    on.must_be_refused(other.mutex("a").try_lock().await);
    // The one that parked it learns of that at once.
    if let Some(ends) = api.parked(&ticket) {
        let why = timeout(on.at_most(secs(10)), ends).await.expect("it learns of it");
        assert!(why.to_string().ends_with(": its ticket was resumed"), "{why}");
    }
    // With the deadlines that servers on a busy machine have here, an attempt may last for as long.
    match api.resume(&ticket).await.unwrap_err() {
        error if on.is_real() && error.is_busy() => {}
        error => assert_ended(&error, "it was resumed"),
    }
    let second = sent(&resumed.detach_for(MINUTES).await.unwrap());
    let back = api.resume(&second).await.unwrap();
    assert_ended(&worker.resume(&ticket).await.unwrap_err(), "no majority has the hold");
    // By the same client.
    let third = back.detach_for(MINUTES).await.unwrap();
    let again = api.resume(&third).await.unwrap();
    assert!(api.parked(&third).is_none());
    on.release(again.release()).await;
    assert_ended(&worker.resume(&third).await.unwrap_err(), "no majority has the hold");
    on.until_clean().await;
}

claims!(everywhere: of_many_who_resume_one_hold_one_does);

async fn of_many_who_resume_one_hold_one_does(on: Fixture) {
    let api = on.client().await;
    let workers = join_all((0..4).map(|_| on.client())).await;
    for _ in 0..on.rounds(50, (20, 2)) {
        let ticket = ticket(&api).await;
        let all = workers.iter().chain([&api]).map(|worker| worker.resume(&ticket));
        let mut held = Vec::new();
        for resumed in join_all(all).await {
            match resumed {
                Ok(guard) => held.push(guard),
                Err(error) => assert!(error.is_ticket_ended() || on.is_real(), "{error}"),
            }
        }
        assert_eq!(held.len(), 1);
        on.release(held.remove(0).release()).await;
    }
    on.until_clean().await;
}

/// The hold that has the vote of a voter.
fn holder(on: &Fixture, voter: usize) -> String {
    let name = key("a");
    let Reply::List(fields) = on.ask(voter, &["HKEYS", &name]) else { return String::new() };
    match fields.first() {
        Some(Reply::Text(hold)) => hold.clone(),
        _ => String::new(),
    }
}

claims!(three: who_gets_no_majority_gives_the_votes_back_to_the_ticket);

// One voter answers, and passes its vote on. A majority would take two.
async fn who_gets_no_majority_gives_the_votes_back_to_the_ticket(on: Fixture) {
    let api = on.client().await;
    let ticket = ticket(&api).await;
    let patience = if on.is_real() { secs(2) } else { ms(200) };
    let worker = on.connect(on.builder().quorum_timeout(patience)).await;
    for voter in [1, 2] {
        on.stop(voter);
    }
    assert!(worker.resume(&ticket).await.unwrap_err().is_no_quorum());
    until!("its vote is the ticket's again", holder(&on, 0) == ticket.hold().as_str());
    for voter in [1, 2] {
        on.resume(voter);
    }
    // Given up half way. A server may be sooner.
    let mut resumed = None;
    for polls in 1..5 {
        let time = if on.is_real() { ms(polls) } else { Duration::ZERO };
        if let Ok(Ok(guard)) = timeout(time, worker.resume(&ticket)).await {
            resumed = Some(guard);
            break;
        }
    }
    let resumed = match resumed {
        Some(guard) => guard,
        None => until_resumed(&worker, &ticket).await,
    };
    on.release(resumed.release()).await;
    on.until_clean().await;
}

// One voter passes its vote on, and the others do not hear the worker. Meanwhile the time of the
// parked hold is over: they are free, and the first gets its vote back for a hold that has ended.
#[tokio::test(start_paused = true)]
async fn a_vote_that_comes_back_after_its_ticket_has_ended_is_given_up() {
    let voters = embedded::voters(3);
    let on = Fixture::of(&voters);
    let (api, machine) = (on.client().await, Machine::new("worker"));
    let worker = on.connect(on.builder().voter_deadline(ms(200)).machine(&machine)).await;
    let guard = api.mutex("a").lock().await.unwrap();
    let ticket = sent(&guard.detach_for(secs(1)).await.unwrap());
    sleep(ms(900)).await;
    for voter in &voters[1..] {
        voter.fault_each(|sent| match sent.client() {
            "worker" => vec![Fault::DropRequests],
            _ => Vec::new(),
        });
    }
    let watch = Stopwatch::start();
    let resumes = tokio::spawn(worker.resume(&ticket));
    sleep(ms(150)).await;
    let holders = [0, 1, 2].map(|voter| holder(&on, voter));
    assert!(holders[0] != ticket.hold().as_str() && !holders[0].is_empty(), "{holders:?}");
    assert_eq!([&*holders[1], &*holders[2]], ["", ""]);
    for voter in &voters[1..] {
        voter.fault_each(|_| Vec::new());
    }
    assert_ended(&resumes.await.unwrap().unwrap_err(), "no majority has the hold");
    on.until_clean().await;
    assert!(watch.time() < secs(1), "{:?}", watch.time());
}

/// Servers that were stopped are slow at first.
async fn until_resumed(client: &Client, ticket: &HoldTicket) -> MutexGuard {
    loop {
        match client.resume(ticket).await {
            Ok(guard) => return guard,
            Err(error) => assert!(error.is_no_quorum() || error.is_busy(), "{error}"),
        }
    }
}

claims!(everywhere: a_late_renewal_of_the_hold_before_prolongs_nothing);

async fn a_late_renewal_of_the_hold_before_prolongs_nothing(on: Fixture) {
    let api = on.client().await;
    let guard = api.mutex("a").lock().await.unwrap();
    let first = guard.hold().to_string();
    let ticket = guard.detach_for(MINUTES).await.unwrap();
    until!("all voters have parked it", {
        (0..on.voters()).all(|voter| holder(&on, voter) == ticket.hold().as_str())
    });
    let (_, source) = quorate::scripts().find(|(name, _)| *name == "mutex/renew").unwrap();
    let record = key("a");
    let [revoked, fence] = ["revoked", "fence"].map(|end| format!("{record}:{end}"));
    for known in ["", "1"] {
        let renew = [
            "EVAL", source, "3", &record, &revoked, &fence, "3600000", "600000", &first, "1", "7",
            known, "1",
        ];
        on.command(0, &renew);
        let Reply::Int(left) = on.ask(0, &["PTTL", &record]) else { panic!("it has an end") };
        assert!(left <= 30_000 && holder(&on, 0) == ticket.hold().as_str(), "{left}");
    }
    assert!(api.resume(&ticket).await.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_parked_hold_is_renewed_for_its_time_and_then_the_lock_is_free() {
    let (on, api) = Fixture::with_client(3).await;
    let other = on.client().await;
    let ticket = ticket(&api).await;
    let watch = Stopwatch::start();
    let waits = tokio::spawn(other.mutex("a").lock());
    sleep(MINUTES.saturating_sub(ms(10))).await;
    assert!(!waits.is_finished() && api.parked(&ticket).is_some());
    let next = waits.await.unwrap().unwrap();
    assert!(watch.time() <= MINUTES + ms(10), "{:?}", watch.time());
    assert!(api.parked(&ticket).is_none());
    assert_ended(&other.resume(&ticket).await.unwrap_err(), "no majority has the hold");
    next.release().await.unwrap();
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_ticket_outlives_its_client_by_what_is_left_of_the_lease() {
    for late in [false, true] {
        let (on, api) = Fixture::with_client(3).await;
        let worker = on.client().await;
        let ticket = ticket(&api).await;
        sleep(secs(100)).await;
        api.close().await.unwrap();
        // It was renewed by a third of the lease before, at most.
        sleep(if late { LEASE } else { LEASE / 2 }).await;
        match worker.resume(&ticket).await {
            Ok(guard) => assert!(!late && guard.is_held()),
            Err(error) => {
                assert!(late, "{error}");
                assert_ended(&error, "no majority has the hold");
                assert!(worker.mutex("a").try_lock().await.unwrap().is_some());
            }
        }
    }
}

// The client that parks it has renewed it there: the voter has the hold, and may have forgotten
// another.
#[tokio::test(start_paused = true)]
async fn a_voter_in_quarantine_counts_for_nobody_who_resumes() {
    let (mut on, api) = Fixture::with_client(3).await;
    let ticket = ticket(&api).await;
    sleep(secs(60)).await;
    on.restart(1);
    sleep(secs(1)).await;
    let worker = api.clone();
    until!("the voter has the hold again", holder(&on, 1) == ticket.hold().as_str());
    on.kill(0);
    sleep(secs(1)).await;
    let error = timeout(secs(15), worker.resume(&ticket)).await.unwrap().unwrap_err();
    assert!(error.is_no_quorum(), "{error}");
    sleep(error.retry_after().expect("it counts again")).await;
    assert!(worker.resume(&ticket).await.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn only_who_has_the_secret_resumes() {
    let (on, api) = Fixture::with_client(3).await;
    let thief = on.client().await;
    let ticket = ticket(&api).await;
    let text = ticket.to_string();
    let (head, secret) = text.split_at(text.len() - 32);
    for other in ["0".repeat(32), secret.chars().rev().collect()] {
        let forged: HoldTicket = format!("{head}{other}").parse().unwrap();
        let error = thief.resume(&forged).await.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("has not the secret"), "{error}");
    }
    assert!(thief.resume(&ticket).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_hold_at_most_goes_along() {
    let (on, api) = Fixture::with_client(3).await;
    let worker = on.client().await;
    let guard = api.mutex("a").hold_at_most(secs(60)).lock().await.unwrap();
    sleep(secs(20)).await;
    let ticket = guard.detach_for(MINUTES).await.unwrap();
    sleep(secs(10)).await;
    let guard = worker.resume(&ticket).await.unwrap();
    let watch = Stopwatch::start();
    let why = timeout(MINUTES, guard.lost()).await.unwrap().to_string();
    assert!(why.ends_with("held for longer than hold_at_most of 30s"), "{why}");
    assert!(watch.time() >= secs(30) && watch.time() <= secs(30) + ms(1));
    // Nor is it parked for longer.
    let guard = api.mutex("a").hold_at_most(secs(60)).lock().await.unwrap();
    let ticket = guard.detach_for(MINUTES).await.unwrap();
    let watch = Stopwatch::start();
    drop(worker.mutex("a").lock().await.unwrap());
    assert!(watch.time() >= secs(60) && watch.time() <= secs(60) + ms(10), "{:?}", watch.time());
    assert_ended(&worker.resume(&ticket).await.unwrap_err(), "its hold_at_most is over");
}

#[tokio::test(start_paused = true)]
async fn what_has_no_single_owner_is_not_detached() {
    let (on, api) = Fixture::with_client(3).await;
    let guard = api.mutex("a").lock().await.unwrap();
    let again = guard.reenter().await.unwrap();
    let error = again.detach_for(MINUTES).await.unwrap_err();
    assert!(error.is_invalid() && guard.is_held() && guard.count() == 1, "{error}");
    assert_eq!(error.to_string(), "lock `a` is entered 1 times besides, and not detached");
    let error = guard.detach_for(Duration::ZERO).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("takes a millisecond"), "{error}");
    let guard = api.redisson().mutex("a").lock().await.unwrap();
    let error = guard.detach_for(MINUTES).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("Redisson"), "{error}");
    until!("all is released", on.keys().iter().all(Vec::is_empty));
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_cannot_be_detached_is_released() {
    let (on, api) = Fixture::with_client(3).await;
    let guard = api.mutex("a").lock().await.unwrap();
    for voter in [1, 2] {
        on.stop(voter);
    }
    let error = guard.detach_for(MINUTES).await.unwrap_err();
    assert!(error.is_unconfirmed() && error.frees_in() <= Some(LEASE), "{error}");
    for voter in [1, 2] {
        on.resume(voter);
    }
    on.until_clean().await;
    // Nor is one whose caller gives up.
    for polls in 0..4 {
        let guard = api.mutex("a").lock().await.unwrap();
        let detaching = guard.detach_for(MINUTES);
        drop(timeout(ms(polls) / 2, detaching).await.map(drop));
        if let Some(guard) = api.mutex("a").lock_within(secs(1)).await.unwrap() {
            guard.release().await.unwrap();
            on.until_clean().await;
        }
    }
    // What was lost before is told as lost.
    let guard = api.mutex("a").lock().await.unwrap();
    api.admin().end(LockKind::Mutex, "a", guard.hold()).await.unwrap();
    let error = guard.detach_for(MINUTES).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_parked_hold_is_ended_by_force() {
    let (_on, api) = Fixture::with_client(3).await;
    let ticket = ticket(&api).await;
    let ends = api.parked(&ticket).unwrap();
    api.admin().end(LockKind::Mutex, "a", ticket.hold()).await.unwrap();
    assert_ended(&api.resume(&ticket).await.unwrap_err(), "no majority has the hold");
    let why = timeout(LEASE, ends).await.unwrap().to_string();
    assert!(why.contains(": it was ended by force"), "{why}");
    assert!(api.mutex("a").try_lock().await.unwrap().is_some());
}

claims!(three: a_hold_is_handed_over_many_times_while_servers_stand_still);

// One server answers late, another stands still now and then; and of the clients before none is left.
async fn a_hold_is_handed_over_many_times_while_servers_stand_still(mut on: Fixture) {
    let count = if on.is_real() { rounds(200) } else { rounds(2_000) };
    on.make_way_longer(0).await;
    on.delay(0, ms(5));
    let mut client = on.client().await;
    let guard = client.mutex("a").lock().await.unwrap();
    let mut token = guard.token();
    let mut ticket = guard.detach_for(MINUTES).await.unwrap();
    for round in 0..count {
        let next = on.client_of(on.builder().connect().await.unwrap());
        if round.is_multiple_of(3) {
            on.stop(1);
        }
        let guard = until_resumed(&next, &sent(&ticket)).await;
        assert!(guard.token() > token);
        token = guard.token();
        if round.is_multiple_of(3) {
            on.resume(1);
        }
        ticket = guard.detach_for(MINUTES).await.unwrap();
        drop(std::mem::replace(&mut client, next));
    }
}
