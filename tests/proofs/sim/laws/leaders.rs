//! Whoever is said to lead had the votes of a majority, was told that it leads, and goes by the token
//! that it was given. No observer sees a leader of before, nor what a leader said before. What a
//! leader has proclaimed a majority stores from then on, and observers hear of it without a timer.

use quorate::{Leader, Observed, Observer};

use crate::sim::prelude::*;

/// What is known of those who lead.
#[derive(Default)]
pub(crate) struct Leaders {
    /// The voters that ever gave each hold their vote.
    voted: BTreeMap<String, BTreeSet<usize>>,
    /// Since when each leads.
    since: BTreeMap<String, (Lock, u64)>,
    /// The latest that each hold has proclaimed, of those that it was told are stored.
    proclaimed: BTreeMap<String, (Lock, u64)>,
}

/// The latest leader that an observer has seen, and what that said.
#[derive(Default)]
pub(crate) struct Seen(Option<(u64, u64)>);

/// A script ran.
pub(crate) fn ran(world: &World, voter: usize, run: &Ran<'_>) {
    let votes = matches!(run.script(), "election/acquire" | "election/renew");
    if let (true, Ok((1, ..)), Some(hold)) = (votes, run.answer(), run.arg("hold")) {
        locked(&world.leaders).voted.entry(hold.to_owned()).or_default().insert(voter);
    }
}

/// Somebody was told that this one leads.
pub(crate) fn observed(world: &World, seen: &mut Seen, leader: &Leader) {
    let (hold, token) = (leader.hold().as_str(), u64::from(leader.token()));
    let voted = locked(&world.leaders).voted.get(hold).map_or(0, BTreeSet::len);
    if voted < world.plan.quorum() {
        let what = format!("{hold} is said to lead, and {voted} voters ever voted for it");
        world.breach(Law::WhatIsTold, None, what);
    }
    if !locked(&world.leaders).since.contains_key(hold) {
        let what = format!("{hold} is said to lead, and nobody was told that it does");
        world.breach(Law::WhatIsTold, None, what);
    }
    // Where a majority forgets, so do those who ask it.
    if world.plan.mood == Mood::Chaos {
        return;
    }
    if let Some(given) = locked(&world.tokens).of(hold).filter(|given| *given != token) {
        let what = format!("{hold} is said to have the token {token}, and was given {given}");
        world.breach(Law::WhatIsTold, None, what);
    }
    let said = leader.text().and_then(|text| text.parse().ok()).unwrap_or(0);
    if seen.0.is_some_and(|before| (token, said) < before) {
        let what = format!("{hold} with {token} says {said}, after {:?}", seen.0);
        world.breach(Law::WhatIsTold, None, what);
    }
    seen.0 = seen.0.max(Some((token, said)));
}

/// Somebody leads from now on, as far as its client knows.
pub(crate) fn leads(world: &World, lock: Lock, hold: &str) {
    if matches!(lock, Lock::Election(_)) {
        let since = (lock, world.now_ms());
        locked(&world.leaders).since.entry(hold.to_owned()).or_insert(since);
    }
}

/// Somebody was told that nobody leads: nobody has for as long as it takes to ask.
pub(crate) fn nobody_observed(world: &World, lock: Lock) {
    if world.plan.mood == Mood::Chaos {
        return;
    }
    let held = world.held();
    let leaders = locked(&world.leaders);
    // No question takes longer than a tenth of a lease.
    let asked_ms = world.now_ms().saturating_sub(world.plan.times.lease_ms * 3 / 10);
    let leads = held.iter().find(|held| {
        let since = leaders.since.get(&held.hold);
        held.lock == lock && since.is_some_and(|(_, since_ms)| *since_ms < asked_ms)
    });
    if let Some(leader) = leads {
        let excuse = locked(&world.ledger).excuse(&leader.hold);
        let what = format!("nobody is said to lead, and {} does", leader.hold);
        world.breach(Law::WhatIsTold, excuse, what);
    }
}

/// A leader was told that a majority stores this.
pub(crate) fn proclaimed(world: &World, lock: Lock, hold: &str, number: u64) {
    locked(&world.leaders).proclaimed.insert(hold.to_owned(), (lock, number));
    check(world, &world.look());
}

/// A majority has what was proclaimed, for as long as its leader leads.
pub(crate) fn check(world: &World, look: &Look) {
    if world.plan.mood == Mood::Chaos {
        return;
    }
    for held in &look.held {
        let proclaimed = locked(&world.leaders).proclaimed.get(&held.hold).copied();
        let Some((lock, number)) = proclaimed else { continue };
        let knows = |records: &&Vec<Record>| {
            let record = records.iter().find(|record| lock.records.contains(&record.key));
            let said = record.and_then(|record| record.fields.first());
            let said = said.filter(|(hold, _)| *hold == held.hold);
            let said = said.and_then(|(_, said)| said.rsplit_once('=')?.1.parse::<u64>().ok());
            said.is_some_and(|said| said >= number)
        };
        let stored = look.records.iter().filter(knows).count();
        let forgotten = locked(&world.ledger).excuse(&held.hold);
        if stored < world.plan.quorum() {
            let what = format!("{} has proclaimed {number}, {stored} voters know", held.hold);
            world.breach(Law::WhatIsTold, forgotten, what);
        }
    }
}

const ELECTION: &str = "news";

/// An observer is told of a leader, of what it proclaims, and that it has resigned: each there with
/// the request, back with the news, and a round trip; all by the slowest way, and no timer. Before
/// it says that it leads, the leader needs a round trip to win.
pub(crate) async fn measure(calm: &Calm<'_>) {
    let election = calm.holder.election(ELECTION);
    let mut observer = calm.waiter.election(ELECTION).observe();
    let first = timeout(Duration::from_secs(3), observer.next()).await;
    if !matches!(first, Ok(Some(Observed::NoLeader))) {
        return breach(calm, format!("nobody leads, and it observes {first:?}"));
    }
    // It asks once more when it is known to listen.
    sleep(4 * calm.slowest + Duration::from_millis(50)).await;
    let started_ms = calm.world.now_ms();
    let Ok(leadership) = election.campaign("1").await else {
        return breach(calm, "a free election cannot be won".into());
    };
    until(calm, &mut observer, started_ms, Some("1")).await;
    sleep(2 * calm.slowest).await;
    let started_ms = calm.world.now_ms();
    if let Err(error) = leadership.proclaim("2").await {
        breach(calm, format!("a value cannot be proclaimed: {error}"));
    }
    let took = calm.since(started_ms);
    if took < calm.fastest || took > calm.slowest {
        breach(calm, format!("a proclamation took {took:?}, the fastest {:?}", calm.fastest));
    }
    until(calm, &mut observer, started_ms, Some("2")).await;
    sleep(2 * calm.slowest).await;
    let started_ms = calm.world.now_ms();
    drop(leadership);
    until(calm, &mut observer, started_ms, None).await;
    drop(observer);
    sleep(2 * calm.slowest).await;
}

/// Waits until this is observed, for as long as it may take.
async fn until(calm: &Calm<'_>, observer: &mut Observer, started_ms: u64, value: Option<&str>) {
    let seen = async {
        loop {
            match observer.next().await {
                Some(Observed::Leader(leader)) if leader.text() == value => return true,
                Some(Observed::NoLeader) if value.is_none() => return true,
                None => return false,
                _ => {}
            }
        }
    };
    // What one voter tells alone is looked after 5 ms later; then each asks once.
    let most = 3 * calm.slowest + Duration::from_millis(8);
    let seen = timeout(Duration::from_secs(30), seen).await;
    let took = calm.since(started_ms);
    if seen != Ok(true) || took > most {
        breach(calm, format!("{value:?} was observed after {took:?}, {most:?} are the most"));
    }
}

fn breach(calm: &Calm<'_>, what: String) {
    calm.world.breach(Law::FewestTrips, None, what);
}
