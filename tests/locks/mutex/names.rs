//! What clients are called, and who is told.

use std::{
    process,
    sync::{Arc, Mutex},
    time::Duration,
};

use quorate::{Quorate, embedded, inspection::Inspection};
use tokio::time::sleep;

use quorate_support::eventually_async;
use quorate_tests::{
    claims,
    fixture::{Fixture, Stopwatch, ms, secs},
};

claims!(everywhere of both:
    operators_and_whoever_is_refused_are_told_the_name_of_the_holder,
);
claims!(everywhere:
    operators_are_told_the_names_of_readers_writers_and_waiters,
);

fn name_of(seen: &Inspection) -> Option<String> {
    seen.holder()?.client_name
}

// Each says its name by itself, and shortly after it has connected.
async fn operators_and_whoever_is_refused_are_told_the_name_of_the_holder(on: Fixture) {
    let holder = on.connect(on.builder().client_name("web-1:4711")).await;
    let other = on.connect(on.builder().client_name("web 2, Zürich")).await;
    let guard = holder.mutex("a").lock().await.unwrap();
    eventually_async("the voters know the name", async || {
        // Not for long is it believed that nobody knows it.
        sleep(ms(100)).await;
        let seen = other.mutex("a").inspect().await;
        seen.is_ok_and(|seen| name_of(&seen).as_deref() == Some("web-1:4711"))
    })
    .await;
    let error = other.mutex("a").lock_or_busy(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.holder_name(), Some("web-1:4711"), "{error}");
    let whose = format!("lock `a` is taken by {} (web-1:4711), for ", guard.hold());
    assert!(error.to_string().starts_with(&whose), "{error}");
    let own = holder.mutex("a").inspect().await.unwrap();
    assert_eq!(name_of(&own).as_deref(), Some("web-1:4711"));
    let shown = own.to_string();
    assert!(shown.contains(&format!("held by {} (web-1:4711), count 1", guard.hold())), "{shown}");
    guard.release().await.unwrap();
    on.until_clean().await;
}

async fn operators_are_told_the_names_of_readers_writers_and_waiters(on: Fixture) {
    let ours = on.connect(on.builder().client_name("ours")).await;
    let theirs = on.connect(on.builder().client_name("theirs")).await;
    let operator = on.connect(on.builder().client_name("operator")).await;
    let (ours, theirs) = (ours.rw_lock("a"), theirs.rw_lock("a"));
    let operator = operator.rw_lock("a");
    let read = ours.read().await.unwrap();
    let writer = tokio::spawn(async move { theirs.write().await });
    eventually_async("both are known", async || {
        sleep(ms(100)).await;
        let Ok(seen) = operator.inspect().await else { return false };
        let reader = seen.readers().pop().and_then(|reader| reader.client_name);
        let waiting = seen.waiting_writers().pop().and_then(|waiting| waiting.client_name);
        (reader.as_deref(), waiting.as_deref()) == (Some("ours"), Some("theirs"))
    })
    .await;
    read.release().await.unwrap();
    let write = writer.await.unwrap().unwrap();
    let writer = operator.inspect().await.unwrap().writer().expect("it is written");
    assert_eq!(writer.client_name.as_deref(), Some("theirs"));
    let error = operator.read_or_busy(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.holder_name(), Some("theirs"), "{error}");
    write.release().await.unwrap();
    on.until_clean().await;
}

#[tokio::test]
async fn a_client_of_servers_is_called_by_its_host_and_process() {
    let on = Fixture::real(1);
    let client = on.client().await;
    let guard = client.mutex("a").lock().await.unwrap();
    let name = name_of(&client.mutex("a").inspect().await.unwrap()).expect("it knows its own");
    let (host, process) = name.rsplit_once(':').expect("two parts");
    assert!(!host.is_empty());
    assert_eq!(process, process::id().to_string());
    guard.release().await.unwrap();
}

// A majority that has no name is not asked for more, and those that are silent not at all.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_name_that_nobody_knows() {
    let voters = embedded::voters(3);
    let nameless = Quorate::builder().embedded(&voters).connect().await.unwrap();
    let named = Quorate::builder().embedded(&voters).client_name("web-1").voter_deadline(ms(200));
    let named = named.connect().await.unwrap();
    let guard = nameless.mutex("a").lock().await.unwrap();
    voters[2].stop();
    for _ in 0..4 {
        let watch = Stopwatch::start();
        let error = named.mutex("a").lock_or_busy(Duration::ZERO).await.unwrap_err();
        assert!(error.is_busy() && error.holder_name().is_none(), "{error}");
        assert!(watch.time() < ms(1), "{:?}", watch.time());
        sleep(secs(11)).await;
    }
    voters[1].stop();
    for _ in 0..4 {
        let watch = Stopwatch::start();
        let error = named.mutex("a").lock_within(ms(50)).await.unwrap_err();
        assert!(error.is_no_quorum(), "{error}");
        assert_eq!(watch.time(), ms(200), "the voters have as long to answer");
        sleep(secs(11)).await;
    }
    drop(guard);
    voters[1..].iter().for_each(embedded::EmbeddedVoter::resume);
}

/// Which scripts about names ran on the voter, and when.
fn said(voter: &embedded::EmbeddedVoter) -> Arc<Mutex<Vec<(&'static str, u64)>>> {
    let (said, start) = (Arc::<Mutex<Vec<_>>>::default(), Stopwatch::start());
    let noted = Arc::clone(&said);
    voter.observe(move |ran| {
        if matches!(ran.script(), "voter/introduce" | "voter/name") {
            noted.lock().unwrap().push((ran.script(), start.time().as_secs()));
        }
    });
    said
}

fn names(voter: &embedded::EmbeddedVoter) -> Vec<String> {
    voter.keys().into_iter().filter(|key| key.starts_with("quorate:{%client:")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_name_is_said_every_four_minutes_whatever_is_locked_and_forgotten_ten_minutes_later() {
    let voters = embedded::voters(3);
    let said = said(&voters[0]);
    let builder = Quorate::builder().embedded(&voters).client_name("web-1");
    let client = builder.connect().await.unwrap();
    for _ in 0..100 {
        let guard = client.mutex("a").lock().await.unwrap();
        sleep(secs(5)).await;
        guard.release().await.unwrap();
    }
    let expected = [0, 240, 480].map(|second| ("voter/introduce", second));
    assert_eq!(*said.lock().unwrap(), expected);
    assert_eq!(names(&voters[0]).len(), 1);
    // A voter that lost it has it again at the next time.
    voters[0].wipe();
    assert_eq!(names(&voters[0]).len(), 0);
    sleep(secs(221)).await;
    assert_eq!(names(&voters[0]).len(), 1);
    client.close().await;
    sleep(secs(9 * 60)).await;
    assert_eq!(names(&voters[0]).len(), 1);
    sleep(secs(61)).await;
    assert!(voters.iter().all(|voter| names(voter).is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_voter_that_was_away_is_told_the_name_soon_after_it_is_back() {
    let voters = embedded::voters(3);
    voters[2].kill();
    let builder = Quorate::builder().embedded(&voters).client_name("web-1");
    let _client = builder.connect().await.unwrap();
    sleep(secs(7)).await;
    assert!(names(&voters[2]).is_empty() && names(&voters[1]).len() == 1);
    voters[2].restart();
    sleep(secs(6)).await;
    assert_eq!(names(&voters[2]).len(), 1);
}

// Of a client that has none, as an older program or another one, and on voters that are gone.
#[tokio::test(start_paused = true)]
async fn each_name_is_asked_for_once_and_an_unknown_one_not_again_for_ten_seconds() {
    let voters = embedded::voters(3);
    let said = said(&voters[0]);
    let asked = || said.lock().unwrap().iter().filter(|(name, _)| *name == "voter/name").count();
    let connect = async |name: &str| {
        let builder = Quorate::builder().embedded(&voters).client_name(name);
        builder.connect().await.unwrap()
    };
    let (ours, theirs) = (connect("ours").await, connect("theirs").await);
    let nameless = Quorate::builder().embedded(&voters).connect().await.unwrap();
    sleep(secs(1)).await;
    let guard = theirs.mutex("a").lock().await.unwrap();
    for _ in 0..5 {
        assert!(ours.mutex("a").lock_or_busy(Duration::ZERO).await.unwrap_err().is_busy());
        assert_eq!(name_of(&ours.mutex("a").inspect().await.unwrap()).as_deref(), Some("theirs"));
    }
    assert_eq!(asked(), 1);
    let error = nameless.mutex("a").lock_or_busy(Duration::ZERO).await.unwrap_err();
    assert_eq!((error.holder_name(), asked()), (None, 1), "whoever has no name asks for none");
    guard.release().await.unwrap();

    let guard = nameless.mutex("a").lock().await.unwrap();
    for seconds in [0, 1, 8, 2] {
        sleep(secs(seconds)).await;
        let error = ours.mutex("a").lock_or_busy(Duration::ZERO).await.unwrap_err();
        assert_eq!((error.holder(), error.holder_name()), (Some(guard.hold()), None));
    }
    assert_eq!(asked(), 3);
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn names_that_cannot_be_shown_are_refused_and_nothing_is_sent() {
    let voters = embedded::voters(3);
    let said = said(&voters[0]);
    let long = "n".repeat(301);
    for (name, told) in [
        ("", "the client name is empty"),
        ("web\n1", "the client name \"web\\n1\" has a control character in it"),
        (&long, "the client name has 301 bytes, the limit is 300"),
    ] {
        let builder = Quorate::builder().embedded(&voters).client_name(name);
        let error = builder.connect().await.unwrap_err();
        assert!(error.is_invalid());
        assert_eq!(error.to_string(), told);
    }
    assert!(said.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn each_voters_words_in_an_error_have_the_name() {
    let voters = embedded::voters(3);
    let connect = async |name: &str| {
        let builder = Quorate::builder().embedded(&voters).client_name(name);
        builder.lease(secs(3)).connect().await.unwrap()
    };
    let (ours, theirs) = (connect("ours").await, connect("theirs").await);
    sleep(secs(1)).await;
    let held_by = |hold: &quorate::HoldId| format!("held by {hold} (theirs) for ");
    let guard = theirs.mutex("a").lock().await.unwrap();
    let other = "5f0ad4b3-96b1-4a3c-8c2f-1f5d2f1c7a10:1".parse().unwrap();
    let error = ours.mutex("a").force_release_hold(&other).await.unwrap_err();
    assert!(error.is_not_holding(), "{error}");
    assert_eq!(error.to_string().matches(&held_by(guard.hold())).count(), 3, "{error}");
    assert_eq!(error.voters()[0].client_name.as_deref(), Some("theirs"));

    // Somebody deletes the record of a lock, and it is given to another.
    let lost = ours.mutex("b").lock().await.unwrap();
    for voter in &voters {
        voter.command(&["DEL", "quorate:{b}"]).unwrap();
    }
    let taken = theirs.mutex("b").lock().await.unwrap();
    let error = lost.lost().await;
    assert!(error.to_string().contains(&held_by(taken.hold())), "{error}");

    let asker = connect("asker").await;
    voters[1..].iter().for_each(embedded::EmbeddedVoter::kill);
    let error = asker.mutex("a").lock_within(secs(1)).await.unwrap_err();
    assert!(error.is_no_quorum(), "{error}");
    assert_eq!(error.to_string().matches(&held_by(guard.hold())).count(), 1, "{error}");
}
