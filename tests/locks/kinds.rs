//! What holds for every kind of lock, in one table over the kinds.

use std::sync::Mutex;

use quorate_tests::prelude::*;

use crate::{
    cancel::kinds::{
        Access::{self, BothPermits, FairLock, Lead, Lock, Permit, Read, Write},
        LIMIT_MS,
    },
    rw::{READERS, WRITER},
    semaphore::HELD,
};

claims!(everywhere:
    whoever_gives_up_waits_that_long_and_leaves_nothing,
    who_waits_enters_in_the_order_of_asking,
    a_caller_is_told_who_has_the_lock_and_for_how_long,
    whether_it_is_locked_is_told_of_every_kind,
);

// Also where one of two permits is taken, and of two readers one is left.
async fn whether_it_is_locked_is_told_of_every_kind(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    for access in [Lock, FairLock, Read, Write, Permit, BothPermits, Lead] {
        let is_locked = async || {
            let told = match access.lock() {
                LockKind::Mutex => theirs.mutex("a").is_locked().await,
                LockKind::RwLock => theirs.rw_lock("a").is_locked().await,
                LockKind::Semaphore => theirs.semaphore("a", 2).is_locked().await,
                LockKind::Election => theirs.election("a").is_locked().await,
                other => panic!("a {other} is none of these"),
            };
            told.expect("a majority answers")
        };
        assert!(!is_locked().await, "{access:?}");
        let held = access.have(&ours, None).await;
        assert!(is_locked().await, "{access:?}");
        if matches!(access, Read | Permit) {
            on.release(access.have(&theirs, None).await.release()).await;
            assert!(is_locked().await, "{access:?}");
        }
        on.release(held.release()).await;
        until!("it is free", !is_locked().await);
    }
    on.until_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_tells_its_name_its_kind_and_its_client() {
    let (_voters, quorum) = with_client(3).await;
    let long = "n".repeat(513);
    for name in ["a", "Zürich {1}", "", &long] {
        let (fair, foreign) = (quorum.fair_mutex(name), quorum.redisson().rw_lock(name));
        let told = |one: (&str, LockKind, Quorate)| {
            assert_eq!(one.0, name);
            assert_eq!(format!("{:?}", one.2), format!("{quorum:?}"));
            one.1
        };
        let (rw, semaphore) = (quorum.rw_lock(name), quorum.semaphore(name, 2));
        let election = quorum.election(name);
        let kinds = [
            told((fair.name(), fair.kind(), fair.client())),
            told((rw.name(), rw.kind(), rw.client())),
            told((semaphore.name(), semaphore.kind(), semaphore.client())),
            told((election.name(), election.kind(), election.client())),
        ];
        let all = [LockKind::Mutex, LockKind::RwLock, LockKind::Semaphore, LockKind::Election];
        assert_eq!(kinds, all);
        assert_eq!(told((foreign.name(), foreign.kind(), foreign.client())), LockKind::RwLock);
    }
    // It makes locks of its own names.
    let ours = quorum.redisson().mutex("a").client().mutex("a");
    let guard = ours.lock().await.unwrap();
    assert!(quorum.mutex("a").is_locked().await.unwrap());
    guard.release().await.unwrap();
}

const LEASE: Duration = secs(20);

/// The keys of a lock that is held like this.
fn record(access: Access) -> &'static [&'static str] {
    match access {
        Read => READERS,
        Write => WRITER,
        BothPermits => HELD,
        Lead => &["quorate:{a}:election"],
        _ => &["quorate:{a}"],
    }
}

// Not before the limit, since the lock is held throughout; no later than a last attempt takes.
// Afterwards the voters have the holder's record and nothing else.
async fn whoever_gives_up_waits_that_long_and_leaves_nothing(on: Fixture) {
    let (ours, theirs) = (on.client().await, on.client().await);
    for access in [Lock, FairLock, Read, Write, BothPermits, Lead] {
        let held = access.have(&ours, None).await;
        let wanted = if access == Lock { Lock } else { access.excludes() };
        let watch = Stopwatch::start();
        let refused = wanted.ask(&theirs, How::Within(LIMIT_MS), None).await.unwrap();
        let waited = watch.time();
        assert!(refused.is_none() && held.is_held(), "{access:?}");
        assert!(
            waited >= ms(LIMIT_MS) && waited <= on.at_most(ms(LIMIT_MS + 2)),
            "{access:?}: {waited:?}"
        );
        on.until_only(record(access)).await;
        if access == Read {
            let beside = Read.ask(&theirs, How::Try, None).await.unwrap();
            on.release(beside.expect("nobody waits to write any more").release()).await;
        }
        on.release(held.release()).await;
        on.until_clean().await;
    }
}

// Each waits until the one before it stands there. Of permits some want one, and some both.
async fn who_waits_enters_in_the_order_of_asking(on: Fixture) {
    let on = Arc::new(on);
    let clients = [on.client().await, on.client().await, on.client().await];
    for wanted in [[FairLock, FairLock], [Write, Write], [BothPermits, Permit], [Lead, Lead]] {
        let entered = Arc::<Mutex<Vec<usize>>>::default();
        let held = wanted[0].have(&clients[0], None).await;
        let mut tasks = JoinSet::new();
        for number in 0..9 {
            let (client, access) = (clients[number % 3].clone(), wanted[number % 2]);
            let (on, entered) = (Arc::clone(&on), Arc::clone(&entered));
            tasks.spawn(async move {
                let held = access.have(&client, None).await;
                entered.lock().unwrap().push(number);
                on.release(held.release()).await;
            });
            until_waiting(&clients[0], access.lock(), "a", number + 1).await;
        }
        on.must_be_refused(wanted[1].ask(&clients[1], How::Try, None).await);
        on.release(held.release()).await;
        tasks.join_all().await;
        assert_eq!(*entered.lock().unwrap(), (0..9).collect::<Vec<_>>(), "{wanted:?}");
        on.until_clean().await;
    }
}

async fn a_caller_is_told_who_has_the_lock_and_for_how_long(on: Fixture) {
    let (ours, theirs) = (on.client_with_lease(LEASE).await, on.client().await);
    for (access, wanted, kind) in [
        (Lock, Lock, HolderKind::Mutex),
        (FairLock, FairLock, HolderKind::Mutex),
        (Read, Write, HolderKind::Read),
        (Write, Read, HolderKind::Write),
        (BothPermits, Permit, HolderKind::Permit),
        (Lead, Lead, HolderKind::Leader),
    ] {
        let held = access.have(&ours, None).await;
        for limit in [0, 300] {
            let error = wanted.ask(&theirs, How::OrBusy(limit), None).await.unwrap_err();
            assert!(error.is_busy(), "{error}");
            assert_eq!((error.lock(), error.hold()), (Some("a"), None));
            assert_eq!((error.holder(), error.holder_kind()), (Some(held.hold()), Some(kind)));
            let said = error.voters();
            assert_eq!(said.len(), on.voters(), "{said:?}");
            let refuses = |report: &&VoterReport| {
                let Verdict::Refused { by, .. } = &report.verdict else { return false };
                by == held.hold()
            };
            assert!(said.iter().filter(refuses).count() > on.voters() / 2, "{said:?}");
            let again = error.lease_left().expect("its lease ends");
            assert!(again > LEASE / 2 && again <= LEASE + ms(2), "{again:?}");
            let (by, text) = (format!(" by {}, for ", held.hold()), error.to_string());
            assert!(text.starts_with("lock `a` is ") && text.contains(&by), "{text}");
            assert!(text.ends_with(" more unless renewed or released"), "{text}");
        }
        on.release(held.release()).await;
        on.until_clean().await;
    }
}
