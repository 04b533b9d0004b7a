//! Which firing of a job is done: what a voter has stored of that never falls, only a hold that has
//! its vote stores it, nobody is told of a firing before a majority has stored it, nobody works on
//! one that a majority remembers, and a change of the voters takes it along.

use crate::sim::{jobs::KEEP, prelude::*};

/// The job of all clients.
pub(crate) const JOB: &str = "job";

/// What the key of the latest firing that is done ends with.
pub(crate) const DONE: &str = ":once:done";

/// What all wall clocks show when a schedule begins.
const BEGINNING_MS: u64 = 1_700_000_000_000;

/// What was stored so far.
#[derive(Default)]
pub(crate) struct Firings {
    /// The latest that each voter has ever stored.
    ever: BTreeMap<usize, u64>,
    /// What it was seen to have last, by a script.
    last: BTreeMap<usize, u64>,
    /// The holds of the job.
    holds: BTreeSet<String>,
}

/// What these records have of the latest firing that is done.
fn done(records: &[Record]) -> Option<u64> {
    let record = records.iter().find(|record| record.key.ends_with(DONE))?;
    record.fields.first()?.1.split(' ').next()?.parse().ok()
}

/// Whether what these records have of it is over by this clock, which is that of their voter: it was
/// done by a clock that is behind by more than a firing is remembered.
fn is_over(records: &[Record], clock: i64) -> bool {
    let record = records.iter().find(|record| record.key.ends_with(DONE));
    let text = record.and_then(|record| record.fields.first()).map_or("", |field| &field.1);
    let times: Vec<i64> = text.split(' ').skip(1).filter_map(|ms| ms.parse().ok()).collect();
    !times.is_empty() && times.iter().sum::<i64>() <= clock
}

/// Whether this clock, in milliseconds since 1970, is ahead by more than a firing is remembered.
fn is_far_ahead(world: &World, clock: i64) -> bool {
    let ahead = u64::try_from(clock).unwrap_or(0).saturating_sub(BEGINNING_MS + world.now_ms());
    u128::from(ahead) >= KEEP.as_millis()
}

/// A script ran. `steady`: nothing else has changed the voter since the one before.
pub(crate) fn ran(
    world: &World,
    voter: usize,
    run: &Ran<'_>,
    steady: bool,
    (before, after): (&[Record], &[Record]),
) {
    if run.script() != "once/note" {
        return;
    }
    let (had, has) = (done(before), done(after));
    let hold = run.arg("hold").unwrap_or_default();
    // By a clock that is ahead by more than that, what was done by another clock is long ago. Such a
    // voter is in quarantine: that it does not know counts for nothing.
    // And what was done by a clock that is behind by as much is long ago by all others.
    let is_long_ago = |clock| is_far_ahead(world, clock) || is_over(before, clock);
    let forgets = matches!(run.answer(), Ok((_, clock, _)) if is_long_ago(clock));
    if steady && has < had && !forgets {
        let what = format!("voter {voter} had the firing {had:?} done and now has {has:?}");
        world.breach(Law::DoneOnce, None, what);
    }
    let votes = |record: &Record| {
        record.key.ends_with(":once") && record.fields.iter().any(|(by, _)| by == hold)
    };
    if steady && has > had && !hold.is_empty() && !before.iter().any(votes) {
        let what = format!("{hold} has {has:?} stored by voter {voter}, whose vote it has not");
        world.breach(Law::DoneOnce, None, what);
    }
    let mut firings = locked(&world.firings);
    if let Some(has) = has {
        let ever = firings.ever.entry(voter).or_default();
        *ever = has.max(*ever);
        firings.last.insert(voter, has);
    }
}

/// A hold of this client is to work on a firing.
pub(crate) fn works(world: &World, client: usize, hold: &str, firing: u64) {
    // Looking lets what is due happen there, and that is told.
    let records: Vec<_> = world.voters.iter().map(EmbeddedVoter::records).collect();
    let mut firings = locked(&world.firings);
    firings.holds.insert(hold.to_owned());
    let ledger = locked(&world.ledger);
    // What a voter has lost in a part of a quarantine does not say that it was not done.
    let lately_ms = world.now_ms().saturating_sub(world.plan.longest_lease_ms() / 2);
    let remembers = |voter: usize| {
        let lost_ms = ledger.tampered_ms.get(&voter).copied();
        let knew = firings.last.get(&voter).is_some_and(|last| *last >= firing);
        done(&records[voter]).is_some_and(|done| done >= firing)
            || knew && lost_ms.is_some_and(|lost_ms| lost_ms >= lately_ms)
    };
    if world.plan.decide(Some(client), remembers) {
        // Of a voter that forgot and whose client could not know.
        let unseen =
            ledger.amnesia.excuse_of_token(&world.plan, Lock::Mutex(0), Some(client)).is_some();
        let forgot = unseen.then_some("a voter forgot what is done");
        let beside = |other: &String| ledger.excuse_of_two(&world.plan, hold, other);
        let excuse = forgot.or_else(|| firings.holds.iter().find_map(beside));
        drop(ledger);
        let what = format!("{hold} works on the firing {firing}, which a majority knows is done");
        world.breach(Law::DoneOnce, excuse, what);
    }
}

/// A client was told that this firing is done, by itself or by another.
pub(crate) fn told(world: &World, client: usize, firing: u64) {
    let ever = locked(&world.firings).ever.clone();
    let stored = |voter: usize| ever.get(&voter).is_some_and(|ever| *ever >= firing);
    if !world.plan.decide(Some(client), stored) {
        let what = format!("client {client} is told that {firing} is done: {ever:?} have stored");
        world.breach(Law::DoneOnce, None, what);
    }
}

/// The latest firing that a majority of one set of this client knows is done, by voters that go on
/// as they are.
pub(crate) fn remembered(world: &World, client: usize) -> Option<u64> {
    let of_set = |set: std::ops::Range<usize>| {
        let needed = set.len() / 2 + 1;
        let mut known: Vec<_> = set.filter_map(|at| done(&world.voters[at].records())).collect();
        known.sort_unstable_by(|one, other| other.cmp(one));
        known.get(needed - 1).copied()
    };
    world.plan.sets_of(Some(client)).into_iter().filter_map(of_set).max()
}
