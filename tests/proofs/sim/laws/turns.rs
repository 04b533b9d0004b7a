//! Whose turn it is, by the terms of each kind: what is free costs one round trip, and is shared
//! where it can be; whoever is called has its own soon after, nobody enters whose turn has not
//! come, and nobody who gave up or is dead keeps anybody out for longer than its time.

use Then::{Dies, Downgrades, GivesUp, GivesUpWhenCalled, HolderDies, Leave, PlacesEnd, Tries};

use super::{
    calm::{self, WAITER_DEADLINE_MS},
    order::place_of,
    traces::expect_none,
};
use crate::sim::prelude::*;

const LOCK: &str = "turns";
const WAITERS: usize = 5;

/// A waiter's place is told again so long after its last bid, and not before.
const REFRESH_MS: u64 = WAITER_DEADLINE_MS / 3;

/// That of a holder that dies, and of those beside it.
const SHORT_LEASE_MS: u64 = 15_000;

const FAIR: Kind = Kind::Fair;
const READ: Kind = Kind::Read(Preference::Writers);
const READ_IN_TURN: Kind = Kind::Read(Preference::Fair);
const READ_FIRST: Kind = Kind::Read(Preference::Readers);
const WRITE: Kind = Kind::Write;
const PERMITS: u32 = 4;
const ONE: Kind = permits(1);
const ALL: Kind = permits(PERMITS);

const fn permits(wanted: u32) -> Kind {
    Kind::Permits { wanted, of: PERMITS }
}

/// Some hold a lock, others wait for it, and what happens then lets these of them enter.
struct Scene {
    held: &'static [Kind],
    line: &'static [Kind],
    then: &'static [(Then, &'static [usize])],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// So many holders leave, one after the other.
    Leave(usize),
    /// The holder's write becomes a read, in two round trips.
    Downgrades,
    /// This waiter gives up.
    GivesUp(usize),
    /// This waiter gives up after the last holder has left.
    GivesUpWhenCalled(usize),
    /// This waiter, the first, dies.
    Dies(usize),
    /// The places of the dead have ended.
    PlacesEnd,
    /// The first holder dies, and its lease ends.
    HolderDies,
    /// Somebody tries, and gets it or does not.
    Tries(Kind, bool),
}

const OF_FAIR: [Scene; 2] = [
    Scene { held: &[FAIR], line: &[FAIR, FAIR], then: &[(GivesUpWhenCalled(0), &[1])] },
    // Nobody calls when the place of the dead ends.
    Scene { held: &[FAIR], line: &[FAIR, FAIR], then: &[(Dies(0), &[]), (Leave(1), &[1])] },
];

const OF_READERS: [Scene; 7] = [
    // All readers enter with the end of the write, whatever their preference.
    Scene {
        held: &[WRITE],
        line: &[READ, READ_IN_TURN, READ_FIRST],
        then: &[(Leave(1), &[0, 1, 2])],
    },
    // A writer keeps readers out while it waits, and enters when the last of them has left.
    Scene {
        held: &[READ, READ_IN_TURN, READ_FIRST],
        line: &[WRITE],
        then: &[
            (Tries(READ, false), &[]),
            (Tries(READ_IN_TURN, false), &[]),
            (Tries(READ_FIRST, true), &[]),
            (Leave(3), &[0]),
        ],
    },
    // Writers and readers among them in the order of asking, the others behind all writers.
    Scene {
        held: &[READ],
        line: &[WRITE, READ, READ_IN_TURN, WRITE],
        then: &[(Leave(1), &[0]), (Leave(1), &[2]), (Leave(1), &[3]), (Leave(1), &[1])],
    },
    // A write that becomes a read lets readers in, and no writer before they have left.
    Scene {
        held: &[WRITE],
        line: &[READ_IN_TURN, WRITE, READ],
        then: &[(Downgrades, &[0]), (Leave(2), &[1]), (Leave(1), &[2])],
    },
    // A writer that gives up keeps no reader out.
    Scene { held: &[READ], line: &[WRITE, READ, READ_IN_TURN], then: &[(GivesUp(0), &[1, 2])] },
    // A dead reader is gone at its own deadline, though another goes on.
    Scene { held: &[READ, READ], line: &[WRITE], then: &[(HolderDies, &[]), (Leave(1), &[0])] },
    // A dead writer keeps no reader out, though another waits until its place has ended.
    Scene {
        held: &[READ],
        line: &[WRITE, WRITE],
        then: &[(Dies(0), &[]), (PlacesEnd, &[]), (GivesUp(1), &[]), (Tries(READ, true), &[])],
    },
];

const OF_PERMITS: [Scene; 4] = [
    // As many enter as what is given back is enough for, each called by the one before it.
    Scene {
        held: &[ALL],
        line: &[ONE, permits(2), ONE, ONE],
        then: &[(Leave(1), &[0, 1, 2]), (Leave(1), &[3])],
    },
    // Who wants all is not passed by who wants one, though one is free ..
    Scene {
        held: &[ONE, ONE, ONE],
        line: &[ALL, ONE],
        then: &[(Leave(1), &[]), (Leave(2), &[0]), (Leave(1), &[1])],
    },
    // .. and lets it in by giving up.
    Scene {
        held: &[ONE, ONE, ONE],
        line: &[ALL, ONE],
        then: &[(Leave(1), &[]), (GivesUp(0), &[1])],
    },
    // A dead one's permits come back at its own deadline, though others go on.
    Scene { held: &[permits(2), ONE], line: &[permits(3)], then: &[(HolderDies, &[0])] },
];

pub(crate) async fn of_fair(calm: &Calm<'_>) -> Result<(), Told> {
    free(calm, &[FAIR]).await?;
    match pick(calm, 6_000, 4) {
        0 | 1 => one_by_one(calm).await,
        scene => play(calm, &OF_FAIR[scene - 2]).await,
    }
}

pub(crate) async fn of_readers(calm: &Calm<'_>) -> Result<(), Told> {
    free(calm, &[WRITE]).await?;
    free(calm, &[READ, READ]).await?;
    waits_for_itself(calm).await?;
    play(calm, &OF_READERS[pick(calm, 7_000, OF_READERS.len())]).await
}

pub(crate) async fn of_permits(calm: &Calm<'_>) -> Result<(), Told> {
    free(calm, &[ONE; PERMITS as usize]).await?;
    play(calm, &OF_PERMITS[pick(calm, 8_000, OF_PERMITS.len())]).await
}

/// One of so many: each costs as much as a good part of a schedule.
fn pick(calm: &Calm<'_>, part: usize, count: usize) -> usize {
    chance(&calm.world.plan, part).random_range(0..count)
}

/// What is free takes a round trip, and asks each voter once; so does what is shared beside it.
async fn free(calm: &Calm<'_>, shares: &[Kind]) -> Result<(), Told> {
    let script = shares[0].acquires();
    let (runs, mut guards) = (calm.runs(script), Vec::new());
    for (share, client) in shares.iter().zip([&calm.holder, &calm.waiter].into_iter().cycle()) {
        guards.push(calm.in_one_trip("a free lock", asking(client, *share).lock()).await?);
        // By now everybody has answered.
        sleep(2 * calm.slowest).await;
    }
    calm.expect_runs(script, runs, guards.len());
    // All of it is taken now, but what can be read.
    if shares[0] != READ {
        tries(calm, shares[0], false).await;
    }
    for guard in guards {
        calm.in_one_trip("a release", guard.release()).await?;
    }
    sleep(2 * calm.slowest).await;
    Ok(())
}

/// Who reads and wants to write is told at once.
async fn waits_for_itself(calm: &Calm<'_>) -> Result<(), Told> {
    let owner = Owner::new();
    let owned = |kind| asking(&calm.holder, kind).owner(owner);
    let reading = calm.in_one_trip("a read", owned(READ).lock()).await?;
    let told = timeout(MS, owned(WRITE).lock()).await;
    if !matches!(&told, Ok(Err(error)) if error.is_deadlock()) {
        let what = format!("who reads and wants to write is told {told:?}");
        calm.world.breach(Law::WhatIsTold, None, what);
    }
    sleep(2 * calm.slowest).await;
    calm.in_one_trip("a release", reading.release()).await?;
    sleep(2 * calm.slowest).await;
    Ok(())
}

/// What a scene says comes about, and in the end nothing is left of it.
async fn play(calm: &Calm<'_>, scene: &Scene) -> Result<(), Told> {
    let mut stage = Stage::set(calm, scene).await?;
    for (then, enter) in scene.then {
        stage.let_happen(*then).await?;
        for place in *enter {
            let (who, next) = (format!("{:?}", scene.line[*place]), stage.line[*place].take());
            let next = calm.handed(&who, next.expect("it waits"), stage.most).await?;
            stage.guards.push(next);
        }
        sleep(2 * calm.slowest).await;
        stage.expect_waiting();
    }
    drop(stage);
    if scene.then.iter().any(|(then, _)| matches!(then, Dies(_))) {
        sleep(places_end()).await;
    }
    expect_none(calm, "a turn").await;
    Ok(())
}

/// Where a scene is played.
struct Stage<'a> {
    calm: &'a Calm<'a>,
    guards: Vec<Guard>,
    line: Vec<Option<Waiting>>,
    /// Who dies, and what it has when it does.
    machine: Machine,
    _third: Quorate,
    _dead: Option<Result<Guard, Error>>,
    /// What a hand-over may take.
    most: Duration,
}

impl<'a> Stage<'a> {
    async fn set(calm: &'a Calm<'a>, scene: &Scene) -> Result<Self, Told> {
        let machine = Machine::new("third");
        let does = |what: Then| scene.then.iter().any(|(then, _)| *then == what);
        let third = if does(HolderDies) || does(Dies(0)) {
            let third = calm::connect(calm.world, &machine, 4_002).await;
            third.map_err(|error| calm.stops(format!("nobody can connect: {error}")))?
        } else {
            calm.waiter.clone()
        };
        let (mut guards, mut dead, mut line) = (Vec::new(), None, Vec::new());
        for (place, kind) in scene.held.iter().enumerate() {
            let lease_ms = if does(HolderDies) { SHORT_LEASE_MS } else { LEASE_MS };
            let asking = |client| asking(client, *kind).lease(Lease::Renewed(lease_ms));
            if place == 0 && does(HolderDies) {
                let dying = asking(&third);
                dead = Some(machine.run(async move { dying.lock().await }).await);
            } else {
                guards.push(calm.in_one_trip("a free lock", asking(&calm.holder).lock()).await?);
            }
            sleep(2 * calm.slowest).await;
        }
        for (place, kind) in scene.line.iter().enumerate() {
            line.push(Some(if does(Dies(place)) {
                let dying = asking(&third, *kind);
                tokio::spawn(machine.run(async move { dying.lock().await }))
            } else {
                asking(if place % 2 == 0 { &calm.waiter } else { &calm.holder }, *kind).wait()
            }));
            sleep(calm.settling()).await;
        }
        // There with the release, back with the call, and a round trip; perhaps after the answers
        // to a bid that just told the place again. Calls that do not come are waited for a little.
        let most = 4 * calm.slowest + 10 * MS;
        Ok(Self { calm, guards, line, machine, _third: third, _dead: dead, most })
    }

    async fn let_happen(&mut self, then: Then) -> Result<(), Told> {
        let calm = self.calm;
        match then {
            Leave(count) => {
                for left in (0..count).rev() {
                    self.expect_waiting();
                    drop(self.guards.pop());
                    if left > 0 {
                        sleep(2 * calm.slowest).await;
                    }
                }
            }
            Downgrades => {
                let (writing, started_ms) = (self.guards.remove(0), calm.world.now_ms());
                let Ok(Some(reading)) = writing.downgrade().await else {
                    return Err(calm.stops("a write does not become a read".into()));
                };
                let took = calm.since(started_ms);
                if took != 2 * calm.fastest {
                    let trip = calm.fastest;
                    calm.costs(format!("a downgrade took {took:?}, a round trip {trip:?}"));
                }
                self.guards.push(reading);
            }
            GivesUp(place) => self.give_up(place).await,
            GivesUpWhenCalled(place) => {
                drop(self.guards.pop());
                let within = chance(&calm.world.plan, 6_001).random_range(0.0..1.0);
                sleep((2 * calm.slowest).mul_f64(within)).await;
                self.give_up(place).await;
            }
            Dies(_) => {
                self.machine.kill();
                // Its last bid may still have been on the way. Clocks that differ let the next one
                // ask a little early, and once more.
                self.most += places_end() + 20 * MS;
            }
            PlacesEnd => sleep(places_end() + calm.slowest).await,
            HolderDies => {
                self.machine.kill();
                sleep(Duration::from_millis(SHORT_LEASE_MS * 101 / 100) + calm.slowest).await;
                if !self.guards.iter().all(Guard::is_held) {
                    calm.costs(format!("beside the dead {:?} are not held", self.guards));
                }
            }
            Tries(kind, enters) => tries(calm, kind, enters).await,
        }
        Ok(())
    }

    async fn give_up(&mut self, place: usize) {
        let Some(waiting) = self.line[place].take() else { return };
        waiting.abort();
        drop(waiting.await);
    }

    /// Nobody enters before its turn; the dead do not come to an end.
    fn expect_waiting(&self) {
        let entered =
            |waiting: &Option<Waiting>| waiting.as_ref().is_some_and(Waiting::is_finished);
        if let Some(place) = self.line.iter().position(entered) {
            passes(self.calm, &format!("waiter {place} enters before its turn"));
        }
    }
}

fn places_end() -> Duration {
    Duration::from_millis(WAITER_DEADLINE_MS * 101 / 100)
}

async fn tries(calm: &Calm<'_>, kind: Kind, enters: bool) {
    sleep(calm.slowest).await;
    let tried = asking(&calm.waiter, kind).try_lock().await;
    if !matches!(&tried, Ok(guard) if guard.is_some() == enters) {
        passes(calm, &format!("a try of {kind:?} comes to {tried:?}"));
    }
    drop(tried);
    sleep(2 * calm.slowest).await;
}

async fn one_by_one(calm: &Calm<'_>) -> Result<(), Told> {
    let free = asking(&calm.holder, FAIR);
    let mut guard = calm.in_one_trip("a free lock", free.lock()).await?;
    let mut line = Vec::new();
    for number in 0..WAITERS {
        line.push(asking(if number % 2 == 0 { &calm.waiter } else { &calm.holder }, FAIR).wait());
        sleep(calm.settling()).await;
    }
    for (number, mut waiting) in line.into_iter().enumerate() {
        let started_ms = calm.world.now_ms();
        let releasing = tokio::spawn(guard.release());
        // Right behind the release, when the voters are free and the first has only been called.
        let passing = calm.holder.mutex(LOCK);
        let passing = tokio::spawn(async move {
            sleep(MS).await;
            passing.try_lock().await
        });
        let longest = 10 * calm.slowest + Duration::from_millis(50);
        let Ok(Ok(Ok(next))) = timeout(longest, &mut waiting).await else {
            passes(calm, &format!("waiter {number} is not the next after {longest:?}"));
            return Err(Told);
        };
        let took = calm.since(started_ms);
        sleep(2 * calm.slowest).await;
        check_bids(calm, started_ms, next.hold().as_str(), took);
        if let Ok(Ok(Some(passed))) = passing.await {
            passes(calm, &format!("{} passed those who waited in order", passed.hold()));
        }
        if let Ok(Err(error)) = releasing.await {
            calm.costs(format!("a release fails: {error}"));
        }
        guard = next;
    }
    drop(guard);
    expect_none(calm, "a lock that was handed over").await;
    Ok(())
}

/// Those who are not called bid only to tell their places again.
fn check_bids(calm: &Calm<'_>, since_ms: u64, hold: &str, took: Duration) {
    let winner = place_of(hold).unwrap_or_default();
    let mut expected = call(calm) + calm.fastest;
    let all = locked(&calm.world.queues).bids.clone();
    let mut bids_of_winner = vec![0; calm.ways.len()];
    for (at_ms, voter, place) in all.iter().filter(|(at_ms, ..)| *at_ms > since_ms) {
        let before = all.iter().filter(|(one, other_voter, other)| {
            one < at_ms && other_voter == voter && other == place
        });
        let last_ms = before.map(|(at_ms, ..)| *at_ms).max().unwrap_or(0);
        if at_ms - last_ms >= REFRESH_MS {
            continue;
        }
        bids_of_winner[*voter] += 1;
        if place != winner || bids_of_winner[*voter] > 1 {
            calm.costs(format!("{place} asked voter {voter} again, and {winner} was called"));
        }
    }
    let window_ms = u64::try_from(2 * calm.slowest.as_millis()).unwrap_or(u64::MAX);
    let refreshed = all.iter().filter(|(at_ms, _, place)| {
        place == winner && *at_ms + window_ms > since_ms && *at_ms < since_ms + window_ms
    });
    if refreshed.count() > calm.reachable.len() {
        // It was just telling its place, and heard out the answers first.
        expected += calm.slowest;
    }
    // Less, where it was telling its place when the release came.
    if took > expected {
        calm.costs(format!("a hand-over took {took:?}, {expected:?} are the most"));
    }
}

/// What calls take until a majority is possible; the first is enough for five milliseconds.
fn call(calm: &Calm<'_>) -> Duration {
    let mut trips: Vec<Duration> =
        calm.ways.iter().flatten().map(|(there, back)| *there + *back).collect();
    trips.sort_unstable();
    let silent = calm.ways.len() - trips.len();
    let needed = calm.world.plan.quorum().saturating_sub(silent).max(1);
    trips[needed - 1].min(trips[0] + 5 * MS)
}

fn asking(client: &Quorate, kind: Kind) -> Asking {
    Asking::of(client, LOCK, kind)
}

fn passes(calm: &Calm<'_>, what: &str) {
    calm.world.breach(Law::FairOrder, None, what.into());
}
