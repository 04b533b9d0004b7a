//! What is held has the votes of a majority, and trust in it ends before they do.
//!
//! This is what exclusion rests on, so it finds what would only harm where a rival came at the
//! right moment.

use super::told;
use crate::sim::{
    locks::{self},
    prelude::*,
};

pub(crate) fn check(world: &World, look: &Look) {
    for held in &look.held {
        if locked(&world.ledger).over.contains(&held.hold) {
            let what = format!("{} is held again after it was not", held.hold);
            world.breach(Law::TrustEndsEarly, None, what);
        }
        check_course(world, held);
        told::check_forced(world, &held.hold);
        if let Some(lease_ms) = held.renewed_ms {
            told::check_renewed(world, &held.hold, lease_ms, held.remaining);
        }
        let votes = votes(world, look, held);
        let client = locked(&world.ledger).client(&held.hold);
        let excuse = locked(&world.ledger).excuse_of_trust(&held.hold);
        // For so long there is a majority, of each set of voters that the client has.
        let lasts = world.plan.sets_of(client).into_iter().map(|set| {
            let needed = set.len() / 2 + 1;
            let mut of_set: Vec<Duration> = set.filter_map(|voter| votes[voter]).collect();
            of_set.sort_unstable();
            of_set.reverse();
            of_set.get(needed - 1).copied()
        });
        match lasts.collect::<Option<Vec<Duration>>>().map(|lasts| lasts.into_iter().min()) {
            None => {
                let votes = votes.iter().flatten().count();
                let what = format!(
                    "{} is held with the votes of {votes} voters, a majority of {:?} is needed",
                    held.hold,
                    world.plan.sets_of(client)
                );
                world.breach(Law::TrustEndsEarly, excuse, what);
            }
            Some(lasts) if world.plan.clocks_are_true() => {
                check_drift(world, held, lasts.unwrap_or_default(), excuse);
            }
            Some(_) => {}
        }
    }
}

/// Trust runs out with the time and no faster, and where it is not renewed it ends.
fn check_course(world: &World, held: &Held) {
    let now_ms = world.now_ms();
    if held.fixed_until_ms.is_some_and(|until_ms| now_ms > until_ms) {
        let what = format!("{} is held after its fixed lease, or its limit", held.hold);
        let excuse = locked(&world.ledger).excuse_of_trust(&held.hold);
        world.breach(Law::TrustEndsEarly, excuse, what);
    }
    let mut ledger = locked(&world.ledger);
    let seen = ledger.remaining.insert(held.hold.clone(), (now_ms, held.remaining));
    drop(ledger);
    let Some((seen_ms, was_left)) = seen else { return };
    let passed = Duration::from_millis(now_ms - seen_ms) * 101 / 100 + Duration::from_millis(1);
    if held.remaining + passed < was_left {
        let what = format!("{} was left {was_left:?}, now {:?}", held.hold, held.remaining);
        let client = locked(&world.ledger).client(&held.hold);
        let excuse = if world.plan.clocks_of_a_majority_move() {
            Some("a majority's clocks moved")
        } else {
            client.filter(|client| world.plan.pauses(*client)).map(|_| "it stood still")
        };
        world.breach(Law::RenewalNeverHarms, excuse, what);
    }
}

/// How long each voter's vote for a hold lasts; those that a voter should still have but
/// forgot, or has again as they were before a renewal, last for ever, as it is not the client's
/// fault. Those are left out that a voter has given
/// twice, as its client knows.
fn votes(world: &World, look: &Look, held: &Held) -> Vec<Option<Duration>> {
    let ledger = locked(&world.ledger);
    let client = ledger.client(&held.hold);
    let gave_to_another = |voter, asked| {
        ledger.amnesia.gave_to_another(
            &world.plan,
            voter,
            (held.lock, asked),
            client,
            world.now_ms(),
        )
    };
    let keys = &held.lock.records;
    let vote = |voter: usize, records: &Vec<Record>| {
        let mut votes = locks::votes(records, keys).into_iter();
        let is_its = |vote: &Vote<'_>| {
            vote.hold == held.hold && vote.access == held.access && vote.slots == held.slots
        };
        let vote = votes.find(is_its);
        let asked = Rival { hold: &held.hold, access: held.access, slots: &held.slots };
        match vote {
            Some(_) if gave_to_another(voter, asked) => None,
            Some(Vote { left_ms: Some(ms), .. }) if ms >= 0 => {
                let until_ms = world.now_ms().saturating_add_signed(ms);
                let is_aged = ledger.amnesia.is_aged(&held.hold, voter, until_ms);
                let left = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
                Some(if is_aged { Duration::MAX } else { left })
            }
            Some(Vote { left_ms: None, .. }) => Some(Duration::MAX),
            _ => ledger.amnesia.has_lost(&held.hold, voter).then_some(Duration::MAX),
        }
    };
    let votes = look.records.iter().enumerate();
    votes.map(|(voter, records)| vote(voter, records)).collect()
}

/// Where no clock is wrong, the votes last longer than the trust by all of the drift.
fn check_drift(world: &World, held: &Held, left: Duration, excuse: Option<&'static str>) {
    let asked_ms = locked(&world.ledger).leases_ms.get(&held.hold).copied();
    let Some(lease_ms) = asked_ms else { return };
    let drift = Duration::from_millis(lease_ms) / 100 + Duration::from_millis(2);
    if held.remaining + drift > left {
        let what = format!(
            "{} is trusted for {:?}, its votes last {left:?}, and {drift:?} are the drift",
            held.hold, held.remaining
        );
        world.breach(Law::TrustEndsEarly, excuse, what);
    }
}
