//! What operators see of locks, and end by force, whatever the kind.

use quorate::Admin;
use quorate_tests::prelude::*;

use crate::cancel::kinds::Access;

// Taking out by force what keeps a lock from being acquired.

claims!(everywhere:
    whatever_is_planted_under_the_keys_of_a_lock_is_taken_out_by_force,
    a_place_that_nobody_waits_at_is_taken_out_by_force,
    clearing_a_lock_ends_all_its_holds_and_its_tokens_go_on,
    who_waits_comes_back_to_a_queue_that_was_cleared,
);
claims!(everywhere of both: a_place_that_counts_for_longer_than_any_can_does_not_count);
claims!(inside of both: a_hold_outlives_what_is_planted_under_its_fence);

/// Puts a place into the queue that counts for so long by the voter's own clock.
const STAND: &str = "redis.call('ZADD', KEYS[1], 1, 'ghost:1')
  return redis.call('ZADD', KEYS[2], redis.call('TIME')[1] * 1000 + ARGV[1], 'ghost:1')";

const HOUR_MS: &str = "3600000";
/// A lease is a day long at most.
const TOO_LONG_MS: &str = "90000000";

fn on_all(on: &Fixture, words: &[&str]) {
    (0..on.voters()).for_each(|voter| on.command(voter, words));
}

fn stand(on: &Fixture, ms: &str) {
    on_all(on, &["EVAL", STAND, "2", "quorate:{a}:queue", "quorate:{a}:alive", ms]);
}

// Each quarter of the fence memory a renewal looks at the token.
async fn a_hold_outlives_what_is_planted_under_its_fence(on: Fixture) {
    let memory = secs(8);
    let client = on.connect(on.builder().lease(secs(1)).fence_memory(memory)).await;
    let guard = client.mutex("a").lock().await.unwrap();
    let token = guard.token();
    let fence = "quorate:{a}:fence";
    for plant in [&["SET", fence, "text"][..], &["HSET", fence, "field", "1"]] {
        on_all(&on, &["DEL", fence]);
        on_all(&on, plant);
        let lost = tokio::time::timeout(memory / 4 + secs(1), guard.lost()).await;
        assert!(lost.is_err(), "{plant:?}: {lost:?}");
    }
    guard.release().await.unwrap();
    // Its number was stored again.
    assert!(client.mutex("a").lock().await.unwrap().token() > token);
}

// Each is in the way, and nothing is left of it afterwards.
async fn whatever_is_planted_under_the_keys_of_a_lock_is_taken_out_by_force(on: Fixture) {
    use Access::{BothPermits, Lead, Lock, Write};

    let client = on.client().await;
    let ghost = |key| ["ZADD", key, "1", "ghost:1"];
    for (access, key, plant) in [
        (Lock, "quorate:{a}", &["SET", "", "text"][..]),
        (Lock, "quorate:{a}", &["HSET", "", "field", "no count"]),
        (Lock, "quorate:{a}", &["HSET", "", "", "1"]),
        (Lock, "quorate:{a}", &["HSET", "", "field", "1.5"]),
        (Lock, "quorate:{a}:fence", &["HSET", "", "field", "1"]),
        (Lock, "quorate:{a}:queue", &["SET", "", "text"]),
        (Lock, "quorate:{a}:alive", &["SET", "", "text"]),
        (Write, "quorate:{a}:rw:writer", &["HSET", "", "field", "no count"]),
        (Write, "quorate:{a}:rw:readers", &["HSET", "", "field", "no count"]),
        (Write, "quorate:{a}:rw:fence", &["HSET", "", "field", "no count"]),
        (Write, "quorate:{a}:rw:queue", &["HSET", "", "field", "no count"]),
        (BothPermits, "quorate:{a}:semaphore:slots", &["SET", "", "text"]),
        (Lead, "quorate:{a}:election", &["SET", "", "text"]),
    ] {
        let plant: Vec<_> =
            plant.iter().enumerate().map(|(at, word)| if at == 1 { key } else { word }).collect();
        on_all(&on, &["DEL", key]);
        on_all(&on, &plant);
        if key.ends_with("alive") {
            on_all(&on, &ghost("quorate:{a}:queue"));
        }
        let tried = access.ask(&client, How::Try, None).await;
        assert!(!matches!(tried, Ok(Some(_))), "{plant:?}");
        assert!(client.admin().clear(access.lock(), "a").await.unwrap(), "{plant:?}");
        let held = access.ask(&client, How::Try, None).await.unwrap();
        drop(held.unwrap_or_else(|| panic!("after {plant:?}")).release().await);
        on.until_clean().await;
        assert!(!client.admin().clear(access.lock(), "a").await.unwrap(), "{plant:?} is left");
    }
    on_all(&on, &["SET", "quorate:{a}:revoked", "text"]);
    let guard = client.mutex("a").lock().await.unwrap();
    let ended = client.admin().end(LockKind::Mutex, "a", guard.hold()).await;
    assert!(ended.unwrap_err().is_no_quorum());
    assert!(client.admin().clear(LockKind::Mutex, "a").await.unwrap());
    assert!(guard.release().await.unwrap_err().is_lost());
}

async fn a_place_that_nobody_waits_at_is_taken_out_by_force(on: Fixture) {
    let client = on.client().await;
    for (access, stem) in [(Access::Lock, "quorate:{a}"), (Access::Write, "quorate:{a}:rw")] {
        let [queue, alive, writers] =
            ["queue", "alive", "writers"].map(|part| format!("{stem}:{part}"));
        on_all(&on, &["EVAL", STAND, "2", &queue, &alive, HOUR_MS]);
        if access == Access::Write {
            on_all(&on, &["ZADD", &writers, "1", "ghost:1"]);
            assert!(client.rw_lock("a").try_read().await.unwrap().is_none());
        }
        let tried = access.ask(&client, How::Try, None).await.unwrap();
        assert!(tried.is_none(), "somebody seems to wait");
        let seen = client.admin().look(access.lock(), "a").await.unwrap();
        assert_eq!((seen.all_holders().len(), seen.waiting.len()), (0, 1));
        assert!(client.admin().clear(access.lock(), "a").await.unwrap());
        let held = access.ask(&client, How::Try, None).await.unwrap();
        drop(held.expect("nobody waits").release().await);
        on.until_clean().await;
    }
}

// As after the clock of a voter was ahead for a while.
async fn a_place_that_counts_for_longer_than_any_can_does_not_count(on: Fixture) {
    let mutex = on.client().await.mutex("a");
    stand(&on, TOO_LONG_MS);
    mutex.try_lock().await.unwrap().expect("nobody can wait").release().await.unwrap();
    on.until_clean().await;
}

// It is ended by its name: renewals do not bring it back.
async fn clearing_a_lock_ends_all_its_holds_and_its_tokens_go_on(on: Fixture) {
    use Access::{FairLock, Lead, Lock, Permit, Read};

    let client = on.client_with_lease(secs(6)).await;
    let admin = on.client().await.admin();
    let token = client.mutex("a").lock().await.unwrap().token();
    for (access, holds) in [(Lock, 1), (FairLock, 1), (Read, 2), (Permit, 2), (Lead, 1)] {
        let mut all = Vec::new();
        for _ in 0..holds {
            all.push(access.have(&client, None).await);
        }
        assert!(admin.clear(access.lock(), "a").await.unwrap(), "{access:?}");
        let next = access.excludes().ask(&client, How::Try, None).await.unwrap();
        let next = next.unwrap_or_else(|| panic!("{access:?} was freed"));
        if let Guard::Mutex(guard) = &next {
            assert!(guard.token() > token);
        }
        for held in all {
            let why = held.lost().await;
            assert!(why.is_lost() && why.to_string().contains("ended by force"), "{why}");
        }
        drop(next.release().await);
    }
}

async fn who_waits_comes_back_to_a_queue_that_was_cleared(on: Fixture) {
    let client = on.client().await;
    let admin = client.admin();
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let waiting = tokio::spawn(client.fair_mutex("a").lock());
    until_waiting(&client, LockKind::Mutex, "a", 1).await;
    assert!(admin.clear(LockKind::Mutex, "a").await.unwrap());
    let entered = waiting.await.unwrap().expect("a majority answers");
    assert!(guard.release().await.unwrap_err().is_lost());
    entered.release().await.unwrap();
}

// Ending a hold by force.

claims!(everywhere:
    a_hold_that_is_ended_by_its_id_is_lost_and_whoever_waits_is_next,
    holds_beside_the_one_that_is_ended_go_on,
    all_that_is_held_is_ended_at_once_and_the_queue_keeps_its_order,
    every_call_says_that_the_hold_was_ended_by_force,
);
claims!(everywhere of both:
    one_mark_is_enough_to_end_a_hold,
    renewals_do_not_bring_back_what_was_ended_by_force,
);

/// Patient with servers on a busy machine.
async fn operator(on: &Fixture) -> Admin {
    on.connect(on.builder().lease(secs(10)).voter_deadline(secs(1))).await.admin()
}

/// Not that its votes were gone: what was ended by force is marked.
async fn must_end_by_force(held: &Guard) {
    let why = timeout(secs(60), held.lost()).await.expect("it is told at the next renewal");
    assert!(why.is_lost() && why.to_string().contains("ended by force"), "{why}");
    assert!(!held.is_held());
}

// The waiter does not poll. An operator who saw the first hold ends the first one: the second has
// the lock by then.
async fn a_hold_that_is_ended_by_its_id_is_lost_and_whoever_waits_is_next(on: Fixture) {
    use Access::{BothPermits, FairLock, Lead, Lock, Read, Write};

    let ours = on.client_with_lease(secs(3)).await;
    let theirs = on.connect(on.builder().poll_interval(secs(600))).await;
    let admin = operator(&on).await;
    for access in [Lock, FairLock, Read, Write, BothPermits, Lead] {
        let kind = access.lock();
        let first = access.have(&ours, None).await;
        let hold = first.hold().clone();
        let client = theirs.clone();
        let wanted = if access == Lock { Lock } else { access.excludes() };
        let waiting = tokio::spawn(async move { wanted.have(&client, None).await });
        until_waiting(&theirs, kind, "a", 1).await;
        let watch = Stopwatch::start();
        let confirmed = admin.end(kind, "a", &hold).await.expect("it is held");
        assert!((on.voters() / 2 + 1..=on.voters()).contains(&confirmed), "{confirmed}");
        let next = timeout(secs(60), waiting).await.expect("it was woken").expect("no panic");
        assert!(watch.time() <= on.at_most(ms(100)), "{access:?}: {:?}", watch.time());
        must_end_by_force(&first).await;
        let error = admin.end(kind, "a", &hold).await.unwrap_err();
        let told = error.is_not_holding() && error.to_string().contains(next.hold().as_str());
        assert!(told, "{access:?}: {error}");
        assert_eq!((error.lock(), error.hold()), (Some("a"), Some(&hold)), "{error}");
        assert!(first.release().await.unwrap_err().is_lost());
        // Nothing of the next one's was touched.
        let seen = admin.look(kind, "a").await.expect("a majority answers");
        assert_eq!((&seen.holders[0].hold, next.is_held()), (next.hold(), true), "{access:?}");
        drop(next.release().await);
        until!("it is free", admin.look(kind, "a").await.is_ok_and(|seen| seen.is_free));
        let error = admin.end(kind, "a", &hold).await.unwrap_err();
        assert!(error.is_not_holding() && error.to_string().contains("held by nobody"), "{error}");
    }
    until!("the marks end too", on.keys().iter().all(Vec::is_empty));
}

// Each hold was entered twice, and beside it there are as many as the kind allows. Who waits does so
// with the ticket that it had, and is not asked to come back.
async fn all_that_is_held_is_ended_at_once_and_the_queue_keeps_its_order(on: Fixture) {
    use Access::{BothPermits, FairLock, Lead, Lock, Permit, Read, Write};

    let ours = on.client_with_lease(secs(3)).await;
    let theirs = on.connect(on.builder().poll_interval(secs(600))).await;
    let admin = operator(&on).await;
    for access in [Lock, FairLock, Read, Write, Permit, BothPermits, Lead] {
        let (kind, owner) = (access.lock(), Owner::new());
        let mut held = vec![access.have(&ours, Some(&owner).filter(|_| access != Lead)).await];
        match access {
            Read | Permit => held.push(access.have(&ours, None).await),
            Write => held.push(held[0].read().await.unwrap()),
            _ => {}
        }
        if access != Lead {
            held.push(held[0].reenter().await.unwrap());
        }
        let mut waiting = Vec::new();
        for place in 1..=2 {
            let client = theirs.clone();
            waiting.push(tokio::spawn(async move { access.excludes().have(&client, None).await }));
            until_waiting(&theirs, kind, "a", place).await;
        }
        let places = admin.look(kind, "a").await.unwrap().waiting;
        let ended = admin.end_all(kind, "a").await.unwrap();
        let ids: BTreeSet<_> = held.iter().map(|held| held.hold().clone()).collect();
        assert_eq!(BTreeSet::from_iter(ended), ids, "{access:?}");
        for (at, waiter) in waiting.into_iter().enumerate() {
            let next = timeout(secs(60), waiter).await.expect("it was woken").expect("no panic");
            assert_eq!(next.hold().place(), Some(places[at].place.as_str()), "{access:?}");
            let left = admin.look(kind, "a").await.unwrap().waiting;
            let left = left.iter().map(|waiting| &waiting.place);
            assert!(left.eq(places[at + 1..].iter().map(|it| &it.place)), "{access:?}");
            drop(next.release().await);
        }
        for one in &held {
            must_end_by_force(one).await;
        }
        drop(held);
        until!("it is free", admin.look(kind, "a").await.is_ok_and(|seen| seen.is_free));
        assert_eq!(admin.end_all(kind, "a").await.unwrap(), []);
    }
    // What is only kept is ended as well.
    let guard = ours.mutex("a").lock().await.unwrap();
    let hold = guard.hold().clone();
    guard.keep_for(secs(2)).await.unwrap();
    assert_eq!(admin.end_all(LockKind::Mutex, "a").await.unwrap(), [hold]);
    drop(theirs.mutex("a").try_lock().await.unwrap().expect("it is free"));
}

/// What a holder calls first after the end, before a renewal has told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Renew,
    Extend,
    Reenter,
    Again,
    Read,
    Proclaim,
    Keep,
    Release,
    Downgrade,
}

impl First {
    const ALL: [Self; 9] = [
        Self::Renew,
        Self::Extend,
        Self::Reenter,
        Self::Again,
        Self::Read,
        Self::Proclaim,
        Self::Keep,
        Self::Release,
        Self::Downgrade,
    ];

    /// Makes the call; `None` where the guard does not have it.
    async fn call(self, client: &Quorate, owner: &Owner, held: Guard) -> Option<Error> {
        macro_rules! on_any {
            ($guard:ident => $call:expr) => {
                match held {
                    Guard::Mutex($guard) => $call,
                    Guard::Read($guard) => $call,
                    Guard::Write($guard) => $call,
                    Guard::Permits($guard) => $call,
                    _ => return None,
                }
            };
        }
        let again = |guard: &Guard| match guard {
            Guard::Mutex(_) => Some(Access::Lock),
            Guard::Read(_) => Some(Access::Read),
            Guard::Write(_) => Some(Access::Write),
            _ => None,
        };
        let told = match self {
            Self::Renew => on_any!(guard => guard.renew().await),
            Self::Extend => on_any!(guard => guard.extend(secs(20)).await),
            Self::Reenter => on_any!(guard => guard.reenter().await.map(drop)),
            Self::Again => again(&held)?.ask(client, How::Wait, Some(owner)).await.map(drop),
            Self::Read if matches!(held, Guard::Write(_)) => held.read().await.map(drop),
            Self::Proclaim => match &held {
                Guard::Lead(leadership) => leadership.proclaim("more").await,
                _ => return None,
            },
            Self::Keep => on_any!(guard => guard.keep_for(secs(5)).await),
            Self::Release => held.release().await,
            Self::Downgrade if matches!(held, Guard::Write(_)) => held.downgrade().await.map(drop),
            Self::Read | Self::Downgrade => return None,
        };
        match told {
            Err(told) => Some(told),
            // Where nobody has the lock, it is a read like any other.
            Ok(()) if self == Self::Read => None,
            Ok(()) => panic!("{self:?} knows nothing of the end"),
        }
    }
}

// Nobody waits for the lock in the first round; in the second the next one has it by then.
async fn every_call_says_that_the_hold_was_ended_by_force(on: Fixture) {
    use Access::{FairLock, Lead, Lock, Permit, Read, Write};

    // Not renewed meanwhile.
    let ours = on.client_with_lease(secs(20)).await;
    let (theirs, admin) = (on.client().await, operator(&on).await);
    for access in [Lock, FairLock, Read, Write, Permit, Lead] {
        for first in First::ALL {
            for is_taken in [false, true] {
                let owner = Owner::new();
                let held = access.have(&ours, Some(&owner).filter(|_| access != Lead)).await;
                let hold = held.hold().clone();
                let lost = held.lost();
                admin.end(access.lock(), "a", &hold).await.expect("it is held");
                let next =
                    if is_taken { Some(access.excludes().have(&theirs, None).await) } else { None };
                let what = format!("{access:?} {first:?} {is_taken}");
                if let Some(told) = first.call(&ours, &owner, held).await {
                    let by_force = told.to_string().contains("it was ended by force");
                    assert!(told.is_lost() && by_force, "{what}: {told}");
                    // And so it is said from now on.
                    let lost = timeout(secs(60), lost).await.expect("it is known");
                    let by_force = lost.to_string().contains("it was ended by force");
                    assert!(lost.is_lost() && by_force, "{what}: {lost}");
                }
                drop(next);
                let is_free =
                    async || admin.look(access.lock(), "a").await.is_ok_and(|it| it.is_free);
                until!("it is free", is_free().await);
            }
        }
    }
}

async fn holds_beside_the_one_that_is_ended_go_on(on: Fixture) {
    let client = on.client_with_lease(secs(3)).await;
    let admin = operator(&on).await;
    for access in [Access::Read, Access::Permit] {
        let (one, other) = (access.have(&client, None).await, access.have(&client, None).await);
        admin.end(access.lock(), "a", one.hold()).await.expect("it is held");
        must_end_by_force(&one).await;
        assert!(other.is_held(), "{access:?}");
        drop(other.release().await);
    }
    // A read of the writer's own goes on, and lets other readers in.
    let writing = client.rw_lock("a").write().await.unwrap();
    let (own, lock) = (writing.read().await.unwrap(), on.client().await.rw_lock("a"));
    let reader = tokio::spawn(lock.read());
    sleep(ms(100)).await;
    let ended = admin.end(LockKind::RwLock, "a", writing.hold()).await;
    ended.expect("it is held");
    let reading = reader.await.unwrap().expect("a majority answers");
    must_end_by_force(&Guard::Write(writing)).await;
    assert!(own.is_held() && reading.is_held());
    assert!(lock.try_write().await.unwrap().is_none(), "it is read");
}

// Of the voters that were told one may restart without its data, and one may have been away: the
// mark that is left ends the hold, whatever the others grant. That may come between any renewals,
// and before the vote, so that this stands beside the mark at the first renewal.
async fn one_mark_is_enough_to_end_a_hold(on: Fixture) {
    let client = on.client_with_lease(secs(6)).await;
    for after in [ms(0), ms(3000)] {
        let guard = client.mutex("a").lock().await.unwrap();
        sleep(after).await;
        let told = on.voters() - 1;
        on.command(told, &["HSET", "quorate:{a}:revoked", guard.hold().as_str(), "1"]);
        if !after.is_zero() {
            on.command(told, &["DEL", "quorate:{a}"]);
        }
        let error = timeout(secs(4), guard.lost()).await.expect("it is told at the next renewal");
        assert!(error.is_lost() && error.to_string().contains("ended by force"), "{error}");
        assert!(!guard.is_held());
    }
}

// Only the mark of the ended hold is left, through the time of several renewals: a renewal that
// took the free vote again would have made the record anew.
async fn renewals_do_not_bring_back_what_was_ended_by_force(on: Fixture) {
    let guard = on.client_with_lease(secs(3)).await.mutex("a").lock().await.unwrap();
    let admin = on.client_with_lease(secs(3)).await.admin();
    admin.end(LockKind::Mutex, "a", guard.hold()).await.expect("it is held");
    let watch = Stopwatch::start();
    while watch.time() < ms(4500) {
        assert!(on.keys().iter().all(|keys| keys == &["quorate:{a}:revoked"]), "{:?}", on.keys());
        sleep(ms(20)).await;
    }
    assert!(!guard.is_held());
    // Four times what was left of the lease, at most.
    until!("the mark has an end too", on.keys().iter().all(Vec::is_empty));
}

// What is seen of a lock.

claims!(everywhere: what_is_seen_of_a_lock_follows_who_has_it_and_who_waits);

/// Waits until this is seen.
async fn until(admin: &Admin, kind: LockKind, says: impl Fn(&LockView) -> bool) {
    until!(
        &format!("it is seen of a {kind}"),
        admin.look(kind, "a").await.is_ok_and(|seen| says(&seen))
    );
}

/// Whether the guard is the only holder that is seen, with all that is known of it.
fn is_held_by(seen: &LockView, held: &Guard, kind: HolderKind) -> bool {
    let [holder] = &*seen.holders else { return false };
    let has_more = match held {
        Guard::Mutex(guard) => seen.token == Some(guard.token()),
        Guard::Write(guard) => seen.token == Some(guard.token()),
        Guard::Lead(leadership) => {
            let leader = seen.leader.as_ref().and_then(|leader| leader.text());
            (seen.token, leader) == (Some(leadership.token()), Some("0"))
        }
        Guard::Permits(_) => {
            (holder.slots.as_slice(), seen.permits, seen.free()) == (&[0, 1], Some(2), Some(0))
        }
        _ => true,
    };
    (&holder.hold, holder.kind) == (held.hold(), kind)
        && holder.client_name.as_deref() == Some("web:1")
        && holder.count == 1
        && holder.ttl.is_some_and(|ttl| ttl <= secs(30) && ttl > secs(5))
        && has_more
        && !seen.is_free
}

async fn what_is_seen_of_a_lock_follows_who_has_it_and_who_waits(on: Fixture) {
    let ours = on.connect(on.builder().client_name("web:1")).await;
    let theirs = on.connect(on.builder().client_name("Zürich / 2 @ 100%")).await;
    let admin = on.client().await.admin();
    for (access, held_as, waits_for) in [
        (Access::Lock, HolderKind::Mutex, HolderKind::Mutex),
        (Access::FairLock, HolderKind::Mutex, HolderKind::Mutex),
        (Access::Read, HolderKind::Read, HolderKind::Write),
        (Access::Write, HolderKind::Write, HolderKind::Write),
        (Access::BothPermits, HolderKind::Permit, HolderKind::Permit),
        (Access::Lead, HolderKind::Leader, HolderKind::Leader),
    ] {
        let kind = access.lock();
        until(&admin, kind, |seen| seen.is_free && seen.holders.is_empty()).await;
        let held = access.have(&ours, None).await;
        until(&admin, kind, |seen| is_held_by(seen, &held, held_as)).await;
        let found = admin.find("*", 10).await;
        if let [missing] = &*found.missing {
            // Whoever may only lock may not list keys.
            assert!(missing.to_string().contains("'scan'"), "{found:?}");
        } else {
            let locks = found.locks.iter().map(|lock| (&*lock.name, lock.kind));
            assert!(locks.eq([("a", kind)]), "{found:?}");
        }
        let client = theirs.clone();
        let waiting = tokio::spawn(async move { access.excludes().have(&client, None).await });
        until(&admin, kind, |seen| {
            let [waiting] = &*seen.waiting else { return false };
            waiting.client_name.as_deref() == Some("Zürich / 2 @ 100%") && waiting.kind == waits_for
        })
        .await;
        drop(held.release().await);
        drop(waiting.await.expect("no panic").release().await);
        on.until_clean().await;
    }
    // Whoever is refused is told the name as well.
    let _guard = ours.mutex("a").lock().await.unwrap();
    let error = theirs.mutex("a").lock_or_busy(Duration::ZERO).await.unwrap_err();
    let name = error.holder().and_then(HoldId::client_name);
    assert_eq!(name.as_deref(), Some("web:1"), "{error}");
    assert!(error.to_string().starts_with("lock `a` is taken by web%3A1@"), "{error}");
}

#[tokio::test]
async fn a_client_of_servers_is_called_by_its_host_and_process() {
    let on = Fixture::real(1);
    let guard = on.client().await.mutex("a").lock().await.unwrap();
    let name = guard.hold().client_name().expect("it has one");
    let (host, process) = name.rsplit_once('.').expect("two parts");
    assert!(!host.is_empty());
    assert_eq!(process, std::process::id().to_string());
    guard.release().await.unwrap();
}
