//! What goes wrong at times of its own.

use quorate::embedded::InFlight;

use crate::sim::{amnesia::Cause, clients::Clients, locks::votes, prelude::*, steps};

/// Lets one trouble happen, and ends it before the faults end.
pub(crate) async fn happen(
    world: Arc<World>,
    ways: Arc<Ways>,
    clients: Arc<Clients>,
    trouble: Trouble,
) {
    world.sleep_until_ms(trouble.at_ms).await;
    world.note("FAULT", || format!("{:?} for {} ms", trouble.what, trouble.lasts_ms));
    begin(&world, &ways, &clients, trouble.what);
    world.changed.notify_one();
    let until_ms = (trouble.at_ms + trouble.lasts_ms).min(world.plan.heals_at_ms);
    world.sleep_until_ms(until_ms).await;
    end(&world, &ways, trouble.what);
    world.changed.notify_one();
}

fn begin(world: &Arc<World>, ways: &Ways, clients: &Clients, what: What) {
    let in_flight = |arrives| if arrives { InFlight::Arrives } else { InFlight::Lost };
    let label = |client: usize| world.machines[client].label().to_owned();
    match what {
        What::VoterStops(voter) => world.voters[voter].stop(),
        What::VoterDies(voter)
        | What::VoterForgets(voter)
        | What::VoterCopied { voter, .. }
        | What::VoterReboots { voter, .. } => {
            locked(&world.ledger).amnesia.goes_down(voter, world.now_ms());
            world.voters[voter].kill();
            if what.forgets().is_some() {
                steps::lost(world, voter);
            }
        }
        What::VoterLoses(voter) => world.voters[voter].lose_writes(),
        What::FingerprintLost(voter) => world.voters[voter].lose_fingerprint(),
        What::VoterFlushed(voter) => {
            forget_all(world, voter, (Cause::Flush, true));
            // One that is dead has nobody to ask, and goes on expiring.
            drop(world.voters[voter].command(&["FLUSHALL"]));
        }
        What::KeyEvicted { voter, lock, part } => evict(world, voter, lock, part),
        What::ClockNudged(voter) => world.voters[voter].jump_clock(1_000),
        What::VoterFull(voter) => {
            locked(&ways.full).insert(voter);
        }
        What::ClockJumps { voter, ms } => {
            set_clock(world, voter, ms);
            let ledger = locked(&world.ledger);
            let uptime = ledger.amnesia.claimed_uptime(voter, world.now_ms());
            drop(ledger);
            if let Some(uptime) = uptime {
                world.voters[voter].set_uptime(uptime);
            }
        }
        What::ClockRuns { voter, ppm } => {
            forget_all(world, voter, (Cause::Unseen, false));
            locked(&world.ledger).wild.insert(voter);
            world.voters[voter].set_clock_rate(ppm);
        }
        What::CutAll { voter, arrives } => world.voters[voter].cut(in_flight(arrives)),
        What::CutOne { voter, client, arrives } => {
            world.voters[voter].cut_client(&label(client), in_flight(arrives));
        }
        What::Partition { voter, client } => {
            locked(&ways.cut_off).insert((label(client), voter));
        }
        other => begin_at_client(world, clients, other),
    }
}

/// The machine of a client, and what runs on it.
fn begin_at_client(world: &Arc<World>, clients: &Clients, what: What) {
    match what {
        What::WallClockSet { client, ahead_ms } => {
            let was_ms = locked(&world.ledger).walls_ms.insert(client, ahead_ms);
            let was_ms = was_ms.unwrap_or(world.plan.clients[client].wall_ahead_ms);
            world.machines[client].jump_wall_clock((ahead_ms - was_ms) * 1_000);
        }
        What::ClientStalls(client) | What::ClientSuspended(client) | What::ClientPaused(client) => {
            let (machine, mut ledger) = (&world.machines[client], locked(&world.ledger));
            *ledger.still.entry(client).or_default() += 1;
            match what {
                What::ClientSuspended(_) => {
                    ledger.suspended.insert(client);
                    machine.suspend();
                }
                What::ClientPaused(_) => {
                    ledger.pauses(client);
                    machine.stall();
                    machine.set_clock_rate(-1_000_000);
                }
                _ => machine.stall(),
            }
            drop(ledger);
            world.disturb(client);
        }
        What::ClientDies(client) => {
            locked(&world.ledger).dead.insert(client);
            world.machines[client].kill();
        }
        What::ClientCloses(client) => {
            locked(&world.ledger).closed.insert(client);
            clients.close(world, client);
        }
        _ => unreachable!("{what:?} is not at a client"),
    }
}

fn end(world: &World, ways: &Ways, what: What) {
    match what {
        What::VoterStops(voter) => world.voters[voter].resume(),
        What::VoterDies(voter) => {
            locked(&world.ledger).amnesia.comes_back(voter, world.now_ms());
            world.voters[voter].restart();
        }
        What::VoterForgets(voter) => {
            forget_votes(world, voter);
            forget_all(world, voter, (Cause::Restart, true));
            world.voters[voter].restart_empty();
        }
        What::VoterCopied { voter, of } => {
            forget_votes(world, voter);
            forget_all(world, voter, (Cause::Copied { of }, true));
            world.voters[voter].restart_with_copy_of(&world.voters[of]);
        }
        What::VoterLoses(voter) => {
            // Whoever is connected looks before it starts again, and tells the others. Where nobody
            // is, nobody can know.
            let cause = if locked(&world.ledger).has_clients() {
                forget_votes(world, voter);
                Cause::Restart
            } else {
                Cause::Unseen
            };
            forget_all(world, voter, (cause, true));
            let before = records(world, voter);
            world.voters[voter].cut(InFlight::Lost);
            world.voters[voter].restart();
            age_votes(world, voter, &before);
        }
        What::VoterReboots { voter, ms, keeps } => {
            set_clock(world, voter, ms);
            let restarts = if keeps { What::VoterDies(voter) } else { What::VoterForgets(voter) };
            end(world, ways, restarts);
        }
        What::VoterFull(voter) => {
            locked(&ways.full).remove(&voter);
        }
        What::ClockRuns { voter, ppm } => {
            forget_all(world, voter, (Cause::Unseen, false));
            let ran_ms = i64::try_from(world.plan.heals_at_ms).unwrap_or(i64::MAX);
            let mut ledger = locked(&world.ledger);
            ledger.wild.remove(&voter);
            // A slow clock has put the end of the votes off.
            ledger.put_back_ms += ran_ms * i64::from(ppm.min(0).abs()) / 1_000_000;
            drop(ledger);
            world.voters[voter].set_clock_rate(world.plan.voters[voter].clock_ppm);
        }
        What::Partition { voter, client } => {
            let label = world.machines[client].label().to_owned();
            locked(&ways.cut_off).remove(&(label.clone(), voter));
            // What was sent all that time is lost, and so is the connection.
            world.voters[voter].cut_client(&label, InFlight::Lost);
        }
        What::ClientStalls(client) | What::ClientSuspended(client) => go_on(world, client),
        What::ClientPaused(client) => {
            world.machines[client].set_clock_rate(world.plan.clients[client].clock_ppm);
            go_on(world, client);
        }
        _ => {}
    }
}

/// A machine goes on when nothing keeps it any more: none runs while its clock stands still.
fn go_on(world: &World, client: usize) {
    if locked(&world.ledger).goes_on(client) {
        world.machines[client].resume();
    }
    world.disturb(client);
}

/// Sets a voter's clock, and takes note of what that ends before its time.
fn set_clock(world: &World, voter: usize, ms: i64) {
    if ms > 0 {
        forget_all(world, voter, (Cause::ClockForward { ms }, false));
    }
    world.unsteady(voter);
    world.voters[voter].jump_clock(ms * 1_000);
    let mut ledger = locked(&world.ledger);
    ledger.put_back_ms += ms.min(0).abs();
    ledger.amnesia.steps(voter, ms);
}

/// What this voter has of any hold counts as forgotten from now on; and whether its data is gone.
fn forget_all(world: &World, voter: usize, cause: (Cause, bool)) {
    let records = records(world, voter);
    let mut ledger = locked(&world.ledger);
    ledger.amnesia.loses_all(voter, cause, holds(&records), world.now_ms());
    drop(ledger);
    world.unsteady(voter);
}

/// The votes that stand on this voter, which starts again without them, are given all the same.
fn forget_votes(world: &World, voter: usize) {
    let records = records(world, voter);
    let mut ledger = locked(&world.ledger);
    for lock in &world.locks {
        let votes = votes(&records, &lock.records);
        ledger.amnesia.loses_votes(&world.plan, voter, *lock, &votes, world.now_ms());
    }
}

/// This voter has come back with votes as they were before it renewed them.
fn age_votes(world: &World, voter: usize, before: &[Record]) {
    let after = records(world, voter);
    let mut ledger = locked(&world.ledger);
    for lock in &world.locks {
        let before = votes(before, &lock.records);
        for vote in votes(&after, &lock.records) {
            let Some(left_ms) = vote.left_ms else { continue };
            let was = before.iter().find(|was| was.hold == vote.hold);
            if was.is_some_and(|was| was.left_ms.is_none_or(|was_ms| was_ms > left_ms)) {
                let until_ms = world.now_ms().saturating_add_signed(left_ms);
                ledger.amnesia.ages(voter, vote.hold, until_ms);
            }
        }
    }
}

fn holds(records: &[Record]) -> impl Iterator<Item = &str> {
    records.iter().flat_map(|record| record.fields.iter().map(|(hold, _)| hold.as_str()))
}

fn evict(world: &World, voter: usize, lock: Lock, part: Part) {
    let key: &str = match part {
        Part::Record => &lock.records[0],
        Part::Readers => &lock.readers,
        Part::Queue => &lock.queue,
        Part::Alive => &lock.alive,
        Part::Writers => &lock.writers,
        Part::Fence => &lock.fence,
    };
    let mut records = records(world, voter);
    records.retain(|record| record.key == key);
    // Nothing is evicted from a server that does not run.
    if world.voters[voter].command(&["DEL", key]).is_ok() {
        let mut ledger = locked(&world.ledger);
        for hold in holds(&records) {
            ledger.amnesia.loses(voter, Cause::Unseen, hold, world.now_ms());
        }
        if part == Part::Fence {
            ledger.amnesia.loses_fence(voter, lock, world.now_ms());
        }
        drop(ledger);
        world.unsteady(voter);
    }
}

/// What the voter has when all that has arrived by now has run.
fn records(world: &World, voter: usize) -> Vec<Record> {
    // To look is also to do what is due, after the look.
    drop(world.voters[voter].records());
    world.voters[voter].records()
}
