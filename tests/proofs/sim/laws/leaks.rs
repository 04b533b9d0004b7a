//! No key is ever without an expiry; and once the faults have ended everything can be had again
//! within a lease and the time for which those who may have forgotten are kept out, and nothing is
//! left of anybody.

use crate::sim::{
    clients::{Clients, FENCE_MEMORY_MS, builder, with_sets},
    draft::PERMITS,
    prelude::*,
    world::claims,
};

/// What the channels by which clients are called begin with.
pub(crate) const CALLS: &str = "quorate:calls:";

/// A script left a key that never expires.
pub(crate) fn no_expiry(world: &World, voter: usize, record: &Record) {
    let what = format!("{} on voter {voter} has no expiry", record.key);
    world.breach(Law::NothingLeaks, None, what);
}

/// No mark of a hold that was ended by force is there after its time once another is made.
pub(crate) fn ended(world: &World, voter: usize, run: &Ran<'_>, after: &[Record]) {
    let is_done = run.answer().is_ok_and(|(code, ..)| code >= 0);
    if !(is_done && run.script().ends_with("/force_release")) {
        return;
    }
    let is_its = |record: &&Record| {
        record.key.ends_with(":revoked") && run.keys().any(|key| key == record.key)
    };
    for record in after.iter().filter(is_its) {
        let ends = record.fields.iter().map(|(_, end)| end.parse::<i64>().expect("a moment"));
        // The key ends with the last of them.
        let Some((last, left)) = ends.clone().max().zip(record.left_ms) else { continue };
        if ends.min().is_some_and(|first| first < last - left) {
            let what = format!("{} has marks that have ended on voter {voter}", record.key);
            world.breach(Law::NothingLeaks, None, what);
        }
    }
}

/// The faults have ended: follows everybody to the end.
pub(crate) async fn heal(
    world: &Arc<World>,
    clients: &Arc<Clients>,
    alive: Vec<(usize, JoinHandle<()>)>,
) {
    // What is still on its way arrives as late as it was meant to.
    let network = world.plan.network;
    let healed_ms = world.now_ms() + network.usual_ms + network.tail_ms;
    let put_back_ms = u64::try_from(locked(&world.ledger).put_back_ms).unwrap_or(0);
    // Every vote of before has ended by then, and all that is owed to voters is settled.
    let lease_ms = world.plan.longest_lease_ms() * 101 / 100 + put_back_ms + 5;
    world.sleep_until_ms(healed_ms + lease_ms).await;
    acquire_all(world).await;
    // Who waited through the faults has its turn now; pauses between attempts are half a second.
    let tasks: u64 = world.plan.clients.iter().map(|client| client.tasks.len() as u64).sum();
    let due_ms = world.now_ms() + 2_000 * (tasks + 1) + quarantines_ms(world);
    for (client, task) in alive {
        let left = Duration::from_millis(due_ms.saturating_sub(world.now_ms()).max(1));
        if timeout(left, task).await.is_err() {
            let what = format!("client {client} is stuck after the faults have ended");
            world.breach(Law::NothingLeaks, None, what);
        }
    }
    sleep(Duration::from_millis(2 * world.plan.times.voter_deadline_ms)).await;
    nothing_is_left(world);
    for client in 0..world.plan.clients.len() {
        if world.plan.clients[client].closes {
            drop(clients.close(world, client));
        } else {
            clients.leave(client);
        }
    }
    // The marks of what was ended by force last for four leases.
    let marks_ms = 4 * lease_ms + put_back_ms;
    world.sleep_until_ms(world.now_ms() + marks_ms).await;
    nobody_listens(world, |_| true);
    nothing_at_all(world, &world.look().records);
    // Which numbers there were is remembered for longer, and not for ever.
    world.sleep_until_ms(world.now_ms() + FENCE_MEMORY_MS * 101 / 100 + put_back_ms).await;
    let records: Vec<_> = world.voters.iter().map(EmbeddedVoter::records).collect();
    nothing_at_all(world, &records);
}

fn nothing_at_all(world: &World, records: &[Vec<Record>]) {
    for (voter, records) in records.iter().enumerate() {
        for record in records {
            let what = format!("{} is left on voter {voter}", record.key);
            world.breach(Law::NothingLeaks, None, what);
        }
    }
}

/// Whoever finds that the clocks of a majority have moved can have nothing for as long as the
/// longest lease, and finds it when it has its turn.
fn quarantines_ms(world: &World) -> u64 {
    let plan = &world.plan;
    let clients = plan.clients.len() as u64;
    if plan.clocks_are_true() { 0 } else { clients * plan.longest_lease_ms() * 101 / 100 }
}

/// A client of its own can have every lock, one after the other.
async fn acquire_all(world: &Arc<World>) {
    let machine = Machine::new("heal");
    let builder = with_sets(builder(&world.plan), world, Sets::Joint).seed(!world.plan.seed);
    let quorum: Quorate = match builder.machine(&machine).connect().await {
        Ok(quorum) => quorum,
        Err(error) => {
            let what = format!("nobody can connect after the faults have ended: {error}");
            return world.breach(Law::NothingLeaks, None, what);
        }
    };
    let tasks: u64 = world.plan.clients.iter().map(|client| client.tasks.len() as u64).sum();
    // Whoever waits may come before, and lets go at once.
    let limit_ms = 1_000 + 1_000 * tasks + quarantines_ms(world);
    // Voters whose clocks are apart do not count before that has passed.
    sleep(Duration::from_millis(world.plan.longest_lease_ms())).await;
    for lock in &world.locks {
        let kinds: &[Kind] = match lock {
            Lock::Mutex(_) => &[Kind::Plain],
            Lock::Rw(_) => &[Kind::Write, Kind::Read(Preference::Writers)],
            Lock::Semaphore(_) => &[Kind::Permits { wanted: PERMITS, of: PERMITS }],
            Lock::Election(_) => &[Kind::Election],
        };
        for kind in kinds {
            acquire(world, &Asking::of(&quorum, &lock.name, *kind), limit_ms).await;
        }
    }
    drop(quorum.close().await);
}

async fn acquire(world: &World, lock: &Asking, limit_ms: u64) {
    let outcome = lock.ask(How::Within(limit_ms)).await;
    world.note("heal", || format!("asks for {lock:?}: {outcome:?}"));
    let failed = match outcome {
        Ok(Some(guard)) => guard
            .release()
            .await
            .err()
            .map(|error| format!("{lock:?} cannot be released after the faults: {error}")),
        Ok(None) => Some(format!("{lock:?} cannot be acquired a lease after the faults")),
        Err(error) => Some(format!("{lock:?} cannot be acquired after the faults: {error}")),
    };
    if let Some(what) = failed {
        world.breach(Law::NothingLeaks, None, what);
    }
}

/// All have given back what they had, and waited for nothing.
fn nothing_is_left(world: &World) {
    // Those by which clients are called are heard for as long as the clients live.
    nobody_listens(world, |channel| !channel.starts_with(CALLS));
    for voter in &world.voters {
        let held = claims(voter).into_iter().filter(|record| !record.key.ends_with(":revoked"));
        for record in held {
            let what = format!("{record:?} is left on {} by its release", voter.label());
            world.breach(Law::NothingLeaks, None, what);
        }
    }
}

fn nobody_listens(world: &World, counts: impl Fn(&str) -> bool) {
    for voter in &world.voters {
        for channel in voter.subscriptions().into_iter().filter(|channel| counts(channel)) {
            let what = format!("{channel} is still listened to on {}", voter.label());
            world.breach(Law::NothingLeaks, None, what);
        }
    }
}
