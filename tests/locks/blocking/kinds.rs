//! Every kind of lock, and everything that its guards can do.

use std::thread;

use quorate::{Observed, Owner, Preference, inspection::Access};
use quorate_support::eventually;
use quorate_tests::fixture::{Fixture, ms, secs};

use super::{basics::client, on_three};

on_three!(
    a_fair_mutex_is_given_in_the_order_of_asking,
    many_read_or_one_writes,
    a_write_becomes_a_read_without_a_gap,
    an_owner_enters_again,
    a_lease_can_be_extended_and_kept,
    operators_see_and_end_a_hold,
    an_election_is_led_and_watched,
    several_locks_are_held_as_one,
);

fn a_fair_mutex_is_given_in_the_order_of_asking(on: &Fixture) {
    let (quorum, theirs) = (client(on), client(on));
    let first = quorum.fair_mutex("a").lock().unwrap();
    let token = first.token();
    let came = std::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..3 {
            let (mutex, came) =
                (if number == 1 { &theirs } else { &quorum }.fair_mutex("a"), &came);
            scope.spawn(move || {
                let guard = mutex.lock().unwrap();
                assert!(guard.token() > token);
                came.lock().unwrap().push(number);
                guard.release().unwrap();
            });
            eventually("it stands in the queue", || {
                let seen = quorum.fair_mutex("a").inspect();
                seen.is_ok_and(|seen| seen.queue().len() == number + 1)
            });
        }
        first.release().unwrap();
    });
    assert_eq!(came.into_inner().unwrap(), [0, 1, 2]);
}

fn many_read_or_one_writes(on: &Fixture) {
    let (ours, theirs) = (client(on).rw_lock("a"), client(on).rw_lock("a"));
    let one = ours.read().unwrap();
    let other = theirs.try_read().unwrap().expect("nobody writes");
    let third = theirs.read_within(secs(20)).unwrap().expect("nobody writes");
    assert!(ours.try_write().unwrap().is_none());
    assert_eq!(ours.inspect().unwrap().mode(), Some(Access::Read));
    for guard in [one, other, third] {
        assert!(guard.is_held());
        guard.release().unwrap();
    }
    let writing = ours.write_within(secs(20)).unwrap().expect("nobody reads");
    assert!(theirs.try_read().unwrap().is_none());
    assert!(theirs.clone().preference(Preference::Readers).try_read().unwrap().is_none());
    assert!(theirs.try_write().unwrap().is_none());
    let token = writing.token();
    writing.release().unwrap();
    assert!(theirs.write().unwrap().token() > token);
}

fn a_write_becomes_a_read_without_a_gap(on: &Fixture) {
    let (ours, theirs) = (client(on).rw_lock("a"), client(on).rw_lock("a"));
    let writing = ours.write().unwrap();
    let beside = writing.read().unwrap();
    let reading = writing.downgrade().unwrap();
    assert!(beside.is_held() && reading.is_held());
    assert!(theirs.try_write().unwrap().is_none());
    assert!(theirs.read_within(secs(20)).unwrap().is_some());
}

fn an_owner_enters_again(on: &Fixture) {
    let (quorum, theirs, owner) = (client(on), client(on), Owner::new());
    let mutex = quorum.mutex("a").owner(&owner);
    let outer = mutex.lock().unwrap();
    let inner = mutex.try_lock().unwrap().expect("the owner has it");
    let third = outer.reenter().unwrap();
    assert_eq!((inner.hold(), inner.count()), (outer.hold(), 3));
    assert!(third.votes() >= 2 && third.name() == "a");
    third.release().unwrap();
    outer.release().unwrap();
    assert!(theirs.mutex("a").try_lock().unwrap().is_none());
    inner.release().unwrap();
    assert!(theirs.mutex("a").lock_within(secs(20)).unwrap().is_some());
    let reading = quorum.rw_lock("a").owner(&owner).read().unwrap();
    let refused = quorum.rw_lock("a").owner(&owner).write().unwrap_err();
    assert!(refused.is_deadlock(), "{refused}");
    reading.release().unwrap();
}

fn an_election_is_led_and_watched(on: &Fixture) {
    let (quorum, theirs) = (client(on), client(on));
    let (election, watched) = (quorum.election("a"), theirs.election("a"));
    let mut observer = watched.observe();
    assert!(matches!(observer.next(), Some(Ok(Observed::NoLeader))));
    let leadership = election.campaign("1").unwrap();
    let mut next = |value: &str| loop {
        let observed = observer.next_within(secs(60)).unwrap().expect("it has changed");
        if matches!(&observed, Observed::Leader(leader) if leader.text() == Some(value)) {
            return;
        }
    };
    next("1");
    leadership.proclaim("2").unwrap();
    next("2");
    assert_eq!(watched.leader().unwrap().unwrap().token(), leadership.token());
    assert!(watched.try_campaign("3").unwrap().is_none());
    // As long as a busy machine may take for an answer.
    assert!(watched.campaign_within("3", secs(5)).unwrap().is_none());
    assert!(leadership.is_held() && leadership.remaining() > secs(1) && leadership.votes() >= 2);
    assert_eq!((leadership.name(), leadership.lost_within(ms(1)).unwrap().is_none()), ("a", true));
    leadership.resign().unwrap();
    let second = watched.campaign_within("3", secs(60)).unwrap().expect("nobody leads");
    assert_eq!(election.inspect().unwrap().holder().unwrap().hold, *second.hold());
    assert!(election.force_release().unwrap());
    theirs.close().unwrap();
    assert!(observer.next_within(secs(60)).unwrap().is_none() || observer.all(|one| one.is_ok()));
}

fn several_locks_are_held_as_one(on: &Fixture) {
    let (quorum, theirs) = (client(on), client(on));
    let locks = || {
        let (a, b) = (quorum.mutex("a").into(), quorum.fair_mutex("b").into());
        [a, b, quorum.rw_lock("c").reading(), quorum.rw_lock("d").writing()]
    };
    let guard = quorum.lock_all(locks()).lock().unwrap();
    assert!(guard.is_held() && guard.remaining() > secs(1));
    assert_eq!(guard.names().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    assert_eq!((guard.holds().count(), guard.tokens().count()), (4, 4));
    assert!(quorum.lock_all(locks()).try_lock().unwrap().is_none());
    // As long as a busy machine may take for an answer.
    assert!(theirs.lock_all([theirs.mutex("b")]).lock_within(secs(5)).unwrap().is_none());
    assert!(guard.lost_within(ms(1)).unwrap().is_none());
    guard.release().unwrap();
    let again = theirs.lock_all([theirs.mutex("a"), theirs.mutex("b")]).lock_within(secs(60));
    assert!(again.unwrap().is_some());
}

fn a_lease_can_be_extended_and_kept(on: &Fixture) {
    let (quorum, theirs) = (client(on), client(on));
    let guard = quorum.mutex("a").lease(secs(25)).lock().unwrap();
    assert!(guard.remaining() <= secs(25));
    guard.release().unwrap();
    // Two thirds of 30 s: one that is renewed would never have less, and one of 20 s never more.
    let guard = quorum.mutex("a").lease_fixed(secs(20)).lock().unwrap();
    assert!(guard.remaining() < secs(20));
    guard.extend(secs(30)).unwrap();
    assert!(guard.remaining() > secs(20));
    guard.keep_for(secs(30)).unwrap();
    quorum.close().unwrap();
    assert!(theirs.mutex("a").try_lock().unwrap().is_none());
}

fn operators_see_and_end_a_hold(on: &Fixture) {
    let (quorum, operator) = (client(on), client(on));
    assert!(operator.status().unwrap().has_quorum());
    let guard = quorum.mutex("a").lock().unwrap();
    let seen = operator.mutex("a").inspect().unwrap();
    assert_eq!(&seen.holder().expect("it is held").hold, guard.hold());
    assert!(operator.mutex("a").force_release().unwrap());
    assert!(guard.extend(secs(30)).unwrap_err().is_lost());
    assert!(!operator.mutex("a").force_clear().unwrap());
    let fair = quorum.fair_mutex("b").lock().unwrap();
    // A vote that comes later is given back later.
    eventually("all have voted", || fair.votes() == on.voters());
    assert!(operator.fair_mutex("b").force_clear().unwrap());
    assert!(fair.extend(secs(30)).unwrap_err().is_lost());
    assert!(!operator.fair_mutex("b").force_release().unwrap());
    let reading = quorum.rw_lock("c").read().unwrap();
    assert!(operator.rw_lock("c").force_release(Access::Read).unwrap());
    assert!(reading.extend(secs(30)).unwrap_err().is_lost());
    let writing = quorum.rw_lock("c").write().unwrap();
    assert!(operator.rw_lock("c").force_clear().unwrap());
    assert!(writing.extend(secs(30)).unwrap_err().is_lost());
}
