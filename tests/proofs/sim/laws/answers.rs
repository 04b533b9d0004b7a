//! No call takes longer than it may, and a loss is told at once.

use std::sync::Weak;

use tokio::task::JoinSet;

use super::calm::PATIENCE_MS;
use crate::sim::prelude::*;

/// Somebody asked for a lock and got an answer.
pub(crate) fn asked(world: &World, client: usize, how: How, started_ms: u64) {
    // An attempt is two of the voters' deadlines at most. Before it that of whoever stands before
    // in line, where that is waited for; a last one, where the limit passed in line.
    let attempts_ms = 2 * world.plan.times.voter_deadline_ms;
    let most_ms = match how {
        How::Wait => return,
        How::Try | How::Within(0) => 2 * attempts_ms,
        How::Within(ms) | How::OrBusy(ms) => ms + attempts_ms,
    };
    in_time(world, client, &format!("asking ({how:?})"), started_ms, most_ms);
}

/// Somebody gave a lock back and got this answer. Where the votes were gone before, it is also asked
/// whether the hold was ended by force.
pub(crate) fn released(
    world: &World,
    client: usize,
    started_ms: u64,
    released: &Result<(), Error>,
) {
    let is_lost = released.as_ref().is_err_and(Error::is_lost);
    let within_ms = (1 + u64::from(is_lost)) * world.plan.times.voter_deadline_ms;
    in_time(world, client, "a release", started_ms, within_ms);
}

/// Somebody made a read of a write and got an answer: an attempt, and a release.
pub(crate) fn downgraded(world: &World, client: usize, started_ms: u64) {
    in_time(world, client, "a downgrade", started_ms, 3 * world.plan.times.voter_deadline_ms);
}

fn in_time(world: &World, client: usize, what: &str, started_ms: u64, within_ms: u64) {
    let took_ms = world.now_ms() - started_ms;
    // A wrong clock is wrong by less than a hundredth; timers have a resolution of a millisecond.
    // Where answers do not come, a request leaves a millisecond after the call before it.
    let (timers_ms, pace_ms) = (2, 2);
    let within_ms = within_ms + within_ms / 100 + timers_ms + pace_ms;
    if took_ms > within_ms && world.ran_since(client, started_ms) {
        let what = format!("{what} took client {client} {took_ms} ms, {within_ms} are the most");
        world.breach(Law::AnswersInTime, None, what);
    }
}

/// Since when each lock that somebody wants has been free.
#[derive(Default)]
pub(crate) struct Idle(BTreeMap<Lock, u64>);

impl Idle {
    /// In calm plans nobody waits for what nobody has, but for the pauses after a split.
    pub(crate) fn check(&mut self, world: &World, look: &Look) {
        if world.plan.mood != Mood::Calm {
            return;
        }
        // Whoever wants several waits for one of them with nothing in its hands.
        let steps = world.plan.clients.iter().flat_map(|client| client.tasks.iter().flatten());
        let together: BTreeSet<Lock> =
            steps.filter(|step| step.kind == Kind::All).flat_map(Step::locks).collect();
        let now_ms = world.now_ms();
        for lock in world.locks.iter().copied().filter(|lock| !together.contains(lock)) {
            let keys = &lock.records;
            let is_free = look.records.iter().flatten().all(|record| !keys.contains(&record.key));
            if !(is_free && world.is_wanted(lock)) {
                self.0.remove(&lock);
            } else if now_ms > *self.0.entry(lock).or_insert(now_ms) + 1_000 {
                let what = format!("{lock:?} is free for a second, and somebody waits for it");
                world.breach(Law::AnswersInTime, None, what);
            }
        }
    }
}

/// Where no voter answers, a waiter is told when its patience ends.
pub(crate) async fn patience(calm: &Calm<'_>, ways: &Ways) {
    let silence = vec![None; calm.ways.len()];
    let before = locked(&ways.fixed).replace(silence);
    let started_ms = calm.world.now_ms();
    let expected = Duration::from_millis(PATIENCE_MS);
    let most = expected + Duration::from_secs(3);
    let told = timeout(most, calm.waiter.mutex("answers").lock()).await;
    let took = calm.since(started_ms);
    *locked(&ways.fixed) = before;
    if took < expected || !matches!(&told, Ok(Err(error)) if error.is_no_quorum()) {
        let what = format!("after {took:?} of silence, the patience is {expected:?}: {told:?}");
        calm.world.breach(Law::AnswersInTime, None, what);
    }
}

/// Waits for the loss in a task of its own, and checks that it is told as soon as the hold is not
/// held any more. Dropping the result ends that.
pub(crate) fn waits_for_loss(world: &Arc<World>, client: usize, guard: &Arc<Guard>) -> JoinSet<()> {
    let mut looking = JoinSet::new();
    looking.spawn(look_on(Arc::clone(world), client, Arc::downgrade(guard)));
    looking
}

async fn look_on(world: Arc<World>, client: usize, guard: Weak<Guard>) {
    while let Some(remaining) = guard.upgrade().map(|guard| guard.remaining()) {
        if remaining.is_zero() {
            break;
        }
        sleep(remaining.min(Duration::from_millis(50))).await;
    }
    let since_ms = world.now_ms();
    // After a suspension timers are late by up to half a second.
    let most_ms = if locked(&world.ledger).suspended.contains(&client) { 510 } else { 3 };
    sleep(Duration::from_millis(most_ms)).await;
    if world.ran_since(client, since_ms) {
        let what = format!("a loss is not told to client {client} within {most_ms} ms");
        world.breach(Law::AnswersInTime, None, what);
    }
}
