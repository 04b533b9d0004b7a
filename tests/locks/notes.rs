//! What users say of their holds. Each test's name is the claim.

use std::{future::pending, ops::ControlFlow::Break};

use quorate_tests::{
    asking::{Asking, Kind},
    prelude::*,
};

claims!(everywhere:
    whoever_meets_a_hold_or_a_place_reads_its_note_whatever_the_kind,
    a_read_has_the_note_of_the_write_that_it_comes_from,
    a_hold_with_a_note_is_ended_by_force_like_any_other,
);

/// Each sign of it means something in an id, in one place or another.
const OURS: &str = "v1.5/7+3 :~r2=a= 100%25 {Zürich}.4";
const THEIRS: &str = "job 42";

/// Of those who hold a lock, and of those who wait.
fn notes(seen: &LockView) -> [Vec<Option<&str>>; 2] {
    let of_holders = seen.holders.iter().map(|held| held.note.as_deref());
    let of_places = seen.waiting.iter().map(|waiting| waiting.note.as_deref());
    [of_holders.collect(), of_places.collect()]
}

// Who waits has a bid of its own, and then the lock from its place: scripts take ids apart.
async fn whoever_meets_a_hold_or_a_place_reads_its_note_whatever_the_kind(on: Fixture) {
    use Kind::{All, Election, Fair, Permits, Plain, Read, Write};

    let (ours, theirs) = (on.client().await, on.client().await);
    let both = Permits { wanted: 2, of: 2 };
    for (kind, wanted, lock) in [
        (Plain, Plain, LockKind::Mutex),
        (Fair, Fair, LockKind::Mutex),
        (All, Fair, LockKind::Mutex),
        (Read(Preference::Writers), Write, LockKind::RwLock),
        (Write, Read(Preference::Fair), LockKind::RwLock),
        (both, both, LockKind::Semaphore),
        (Election, Election, LockKind::Election),
    ] {
        let held = Asking::of(&ours, "a", kind).note(OURS).lock().await.unwrap();
        let asking = Asking::of(&theirs, "a", wanted).note(THEIRS);
        let busy = asking.ask(How::OrBusy(50)).await.unwrap_err();
        assert_eq!(busy.holder().and_then(HoldId::note).as_deref(), Some(OURS), "{busy}");
        assert!(busy.to_string().contains(&format!(" ({OURS:?}), for ")), "{busy}");
        let waiting = asking.wait();
        let look = async || ours.admin().look(lock, "a").await.unwrap();
        until!("it waits", look().await.waiting.len() == 1);
        assert_eq!(notes(&look().await), [[Some(OURS)], [Some(THEIRS)]], "{kind:?}");
        on.release(held.release()).await;
        let next = waiting.await.unwrap().unwrap();
        assert_eq!(next.hold().note().as_deref(), Some(THEIRS), "{kind:?}");
        until!("it has the lock alone", notes(&look().await) == [vec![Some(THEIRS)], vec![]]);
        on.release(next.release()).await;
        // Which hold has a vote, and whose place leaves, is known from ids.
        on.until_clean_but_for_places(&[]).await;
    }
}

async fn a_read_has_the_note_of_the_write_that_it_comes_from(on: Fixture) {
    let client = on.client().await;
    let owner = Owner::new();
    let writing = client.rw_lock("a").owner(&owner).note(OURS).write().await.unwrap();
    let by_guard = writing.read().await.unwrap();
    let by_owner = client.rw_lock("a").owner(&owner).note(THEIRS).read().await.unwrap();
    for reading in [&by_guard, &by_owner] {
        assert_eq!(reading.hold().note().as_deref(), Some(OURS));
        assert_eq!(reading.hold().write(), Some(writing.hold().as_str()));
    }
    on.release(writing.release()).await;
    let seen = client.rw_lock("a").inspect().await.unwrap();
    assert!(notes(&seen)[0].iter().all(|note| *note == Some(OURS)), "{seen:?}");
    on.release(by_guard.release()).await;
    on.release(by_owner.release()).await;
    on.until_clean().await;
}

async fn a_hold_with_a_note_is_ended_by_force_like_any_other(on: Fixture) {
    let client = on.client_with_lease(secs(6)).await;
    let guard = client.mutex("a").note(OURS).lock().await.unwrap();
    // As an operator copies it.
    let hold: HoldId = guard.hold().to_string().parse().unwrap();
    on.client().await.admin().end(LockKind::Mutex, "a", &hold).await.unwrap();
    let why = guard.lost().await;
    assert!(why.is_lost() && why.to_string().contains("ended by force"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_firing_a_leader_and_each_of_several_locks_have_notes() {
    let (_voters, quorum) = with_client(3).await;
    let firing = quorum.once("a").note(OURS).enter(7).await.unwrap().expect("it is not done");
    assert_eq!(firing.hold().note().as_deref(), Some(OURS));
    let election = quorum.election("a").note(OURS);
    let led = election.lead("b", pending(), async |lead| Break(lead.hold().note()));
    assert_eq!(led.await.unwrap().flatten().as_deref(), Some(OURS));
    let _leads = election.campaign("b").await.unwrap();
    let leader = election.observe().next().await;
    let Some(Observed::Leader(leader)) = leader else { panic!("{leader:?}") };
    assert_eq!(leader.hold().note().as_deref(), Some(OURS));
    // Those that have none of their own get that of all.
    let all = [quorum.mutex("b").into(), quorum.mutex("c").note(OURS).into(), "d".into()];
    let all = quorum.lock_all(all).note(THEIRS).lock().await.unwrap();
    let notes: Vec<_> = all.holds().map(|(_, hold)| hold.note().unwrap()).collect();
    assert_eq!(notes, [THEIRS, OURS, THEIRS]);
}

#[tokio::test(start_paused = true)]
async fn a_note_that_cannot_be_used_is_refused_before_anything_is_sent() {
    let (on, client) = Fixture::with_client(3).await;
    let mutex = client.mutex("a");
    for (note, why) in [
        ("é".repeat(101), "the note has 202 bytes, the limit is 200"),
        ("a\nb".into(), "the note \"a\\nb\" has '\\n' in it"),
    ] {
        let error = mutex.clone().note(note).try_lock().await.unwrap_err();
        assert!(error.is_invalid() && error.to_string() == why, "{error}");
    }
    assert_eq!(on.runs("mutex/acquire"), Some(vec![0; 3]));
    for (note, kept) in [("é".repeat(100), true), (String::new(), false)] {
        let guard = mutex.clone().note(&note).lock().await.unwrap();
        assert_eq!(guard.hold().note(), kept.then_some(note));
        guard.release().await.unwrap();
    }
}

// Java compares ids and reads none: a lock of Redisson's has notes too.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_redisson_has_a_note() {
    let server = RedisServer::start();
    let client = Quorate::builder().voter(server.url()).voter_deadline(secs(3));
    let client = client.connect().await.unwrap();
    let (mutex, rw) = (client.redisson().mutex("a"), client.redisson().rw_lock("b"));
    let guard = mutex.clone().note(OURS).lock().await.unwrap();
    let writing = rw.clone().note(OURS).write().await.unwrap();
    assert!(writing.hold().as_str().ends_with(":write"));
    for seen in [mutex.inspect().await.unwrap(), rw.inspect().await.unwrap()] {
        assert_eq!(notes(&seen)[0], [Some(OURS)]);
    }
    let reading = writing.downgrade().await.unwrap();
    assert_eq!(notes(&rw.inspect().await.unwrap())[0], [Some(OURS)]);
    let owner = "4f6a1d0e-6f5c-4b9e-9d43-000000000001:81";
    for (key, hold) in [("a", guard.hold()), ("b", reading.hold())] {
        let count = server.command(&["HGET", key, hold.as_str()]);
        assert_eq!(count, Ok(Reply::Text("1".into())), "as Java reads it");
    }
    guard.release().await.unwrap();
    reading.release().await.unwrap();
    server.command(&["HSET", "a", owner, "1"]).unwrap();
    let seen = mutex.inspect().await.unwrap();
    assert_eq!((seen.holders[0].hold.as_str(), notes(&seen)[0][0]), (owner, None));
}
