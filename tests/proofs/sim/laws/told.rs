//! What callers are told is so.

use quorate::{LockView, embedded::Fault};
use quorate_tests::inside;

use crate::sim::{prelude::*, voters::delete_all};

const LOCK: &str = "told";

/// Somebody was told that the lock is another's: then another had it, or wanted it.
pub(crate) fn anothers(world: &World, client: usize, lock: Lock, started_ms: u64) {
    // A voter that is troubled may keep what nobody wants any more.
    if world.plan.mood == Mood::Calm && world.was_alone(client, lock, started_ms) {
        let what = format!("client {client} is told that {lock:?} is another's, and is alone");
        world.breach(Law::WhatIsTold, None, what);
    }
}

/// Somebody was given a lock: it is worth something.
pub(crate) fn granted(world: &World, step: Step, guard: &Guard) {
    // Whoever enters again gets what is left. Nothing comes between the last answer and this.
    let first = step.owner.is_none();
    let lease_ms = step.lease_ms(world.plan.times.lease_ms);
    let least = Duration::from_millis(lease_ms) / 2;
    if first && guard.remaining() < least {
        let what = format!("{} is worth {:?}", guard.hold(), guard.remaining());
        world.breach(Law::WhatIsTold, None, what);
    }
}

/// Somebody entered again: a majority of the voters knows how often.
pub(crate) fn entered_again(world: &World, step: Step, guard: &Guard) {
    let forgotten = locked(&world.ledger).excuse(guard.hold().as_str()).is_some();
    // Where connections are cut, an older count may come last.
    if step.owner.is_some() || forgotten || world.plan.mood == Mood::Chaos {
        return;
    }
    let (lock, count) = (step.lock(), guard.count().to_string());
    let told = |voter: usize| {
        let voter = &world.voters[voter];
        let records = voter.records();
        let records = records.iter().filter(|record| lock.records.contains(&record.key));
        let mut fields = records.flat_map(|record| &record.fields);
        // Of a read they know that there is one.
        let reads = guard.access() == Access::Read;
        fields.any(|(hold, told)| hold == guard.hold().as_str() && (reads || *told == count))
    };
    let client = locked(&world.ledger).client(guard.hold().as_str());
    if !world.plan.decide(client, told) {
        let what = format!("{} was entered {count} times, and no majority knows", guard.hold());
        world.breach(Law::WhatIsTold, None, what);
    }
}

/// Somebody looked who has a lock while holding it.
pub(crate) fn inspected(world: &World, guard: &Guard, seen: &LockView) {
    let covered = locked(&world.ledger).excuse(guard.hold().as_str()).is_none();
    let holders: Vec<_> = seen.holders.iter().map(|held| &held.hold).collect();
    let own = holders.contains(&guard.hold());
    if world.plan.mood == Mood::Calm && covered && guard.is_held() && !own {
        let what = format!("{} is held, and inspection shows {holders:?}", guard.hold());
        world.breach(Law::WhatIsTold, None, what);
    }
}

/// Somebody was told to read already what it wants to write.
pub(crate) fn deadlock(world: &World, client: usize, step: Step) {
    if step.owner.is_none() || step.kind != Kind::Write {
        let what = format!("client {client} cannot read what it wants to write: {step:?}");
        world.breach(Law::WhatIsTold, None, what);
    }
}

/// Somebody ended a hold by force: no renewal that begins from now on keeps it. In calm plans the
/// next one tells it.
pub(crate) fn forced(world: &World, step: Step, guard: &Guard) {
    let lease_ms = step.lease_ms(world.plan.times.lease_ms);
    let renewed = step.owner.is_none() && !matches!(step.lease, Lease::Fixed(_));
    let within_ms = if renewed && world.plan.mood == Mood::Calm {
        lease_ms / 3 + 2 * world.plan.times.voter_deadline_ms
    } else {
        world.plan.longest_lease_ms()
    };
    let until_ms = world.now_ms() + within_ms * 101 / 100 + 5;
    let hold = guard.hold().to_string();
    locked(&world.ledger).forced_until_ms.entry(hold).or_insert(until_ms);
}

/// All voters forget a hold, and give their votes to another that it excludes: the next renewal
/// that is heard tells, also where the other gave them back and nobody heard the renewal before.
pub(crate) async fn taken_over(calm: &Calm<'_>) {
    let world = calm.world;
    let read = Kind::Read(Preference::Writers);
    let shared = world.plan.seed % 5 == 1;
    let pairs = [
        (Kind::Plain, Kind::Plain, false, true),
        (Kind::Plain, Kind::Plain, true, true),
        (read, Kind::Write, false, shared),
        (Kind::Write, read, false, shared),
    ];
    for (former, latter, gives_back, _) in pairs.into_iter().filter(|(.., is_asked)| *is_asked) {
        let Ok(guard) = Asking::of(&calm.holder, LOCK, former).lock().await else {
            return world.breach(Law::WhatIsTold, None, "a free lock cannot be had".into());
        };
        sleep(calm.slowest).await;
        for (number, voter) in world.voters.iter().enumerate() {
            delete_all(voter);
            world.unsteady(number);
        }
        let mut other = Some(Asking::of(&calm.waiter, LOCK, latter).lock().await);
        let is_taken = matches!(other, Some(Ok(_)));
        if gives_back {
            drop(other.take());
            sleep(2 * calm.slowest).await;
            let unheard = inside::all(&world.voters, Fault::DropReplies);
            sleep(Duration::from_millis(LEASE_MS / 3)).await;
            drop(unheard);
        }
        let within = Duration::from_millis(LEASE_MS * 101 / 300) + Duration::from_secs(2);
        if !is_taken || timeout(within, guard.lost()).await.is_err() {
            let what = format!("{} is not told who has had its votes", guard.hold());
            world.breach(Law::WhatIsTold, None, what);
        }
        drop((guard, other));
        sleep(2 * calm.slowest).await;
    }
}

/// So many voters forget a hold that another gets the lock beside it and gives it back: the holder
/// is told by its next renewal, also where some never gave it their votes; and where it hears of one
/// loss in one renewal and of the others in the next, by that.
pub(crate) async fn passed_by(calm: &Calm<'_>, ways: &Ways) {
    let (world, reachable) = (calm.world, &calm.reachable);
    let needed = world.plan.quorum();
    // With some to spare, or the renewal in between fails.
    for in_two in [false, true].into_iter().filter(|in_two| !in_two || reachable.len() > needed) {
        let cut_off = |voters: &[usize]| {
            let label = calm.holders_machine.label();
            let of_holder = voters.iter().map(|voter| (label.to_owned(), *voter));
            *locked(&ways.cut_off) = of_holder.collect();
        };
        // The holder has a bare majority, or the votes of all.
        let never = if in_two { &[][..] } else { &reachable[needed..] };
        cut_off(never);
        let Ok(guard) = calm.holder.mutex(LOCK).lock().await else {
            return world.breach(Law::WhatIsTold, None, "a free lock cannot be had".into());
        };
        sleep(2 * calm.slowest).await;
        let forgetful = &reachable[..needed - never.len()];
        for voter in forgetful {
            delete_all(&world.voters[*voter]);
            world.unsteady(*voter);
        }
        if in_two {
            cut_off(&forgetful[..1]);
        }
        let is_taken = calm.waiter.mutex(LOCK).lock().await.is_ok();
        let a_round = Duration::from_millis(LEASE_MS * 101 / 300) + Duration::from_secs(2);
        let mut is_told = timeout(a_round, guard.lost()).await.is_ok();
        if in_two && !is_told {
            cut_off(&[]);
            is_told = timeout(a_round, guard.lost()).await.is_ok();
        }
        if !is_taken || !is_told {
            let what = format!("{} is not told that another passed it: {in_two}", guard.hold());
            world.breach(Law::WhatIsTold, None, what);
        }
        cut_off(&[]);
        drop(guard);
        sleep(2 * calm.slowest).await;
    }
}

/// Of several tries at one moment one has the lock.
pub(crate) async fn one_of_two(calm: &Calm<'_>) {
    if calm.reachable.len() < calm.ways.len() {
        // In a split with the silent neither may have known in time.
        return;
    }
    let (one, other) = (calm.holder.mutex(LOCK), calm.waiter.mutex(LOCK));
    let (one, other) = tokio::join!(one.try_lock(), other.try_lock());
    let won = [&one, &other].into_iter().filter(|tried| matches!(tried, Ok(Some(_)))).count();
    if won != 1 {
        let what = format!("of two tries {won} have the lock: {one:?}, {other:?}");
        calm.world.breach(Law::WhatIsTold, None, what);
    }
    drop((one, other));
    sleep(2 * calm.slowest).await;
}

/// A renewal that nobody answers is repeated as soon as somebody does.
pub(crate) async fn renewed_late(calm: &Calm<'_>, ways: &Ways) {
    let Ok(guard) = calm.holder.mutex(LOCK).lock().await else {
        return calm.world.breach(Law::WhatIsTold, None, "a free lock cannot be had".into());
    };
    sleep(Duration::from_millis(LEASE_MS / 4)).await;
    let before = locked(&ways.fixed).replace(vec![None; calm.ways.len()]);
    sleep(Duration::from_millis(LEASE_MS / 3)).await;
    *locked(&ways.fixed) = before;
    sleep(Duration::from_millis(LEASE_MS * 2 / 3)).await;
    if !guard.is_held() {
        let what = format!("{} is not renewed after a while of silence", guard.hold());
        calm.world.breach(Law::WhatIsTold, None, what);
    }
    drop(guard);
    sleep(2 * calm.slowest).await;
}

/// What was ended by force stays ended, where no voter forgot that it was.
pub(crate) fn check_forced(world: &World, hold: &str) {
    let ends_by = locked(&world.ledger).forced_until_ms.get(hold).copied();
    if world.plan.mood != Mood::Chaos && ends_by.is_some_and(|until| world.now_ms() > until) {
        world.breach(Law::WhatIsTold, None, format!("{hold} was ended by force and is held"));
    }
}

/// In calm plans a renewed hold never comes near its end.
pub(crate) fn check_renewed(world: &World, hold: &str, lease_ms: u64, remaining: Duration) {
    let forced = locked(&world.ledger).excuse(hold).is_some();
    let least = Duration::from_millis(lease_ms) / 2;
    if world.plan.mood == Mood::Calm && !forced && remaining < least {
        let what = format!("{hold} is renewed for {lease_ms} ms, and was left {remaining:?}");
        world.breach(Law::WhatIsTold, None, what);
    }
}
