//! Exclusion, release, loss and observers.

use std::{sync::Mutex, thread, time::Duration};

use quorate::{LockKind, Observed, Owner, blocking::Quorate};
use quorate_support::eventually;
use quorate_tests::{
    fixture::{Fixture, ms, secs, trusted},
    scene::{now, since},
};
use tokio::runtime::Runtime;

/// A lease that is waited for. Requests wait for a tenth of it, which a busy machine keeps.
const SHORT: Duration = secs(3);

/// Makes two tests of each claim: on three voters inside the process, and on three servers.
macro_rules! on_three {
    ($($claim:ident),+ $(,)?) => { $(
        mod $claim {
            use quorate_tests::fixture::Fixture;

            #[test]
            fn on_three_embedded_voters() {
                super::$claim(&mut Fixture::embedded(3));
            }

            #[test]
            fn on_three_servers() {
                super::$claim(&mut Fixture::real(3));
            }
        }
    )+ };
}

on_three!(
    clients_of_both_sorts_and_threads_of_one_client_exclude_each_other,
    what_is_dropped_last_is_still_released,
    a_loss_is_seen,
    an_observer_sees_each_value_and_the_end,
);

fn client(on: &Fixture) -> Quorate {
    on.builder().connect_blocking().expect("a majority answers")
}

pub(super) fn client_with_lease(on: &Fixture, lease: Duration) -> Quorate {
    let builder = on.builder().lease(lease).longest_lease(lease).voter_deadline(lease / 10);
    // Others here have another longest lease, and other locks.
    builder.only_looks(true).connect_blocking().expect("a majority answers")
}

const ROUNDS: u32 = 20;

// The threads of one client have clones of a lock, and all of them share the client's thread.
fn clients_of_both_sorts_and_threads_of_one_client_exclude_each_other(on: &Fixture) {
    // Two who are inside at once find it locked.
    let (room, quorum) = (Mutex::new(0), client(on));
    let enter = || {
        let mut visits = room.try_lock().expect("nobody else is inside");
        thread::yield_now();
        *visits += 1;
    };
    let mutex = quorum.mutex("a");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let guard = mutex.lock().unwrap();
                    enter();
                    // The guard may be dropped on any thread.
                    thread::spawn(move || drop(guard));
                }
            });
        }
        scope.spawn(|| {
            let other = client(on);
            for _ in 0..ROUNDS {
                let guard = other.mutex("a").lock().unwrap();
                enter();
                guard.release().unwrap();
            }
        });
        scope.spawn(|| {
            Runtime::new().unwrap().block_on(async {
                let quorum = on.client().await;
                for _ in 0..ROUNDS {
                    let guard = quorum.mutex("a").lock().await.unwrap();
                    enter();
                    guard.release().await.unwrap();
                }
            });
        });
    });
    assert_eq!(room.into_inner().unwrap(), 6 * ROUNDS);
}

// Nobody has the client any more when the release is due: only its thread can send it. The lease is
// 30 s.
fn what_is_dropped_last_is_still_released(on: &Fixture) {
    let started = now();
    let guard = client(on).mutex("a").lock().unwrap();
    drop(guard);
    eventually("every voter has the release", || on.keys().iter().all(Vec::is_empty));
    assert!(since(started) < secs(25));
}

// A majority dies. The hold is lost when its lease ends and not before, and everybody is told.
fn a_loss_is_seen(on: &mut Fixture) {
    let quorum = client_with_lease(on, SHORT);
    let guard = quorum.mutex("a").lock().unwrap();
    assert!(guard.lost_within(ms(1)).unwrap().is_none() && guard.is_held());
    on.kill(0);
    on.kill(1);
    let left = guard.remaining();
    assert!(left > Duration::ZERO && left <= trusted(SHORT));
    let (started, why) = (now(), guard.lost_within(secs(60)).unwrap().expect("it is lost"));
    assert!(since(started) + ms(1) >= left && since(started) < left + secs(15));
    assert!(why.is_lost() && why.voters().len() == 3, "{why}");
    assert!(!guard.is_held() && guard.remaining().is_zero());
    assert!(guard.extend(secs(2)).unwrap_err().is_lost());
    assert!(guard.release().unwrap_err().is_lost());
}

fn an_observer_sees_each_value_and_the_end(on: &Fixture) {
    let (quorum, theirs) = (client(on), client(on));
    let mut observer = theirs.election("a").observe();
    assert!(matches!(observer.next(), Some(Ok(Observed::NoLeader))));
    let leadership = quorum.election("a").campaign("1").unwrap();
    let mut see = |value: &str| loop {
        let observed = observer.next_within(secs(60)).unwrap().expect("it has changed");
        if matches!(&observed, Observed::Leader(leader) if leader.text() == Some(value)) {
            return;
        }
    };
    see("1");
    leadership.proclaim("2").unwrap();
    see("2");
    theirs.close().unwrap();
    assert!(observer.next_within(secs(60)).unwrap().is_none() || observer.all(|one| one.is_ok()));
}

// Of the calls by whose table all others are made too.
#[test]
fn what_is_set_and_asked_for_reaches_the_async_lock_and_its_answer_comes_back() {
    let on = Fixture::embedded(3);
    // However long a busy machine takes for an answer.
    let patient = || on.builder().voter_deadline(secs(2)).longest_lease(secs(60));
    let [ours, theirs] = [(); 2].map(|()| patient().connect_blocking().unwrap());
    let mutex = ours.mutex("a").owner(&Owner::new());
    let outer = mutex.clone().lease_fixed(secs(20)).lock().unwrap();
    assert!(outer.remaining() <= secs(20) && outer.votes() > 1);
    outer.extend(secs(40)).unwrap();
    assert!(outer.remaining() > secs(20));
    let inner = mutex.lock().unwrap();
    let seen = (inner.name(), inner.hold(), inner.token(), inner.count());
    assert_eq!(seen, ("a", outer.hold(), outer.token(), 2));
    assert!(theirs.mutex("a").is_locked().unwrap());
    assert!(theirs.fair_mutex("a").lock_within(ms(100)).unwrap().is_none());
    let busy = theirs.mutex("a").lock_or_busy(ms(100)).unwrap_err();
    assert!(busy.is_busy() && busy.holder() == Some(outer.hold()), "{busy}");
    theirs.admin().end(LockKind::Mutex, "a", outer.hold()).unwrap();

    let writing = ours.rw_lock("b").write().unwrap();
    let under = writing.read().unwrap();
    assert!(theirs.rw_lock("b").try_read().unwrap().is_none());
    let reading = writing.downgrade().unwrap();
    assert!(under.is_held() && theirs.rw_lock("b").try_read().unwrap().is_some());
    assert!(theirs.rw_lock("b").try_write().unwrap().is_none());
    reading.release().unwrap();

    let permits = ours.semaphore("c", 3).acquire_many(2).unwrap();
    assert_eq!((permits.permits(), permits.slots().len()), (2, 2));
    assert!(permits.slots().contains(&permits.slot()));
    let several = [ours.rw_lock("d").reading(), ours.fair_mutex("e").into()];
    let several = ours.lock_all(several).lock().unwrap();
    let tokens: Vec<_> = several.tokens().map(|(name, token)| (name, token.is_some())).collect();
    assert_eq!(tokens, [("d", false), ("e", true)]);
}
