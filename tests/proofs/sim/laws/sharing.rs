//! Readers and writers: a free lock costs one round trip, whoever reads shares it, and whoever is
//! called has it soon after; nobody enters whose turn has not come, and nothing that is over keeps
//! anybody out.

use std::time::Duration;

use quorate::{Error, Owner, Preference, Quorate, embedded::Machine};
use rand::RngExt;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    Law,
    calm::{self, Calm, LEASE_MS, WAITER_DEADLINE_MS},
    traces::expect_none,
};
use crate::sim::{
    asking::{Asking, Guard, Kind},
    voters::{chance, delete_all},
};

const LOCK: &str = "sharing";
const MS: Duration = Duration::from_millis(1);
const READ: Kind = Kind::Read(Preference::Writers);
const READ_IN_TURN: Kind = Kind::Read(Preference::Fair);
const READ_FIRST: Kind = Kind::Read(Preference::Readers);

/// What stops a measurement: it has been told.
struct Told;

pub(crate) async fn measure(calm: &Calm<'_>) {
    if uncontended(calm).await.is_err() {
        return;
    }
    // One of them: each costs as much as a good part of a schedule.
    let measured = match chance(&calm.world.plan, 7_000).random_range(0..7) {
        0 => together(calm).await,
        1 => by_turns(calm).await,
        2 => behind_one_that_gave_up(calm).await,
        3 => downgraded(calm).await,
        4 => beside_a_dead_reader(calm).await,
        5 => behind_a_dead_writer(calm).await,
        _ => taken_over(calm).await,
    };
    if measured.is_ok() {
        expect_none(calm, "a read/write lock").await;
    }
}

async fn uncontended(calm: &Calm<'_>) -> Result<(), Told> {
    let asked = runs(calm);
    let writing = free(calm, Kind::Write).await?;
    in_one_trip(calm, "a write", release(writing)).await?;
    sleep(2 * calm.slowest).await;
    let owner = Owner::new();
    let owned = |kind| asking(&calm.holder, kind).owner(owner);
    let one = free(calm, READ).await?;
    let other = in_one_trip(calm, "a read beside another", owned(READ).lock()).await?;
    let waits_for_itself = timeout(MS, owned(Kind::Write).lock()).await;
    if !matches!(&waits_for_itself, Ok(Err(error)) if error.is_deadlock()) {
        let what = format!("who reads and wants to write is told {waits_for_itself:?}");
        calm.world.breach(Law::WhatIsTold, None, what);
    }
    sleep(2 * calm.slowest).await;
    // By now everybody has answered, and nobody is asked twice.
    if runs(calm).into_iter().zip(asked).any(|(now, before)| now > before + 3) {
        costs(calm, "a free lock asked a voter twice");
    }
    drop(one);
    in_one_trip(calm, "a read", release(other)).await?;
    sleep(2 * calm.slowest).await;
    Ok(())
}

/// All readers enter with the end of the write, whatever their preference, and a writer when the
/// last of them has left.
async fn together(calm: &Calm<'_>) -> Result<(), Told> {
    let writing = free(calm, Kind::Write).await?;
    let mut waiting = Vec::new();
    for (client, kind) in
        [(&calm.waiter, READ), (&calm.holder, READ_IN_TURN), (&calm.waiter, READ_FIRST)]
    {
        waiting.push(wait(calm, client, kind).await);
    }
    drop(writing);
    let mut reading = Vec::new();
    for waiting in waiting {
        reading.push(handed(calm, waiting, "a reader behind a writer").await?);
    }
    let mut writer = wait(calm, &calm.waiter, Kind::Write).await;
    for (kind, enters) in [(READ, false), (READ_IN_TURN, false), (READ_FIRST, true)] {
        let tried = asking(&calm.holder, kind).try_lock().await;
        if !matches!(&tried, Ok(guard) if guard.is_some() == enters) {
            passes(calm, &format!("while a writer waits {kind:?} comes to {tried:?}"));
        }
        drop(tried);
        sleep(2 * calm.slowest).await;
    }
    while let Some(one) = reading.pop() {
        waits(calm, &mut writer, "a writer, while somebody reads");
        drop(one);
        sleep(if reading.is_empty() { Duration::ZERO } else { 2 * calm.slowest }).await;
    }
    drop(handed(calm, writer, "a writer behind the last reader").await?);
    Ok(())
}

/// Writers and readers among them in the order of asking, the others behind all writers.
async fn by_turns(calm: &Calm<'_>) -> Result<(), Told> {
    let mut guard = free(calm, READ).await?;
    let mut line = Vec::new();
    for (client, kind) in [
        (&calm.waiter, READ),
        (&calm.waiter, Kind::Write),
        (&calm.holder, READ_IN_TURN),
        (&calm.waiter, Kind::Write),
    ] {
        // The first comes when nobody waits yet, and goes.
        let waiting = wait(calm, client, kind).await;
        if line.is_empty() && kind == READ {
            drop(handed(calm, waiting, "a reader beside a reader").await?);
            continue;
        }
        line.push(waiting);
    }
    // Behind all writers, though it stands with no lower ticket than they.
    line.push(wait(calm, &calm.holder, READ).await);
    while !line.is_empty() {
        let next = line.remove(0);
        drop(guard);
        // Behind one that passed it would not be.
        let longest = 10 * calm.slowest + 50 * MS;
        let Ok(Ok(Ok(entered))) = timeout(longest, next).await else {
            passes(calm, &format!("the next in turn does not enter within {longest:?}"));
            return Err(Told);
        };
        guard = entered;
        sleep(2 * calm.slowest).await;
        for other in &mut line {
            waits(calm, other, "another");
        }
    }
    Ok(())
}

/// A writer that gives up keeps no reader out.
async fn behind_one_that_gave_up(calm: &Calm<'_>) -> Result<(), Told> {
    let reading = free(calm, READ).await?;
    let writer = wait(calm, &calm.waiter, Kind::Write).await;
    let mut readers = Vec::new();
    for (client, kind) in [(&calm.holder, READ), (&calm.waiter, READ_IN_TURN)] {
        readers.push(wait(calm, client, kind).await);
    }
    for reader in &mut readers {
        waits(calm, reader, "a reader behind a writer that waits");
    }
    writer.abort();
    drop(writer.await);
    for reader in readers {
        drop(handed(calm, reader, "a reader behind a writer that gave up").await?);
    }
    drop(reading);
    Ok(())
}

/// A write that becomes a read lets readers in, and no writer before they have left.
async fn downgraded(calm: &Calm<'_>) -> Result<(), Told> {
    let writing = free(calm, Kind::Write).await?;
    let reader = wait(calm, &calm.waiter, READ_IN_TURN).await;
    let mut writer = wait(calm, &calm.waiter, Kind::Write).await;
    let mut behind = wait(calm, &calm.holder, READ).await;
    let started_ms = calm.world.now_ms();
    let Ok(Some(reading)) = writing.downgrade().await else {
        costs(calm, "a write does not become a read");
        return Err(Told);
    };
    let took = calm.since(started_ms);
    if took != 2 * calm.fastest {
        costs(calm, &format!("a downgrade took {took:?}, a round trip {:?}", calm.fastest));
    }
    let reader = handed(calm, reader, "a reader beside a write that became a read").await?;
    sleep(2 * calm.slowest).await;
    waits(calm, &mut behind, "a reader behind a writer that waits");
    drop(reader);
    sleep(2 * calm.slowest).await;
    waits(calm, &mut writer, "a writer behind a write that became a read");
    drop(reading);
    let writing = handed(calm, writer, "a writer behind a write that became a read").await?;
    drop(writing);
    drop(handed(calm, behind, "the last reader").await?);
    Ok(())
}

/// A dead reader is gone at its own deadline, though another goes on.
async fn beside_a_dead_reader(calm: &Calm<'_>) -> Result<(), Told> {
    let machine = Machine::new("third");
    let third = connect(calm, &machine).await?;
    let lease = Duration::from_secs(15);
    let dying = third.rw_lock(LOCK).lease(lease);
    let dead = machine.run(async move { dying.read().await }).await;
    let Ok(living) = calm.holder.rw_lock(LOCK).lease(lease).read().await else {
        costs(calm, "a reader beside a reader does not enter");
        return Err(Told);
    };
    machine.kill();
    let writer = wait(calm, &calm.waiter, Kind::Write).await;
    sleep(lease * 101 / 100 + calm.slowest).await;
    if !living.is_held() {
        costs(calm, "a reader is lost with another");
    }
    drop(living);
    drop(handed(calm, writer, "a writer behind a living and a dead reader").await?);
    drop((dead, third));
    Ok(())
}

/// A writer that waits and dies keeps no reader out once its place has ended, though another
/// waits on until then.
async fn behind_a_dead_writer(calm: &Calm<'_>) -> Result<(), Told> {
    let machine = Machine::new("third");
    let third = connect(calm, &machine).await?;
    let reading = free(calm, READ).await?;
    let dying = asking(&third, Kind::Write);
    let dead = tokio::spawn(machine.run(async move { dying.lock().await }));
    sleep(settling(calm)).await;
    machine.kill();
    let living = wait(calm, &calm.waiter, Kind::Write).await;
    sleep(Duration::from_millis(WAITER_DEADLINE_MS * 101 / 100) + calm.slowest).await;
    living.abort();
    drop(living.await);
    sleep(calm.slowest).await;
    let tried = asking(&calm.holder, READ).try_lock().await;
    if !matches!(tried, Ok(Some(_))) {
        costs(calm, &format!("a reader behind writers that are gone: {tried:?}"));
    }
    drop((tried, reading, dead, third));
    Ok(())
}

/// All voters forget who holds and give their votes to another, whom it excludes: the next renewal
/// tells.
async fn taken_over(calm: &Calm<'_>) -> Result<(), Told> {
    let within = Duration::from_millis(LEASE_MS * 101 / 300) + Duration::from_secs(2);
    for (kind, next) in [(READ, Kind::Write), (Kind::Write, READ)] {
        let former = free(calm, kind).await?;
        sleep(calm.slowest).await;
        for (number, voter) in calm.world.voters.iter().enumerate() {
            delete_all(voter);
            calm.world.unsteady(number);
        }
        let latter = asking(&calm.waiter, next).lock().await;
        if latter.is_err() || timeout(within, former.lost()).await.is_err() {
            let what = format!("{} is not told who has its votes", former.hold());
            calm.world.breach(Law::WhatIsTold, None, what);
        }
        drop((former, latter));
        sleep(2 * calm.slowest).await;
    }
    Ok(())
}

/// A client that dies with its machine.
async fn connect(calm: &Calm<'_>, machine: &Machine) -> Result<Quorate, Told> {
    calm::connect(calm.world, machine, 4_003).await.map_err(|error| {
        costs(calm, &format!("nobody can connect: {error}"));
        Told
    })
}

fn asking(client: &Quorate, kind: Kind) -> Asking {
    Asking::of(client, LOCK, kind)
}

/// The lock, which nobody has whom that excludes.
async fn free(calm: &Calm<'_>, kind: Kind) -> Result<Guard, Told> {
    in_one_trip(calm, "a free lock", asking(&calm.holder, kind).lock()).await
}

async fn release(guard: Guard) -> Result<(), Error> {
    guard.release().await
}

async fn in_one_trip<T>(
    calm: &Calm<'_>,
    what: &str,
    asked: impl Future<Output = Result<T, Error>>,
) -> Result<T, Told> {
    let started_ms = calm.world.now_ms();
    let outcome = asked.await;
    let (took, fastest) = (calm.since(started_ms), calm.fastest);
    if took != fastest {
        costs(calm, &format!("{what} took {took:?}, the fastest majority {fastest:?}"));
    }
    outcome.map_err(|error| {
        costs(calm, &format!("{what} fails: {error}"));
        Told
    })
}

type Waiting = JoinHandle<Result<Guard, Error>>;

/// Has somebody wait, until it has its ticket on all voters and hears when it is called.
async fn wait(calm: &Calm<'_>, client: &Quorate, kind: Kind) -> Waiting {
    let lock = asking(client, kind);
    let waiting = tokio::spawn(async move { lock.lock().await });
    sleep(settling(calm)).await;
    waiting
}

fn settling(calm: &Calm<'_>) -> Duration {
    6 * calm.slowest + 10 * MS
}

fn waits(calm: &Calm<'_>, waiting: &mut Waiting, who: &str) {
    if waiting.is_finished() {
        passes(calm, &format!("{who} enters before its turn"));
    }
}

async fn handed(calm: &Calm<'_>, waiting: Waiting, who: &str) -> Result<Guard, Told> {
    // There with the release, back with the call, and a round trip; perhaps after the answers to a
    // bid that just told the place again. Calls that do not come are waited for a little.
    let most = 4 * calm.slowest + 10 * MS;
    match timeout(most, waiting).await {
        Ok(Ok(Ok(guard))) => Ok(guard),
        other => {
            costs(calm, &format!("{who}: {other:?} after {most:?}"));
            Err(Told)
        }
    }
}

fn runs(calm: &Calm<'_>) -> Vec<u64> {
    calm.world.voters.iter().map(|voter| voter.runs("rw/acquire")).collect()
}

fn costs(calm: &Calm<'_>, what: &str) {
    calm.world.breach(Law::FewestTrips, None, format!("among readers: {what}"));
}

fn passes(calm: &Calm<'_>, what: &str) {
    calm.world.breach(Law::FairOrder, None, format!("among readers: {what}"));
}
